package canary_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/middleware"
)

// curious is an agent that looks things up until its budget is used up, in a
// window that is too small for all that it hears.
const curious = "curious"

// The tools, in their order.
const (
	look = iota
	pay
	_
	crash
)

// filler makes results long.
var filler = strings.Repeat(" and so on", 20)

// bounds lets a guard bound what agents do: every function that a user can give
// is there, and harmless.
func (w *world) bounds(c *interlock.Config) {
	w.t.Helper()
	patterns, err := escalation.NewRiskPatterns(escalation.RiskConfig{
		Patterns: []escalation.RiskPattern{{Label: ident.MustLabel("sql-drop"), Pattern: inside.enter(w.plan.pattern), Risk: 0.9}},
		Observer: c.Observer,
	})
	w.must(err)
	w.value(patterns)
	_, err = escalation.NewRiskPatterns(escalation.RiskConfig{
		Patterns: []escalation.RiskPattern{{Label: ident.MustLabel("broken"), Pattern: w.plan.pattern + "(", Risk: 0.9}},
	})
	w.err(err)
	c.Budget = escalation.BudgetConfig{Limits: escalation.DefaultBudget(), FinalAnswer: true}
	c.Budget.Limits.ToolCalls, c.Budget.Limits.Tokens = 8, escalation.NoLimit
	c.Context = &escalation.ContextConfig{
		Window:  1000,
		Drift:   func(context.Context, string, []string) (float64, error) { return 0.1, nil },
		Summary: func(context.Context, []llms.MessageContent) (string, error) { return "things were looked up", nil },
	}
	c.Confidence = func(context.Context, *middleware.ModelResult) (float64, bool) { return 0.9, true }
	c.Actions.HardFailures = 1
	c.Actions.Risk = patterns.Rate
	c.Actions.Slice = func(_ context.Context, call *middleware.ToolCall) ([]string, error) {
		return []string{call.Input() + " a", call.Input() + " b"}, nil
	}
	begin := time.Now()
	c.Now = func() time.Time { return begin.Add(time.Duration(w.passed.Load())) }
}

// bound does what reaches the bounds: the agent runs out of budget and window,
// a risk is found, and a parked workflow tries an effect in slices.
func (w *world) bound() {
	w.t.Helper()
	w.agent(curious, misbehave.VendorOpenAI)
	w.do(w.bounded, workflow("risky"), look, w.plan.risky)
	w.do(w.bounded, workflow("sliced"), crash, w.plan.input)
	w.passed.Store(int64(time.Minute))
	w.do(w.bounded, workflow("sliced"), pay, w.plan.input)
	for _, name := range []string{curious, "risky", "sliced"} {
		w.breaker(w.bounded, workflow(name))
	}
}

// TestWorld: a world in which nothing is planted gets to where the secret is
// looked for.
func TestWorld(t *testing.T) { //nolint:paralleltest // as TestMatrix
	var w *world
	capture(t, func() {
		w = newWorld(t, nil, otlpsink.GRPC)
		w.live()
	})
	heard := map[middleware.Reason]bool{}
	for _, d := range w.decisions {
		heard[d.Reason] = true
	}
	for _, want := range []middleware.Reason{
		middleware.ReasonOK, middleware.ReasonCircuitOpen, middleware.ReasonParked, middleware.ReasonPanic, middleware.ReasonTrial,
		middleware.ReasonGuardrail, middleware.ReasonBudgetExceeded, middleware.ReasonContextFull, middleware.ReasonAdmissionStopped,
	} {
		if !heard[want] {
			t.Errorf("nothing was decided because of %s", want)
		}
	}
	inside := string(w.requests)
	for _, want := range []string{"things were looked up", escalation.FinalSentence} {
		if !strings.Contains(inside, want) {
			t.Errorf("no request holds %q", want)
		}
	}
}
