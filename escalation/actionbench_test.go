package escalation_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/sony/gobreaker/v2"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// BenchmarkActionBreaker is the cost of a closed breaker per action, beside the
// two steps of a gobreaker alone. The rows differ by what the duplicate
// detector has to look at; "bare" is the tool without the breaker, "gobreaker"
// the tool behind one, "with budget" the tool behind breaker and budget.
func BenchmarkActionBreaker(b *testing.B) {
	b.Run("gobreaker two-step", func(b *testing.B) {
		cb := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{})
		b.ReportAllocs()
		for b.Loop() {
			done, err := cb.Allow()
			if err != nil {
				b.Fatal(err)
			}
			done(nil)
		}
	})
	inputs := make([]string, 64)
	for i := range inputs {
		inputs[i] = fmt.Sprintf(`{"customer": "c-%s", "page": %d}`, strconv.Itoa(100000+i), i)
	}
	const output = `{"order": 7, "state": "shipped", "lines": [1, 2, 3]}`
	none := func(*rig) middleware.ToolMiddleware { return nil }
	breaker := func(r *rig) middleware.ToolMiddleware { return r.Tool() }
	withBudget := func(r *rig) middleware.ToolMiddleware {
		budget, err := escalation.NewBudget(escalation.BudgetConfig{Limits: wide(), Breaker: r.ActionBreaker})
		if err != nil {
			b.Fatal(err)
		}

		return middleware.Chain(budget.Tool(), r.Tool())
	}
	row := func(name string, chain func(*rig) middleware.ToolMiddleware, input func(i int) string, tools int) {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, func(c *escalation.ActionConfig) { c.Observer, c.Sink = nil, nil })
			ctx, _ := r.start(b)
			res := &middleware.ToolResult{Output: output}
			handler := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil }
			layers := chain(r)
			set := make([]*middleware.GuardedTool, tools)
			for i := range set {
				tool, err := middleware.NewTool(middleware.ToolConfig{
					Name: "tool" + strconv.Itoa(i), Effect: middleware.ReadOnly, Chain: layers,
				}, handler)
				if err != nil {
					b.Fatal(err)
				}
				set[i] = tool
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set[i%tools].Do(ctx, "id", input(i)); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.StopTimer()
			r.in(b, middleware.CircuitClosed)
		})
	}
	fresh := func(i int) string { return inputs[i%len(inputs)] }
	row("bare", none, fresh, 2)
	row("gobreaker", behindGobreaker, fresh, 2)
	row("other tool", breaker, fresh, 2)
	row("same tool, other arguments", breaker, fresh, 1)
	row("other tool, with budget", withBudget, fresh, 2)
	row("same tool, other arguments, with budget", withBudget, fresh, 1)
}

// behindGobreaker is what a caller would write with gobreaker alone.
func behindGobreaker(*rig) middleware.ToolMiddleware {
	cb := gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{})

	return func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			done, err := cb.Allow()
			if err != nil {
				return nil, err
			}
			res, err := next(ctx, c)
			done(err)

			return res, err
		}
	}
}
