package looptrace

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// Firing is one detection during a replay.
type Firing struct {
	// Step that was being replayed, from 1.
	Step   int
	Reason middleware.Reason
	// Count was counted against Limit.
	Count, Limit int
}

// ReplayError says at which step a replay stopped being what the trace says:
// something refused a call, or let one pass. Its text holds nothing else.
type ReplayError struct {
	step  int
	cause error
}

// Step returns the number of the step, from 1.
func (e *ReplayError) Step() int { return e.step }

// Error returns the step.
func (e *ReplayError) Error() string {
	return "looptrace: the replay left the trace: step " + strconv.Itoa(e.step)
}

// Unwrap returns what the call failed with, or nil.
func (e *ReplayError) Unwrap() error { return e.cause }

// Replay makes the calls of the trace under a watchdog with that detector, and
// returns its firings in order. It blocks nothing. It fails with [ErrDetector],
// with an error of the library, or with a [ReplayError].
func Replay(ctx context.Context, d Detector, t *Trace) ([]Firing, error) {
	p := &player{trace: t, tools: make(map[string]*middleware.GuardedTool, len(t.Tools))}
	cfg, err := d.config()
	if err != nil {
		return nil, err
	}
	cfg.Policy = p.heard
	dog, err := watchdog.New(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.register(dog); err != nil {
		return nil, err
	}
	run := middleware.RunConfig{Workflow: ident.MustWorkflowID("workflow:org.example/looptrace")}
	if r, ok := any(dog).(middleware.SignalReceiver); ok {
		run.Receivers = []middleware.SignalReceiver{r}
	}
	ctx, r, err := middleware.StartRun(ctx, run)
	if err != nil {
		return nil, err
	}
	defer r.End()
	if err := p.play(ctx); err != nil {
		return nil, err
	}

	return p.firings, nil
}

// player is one replay.
type player struct {
	trace   *Trace
	model   llms.Model
	tools   map[string]*middleware.GuardedTool // by name, as an executor looks them up
	talk    conversation
	step    int // under way, an index
	until   int // the end of the turn under way
	firings []Firing
}

// heard is the policy.
func (p *player) heard(d watchdog.Detection) watchdog.Action {
	p.firings = append(p.firings, Firing{Step: p.step + 1, Reason: d.Reason, Count: d.Count, Limit: d.Limit})

	return watchdog.Observe
}

func (p *player) register(dog *watchdog.Watchdog) error {
	p.talk = newConversation(p.trace)
	labels := make(map[ident.Label]struct{}, len(p.trace.Tools))
	for i, tool := range p.trace.Tools {
		effect, _ := effectOf(tool.Effect)
		label, err := middleware.LabelFor(tool.Name)
		if _, taken := labels[label]; taken || err != nil {
			label = ident.MustLabel("tool." + strconv.Itoa(i)) // no name makes this one
		}
		labels[label] = struct{}{}
		guarded, err := middleware.NewTool(middleware.ToolConfig{
			Name: tool.Name, Label: label, Effect: effect, Chain: dog.Tool(),
		}, p.answerCall)
		if err != nil {
			return err
		}
		p.tools[strings.ToUpper(tool.Name)] = guarded
	}
	var err error
	p.model, err = middleware.NewModel(p.answerRequest, middleware.ModelConfig{Chain: dog.Model()})

	return err
}

func (p *player) play(ctx context.Context) error {
	for p.step < len(p.trace.Steps) {
		first := p.step
		p.until = first + 1
		for p.until < len(p.trace.Steps) && p.trace.Steps[p.until].Turn == p.trace.Steps[first].Turn {
			p.until++
		}
		_, err := p.model.GenerateContent(ctx, p.talk.messages(), p.talk.options...)
		if outage := p.trace.Steps[first].kind() == stepOutage; outage != (err != nil) {
			return &ReplayError{step: p.step + 1, cause: err}
		}
		for ; p.step < p.until; p.step++ {
			s := &p.trace.Steps[p.step]
			if s.kind() == stepCall {
				if err := p.call(ctx, s); err != nil {
					return err
				}
			}
		}
		p.talk.turn(p.trace.Steps[first:p.until], first)
	}

	return nil
}

// call makes the call of a step, and holds what comes back against the trace.
func (p *player) call(ctx context.Context, s *Step) error {
	res, err := p.tools[strings.ToUpper(s.Tool)].Do(ctx, callID(p.step), *s.Args)
	_, denied := errors.AsType[*middleware.Denial](err)
	ok := false
	switch s.Result {
	case ResultOK:
		ok = err == nil && res != nil && res.Output == *s.Text && res.Final == s.Final
	case ResultError:
		ok = err != nil && !denied
	case ResultRefused:
		ok = denied && middleware.ReasonOf(err) == middleware.ReasonParked
	default:
	}
	if !ok {
		return &ReplayError{step: p.step + 1, cause: err}
	}

	return nil
}

// answerCall is the tool of every call.
func (p *player) answerCall(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
	s := &p.trace.Steps[p.step]
	if s.Progress != nil {
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: *s.Progress})
	}
	switch s.Result {
	case ResultOK:
		return &middleware.ToolResult{Output: *s.Text, Final: s.Final}, nil
	case ResultRefused: // by a layer inside of the watchdog, softly: the run goes on
		return nil, middleware.NewDenial(middleware.Refusal{
			Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentBreaker,
			Reason: middleware.ReasonParked, Verdict: middleware.VerdictModify,
		})
	default:
		if reason, infra := infraReason(s.Infra); infra {
			return nil, middleware.NewFailure(middleware.ComponentFallback, reason, call.Label(), errors.New(*s.Text))
		}

		return nil, errors.New(*s.Text)
	}
}

// answerRequest is the model: it gives the response of the turn under way.
func (p *player) answerRequest(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
	steps := p.trace.Steps[p.step:p.until]
	if reason, outage := infraReason(steps[0].Infra); outage && steps[0].kind() == stepOutage {
		return nil, middleware.NewFailure(middleware.ComponentFallback, reason, ident.Label{})
	}

	return &middleware.ModelResult{Response: p.talk.response(steps, p.step)}, nil
}

func callID(step int) string { return "call_" + strconv.Itoa(step+1) }
