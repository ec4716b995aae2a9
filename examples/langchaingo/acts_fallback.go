package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/misbehave"
)

const firstToken = 500 * time.Millisecond

func impatient(cfg *interlock.Config) {
	cfg.Fallback.FirstToken = firstToken
	cfg.Fallback.Requires = fallback.CapTools | fallback.CapHistory
}

// streamCut lets the primary break off in the middle of its answer, once with chunks held back until the answer is whole
// and once with chunks handed on at once.
func streamCut(ctx context.Context, s *stack) (string, error) {
	var outcomes []string
	for _, mode := range []struct {
		note   string
		stream fallback.StreamMode
	}{
		{"chunks are held back", fallback.Buffered{}},
		{"chunks are handed on at once", fallback.Passthrough{}},
	} {
		if err := s.newGuard(func(cfg *interlock.Config) { cfg.Fallback.Stream = mode.stream }); err != nil {
			return "", err
		}
		s.timeline.note(mode.note)
		model, err := s.model(cutScript, lookupScript)
		if err != nil {
			return "", err
		}
		agent, err := functionsAgent(s, model)
		if err != nil {
			return "", err
		}
		text, chunks := listen()
		outcome := ask(ctx, s, agent, chunks)
		s.timeline.note(fmt.Sprintf("the caller has seen %d of %d bytes", text.Len(), len(summary)))
		if whole := text.String() == summary; whole != (outcome == answered) || !strings.HasPrefix(summary, text.String()) {
			return "", errors.New("the chunks do not fit the outcome")
		}
		outcomes = append(outcomes, outcome)
	}

	return strings.Join(outcomes, ", "), s.refusals()
}

// listen collects the chunks of a stream.
func listen() (*strings.Builder, chains.ChainCallOption) {
	var text strings.Builder

	return &text, chains.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
		if !strings.HasPrefix(string(chunk), `[{"`) { // openai's client streams its calls too
			text.Write(chunk)
		}

		return nil
	})
}

// silentProvider lets the primary take every request and say nothing.
func silentProvider(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(silent, refundScript)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	_, chunks := listen()

	return ask(ctx, s, agent, chunks), s.refusals()
}

// crossVendor lets the primary leave after its first call of a tool.
func crossVendor(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(leavesScript, takesOverScript)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}

	return ask(ctx, s, agent), s.refusals()
}

// refusals fails if a provider refused what it was sent: the servers are as strict as the vendors.
func (s *stack) refusals() error {
	for _, srv := range s.servers {
		for _, r := range srv.Requests() {
			if r.Violation != misbehave.NoViolation {
				return fmt.Errorf("%s refused a request: %s", r.Vendor, r.Violation)
			}
		}
	}

	return nil
}

// The flap: a call every four seconds for two minutes, of which the primary is down for the first.
const (
	interval = 4 * time.Second
	downFor  = time.Minute
	watched  = 2 * time.Minute
)

// flap moves a clock instead of waiting.
func flap(ctx context.Context, s *stack) (string, error) {
	begin := time.Now()
	var passed atomic.Int64
	err := s.newGuard(func(cfg *interlock.Config) {
		cfg.Now = func() time.Time { return begin.Add(time.Duration(passed.Load())) }
		cfg.Fallback.NoRetry = true // it would wait
	})
	if err != nil {
		return "", err
	}
	model, err := s.model(func(r misbehave.Request) misbehave.Reply {
		if time.Duration(passed.Load()) < downFor {
			return down(r)
		}

		return misbehave.Reply{Text: "from the primary"}
	}, func(misbehave.Request) misbehave.Reply { return misbehave.Reply{Text: "from the secondary"} })
	if err != nil {
		return "", err
	}
	primary := s.servers[0]
	probes, back := 0, time.Duration(0)
	for at := time.Duration(0); at < watched; at += interval {
		passed.Store(int64(at))
		asked := primary.Count()
		answer, err := askOnce(ctx, s, model)
		if err != nil {
			return outcome("", err), nil
		}
		if at > 0 && back == 0 && primary.Count() > asked {
			probes++
			s.timeline.note(fmt.Sprintf("after %v the primary is asked again", at))
		}
		if back == 0 && answer == "from the primary" {
			back = at
		}
	}
	s.timeline.note(fmt.Sprintf("the primary is back %v after it recovered; probes: %d", back-downFor, probes))
	if back == 0 {
		return "never back", nil
	}

	return fmt.Sprintf("%s, back on the primary after %d probes", answered, probes), nil
}

// askOnce is a run of one call.
func askOnce(ctx context.Context, s *stack, model llms.Model) (answer string, err error) {
	err = s.guard.Do(ctx, refunds(), func(ctx context.Context) error {
		answer, err = llms.GenerateFromSinglePrompt(ctx, model, question)

		return err //nolint:wrapcheck // content-free
	})

	return answer, err //nolint:wrapcheck // content-free
}
