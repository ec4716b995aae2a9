package watchdog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// naive is the rule of repeat as its specification words it.
type naive struct {
	threshold, window int
	calls             []byte
	silent            bool
	quiet             byte
}

func (n *naive) call(pair byte, a watchdog.Action) (fires bool) {
	n.calls = append(n.calls, pair)
	count := 0
	for _, c := range n.calls[max(0, len(n.calls)-n.window):] {
		if c == pair {
			count++
		}
	}
	if n.quiet != pair {
		n.silent = false
	}
	fires = count > n.threshold && !n.silent
	if fires && a == watchdog.Observe {
		n.silent, n.quiet = true, pair
	}

	return fires
}

// FuzzRepeat holds the ring against the naive rule: each byte is a call of one
// of four pairs, and what the policy says if it fires.
func FuzzRepeat(f *testing.F) {
	f.Add(uint8(3), uint8(10), []byte("\x00\x00\x00\x00\x00\x00"))
	f.Add(uint8(1), uint8(2), []byte("\x04\x04\x05\x04\x04\x04\x0c\x0c"))
	f.Add(uint8(2), uint8(30), []byte("\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05\x06\x04\x05"))
	f.Fuzz(func(t *testing.T, threshold, window uint8, calls []byte) {
		n := naive{threshold: int(threshold), window: int(window)}
		var action watchdog.Action
		fired := false
		dog, err := watchdog.New(watchdog.Config{
			Loop: watchdog.LoopRepeat, LoopThreshold: n.threshold, LoopWindow: n.window, DisableStall: true,
			Policy: func(watchdog.Detection) watchdog.Action {
				fired = true

				return action
			},
		})
		if threshold == 0 || window == 0 || window <= threshold {
			return // defaults and refusals have tables
		}
		if err != nil {
			t.Fatal(err)
		}
		tool := toolOf(t, "probe", middleware.ReadOnly, echo, dog.Tool())
		ctx, run := startRun(t.Context(), t)
		defer run.End()
		for i, c := range calls {
			action = [...]watchdog.Action{watchdog.Nudge, watchdog.Observe, watchdog.Escalate, watchdog.Observe}[c>>2&3]
			fired = false
			_, err := tool.Do(ctx, "id", string('a'+rune(c&3)))
			if want := n.call(c&3, action); fired != want || (err != nil) != (want && action != watchdog.Observe) {
				t.Fatalf("call %d of %v: fired %v, want %v; error %v", i, calls, fired, want, err)
			}
		}
	})
}

// FuzzStall plays calls that overlap, work and pause, and compares when each is
// stalled with arithmetic. Three bytes are one call: its start, and what it
// does: up to four stretches of work or pause, of 0…31 seconds.
func FuzzStall(f *testing.F) {
	f.Add([]byte{0, 10, 0x9f, 20, 30, 0x1f, 70, 0xff, 0xff})
	f.Add([]byte{5, 0x8a, 0x1e, 5, 0x8a, 0x1e, 5, 0x0a, 0x1e, 200, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		const timeout = 40 * time.Second
		if len(script) > 60 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			dog := newDog(t, watchdog.Config{DisableLoop: true, StallTimeout: timeout, Policy: always(watchdog.Nudge)})
			ctx, run := startRun(t.Context(), t)
			defer run.End()
			var wg sync.WaitGroup
			for ; len(script) >= 3; script = script[3:] {
				start, steps := time.Duration(script[0])*time.Second, [...]byte{script[1], script[2], script[1] >> 1, script[2] >> 1}
				// Half a second keeps ends and deadlines apart.
				worked, total := 500*time.Millisecond, 500*time.Millisecond
				stalledAt := time.Duration(-1)
				for _, s := range steps {
					d := time.Duration(s&31) * time.Second
					if s < 128 {
						if worked+d >= timeout && stalledAt < 0 {
							stalledAt = total + timeout - worked
						}
						worked += d
					}
					total += d
				}
				tool := toolOf(t, "probe", middleware.ReadOnly, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
					<-time.After(500 * time.Millisecond)
					for _, s := range steps {
						resume := func() {}
						if s >= 128 {
							resume = middleware.Pause(ctx)
						}
						select {
						case <-time.After(time.Duration(s&31) * time.Second):
						case <-ctx.Done():
							return nil, ctx.Err()
						}
						resume()
					}

					return echo(ctx, c)
				}, dog.Tool())
				wg.Go(func() {
					<-time.After(start)
					began := time.Now()
					_, err := tool.Do(ctx, "id", "x")
					took, stalled := time.Since(began), errors.Is(err, middleware.ReasonStalled)
					want := total
					if stalledAt >= 0 {
						want = stalledAt
					}
					if stalled != (stalledAt >= 0) || took != want {
						t.Errorf("steps %v: returned after %v with %v, want after %v, stalled %v", steps, took, err, want, stalledAt >= 0)
					}
				})
			}
			wg.Wait()
		})
	})
}
