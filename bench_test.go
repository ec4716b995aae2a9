package interlock_test

import (
	"context"
	"os"
	"testing"

	"github.com/interlock-go/interlock"
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
	bare := aTool{"look", func(context.Context, string) (string, error) { return "seen", nil }}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := bare.Call(b.Context(), "1001"); err != nil {
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
			for b.Loop() {
				if _, err := tools[0].Call(ctx, "1001"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
