package escalation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// The budget stands outside of everything but the run check. A run whose tool
// calls are used up may still answer, once and without tools.
func ExampleNewBudget() {
	lookup := ident.MustLabel("lookup_order")
	limits := escalation.DefaultBudget()
	limits.ToolCalls = 3
	limits.PerTool = map[ident.Label]int{lookup: 2}
	budget, err := escalation.NewBudget(escalation.BudgetConfig{Limits: limits, FinalAnswer: true})
	if err != nil {
		fmt.Println(err)

		return
	}
	found := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "found"}, nil
	}
	tools := map[string]*middleware.GuardedTool{}
	for _, name := range []string{"lookup_order", "notify_customer"} {
		tools[name], err = middleware.NewTool(middleware.ToolConfig{Name: name, Chain: budget.Tool()}, found)
		if err != nil {
			fmt.Println(err)

			return
		}
	}
	model, err := middleware.NewModel(func(_ context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{
			Content: fmt.Sprint("tools offered: ", call.Options().OffersTools()),
		}}}}, nil
	}, middleware.ModelConfig{Chain: budget.Model()})
	if err != nil {
		fmt.Println(err)

		return
	}

	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds@1.0.0"),
		Slots:    []middleware.Slot{budget.Slot()},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for _, name := range []string{"lookup_order", "lookup_order", "lookup_order", "notify_customer", "notify_customer"} {
		_, err := tools[name].Do(ctx, "", "4711")
		told, goesOn := tools[name].Observation(ctx, err)
		fmt.Printf("%s: %v, goes on: %v, %q\n", name, err, err == nil || goesOn, told)
	}
	for range 2 {
		answer, err := llms.GenerateFromSinglePrompt(ctx, model, "What became of order 4711?",
			llms.WithFunctions([]llms.FunctionDefinition{{Name: "lookup_order"}}))
		fmt.Println(answer, err, errors.Is(err, escalation.ErrBudgetExceeded))
	}
	used := budget.Used(run)
	fmt.Println(used.ToolCalls, "of", limits.ToolCalls, used.Stopped)
	// Output:
	// lookup_order: <nil>, goes on: true, ""
	// lookup_order: <nil>, goes on: true, ""
	// lookup_order: interlock: budget: tool_limit, goes on: true, "This call was not made: the limit for this tool is reached. Go on without it."
	// notify_customer: <nil>, goes on: true, ""
	// notify_customer: interlock: budget: budget_exceeded, goes on: true, "This call was not made: the limit for this run is reached. Give your final answer now with what you know."
	// tools offered: false <nil> false
	//  interlock: budget: budget_exceeded true
	// 3 of 3 tool_calls
}
