package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

const (
	answered = "answered"
	// drainTimeout is how long the act waits for an effect that it keeps in flight.
	drainTimeout = 50 * time.Millisecond
	question     = "My order 1001 arrived damaged. Please give me my money back."
)

// act is one story: what is set up, what happens, and how it has to end.
type act struct {
	name, about string
	ledger      bool // admission is provisioned and enabled
	play        func(ctx context.Context, s *stack) (outcome string, err error)
	want        string // the outcome
	effects     int    // rows written
	adjust      func(*interlock.Config)
}

func acts() []act {
	return []act{
		{
			name: "healthy", about: "a ticket is answered, a refund is written",
			ledger: true, play: healthy, want: answered, effects: 2,
		},
		{
			name: "provider-down", about: "the primary answers 503: the fallback answers",
			ledger: true, play: providerDown, want: answered, effects: 2,
		},
		{
			name: "stream-cut", about: "a streamed answer breaks off: held back it is rescued, handed on it is an honest error",
			play: streamCut, want: "answered, interrupted",
		},
		{
			name: "silent-provider", about: "the primary says nothing: the fallback answers within the limit of the first token",
			ledger: true, play: silentProvider, want: answered, effects: 2, adjust: impatient,
		},
		{
			name: "cross-vendor", about: "the vendor changes in the middle of a run, with calls and results",
			ledger: true, play: crossVendor, want: answered, effects: 2,
		},
		{
			name: "flap", about: "the primary is down for a minute, and is asked again once per bench",
			play: flap, want: "answered, back on the primary after 2 probes",
		},
		{
			name: "loop", about: "the model repeats one call: nudged, then stopped",
			ledger: true, play: loop, want: "loop",
		},
		{
			name: "stall", about: "two tools hang and ignore their contexts: the agent goes on without them",
			ledger: true, play: stall, want: "stalled, outcome_unknown", adjust: detach,
		},
		{
			name: "polling", about: "the model asks a dozen times whether money has arrived: left alone",
			play: polling, want: answered,
		},
		{
			name: "escalate", about: "a tool fails until the breaker trips: a human is asked",
			ledger: true, play: escalate, want: "circuit_open",
		},
		{
			name: "parked", about: "nobody knows whether a refund was made: parked, a human asked, supervised, open again",
			ledger: true, play: parked, want: "outcome_unknown, parked, answered, answered", effects: 2,
		},
		{
			name: "budget", about: "the calls of a run are used up: one answer more, without tools",
			play: budget, want: answered, adjust: thrifty,
		},
		{
			name: "context", about: "the history fills the window: shortened, and the run goes on",
			play: shortened, want: answered, adjust: smallWindow,
		},
		{
			name: "stop", about: "another process stops admission between preview and effect",
			ledger: true, play: stop, want: "admission_stopped, stale_generation, answered, drained", effects: 3,
			adjust: patient,
		},
		{
			name: "default-off", about: "no ledger: no effect",
			play: healthy, want: "admission_disabled",
		},
	}
}

// patient lets a run be refused three times, so that the act can show two
// refusals in one run; by default the second one asks a human.
func patient(cfg *interlock.Config) {
	cfg.Escalation = escalation.DefaultPolicy()
	cfg.Escalation.PermissionDenial = 3
}

// detach lets an agent go on without a tool that ignores its context.
func detach(cfg *interlock.Config) { cfg.Watchdog.Detach = grace }

// functionsAgent is langchaingo's agent for models that call functions. This is
// all the wrapping there is: a guarded model, guarded tools, a run per call.
func functionsAgent(s *stack, model llms.Model) (*agents.Executor, error) {
	tools, err := s.guard.Tools(s.desk.tools()...)
	if err != nil {
		return nil, err //nolint:wrapcheck // content-free
	}

	return agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, tools),
		agents.WithMaxIterations(16), agents.WithCallbacksHandler(s.guard.Callbacks())), nil
}

// runAgent asks the question inside of a run.
func runAgent(ctx context.Context, agent chains.Chain) (string, error) {
	return chains.Run(ctx, agent, question) //nolint:wrapcheck // the guard gives it its form
}

// ask runs the agent once, as a run of its own, and gives the outcome's code.
func ask(ctx context.Context, s *stack, agent chains.Chain, options ...chains.ChainCallOption) string {
	return outcome(chains.Run(ctx, s.guard.Chain(refunds(), agent), question, options...))
}

