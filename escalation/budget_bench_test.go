package escalation_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// BenchmarkBudget is the cost of the budget for a call that is admitted. The
// control row is the same call in the same run with the stage mark alone.
func BenchmarkBudget(b *testing.B) {
	res := &middleware.ToolResult{}
	tool := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil }
	answer := &middleware.ModelResult{
		Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "an answer"}}}, InputTokens: 1, OutputTokens: 1,
	}
	model := func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return answer, nil }
	limits := wide()
	limits.PerTool = map[ident.Label]int{ident.MustLabel("lookup"): 1}
	budget, err := escalation.NewBudget(escalation.BudgetConfig{Limits: limits})
	if err != nil {
		b.Fatal(err)
	}
	start := func(b *testing.B, ctx context.Context) context.Context { //nolint:revive // b first reads better here
		b.Helper()
		ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { run.End() })

		return ctx
	}
	callTool := func(h middleware.ToolHandler, depth int) func(*testing.B) {
		return func(b *testing.B) {
			ctx := start(b, b.Context())
			for range depth {
				ctx = start(b, ctx)
			}
			call := &middleware.ToolCall{}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = h(ctx, call)
			}
		}
	}
	callModel := func(h middleware.ModelHandler, options ...llms.CallOption) func(*testing.B) {
		return func(b *testing.B) {
			ctx := start(b, b.Context())
			messages := humanSays("a question of some length")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = h(ctx, middleware.NewModelCall(messages, options...))
			}
		}
	}
	b.Run("tool", callTool(budget.Tool()(tool), 0))
	b.Run("tool, nested twice", callTool(budget.Tool()(tool), 2))
	b.Run("tool, control", callTool(middleware.At(middleware.StageBudget, passes)(tool), 0))
	b.Run("tool, parallel", func(b *testing.B) {
		ctx := start(b, b.Context())
		h := budget.Tool()(tool)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			call := &middleware.ToolCall{}
			for pb.Next() {
				_, _ = h(ctx, call)
			}
		})
	})
	f := llms.WithFunctions([]llms.FunctionDefinition{{Name: "lookup", Description: "looks up", Parameters: map[string]any{
		"type": "object", "required": []string{"__arg1"},
		"properties": map[string]any{"__arg1": map[string]string{"title": "__arg1", "type": "string"}},
	}}})
	b.Run("model", callModel(budget.Model()(model)))
	b.Run("model, control", callModel(middleware.At(middleware.StageBudget, passesModel)(model)))
	b.Run("model with a tool", callModel(budget.Model()(model), f))
	b.Run("model with a tool, control", callModel(middleware.At(middleware.StageBudget, passesModel)(model), f))
}

func passes(next middleware.ToolHandler) middleware.ToolHandler {
	return func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		if err := middleware.CheckRun(ctx); err != nil {
			return nil, err
		}

		return next(ctx, c)
	}
}

func passesModel(next middleware.ModelHandler) middleware.ModelHandler {
	return func(ctx context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
		if err := middleware.CheckRun(ctx); err != nil {
			return nil, err
		}

		return next(ctx, c)
	}
}
