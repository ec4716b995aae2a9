package watchdog_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func TestModelConformance(t *testing.T) {
	t.Parallel()
	conformance.Model(t, conformance.ModelSuite{New: func(t *testing.T) middleware.ModelMiddleware {
		t.Helper()

		return newDog(t, watchdog.Config{}).Model()
	}})
}

// TestInventedTools counts calls of tools that were not offered in the request.
func TestInventedTools(t *testing.T) {
	t.Parallel()
	tools := []llms.CallOption{llms.WithTools([]llms.Tool{{
		Type: "function", Function: &llms.FunctionDefinition{Name: "lookup_order"},
	}})}
	functions := []llms.CallOption{llms.WithFunctions([]llms.FunctionDefinition{{Name: "lookup_order"}})}
	asks := func(names ...string) *llms.ContentChoice {
		c := &llms.ContentChoice{StopReason: "tool_calls"}
		for _, name := range names {
			c.ToolCalls = append(c.ToolCalls, llms.ToolCall{
				ID: name, Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: "{}"},
			})
		}

		return c
	}
	for name, tc := range map[string]struct {
		options []llms.CallOption
		choice  *llms.ContentChoice
		unknown int
	}{
		"offered tool":        {tools, asks("lookup_order"), 0},
		"offered function":    {functions, asks("lookup_order"), 0},
		"other case":          {tools, asks("Lookup_Order"), 0},
		"function other case": {functions, asks("LOOKUP_ORDER"), 0},
		"invented":            {tools, asks(secret), 1},
		"two of three":        {functions, asks("x", "lookup_order", "y"), 2},
		"nothing offered":     {nil, asks("lookup_order"), 1},
		"old form":            {functions, &llms.ContentChoice{StopReason: "stop", FuncCall: &llms.FunctionCall{Name: "x"}}, 1},
		"old form, offered":   {functions, &llms.ContentChoice{StopReason: "stop", FuncCall: &llms.FunctionCall{Name: "lookup_order"}}, 0},
		"no call":             {tools, &llms.ContentChoice{StopReason: "stop", Content: "done"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			dog := newDog(t, watchdog.Config{Observer: rec})
			model, err := middleware.NewModel(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{tc.choice}}}, nil
			}, middleware.ModelConfig{Chain: middleware.Chain(dog.Model())})
			if err != nil {
				t.Fatal(err)
			}
			ctx, run := startRun(t.Context(), t)
			if _, err := model.GenerateContent(ctx, nil, tc.options...); err != nil {
				t.Fatalf("the response was changed: %v", err)
			}
			seen := rec.decisions()
			if tc.unknown == 0 {
				if len(seen) > 0 {
					t.Errorf("decisions %v", rec.verdicts())
				}

				return
			}
			if len(seen) != 1 || seen[0].Reason != middleware.ReasonUnknownTool || seen[0].Count != tc.unknown ||
				seen[0].Verdict != middleware.VerdictAbstain || seen[0].Run != run.ID() || !seen[0].Label.IsZero() {
				t.Errorf("decisions %+v", seen)
			}
		})
	}
}
