package micro

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/middleware"
)

// depths are the numbers of layers that do nothing.
func depths() []int { return []int{0, 1, 5, 10} }

// tools are calls of one tool: bare, through the adapter with layers that do
// nothing, and through a whole guard.
func tools(l *fixture.Ledgers) []row.Row {
	rows := []row.Row{
		{
			Name: bareTool, About: "the tool itself, which takes a result from a table",
			Prepare: func() (*row.Work, error) {
				tool, inputs, ctx := fixture.NewTool(), fixture.Inputs(), context.Background()

				return &row.Work{Run: func(n int) error {
					for i := range n {
						if err := fixture.Shipped(tool.Call(ctx, inputs[i&(fixture.Table-1)])); err != nil {
							return err
						}
					}

					return nil
				}}, nil
			},
		},
		chained("nested", 10, nest), chained("composed", 1, compose), chained("composed", 5, compose), chained("composed", 10, compose),
	}
	for _, n := range depths() {
		rows = append(rows, row.Row{
			Name: fmt.Sprintf("micro/tool/adapter-%d", n), RatioTo: bareTool,
			About:   fmt.Sprintf("langchaingo's form of a tool over a run's checks and %d layers that do nothing", n),
			Prepare: func() (*row.Work, error) { return adapted(n) },
		})
	}
	noGate, strict := fixture.Setup{Telemetry: fixture.NoOp}, fixture.Setup{Telemetry: fixture.NoOp}
	rows = append(rows,
		fixture.ToolRow(row.Row{
			Name: ungated, RatioTo: Getppid, About: "the whole guard around a read-only tool, no-op telemetry",
		}, l, 0, noGate),
		fixture.ToolRow(row.Row{
			Name: gated, RatioTo: Syscalls, About: "the whole guard around an effectful tool, strict SQLite gate, no-op telemetry",
		}, l, shortLedger, strict),
		fixture.ToolRow(row.Row{
			Name: ungated + "-parallel", Parallel: true, RatioTo: ungated, About: "the same in concurrent runs of one guard",
		}, l, 0, noGate),
		fixture.ToolRow(row.Row{
			Name: gated + "-parallel", Parallel: true, RatioTo: gated, About: "the same in concurrent runs of one guard",
		}, l, shortLedger, strict),
		fixture.ToolRow(row.Row{
			Name: gated + "-approved", RatioTo: gated, About: "the same with an approver that says yes at once",
		}, l, shortLedger, fixture.Setup{Telemetry: fixture.NoOp, Adjust: func(cfg *interlock.Config) {
			cfg.Approver = admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error { return nil })
		}}),
	)
	for _, n := range depths()[1:] {
		layered := fixture.Setup{Telemetry: fixture.NoOp, Layers: n}
		about := fmt.Sprintf("the same with %d layers of the user's that do nothing", n)
		rows = append(rows,
			fixture.ToolRow(row.Row{Name: fmt.Sprintf("%s/layers-%d", ungated, n), RatioTo: ungated, About: about}, l, 0, layered),
			fixture.ToolRow(row.Row{Name: fmt.Sprintf("%s/layers-%d", gated, n), RatioTo: gated, About: about}, l, shortLedger, layered))
	}
	for _, kind := range fixture.Kinds() {
		if kind == fixture.NoOp {
			continue // the rows above
		}
		about, s := "the same with telemetry "+kind.String(), fixture.Setup{Telemetry: kind}
		rows = append(rows,
			fixture.ToolRow(row.Row{Name: ungated + "/telemetry-" + kind.String(), RatioTo: ungated, About: about}, l, 0, s),
			fixture.ToolRow(row.Row{Name: gated + "/telemetry-" + kind.String(), RatioTo: gated, About: about}, l, shortLedger, s))
	}

	return append(rows, refused())
}

// chained is a handler behind n layers that do nothing, without any adapter.
func chained(how string, n int, build func(n int, h middleware.ToolHandler) middleware.ToolHandler) row.Row {
	r := row.Row{
		Name: fmt.Sprintf("micro/chain/%s-%d", how, n), About: fmt.Sprintf("%d layers that do nothing around a handler, %s", n, how),
		Prepare: func() (*row.Work, error) {
			result := new(middleware.ToolResult)
			h := build(n, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return result, nil })
			call, ctx := new(middleware.ToolCall), context.Background()

			return &row.Work{Run: row.Loop(func() error {
				if got, err := h(ctx, call); err != nil || got != result {
					return fixture.ErrWork
				}

				return nil
			})}, nil
		},
	}
	if how != "nested" {
		r.RatioTo = "micro/chain/nested-10"
	}

	return r
}

func nest(n int, h middleware.ToolHandler) middleware.ToolHandler {
	for range n {
		h = fixture.PassTool(h)
	}

	return h
}

func compose(n int, h middleware.ToolHandler) middleware.ToolHandler {
	layers := make([]middleware.ToolMiddleware, n)
	for i := range layers {
		layers[i] = fixture.PassTool
	}

	return middleware.Chain(layers...)(h)
}

// adapted is a tool behind n layers that do nothing.
func adapted(n int) (*row.Work, error) {
	layers := make([]middleware.ToolMiddleware, n)
	for i := range layers {
		layers[i] = fixture.PassTool
	}

	return behind(middleware.RunConfig{}, middleware.ReadOnly, layers...)
}

// behind is calls of a tool behind layers, in a run of its own.
func behind(cfg middleware.RunConfig, effect middleware.Effect, layers ...middleware.ToolMiddleware) (*row.Work, error) {
	tool, err := middleware.WrapTool(fixture.NewTool(), middleware.ToolConfig{Effect: effect, Chain: middleware.Chain(layers...)})
	if err != nil {
		return nil, err
	}
	cfg.Workflow = fixture.TheNames().Workflow
	ctx, run, err := middleware.StartRun(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	inputs := fixture.Inputs()

	return &row.Work{
		Run: func(n int) error {
			for i := range n {
				if err := fixture.Shipped(tool.Call(ctx, inputs[i&(fixture.Table-1)])); err != nil {
					return err
				}
			}

			return nil
		},
		Close: func() { run.End() },
	}, nil
}

// refused is a call that a halted run does not let through.
func refused() row.Row {
	return row.Row{
		Name: "micro/tool/refused/halted", RatioTo: ungated, About: "a call of a run that was halted: refused, the tool is not reached",
		Prepare: func() (*row.Work, error) {
			st, err := fixture.Setup{Telemetry: fixture.NoOp}.Open()
			if err != nil {
				return nil, err
			}
			middleware.RunFrom(st.Ctx).Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)

			return &row.Work{
				Run: row.Loop(func() error {
					if _, err := st.Tool.Call(st.Ctx, "A-1001"); middleware.ReasonOf(err) != middleware.ReasonCircuitOpen || st.Counted.Calls() > 0 {
						return fixture.ErrWork
					}

					return nil
				}),
				Close: st.Close,
			}, nil
		},
	}
}
