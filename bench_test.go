package interlock_test

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// BenchmarkToolSeam is what a guarded call of a trivial read-only tool costs:
// the whole seam, then the same without one part or with one more, so that each
// part is seen apart. getppid is the machine's unit.
func BenchmarkToolSeam(b *testing.B) {
	b.Run("getppid", func(b *testing.B) {
		for b.Loop() {
			_ = os.Getppid()
		}
	})
	bare := aTool{"look", func(_ context.Context, in string) (string, error) { return in, nil }}
	inputs := make([]string, 1024) // calls that differ: an agent that repeats itself is stopped
	for i := range inputs {
		inputs[i] = "order-" + strconv.Itoa(1001+i)
	}
	b.Run("bare", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			if _, err := bare.Call(b.Context(), inputs[i%len(inputs)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, row := range []struct {
		name     string
		watchdog watchdog.Config
		effect   middleware.Effect
	}{
		{"no watchdog", watchdog.Config{DisableLoop: true, DisableStall: true}, middleware.ReadOnly},
		{"loop", watchdog.Config{DisableStall: true}, middleware.ReadOnly},
		{"stall", watchdog.Config{DisableLoop: true}, middleware.ReadOnly},
		{"whole", watchdog.Config{}, middleware.ReadOnly},
	} {
		b.Run(row.name, func(b *testing.B) {
			row.watchdog.Policy = func(watchdog.Detection) watchdog.Action { return watchdog.Observe }
			g, err := interlock.New(interlock.Config{
				Workflows: []interlock.Workflow{{ID: desk}}, Watchdog: row.watchdog,
				Budget: escalation.BudgetConfig{Limits: escalation.Limits{
					ModelCalls: escalation.NoLimit, ToolCalls: escalation.NoLimit, Tokens: escalation.NoLimit,
					WallTime: escalation.NoLimit, Steps: escalation.NoLimit,
				}},
			})
			if err != nil {
				b.Fatal(err)
			}
			tools, err := g.Tools(interlock.ReadOnly(bare))
			if err != nil {
				b.Fatal(err)
			}
			ctx, run, err := g.StartRun(b.Context(), desk)
			if err != nil {
				b.Fatal(err)
			}
			defer run.End(nil)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if _, err := tools[0].Call(ctx, inputs[i%len(inputs)]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
