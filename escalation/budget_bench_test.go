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
	b.Run("tool", func(b *testing.B) { benchTool(b, budget.Tool()(tool), 1) })
	b.Run("tool, nested twice", func(b *testing.B) { benchTool(b, budget.Tool()(tool), 3) })
	b.Run("tool, control", func(b *testing.B) { benchTool(b, middleware.At(middleware.StageBudget, passes)(tool), 1) })
	b.Run("tool, parallel", func(b *testing.B) {
		ctx := runs(b, 1)
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
	control := middleware.At(middleware.StageBudget, passesModel)(model)
	b.Run("model", func(b *testing.B) { benchModel(b, budget.Model()(model)) })
	b.Run("model, control", func(b *testing.B) { benchModel(b, control) })
	b.Run("model with a tool", func(b *testing.B) { benchModel(b, budget.Model()(model), f) })
	b.Run("model with a tool, control", func(b *testing.B) { benchModel(b, control, f) })
}

// runs starts runs within each other.
func runs(b *testing.B, depth int) context.Context {
	b.Helper()
	if depth == 0 {
		return b.Context()
	}
	ctx, run, err := middleware.StartRun(runs(b, depth-1), middleware.RunConfig{Workflow: workflow})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { run.End() })

	return ctx
}

func benchTool(b *testing.B, h middleware.ToolHandler, depth int) {
	b.Helper()
	ctx, call := runs(b, depth), &middleware.ToolCall{}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = h(ctx, call)
	}
}

func benchModel(b *testing.B, h middleware.ModelHandler, options ...llms.CallOption) {
	b.Helper()
	ctx, messages := runs(b, 1), humanSays("a question of some length")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = h(ctx, middleware.NewModelCall(messages, options...))
	}
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
