package watchdog_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestStateIsBounded: what the hook keeps for a run takes at most 8 KiB however
// many calls there were, and is let go at the run's end while its context is
// still held.
func TestStateIsBounded(t *testing.T) { //nolint:paralleltest // it measures the heap
	for name, cfg := range map[string]watchdog.Config{ //nolint:paralleltest // as above
		"repeat":   {Loop: watchdog.LoopRepeat, LoopThreshold: 399, LoopWindow: watchdog.MaxLoopWindow},
		"progress": {Policy: always(watchdog.Observe)},
	} {
		t.Run(name, func(t *testing.T) { stateIsBounded(t, cfg) })
	}
}

func stateIsBounded(t *testing.T, cfg watchdog.Config) {
	t.Helper()
	const runs, calls = 64, 600
	dog := newDog(t, cfg)
	many := make([]*middleware.GuardedTool, 20)
	for i := range many {
		many[i] = toolOf(t, "lookup"+strconv.Itoa(i), middleware.ReadOnly, echo, dog.Tool())
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)

		return m.HeapAlloc
	}
	bare := make([]*middleware.Run, 0, runs)
	before := heap()
	for range runs {
		_, run := startRun(t.Context(), t)
		bare = append(bare, run)
	}
	empty := heap() - before
	ended := make([]*middleware.Run, 0, runs)
	before = heap()
	for range runs {
		ctx, run := startRun(t.Context(), t)
		for i := range calls {
			if _, err := many[i%len(many)].Do(ctx, "id", "number "+strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		ended = append(ended, run)
	}
	full := heap() - before
	if per := (int64(full) - int64(empty)) / runs; per > 8<<10 {
		t.Errorf("a run takes %d bytes, want at most 8 KiB", per)
	}
	for _, run := range ended {
		run.End()
	}
	if after := heap() - before; int64(after)-int64(empty) > 1<<10*runs {
		t.Errorf("after their end the runs still hold %d bytes each", (int64(after)-int64(empty))/runs)
	}
	runtime.KeepAlive(bare)
	runtime.KeepAlive(ended)
}