func outcome(answer string, err error) string {
	if err != nil {
		return middleware.FailureReason(err, middleware.ReasonAgentFailed).String()
	}
	if strings.TrimSpace(answer) == "" {
		return "empty"
	}

	return answered
}

func healthy(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(refundScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}

	return ask(ctx, s, agent), nil
}

func providerDown(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(down, refundScript)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}

	return ask(ctx, s, agent), nil
}

// loop uses the other kind of agent: MRKL, whose calls are text.
func loop(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(loopScript, nil)
	if err != nil {
		return "", err
	}
	tools, err := s.guard.Tools(s.desk.tools()...)
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	agent := agents.NewExecutor(agents.NewOneShotAgent(model, tools),
		agents.WithMaxIterations(12), agents.WithCallbacksHandler(s.guard.Callbacks()))

	return ask(ctx, s, agent), nil
}

// stall hangs the look-up in one run and the refund in another. Whether the
// look-up was made is no matter; nobody can say whether the refund was, so that
// run ends and nobody is invited to pay twice.
func stall(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(refundScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	release := s.desk.hang()
	s.desk.lookupHangs.Store(true)
	outcomes := []string{ask(ctx, s, agent)}
	s.desk.lookupHangs.Store(false)
	s.desk.refundHangs.Store(true)
	outcomes = append(outcomes, ask(ctx, s, agent))
	s.timeline.note(fmt.Sprintf("abandoned and still running: %d", s.guard.Watchdog().Abandoned()))
	release()
	s.timeline.note("both have ended, and their results were dropped")

	return strings.Join(outcomes, ", "), nil
}

// polling asks the bank, which needs its time.
func polling(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(waitScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}

	return ask(ctx, s, agent), nil
}

func escalate(ctx context.Context, s *stack) (string, error) {
	s.desk.notifyFails.Store(true)
	model, err := s.model(notifyScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	// A server's form of a run: started and ended by hand, so that the handoff
	// can be read from it.
	ctx, run, err := s.guard.StartRun(ctx, refunds())
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	answer, err := chains.Run(ctx, agent, question)
	defer run.End(err)
	handoff, ok := run.Handoff()
	if !ok {
		return outcome(answer, err), nil
	}
	text, jsonErr := json.MarshalIndent(handoff, "", "  ")
	if jsonErr != nil {
		return "", fmt.Errorf("handoff: %w", jsonErr)
	}
	s.timeline.handoff(string(text))

	return outcome(answer, err), nil
}

// stop takes the preview, lets another process stop admission, and shows that
// the effect is refused; that enabling again is no return of the old authority;
// that a fresh preview goes through; and that an effect in flight is waited for.
func stop(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(refundScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	ctx, run, err := s.guard.StartRun(ctx, refunds())
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	defer run.End(nil)
	s.timeline.note("the run has taken its preview")

	if err := s.operator(ctx, "stop"); err != nil {
		return "", err
	}
	s.timeline.note("another process has stopped admission")
	outcomes := []string{outcome(chains.Run(ctx, agent, question))}

	if err := s.operator(ctx, "resume"); err != nil {
		return "", err
	}
	s.timeline.note("another process has enabled it again")
	outcomes = append(outcomes, outcome(chains.Run(ctx, agent, question)))

	preview, err := run.Preview(ctx)
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	s.timeline.note("the run has taken a fresh preview")
	outcomes = append(outcomes, outcome(chains.Run(ctx, agent, question)))
	drained, err := drain(ctx, s, preview)

	return strings.Join(append(outcomes, drained), ", "), err
}

// drain stops while an effect is in flight: that one is not recalled, and Drain
// says when it is over.
func drain(ctx context.Context, s *stack, preview middleware.Preview) (string, error) {
	control := s.guard.Admission()
	begun, finish, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := admission.Dispatch(ctx, control, preview, func(ctx context.Context) (string, error) {
			close(begun)
			<-finish

			return s.desk.notify(ctx, "1001")
		})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done: // refused
		return "", err
	}
	s.timeline.note("an effect is in flight")
	err := s.operator(ctx, "stop")
	s.timeline.note("another process has stopped admission")

	short, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	early := control.Drain(short)
	s.timeline.note("drain, while the effect is still in flight: " + outcome("drained", early))
	close(finish)
	late := control.Drain(ctx)
	s.timeline.note("drain, once more: the effect is over, nothing is in flight in this process")
	if err := errors.Join(err, late, <-done); err != nil {
		return "", err
	}
	if early == nil {
		return "drained too early", nil
	}

	return "drained", nil
}
