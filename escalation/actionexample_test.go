package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// A workflow whose actions keep failing is parked, a human is asked once, and
// after the recovery time it comes back under supervision.
func ExampleNewActionBreaker() {
	refunds := ident.MustWorkflowID("workflow:org.example/refunds")
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{
		Workflows:        map[ident.WorkflowID]ident.Label{refunds: ident.MustLabel("refunds")},
		FailureThreshold: 2,
		SuccessThreshold: 1,
		Sink: escalation.SinkFunc(func(_ context.Context, h escalation.Handoff) error {
			fmt.Println("asked:", h.ReasonCode().String(), h.RequestedDecision())

			return nil
		}),
		Now: func() time.Time { return now },
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	broken := true
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "lookup", Effect: middleware.ReadOnly, Chain: breaker.Tool()},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			if broken {
				return nil, errors.New("no such host")
			}

			return &middleware.ToolResult{Output: "order 7"}, nil
		})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: refunds, Receivers: []middleware.SignalReceiver{breaker},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for range 3 {
		_, err = tool.Do(ctx, "", "{}")
		fmt.Println(err, breaker.State(refunds))
	}
	fmt.Println(errors.Is(err, escalation.ErrParked))
	broken, now = false, now.Add(time.Minute)
	res, err := tool.Do(ctx, "", "{}")
	fmt.Println(res.Output, err, breaker.State(refunds))
	for _, tr := range breaker.History(refunds) {
		fmt.Println(tr.State, tr.Reason.String(), tr.Count)
	}
	// Output:
	// interlock: tool lookup: tool_failed closed
	// asked: safety_review assess_safety
	// interlock: tool lookup: tool_failed open
	// interlock: breaker: parked open
	// true
	// order 7 <nil> closed
	// open action_failed 2
	// half_open trial 1
	// closed recovered 1
}

// A half-open breaker tries a payment only in slices.
func ExampleActionBreaker_slice() {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{
		Slice: func(_ context.Context, call *middleware.ToolCall) ([]string, error) {
			if call.Input() != `{"orders":[7,8]}` {
				return nil, nil // cannot be cut: refused
			}

			return []string{`{"orders":[7]}`, `{"orders":[8]}`}, nil
		},
		Risk: func(_ context.Context, call *middleware.ToolCall) (float64, error) {
			if call.Input() == `{"orders":"all"}` {
				return 1, nil
			}

			return 0, nil
		},
		Now: func() time.Time { return now },
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: breaker.Tool()},
		func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{Output: "refunded " + call.Input()}, nil
		})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	_, err = tool.Do(ctx, "", `{"orders":"all"}`)
	fmt.Println(err)
	now = now.Add(time.Minute)
	res, err := tool.Do(ctx, "", `{"orders":[7,8]}`)
	fmt.Println(res.Output, err)
	_, err = tool.Do(ctx, "", `{"orders":[9]}`)
	fmt.Println(err)
	// Output:
	// interlock: breaker: guardrail
	// refunded {"orders":[7]}
	// refunded {"orders":[8]} <nil>
	// interlock: breaker: parked
}
