package scale

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/middleware"
)

// decision is one that a gate reports for each effect.
func decision() middleware.Decision {
	n := fixture.TheNames()

	return middleware.Decision{
		Seq: 1, Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Reason: middleware.ReasonAdmissionEnabled, Workflow: n.Workflow, Label: n.Tool, Turn: 1, Attempt: 1, Generation: 4, Duration: 8000,
	}
}

// decisions are reports of a decision to many observers, and to telemetry that
// has heard of many.
func decisions() []row.Row {
	var rows []row.Row
	for _, n := range []int{1, 10, 100, 1_000} {
		rows = append(rows, row.Row{
			Series: observers, X: float64(n), About: fmt.Sprintf("a decision that %d observers hear of", n),
			Prepare: func() (*row.Work, error) {
				heard := 0
				members := make([]middleware.Observer, n)
				for i := range members {
					members[i] = middleware.ObserverFunc(func(context.Context, middleware.Decision) { heard++ })
				}
				all, d, ctx := middleware.Observers(members...), decision(), context.Background()

				return &row.Work{Run: func(calls int) error {
					before := heard
					for range calls {
						middleware.Notify(ctx, all, d)
					}
					if heard-before != n*calls {
						return fixture.ErrWork
					}

					return nil
				}}, nil
			},
		})
	}
	for _, n := range []int{10, 1_000, 100_000} {
		rows = append(rows, row.Row{
			Series: decided, X: float64(n), Slow: n >= 100_000,
			About:   fmt.Sprintf("a decision that the SDK's tracer and meter hear of, after %d others", n),
			Prepare: func() (*row.Work, error) { return observing(n) },
		})
	}

	return rows
}

func observing(before int) (*row.Work, error) {
	tel, end, err := fixture.Both.Open()
	if err != nil {
		return nil, err
	}
	d, ctx := decision(), context.Background()
	run := row.Loop(func() error {
		middleware.Notify(ctx, tel, d)

		return nil
	})
	if err := run(before); err != nil {
		end()

		return nil, err
	}

	return &row.Work{Run: run, Close: end}, nil
}
