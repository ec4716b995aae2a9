package scale

import (
	"fmt"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// talk is how many messages a conversation has where its length does not matter.
const talk = 4

// histories are calls of a run that has made many before, and calls with long
// conversations.
func histories() []row.Row {
	var rows []row.Row
	for _, n := range []int{10, 1_000, 100_000, 1_000_000} {
		rows = append(rows, row.Row{
			Series: toolHistory, X: float64(n), Slow: n >= 1_000_000,
			About: fmt.Sprintf("the whole guard around a read-only tool, from the run's call %d on, no-op telemetry", n),
			Prepare: func() (*row.Work, error) {
				return later(n, func(st *fixture.Stack) (*row.Work, error) { return st.ToolWork(false) })
			},
		})
	}
	for _, n := range []int{10, 1_000, 100_000} {
		rows = append(rows, row.Row{
			Series: modelHistory, X: float64(n), Slow: n >= 100_000,
			About: fmt.Sprintf("the whole guard around a model, from the run's call %d on, no-op telemetry", n),
			Prepare: func() (*row.Work, error) {
				return later(n, func(st *fixture.Stack) (*row.Work, error) { return st.ModelWork(false, talk) })
			},
		})
	}
	for _, n := range []int{2, 20, 200, 2_000} {
		r := row.Row{
			Series: messages, X: float64(n), About: fmt.Sprintf("the whole guard around a model, a conversation of %d messages, no-op telemetry", n),
		}
		rows = append(rows, fixture.ModelRow(r, n, fixture.Setup{Telemetry: fixture.NoOp}))
	}

	return rows
}

// later is work of which so much has been done before.
func later(before int, open func(*fixture.Stack) (*row.Work, error)) (*row.Work, error) {
	st, err := fixture.Setup{Telemetry: fixture.NoOp}.Open()
	if err != nil {
		return nil, err
	}
	w, err := open(st)
	if err != nil {
		st.Close()

		return nil, err
	}
	if err := w.Run(before); err != nil {
		w.Release()

		return nil, err
	}

	return w, nil
}
