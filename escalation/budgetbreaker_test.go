package escalation_test

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// The breaker hears of a run that is stopped: once, not of each refusal after
// it, and not of a single tool's limit.
func TestBudgetTellsTheBreaker(t *testing.T) {
	t.Parallel()
	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{FailureThreshold: 2})
	if err != nil {
		t.Fatal(err)
	}
	limits := wide()
	limits.ToolCalls = 1
	b, err := escalation.NewBudget(escalation.BudgetConfig{Limits: limits, Breaker: breaker})
	if err != nil {
		t.Fatal(err)
	}
	p := purse{Budget: b}
	tool := p.tool(t, "lookup", works)
	for n, want := range []middleware.CircuitState{middleware.CircuitClosed, middleware.CircuitOpen} {
		ctx, _ := p.start(t, t.Context())
		if err := useBudget(ctx, tool); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
		}
		if got := breaker.State(workflow); got != want {
			t.Errorf("after %d stopped runs the breaker is %v", n+1, got)
		}
	}
	if h := breaker.History(workflow); len(h) != 1 || h[0].Reason != middleware.ReasonBudgetExceeded {
		t.Errorf("%+v", h)
	}
}

// Risk patterns are what the breaker's Risk takes: what they find in an argument
// keeps the action from being run.
func TestRiskRefusesActions(t *testing.T) {
	t.Parallel()
	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{Risk: newRisk(t, nil).Rate, HardFailures: 2})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	e := newBench(t, nil)
	ctx, _ := e.start(t, t.Context())
	tool := e.chained(t, "shell", middleware.Effectful, breaker.Tool(), func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		ran++

		return works(ctx, c)
	})
	encoded := base64.StdEncoding.EncodeToString([]byte(dangerous))
	for input, refused := range map[string]bool{`{"command":"ls"}`: false, `{"command":"` + encoded + `"}`: true} {
		before := ran
		_, err := tool.Do(ctx, "", input)
		if errors.Is(err, middleware.ReasonGuardrail) != refused || (ran == before) != refused {
			t.Errorf("%s: %v, ran: %v", input, err, ran != before)
		}
		contentFree(t, err)
	}
}
