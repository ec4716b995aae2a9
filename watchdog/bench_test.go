package watchdog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// inputs are arguments that do not repeat within a window.
func inputs() [16]string {
	var all [16]string
	for i := range all {
		all[i] = fmt.Sprintf(`{"order":"A-%04d","page":1}`, i)
	}

	return all
}

// handler returns the hook around nothing, and a call for each input: the
// adapter's own cost is left out.
func handler(b *testing.B, cfg watchdog.Config) (context.Context, middleware.ToolHandler, [16]*middleware.ToolCall) {
	b.Helper()
	var calls [16]*middleware.ToolCall
	ctx, _ := startRun(context.Background(), b)
	for i, in := range inputs() {
		catch := toolOf(b, "lookup", middleware.ReadOnly, func(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			calls[i] = c

			return &middleware.ToolResult{}, nil
		})
		if _, err := catch.Do(ctx, "", in); err != nil {
			b.Fatal(err)
		}
	}
	res := &middleware.ToolResult{}
	h := newDog(b, cfg).Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil })

	return ctx, h, calls
}

func run(b *testing.B, cfg watchdog.Config, before int) {
	b.Helper()
	ctx, h, calls := handler(b, cfg)
	n := 0
	call := func() {
		if _, err := h(ctx, calls[n%16]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	for range before {
		call()
	}
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// BenchmarkRepeat is the loop detector behind the hook, with hashing (about
// 30 bytes of JSON), without the stall timer; hash is the hashing alone, and
// off the hook without any detector.
func BenchmarkRepeat(b *testing.B) {
	b.Run("off", func(b *testing.B) { run(b, watchdog.Config{DisableStall: true, DisableLoop: true}, 0) })
	b.Run("hash", func(b *testing.B) {
		keys, tool, all, n := callkey.New(), ident.MustLabel("lookup"), inputs(), 0
		for b.Loop() {
			keys.Call(tool, all[n%16])
			n++
		}
	})
	b.Run("call=10", func(b *testing.B) { run(b, watchdog.Config{Loop: watchdog.LoopRepeat, DisableStall: true}, 10) })
	b.Run("call=1000000", func(b *testing.B) { run(b, watchdog.Config{Loop: watchdog.LoopRepeat, DisableStall: true}, 1_000_000) })
	b.Run("window=400", func(b *testing.B) {
		run(b, watchdog.Config{Loop: watchdog.LoopRepeat, DisableStall: true, LoopThreshold: 100, LoopWindow: 400}, 400)
	})
}

// BenchmarkStall is the stall clock behind the hook, without the loop detector;
// open=1000 is the whole tool seam while that many other calls are open.
func BenchmarkStall(b *testing.B) {
	b.Run("off", func(b *testing.B) { run(b, watchdog.Config{DisableStall: true, DisableLoop: true}, 0) })
	b.Run("on", func(b *testing.B) { run(b, watchdog.Config{DisableLoop: true}, 0) })
	b.Run("open=1000", func(b *testing.B) {
		dog := newDog(b, watchdog.Config{DisableLoop: true})
		release, ready := make(chan struct{}), make(chan struct{})
		tool := toolOf(b, "lookup", middleware.ReadOnly, func(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			if c.Input() == "open" {
				ready <- struct{}{}
				<-release
			}

			return &middleware.ToolResult{}, nil
		}, dog.Tool())
		ctx, _ := startRun(context.Background(), b)
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { _, _ = tool.Do(ctx, "id", "open") })
			<-ready
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tool.Do(ctx, "id", "x"); err != nil {
				b.Fatal(err)
			}
		}
		close(release)
		wg.Wait()
	})
	b.Run("detach", func(b *testing.B) { run(b, watchdog.Config{DisableLoop: true, Detach: 1}, 0) })
}

func BenchmarkDefault(b *testing.B) {
	cfg := watchdog.DefaultConfig()
	cfg.Policy = func(watchdog.Detection) watchdog.Action { return watchdog.Observe } // equal results for ever are a loop
	run(b, cfg, 10)
}

// BenchmarkProgress is the default loop detector behind the hook, without the
// stall timer. hash is the hashing of arguments and results alone; what a call
// costs beside it is the difference. shallow repeats one round of 16 calls, deep
// has new arguments and results for each call, so that every table is full.
func BenchmarkProgress(b *testing.B) {
	result := "order 7: shipped, 3 parcels"
	shallow := func(b *testing.B, before int) { b.Helper(); progress(b, before, func(int) string { return result }) }
	results := [4096]string{}
	for i := range results {
		results[i] = fmt.Sprintf("order 7: shipped, %d parcels", i+10000)
	}
	deep := func(b *testing.B, before int) {
		b.Helper()
		progress(b, before, func(n int) string { return results[n%4096] })
	}
	b.Run("off", func(b *testing.B) { run(b, watchdog.Config{DisableStall: true, DisableLoop: true}, 0) })
	b.Run("hash", func(b *testing.B) {
		keys, tool, all, n := callkey.New(), ident.MustLabel("lookup"), inputs(), 0
		b.ReportAllocs()
		for b.Loop() {
			keys.Call(tool, all[n%16])
			keys.Results(all[n%16], result)
			n++
		}
	})
	b.Run("call=10", func(b *testing.B) { shallow(b, 10) })
	b.Run("call=1000000", func(b *testing.B) { shallow(b, 1_000_000) })
	b.Run("deep/call=10", func(b *testing.B) { deep(b, 10) })
	b.Run("deep/call=1000000", func(b *testing.B) { deep(b, 1_000_000) })
}

// BenchmarkRules is what LoopProgress costs beside hashing: all its rules and
// tables. known repeats calls, new has other arguments and another result each
// time.
func BenchmarkRules(b *testing.B) {
	for name, bits := range map[string]uint64{"known": 15, "new": ^uint64(0)} {
		for _, before := range []uint64{10, 1_000_000} {
			b.Run(fmt.Sprintf("%s/call=%d", name, before), func(b *testing.B) {
				r := watchdog.NewRules(middleware.ReadOnly)
				n := uint64(0)
				for ; n < before; n++ {
					r.Call(n&bits, n&bits, 0)
				}
				b.ReportAllocs()
				for b.Loop() {
					r.Call(n&bits, n&bits, 0)
					n++
				}
				if size := r.Size(); size > 8<<10 {
					b.Errorf("the state takes %d bytes", size)
				}
			})
		}
	}
}

func progress(b *testing.B, before int, result func(n int) string) {
	b.Helper()
	cfg := watchdog.Config{DisableStall: true, Policy: always(watchdog.Observe)}
	ctx, _, calls := handler(b, cfg)
	n, res := 0, &middleware.ToolResult{}
	h := newDog(b, cfg).Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		res.Output = result(n)

		return res, nil
	})
	call := func() {
		if _, err := h(ctx, calls[n%16]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	for range before {
		call()
	}
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
