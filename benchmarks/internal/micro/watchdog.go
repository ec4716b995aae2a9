package micro

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// Calls are after how many calls of a run the watchdog is measured.
func Calls() []int { return []int{10, 1_000, 100_000, 1_000_000} }

const manyCalls = 1_000_000

func watchdogs() []row.Row {
	var rows []row.Row
	for _, n := range Calls() {
		rows = append(rows, row.Row{
			Name: fmt.Sprintf("micro/watchdog/call-%d", n), RatioTo: adapter, Slow: n >= manyCalls,
			About:   fmt.Sprintf("the loop detector from the run's call %d on, hashing included, behind the adapter", n),
			Prepare: func() (*row.Work, error) { return Watch(n) },
		})
	}

	return append(rows, row.Row{
		Name: "micro/watchdog/json-1k", RatioTo: "micro/watchdog/call-10",
		About: "the same at its call 10, with arguments of 1 KiB of JSON, which are brought into canonical form",
		Prepare: func() (*row.Work, error) {
			return long(`{"note":"` + strings.Repeat("x", 1000) + `","order":"`)
		},
	})
}

// Watch is calls behind the loop detector, before of which have been made.
func Watch(before int) (*row.Work, error) {
	w, err := watched(watchdog.Config{DisableStall: true})()
	if err != nil {
		return nil, err
	}
	if err := w.Run(before); err != nil {
		w.Release()

		return nil, err
	}

	return w, nil
}

// long is calls behind the loop detector with long arguments.
func long(begin string) (*row.Work, error) {
	dog, err := watchdog.New(watchdog.Config{DisableStall: true})
	if err != nil {
		return nil, err
	}
	tool, err := middleware.WrapTool(fixture.NewTool(), middleware.ToolConfig{Effect: middleware.ReadOnly, Chain: dog.Tool()})
	if err != nil {
		return nil, err
	}
	ctx, end, err := startRun()
	if err != nil {
		return nil, err
	}
	inputs := fixture.Inputs()
	for i, in := range inputs {
		inputs[i] = begin + in + `"}`
	}

	return &row.Work{Run: func(n int) error {
		for i := range n {
			if err := fixture.Shipped(tool.Call(ctx, inputs[i&(fixture.Table-1)])); err != nil {
				return err
			}
		}

		return nil
	}, Close: end}, nil
}
