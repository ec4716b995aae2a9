package scale

import (
	"context"
	"fmt"
	"runtime"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// callsOfRun is how many tool calls a run makes.
const callsOfRun = 20

// manyRuns is from how many runs on a row takes its time.
const manyRuns = 10_000

// counts are the numbers of live runs.
func counts() []int { return []int{10, 100, 1_000, 10_000, 100_000} }

// fleet begins n runs, each of which makes so many calls and goes on living.
func fleet(st *fixture.Stack, n, calls int) ([]context.Context, error) {
	inputs, all := fixture.Inputs(), make([]context.Context, n)
	for i := range all {
		var err error
		if all[i], err = st.Another(); err != nil {
			return nil, err
		}
		for call := range calls {
			if err := fixture.Shipped(st.Tool.Call(all[i], inputs[(i+call)&(fixture.Table-1)])); err != nil {
				return nil, err
			}
		}
	}

	return all, nil
}

// runs are calls while many runs live: of one of them, and of all in turn.
func runs() []row.Row {
	var rows []row.Row
	for _, n := range counts() {
		rows = append(rows,
			row.Row{
				Series: liveRuns, X: float64(n), Slow: n >= manyRuns,
				About:   fmt.Sprintf("a guarded call of one run while %d others live", n),
				Prepare: func() (*row.Work, error) { return calling(n, 1) },
			},
			row.Row{
				Series: liveRunsCold, X: float64(n), Slow: n >= manyRuns,
				About:   fmt.Sprintf("guarded calls of %d live runs in turn", n),
				Prepare: func() (*row.Work, error) { return calling(n, n) },
			})
	}

	return rows
}

// calling is calls of the first of n live runs, in turn.
func calling(n, first int) (*row.Work, error) {
	st, err := fixture.Setup{Telemetry: fixture.NoOp}.Open()
	if err != nil {
		return nil, err
	}
	all, err := fleet(st, n, 1)
	if err != nil {
		st.Close()

		return nil, err
	}
	inputs, next := fixture.Inputs(), 0

	return &row.Work{Close: st.Close, Run: func(calls int) error {
		for range calls {
			ctx := all[next%first]
			if err := fixture.Shipped(st.Tool.Call(ctx, inputs[next&(fixture.Table-1)])); err != nil {
				return err
			}
			next++
		}

		return nil
	}}, nil
}

// memories are what live runs need.
func memories() []row.Row {
	var rows []row.Row
	for _, n := range []int{1_000, 10_000, 100_000} {
		rows = append(rows, row.Row{
			Series: memory, X: float64(n), Unit: row.Bytes, Slow: n >= manyRuns, Long: n >= manyRuns,
			About:   fmt.Sprintf("memory of one of %d live runs that have made %d tool calls each", n, callsOfRun),
			Measure: func() (float64, error) { return perRun(n) },
		})
	}

	return rows
}

// perRun is the heap that n live runs need, for each of them: what is there more
// than without them, once the garbage is collected.
func perRun(n int) (float64, error) {
	st, err := fixture.Setup{Telemetry: fixture.NoOp}.Open()
	if err != nil {
		return 0, err
	}
	defer st.Close()
	before := live()
	all, err := fleet(st, n, callsOfRun)
	if err != nil {
		return 0, err
	}
	after := live()
	runtime.KeepAlive(all)
	if after <= before {
		return 0, fixture.ErrWork
	}

	return float64(after-before) / float64(n), nil
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&m)

	return m.HeapAlloc + m.StackInuse
}
