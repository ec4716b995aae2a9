package middleware_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func say(name string) middleware.ToolMiddleware {
	return func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			fmt.Println(name, "in")
			defer fmt.Println(name, "out")

			return next(ctx, call)
		}
	}
}

// The first one is the outermost.
func ExampleChain() {
	chain := middleware.Chain(middleware.Recover, say("a"), say("b"), say("c"))
	handler := chain(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		fmt.Println("tool")

		return &middleware.ToolResult{}, nil
	})
	_, err := handler(context.Background(), &middleware.ToolCall{})
	fmt.Println(err)
	// Output:
	// a in
	// b in
	// c in
	// tool
	// c out
	// b out
	// a out
	// <nil>
}

// A gate outside of an approval is refused at the first call.
func ExampleAt() {
	pass := func(next middleware.ToolHandler) middleware.ToolHandler { return next }
	gate, approval := middleware.At(middleware.StageGate, pass), middleware.At(middleware.StageApproval, pass)
	for _, chain := range []middleware.ToolMiddleware{middleware.Chain(approval, gate), middleware.Chain(gate, approval)} {
		_, err := chain(pay)(context.Background(), &middleware.ToolCall{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// interlock: chain: unsafe_order
}

func pay(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	return &middleware.ToolResult{Output: "paid"}, nil
}

// An executor of one's own: a function becomes a guarded tool, and no type of
// langchaingo is involved.
func ExampleNewTool() {
	refund, err := middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: middleware.Chain(say("gate"))},
		func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{Output: "refunded " + call.Input()}, nil
		})
	if err != nil {
		fmt.Println(err)

		return
	}
	_, err = refund.Do(context.Background(), "call_1", "order 7")
	fmt.Println(err, errors.Is(err, middleware.ReasonNoRun))

	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds@1.0.0"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	res, err := refund.Do(ctx, "call_1", "order 7")
	fmt.Println(res.Output, err)
	// Output:
	// interlock: run: no_run true
	// gate in
	// gate out
	// refunded order 7 <nil>
}

// lookup is a tool as langchaingo knows it.
type lookup struct{}

func (lookup) Name() string        { return "Order Lookup" }
func (lookup) Description() string { return "Finds an order." }
func (lookup) Call(_ context.Context, input string) (string, error) {
	return "", fmt.Errorf("dial db://user:password@host: order %s", input)
}

// What an agent's executor gets for an error of a tool is a fixed sentence: the
// text of the error, which often holds more than it should, stays here.
func ExampleWrapTool() {
	tool, err := middleware.WrapTool(lookup{}, middleware.ToolConfig{Effect: middleware.ReadOnly})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds@1.0.0"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	fmt.Println(tool.Name(), tool.Label())
	fmt.Println(tool.Call(ctx, "7"))

	run.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
	fmt.Println(tool.Call(ctx, "7"))
	// Output:
	// Order Lookup order_lookup
	// The tool failed (tool_failed). Nothing is known of a result. Do not repeat the call unchanged more than once. <nil>
	//  interlock: watchdog: loop
}

// Each component of an agent keeps its own state for each run.
func ExamplePerRun() {
	calls := &middleware.PerRun[int]{New: func(*middleware.Run) (*int, error) { return new(int), nil }}
	_, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds@1.0.0"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	for range 2 {
		n, err := calls.Get(run)
		*n++
		fmt.Println(*n, err)
	}
	run.End()
	_, err = calls.Get(run)
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// interlock: run: run_ended
}
