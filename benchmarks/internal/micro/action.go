package micro

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	twoStep = "micro/breaker/gobreaker-two-step"
	bounds  = "micro/tool/layer/budget-and-actions"
)

// actions are the action breaker in its states, beside the form of gobreaker
// that it stands around, and the budget.
func actions() []row.Row {
	const closed = "micro/breaker/actions-closed"

	return []row.Row{
		{
			Name: twoStep, RatioTo: Getppid, About: "gobreaker's two-step form, closed: a permit, and a success",
			Prepare: func() (*row.Work, error) {
				cb := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{})

				return &row.Work{Run: row.Loop(func() error {
					done, err := cb.Allow()
					if err != nil {
						return err
					}
					done(nil)

					return nil
				})}, nil
			},
		},
		layer("budget", "the run budget", func() (*row.Work, error) {
			b, err := budget()
			if err != nil {
				return nil, err
			}

			return behind(middleware.RunConfig{Slots: []middleware.Slot{b.Slot()}}, middleware.ReadOnly, b.Tool())
		}),
		layer("actions", "the action breaker, closed", func() (*row.Work, error) {
			a, err := escalation.NewActionBreaker(actionConfig(nil))
			if err != nil {
				return nil, err
			}

			return behind(middleware.RunConfig{}, middleware.ReadOnly, a.Tool())
		}),
		layer("budget-and-actions", "the run budget and the action breaker, closed", func() (*row.Work, error) {
			b, err := budget()
			if err != nil {
				return nil, err
			}
			a, err := escalation.NewActionBreaker(actionConfig(nil))
			if err != nil {
				return nil, err
			}

			return behind(middleware.RunConfig{Slots: []middleware.Slot{b.Slot()}}, middleware.ReadOnly, b.Tool(), a.Tool())
		}),
		{
			Name: closed, RatioTo: twoStep, About: "a tool's handler behind the action breaker, closed",
			Prepare: func() (*row.Work, error) { return acting(false, false) },
		},
		{
			Name: "micro/breaker/actions-open", RatioTo: closed, About: "the same, open: parked, the tool is not reached",
			Prepare: func() (*row.Work, error) { return acting(true, false) },
		},
		{
			Name: "micro/breaker/actions-half-open", RatioTo: closed,
			About:   "the same, the recovery time over: a supervised trial fails, it is open again",
			Prepare: func() (*row.Work, error) { return acting(true, true) },
		},
	}
}

func budget() (*escalation.Budget, error) {
	return escalation.NewBudget(escalation.BudgetConfig{Limits: escalation.Limits{
		ModelCalls: escalation.MaxLimit, ToolCalls: escalation.MaxLimit, Tokens: escalation.MaxLimit,
		WallTime: time.Hour, Steps: escalation.MaxLimit,
	}})
}

func actionConfig(now func() time.Time) escalation.ActionConfig {
	n := fixture.TheNames()

	return escalation.ActionConfig{
		Workflows: map[ident.WorkflowID]ident.Label{n.Workflow: n.Agent}, FailureThreshold: 1, Now: now,
	}
}

// acting is actions behind a breaker in a state. Where it is to be half-open, its
// clock jumps by an hour before each action, and each fails.
func acting(open, recovers bool) (*row.Work, error) {
	var hours atomic.Int64
	begin := time.Now()
	b, err := escalation.NewActionBreaker(actionConfig(func() time.Time {
		return begin.Add(time.Duration(hours.Load()) * time.Hour)
	}))
	if err != nil {
		return nil, err
	}
	inner := fixture.NewTool()
	failing := false
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: inner.Name(), Effect: middleware.ReadOnly, Chain: b.Tool()},
		func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if failing {
				_, _ = inner.Call(ctx, call.Input())

				return nil, fixture.ErrDown
			}

			return inner.Handler(ctx, call)
		})
	if err != nil {
		return nil, err
	}
	ctx, end, err := startRun()
	if err != nil {
		return nil, err
	}
	inputs := fixture.Inputs()
	if failing = open; open {
		if _, err := tool.Do(ctx, "", inputs[0]); !errors.Is(err, fixture.ErrDown) {
			end()

			return nil, fixture.ErrWork
		}
	}

	return &row.Work{Close: end, Run: func(n int) error {
		before := inner.Calls()
		for i := range n {
			if recovers {
				hours.Add(1)
			}
			_, err := tool.Do(ctx, "", inputs[i&(fixture.Table-1)])
			if parked := errors.Is(err, escalation.ErrParked); parked != (open && !recovers) || (err == nil) != !open {
				return fixture.ErrWork
			}
		}
		reached := uint64(n) //nolint:gosec // n is not negative
		if open && !recovers {
			reached = 0
		}
		if inner.Calls()-before != reached {
			return fixture.ErrWork
		}

		return nil
	}}, nil
}
