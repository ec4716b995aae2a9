package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// FuzzProgress plays any sequence of events: calls of eight tools, parallel ones,
// errors, refusals, outages, panics, signals, responses and inventions. Each
// byte is one event; with observe, every detection is let pass, else nudged.
//
// It holds: no panic; at most one detection per event; a call is refused exactly
// if there was one and it nudges; silent while there is too little to judge by;
// when observing, once per streak, which news ends.
func FuzzProgress(f *testing.F) {
	f.Add(false, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(true, []byte("\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01"))
	f.Add(false, []byte("\x20\x28\x30\x38\x40\x48\x50\x58\x60\x68\x70\x78"))
	f.Add(true, []byte("\xc0\xc0\xc0\xc0\xc1\xc2\xc3\xd0\xd1\xe0\xe0\xe0\xe0\xf0"))
	f.Add(false, []byte("\x80\x00\x88\x00\x90\x00\x98\x00\xa0\x00\xa8\x00\xb0\x00\xb8\x00\x80\x00"))
	f.Fuzz(func(t *testing.T, observe bool, events []byte) {
		if len(events) > 300 {
			return
		}
		fired, quiet := 0, 0
		action := watchdog.Nudge
		if observe {
			action = watchdog.Observe
		}
		dog, err := watchdog.New(watchdog.Config{DisableStall: true, Policy: func(d watchdog.Detection) watchdog.Action {
			fired++
			if d.Count < d.Limit || d.Limit < 3 || !(d.Severity > 0 && d.Severity <= 1) || d.Strike < 1 || d.Again >= d.Strike {
				t.Errorf("%+v", d)
			}

			return action
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := newPlayer(t, dog)
		defer p.run.End()
		for i, b := range events {
			before := fired
			blocked := p.event(b)
			switch n := fired - before; {
			case n > 1:
				t.Fatalf("event %d: %d detections", i, n)
			case n == 1 && quiet < 2:
				t.Fatalf("event %d: fired after %d events without news", i, quiet)
			case blocked && (observe || n == 0):
				t.Fatalf("event %d: refused without a reason", i)
			case n == 1 && !observe && !blocked && p.call(b):
				t.Fatalf("event %d: not refused", i)
			}
			quiet++
		}
	})
}

type player struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // of the run that the test plays
	run   *middleware.Run
	tools [8]*middleware.GuardedTool
	model llms.Model
	b     byte
	n     int
}

func newPlayer(t *testing.T, dog *watchdog.Watchdog) *player {
	t.Helper()
	p := &player{t: t}
	for i := range p.tools {
		p.tools[i] = toolOf(t, fmt.Sprint("tool", i), middleware.Effects()[i%4], p.answer, dog.Tool())
	}
	var err error
	p.model, err = middleware.NewModel(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		c := &llms.ContentChoice{Content: fmt.Sprint("text", p.b&3)}
		if p.b&4 > 0 {
			c.ToolCalls = []llms.ToolCall{{ID: "x", FunctionCall: &llms.FunctionCall{Name: fmt.Sprint("tool", p.b&11)}}}
		}

		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{c}}}, nil
	}, middleware.ModelConfig{Chain: middleware.Chain(dog.Model())})
	if err != nil {
		t.Fatal(err)
	}
	p.ctx, p.run, err = middleware.StartRun(t.Context(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/test"), Receivers: []middleware.SignalReceiver{dog},
	})
	if err != nil {
		t.Fatal(err)
	}

	return p
}

func (p *player) call(b byte) bool { return b < 0xd0 }

// event plays one byte: below 0xd0 a call (three bits of the tool, two of the
// arguments, the rest what comes of it), then responses and signals.
func (p *player) event(b byte) (blocked bool) {
	p.b = b
	p.n++
	switch {
	case p.call(b):
		_, err := p.tools[b&7].Do(p.ctx, "id", fmt.Sprintf(`{"a":"arg%d"}`, b>>3&3))
		d, denied := errors.AsType[*middleware.Denial](err)

		return denied && d.Component() == middleware.ComponentWatchdog
	case b < 0xf0:
		_, err := p.model.GenerateContent(p.ctx, chat("x"), offers)
		if err != nil {
			p.t.Fatalf("a response was refused: %v", err)
		}
	default:
		middleware.Report(p.ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: float64(b & 3)})
	}

	return false
}

func (p *player) answer(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
	switch p.b >> 5 {
	case 1:
		return nil, errTool
	case 2:
		return &middleware.ToolResult{Output: fmt.Sprint("new ", p.n)}, nil
	case 3:
		return &middleware.ToolResult{Output: "done", Final: true}, nil
	case 4:
		return nil, middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonNetwork, call.Label())
	case 5:
		if call.Effect().Repeatable() {
			panic(secret)
		}

		return &middleware.ToolResult{Output: "FAIL"}, nil
	default:
		return &middleware.ToolResult{Output: "same"}, nil
	}
}
