//go:build !race

package watchdog_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestAllocations counts what the hook adds to a tool without one. The race
// detector makes pools forget on purpose.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts
	res := &middleware.ToolResult{}
	fn := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil }
	count := func(layers ...middleware.ToolMiddleware) float64 {
		tool := toolOf(t, "lookup", middleware.ReadOnly, fn, layers...)
		ctx, _ := startRun(t.Context(), t)
		inputs, n := inputs(), 0

		return testing.AllocsPerRun(500, func() {
			if _, err := tool.Do(ctx, "id", inputs[n%16]); err != nil {
				t.Fatal(err)
			}
			n++
		})
	}
	bare := count()
	if n := count(newDog(t, watchdog.Config{DisableStall: true, Loop: watchdog.LoopRepeat}).Tool()) - bare; n != 0 {
		t.Errorf("the loop detector allocates %v times", n)
	}
	if n := count(newDog(t, watchdog.Config{DisableStall: true, Policy: always(watchdog.Observe)}).Tool()) - bare; n != 0 {
		t.Errorf("the progress detector allocates %v times", n)
	}
	if n := count(newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat}).Tool()) - bare; n > 4 {
		t.Errorf("the stall clock allocates %v times, want at most 4", n)
	}
}

// TestStateAtAMillion: the tables of the default loop detector do not grow with
// history.
func TestStateAtAMillion(t *testing.T) {
	t.Parallel()
	r := watchdog.NewRules(middleware.ReadOnly)
	var at10k uintptr
	for n := range uint64(1_000_000) {
		r.Call(n, n/3, int(n/2))
		if n == 10_000 {
			at10k = r.Size()
		}
	}
	if size := r.Size(); size > 8<<10 || size != at10k {
		t.Errorf("%d bytes after a million calls, %d after ten thousand; want at most 8 KiB", size, at10k)
	}
}
