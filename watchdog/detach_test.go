package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestDetach shows when an agent goes on without a tool.
func TestDetach(t *testing.T) {
	t.Parallel()
	const grace = 5 * time.Second
	late := time.Minute + grace
	for name, tc := range map[string]struct {
		effect    middleware.Effect
		tool      middleware.ToolHandler
		action    watchdog.Action
		after     time.Duration
		ok        bool
		reason    middleware.Reason
		abandoned bool
	}{
		"in time":            {0, echo, watchdog.Abort, 0, true, 0, false},
		"polite":             {middleware.ReadOnly, polite(time.Hour), watchdog.Abort, time.Minute, false, middleware.ReasonStalled, false},
		"polite, effectful":  {0, polite(time.Hour), watchdog.Abort, time.Minute, false, middleware.ReasonOutcomeUnknown, false},
		"deaf":               {middleware.ReadOnly, deaf(time.Hour, nil), watchdog.Abort, late, false, middleware.ReasonStalled, true},
		"deaf, idempotent":   {middleware.Idempotent, deaf(time.Hour, nil), watchdog.Abort, late, false, middleware.ReasonStalled, true},
		"deaf, effectful":    {0, deaf(time.Hour, nil), watchdog.Abort, late, false, middleware.ReasonOutcomeUnknown, true},
		"deaf, nudged":       {middleware.ReadOnly, deaf(time.Hour, errTool), watchdog.Nudge, late, false, middleware.ReasonStalled, true},
		"deaf, observed":     {0, deaf(time.Hour, nil), watchdog.Observe, time.Hour, true, 0, false},
		"within the grace":   {0, deaf(62*time.Second, nil), watchdog.Abort, 62 * time.Second, true, 0, false},
		"fails in the grace": {0, deaf(62*time.Second, errTool), watchdog.Abort, 62 * time.Second, false, middleware.ReasonOutcomeUnknown, false},
		"panics when left": {0, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-time.After(time.Hour)
			panic(secret)
		}, watchdog.Abort, late, false, middleware.ReasonOutcomeUnknown, true},
		"goexit when left": {0, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-time.After(time.Hour)
			runtime.Goexit()
			return nil, nil
		}, watchdog.Abort, late, false, middleware.ReasonOutcomeUnknown, true},
		"panics": {middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(secret) }, watchdog.Abort, 0, false, middleware.ReasonPanic, false},
		"goexit": {middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			runtime.Goexit()
			return nil, nil
		}, watchdog.Abort, 0, false, middleware.ReasonToolFailed, false},
		"goexit, effectful": {0, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			runtime.Goexit()
			return nil, nil
		}, watchdog.Abort, 0, false, middleware.ReasonOutcomeUnknown, false},
		"fails": {0, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, errTool }, watchdog.Abort, 0, false, middleware.ReasonToolFailed, false},
		"paused, then too long": {middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			resume := middleware.Pause(ctx)
			<-time.After(time.Hour)
			resume()
			<-time.After(time.Hour)

			return nil, errTool
		}, watchdog.Abort, time.Hour + late, false, middleware.ReasonStalled, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				dog := newDog(t, watchdog.Config{Detach: grace, Policy: always(tc.action), Observer: rec})
				tool := toolOf(t, "work", tc.effect, tc.tool, dog.Tool())
				ctx, _ := startRun(t.Context(), t)
				began := time.Now()
				res, err := tool.Do(ctx, "", secret)
				if took := time.Since(began); took != tc.after {
					t.Errorf("returned after %v, want %v", took, tc.after)
				}
				if (err == nil) != tc.ok || (res != nil) != tc.ok || middleware.ReasonOf(err) != tc.reason {
					t.Errorf("got %v, %v; want reason %v", res, err, tc.reason)
				}
				want := 0
				if tc.abandoned {
					want = 1
				}
				if got := dog.Abandoned(); got != want || errors.Is(err, middleware.ReasonAbandoned) != tc.abandoned {
					t.Errorf("abandoned: %d, want %d; error %v", got, want, err)
				}
				if tc.abandoned {
					seen := rec.decisions()
					if last := seen[len(seen)-1]; last.Reason != middleware.ReasonAbandoned || last.Count != 1 || last.Label != tool.Label() {
						t.Errorf("decision %+v", last)
					}
				}
				<-time.After(24 * time.Hour)
				if got := dog.Abandoned(); got != 0 {
					t.Errorf("still abandoned: %d", got)
				}
			})
		})
	}
}

// TestDetachedToolIsRefused: what a tool that was left does late is refused,
// and its own copy of the call is what its context carries.
func TestDetachedToolIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newDog(t, watchdog.Config{Detach: time.Second})
		effects := 0
		pay := toolOf(t, "pay", 0, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			effects++

			return echo(ctx, c)
		})
		var late error
		var same bool
		var outer *middleware.ToolCall
		capture := func(next middleware.ToolHandler) middleware.ToolHandler {
			return func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				outer = c

				return next(ctx, c)
			}
		}
		ended := make(chan struct{})
		work := toolOf(t, "work", 0, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			defer close(ended)
			inside, ok := middleware.ToolCallFrom(ctx)
			same = ok && inside == c && c != outer && c.Input() == outer.Input()
			<-time.After(time.Hour)
			_, late = pay.Do(ctx, "", "x")

			return echo(ctx, c)
		}, capture, dog.Tool())
		ctx, run := startRun(t.Context(), t)
		if _, err := work.Do(ctx, "", "x"); !errors.Is(err, middleware.ReasonOutcomeUnknown) || !errors.Is(err, middleware.ReasonStalled) {
			t.Errorf("got %v", err)
		}
		run.End()
		<-ended
		if late == nil || effects > 0 || !same {
			t.Errorf("late call: %v, %d effects; own call %v", late, effects, same)
		}
	})
}

// TestDetachAtTheLimit: a tool that returns when its grace ends is either
// returned or abandoned, and the count comes back to zero.
func TestDetachAtTheLimit(t *testing.T) {
	t.Parallel()
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			dog := newDog(t, watchdog.Config{Detach: time.Second})
			tool := toolOf(t, "work", middleware.ReadOnly, deaf(61*time.Second, nil), dog.Tool())
			ctx, _ := startRun(t.Context(), t)
			res, err := tool.Do(ctx, "", "x")
			synctest.Wait()
			if (res != nil) != (err == nil) || (err != nil) != errors.Is(err, middleware.ReasonAbandoned) || dog.Abandoned() != 0 {
				t.Error(fmt.Sprint(res != nil, err, dog.Abandoned()))
			}
		})
	}
}
