package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// A custom executor whose model asks for the same order again and again. The
// first loop costs it one call; the second one ends the run.
func ExampleNew() {
	dog, err := watchdog.New(watchdog.Config{Policy: watchdog.TwoStrikes()})
	if err != nil {
		fmt.Println(err)

		return
	}
	lookup, err := middleware.NewTool(middleware.ToolConfig{
		Name: "lookup_order", Effect: middleware.ReadOnly, Chain: middleware.Chain(dog.Tool()),
	}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "order 7: shipped"}, nil
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
	for _, arguments := range []string{
		`{"id":7}`, `{"id":7.0}`, `{ "id": 7 }`, `{"id":7}`, `{"id":7e0}`, `{"id":7}`, `{"id":70e-1}`, `{"id":8}`,
	} {
		res, err := lookup.Do(ctx, "", arguments)
		if err == nil {
			fmt.Println(res.Output)
		} else if text, told := lookup.Observation(ctx, err); told {
			fmt.Println("to the model:", text)
		} else {
			fmt.Println("stop:", err)
		}
	}
	// Output:
	// order 7: shipped
	// order 7: shipped
	// order 7: shipped
	// order 7: shipped
	// order 7: shipped
	// to the model: This call was not made: it repeats earlier calls without anything new. Use what you already know, try something different, or give your final answer.
	// stop: interlock: watchdog: loop
	// stop: interlock: watchdog: loop
}

// The tool hangs; its context is cancelled, and because it could have paid,
// nobody may call it again.
func ExampleWatchdog_Tool_stall() {
	dog, err := watchdog.New(watchdog.Config{StallTimeout: 10 * time.Millisecond})
	if err != nil {
		fmt.Println(err)

		return
	}
	refund, err := middleware.NewTool(middleware.ToolConfig{Name: "issue_refund", Chain: middleware.Chain(dog.Tool())},
		func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-ctx.Done()

			return nil, context.Cause(ctx)
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
	_, err = refund.Do(ctx, "", `{"id":7}`)
	fmt.Println(err)
	fmt.Println(errors.Is(err, middleware.ReasonStalled))
	_, err = refund.Do(ctx, "", `{"id":8}`)
	fmt.Println(err)
	// Output:
	// interlock: tool issue_refund: outcome_unknown
	// true
	// interlock: watchdog: stalled
}

func ExamplePolicy() {
	policy := watchdog.Policy(func(d watchdog.Detection) watchdog.Action {
		if d.Reason == middleware.ReasonStalled {
			return watchdog.Escalate // a human looks after what hangs
		}

		return watchdog.TwoStrikes()(d)
	})
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonStalled}))
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonLoop, Strike: 1}))
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonLoop, Strike: 2}))
	// Output:
	// escalate
	// nudge
	// abort
}

func ExampleNew_invalid() {
	_, err := watchdog.New(watchdog.Config{LoopThreshold: 10})
	fmt.Println(err)
	// Output: interlock: watchdog: invalid_config: LoopWindow must be at least LoopThreshold+1
}

// pulse is a detector that computes on demand: it looks at the run from outside,
// at a quota of a provider say.
type pulse struct{ beats chan struct{} }

func (p pulse) Check(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
	return watchdog.Detection{}, false, nil
}

func (p pulse) Poll(context.Context, *middleware.Run) (watchdog.Detection, bool, error) {
	select {
	case p.beats <- struct{}{}:
	default:
	}

	return watchdog.Detection{}, false, nil
}

// A runner polls such detectors while a run is under way.
func ExampleNewRunner() {
	p := pulse{beats: make(chan struct{}, 1)}
	dog, err := watchdog.New(watchdog.Config{Detectors: []watchdog.Detector{p}, PollInterval: time.Millisecond})
	if err != nil {
		fmt.Println(err)

		return
	}
	runner, err := watchdog.NewRunner(watchdog.RunnerConfig{Watchdog: dog})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Receivers: []middleware.SignalReceiver{dog},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	if err := runner.Start(ctx); err != nil {
		fmt.Println(err)

		return
	}
	defer runner.Stop()
	<-p.beats
	fmt.Println("polled")
	// Output: polled
}

func ExamplePerReason() {
	policy := watchdog.PerReason(watchdog.TwoStrikes(), map[middleware.Reason]watchdog.Policy{
		middleware.ReasonStalled:    func(watchdog.Detection) watchdog.Action { return watchdog.Escalate },
		middleware.ReasonRegression: func(watchdog.Detection) watchdog.Action { return watchdog.Observe },
	})
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonLoop, Strike: 1}))
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonStalled, Strike: 1}))
	fmt.Println(policy(watchdog.Detection{Reason: middleware.ReasonRegression, Strike: 1}))
	// Output:
	// nudge
	// escalate
	// observe
}
