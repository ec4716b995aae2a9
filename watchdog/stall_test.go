package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// polite is a tool that works for d, unless its context is done before.
func polite(d time.Duration) middleware.ToolHandler {
	return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		select {
		case <-ctx.Done():
			return nil, errTool
		case <-time.After(d):
			return echo(ctx, call)
		}
	}
}

// deaf is a tool that works for d, whatever its context says.
func deaf(d time.Duration, err error) middleware.ToolHandler {
	return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		<-time.After(d)
		if err != nil {
			return nil, err
		}

		return echo(ctx, call)
	}
}

// TestStall shows what an agent gets for a call that is open for too long.
func TestStall(t *testing.T) {
	t.Parallel()
	type want struct {
		after   time.Duration
		ok      bool
		reason  middleware.Reason // of the outermost error
		verdict middleware.Verdict
		told    bool // the run goes on
		halted  bool
		report  string
	}
	const (
		minute = time.Minute
		deny   = middleware.VerdictDeny
	)
	stalled, unknown := middleware.ReasonStalled, middleware.ReasonOutcomeUnknown
	for name, tc := range map[string]struct {
		effect middleware.Effect
		tool   middleware.ToolHandler
		action watchdog.Action
		want   want
	}{
		"in time":                 {0, polite(59 * time.Second), watchdog.Abort, want{59 * time.Second, true, 0, 0, false, false, ""}},
		"abort, read-only":        {middleware.ReadOnly, polite(time.Hour), watchdog.Abort, want{minute, false, stalled, deny, false, true, "stalled/deny/cancel"}},
		"abort, idempotent":       {middleware.Idempotent, polite(time.Hour), watchdog.Abort, want{minute, false, stalled, deny, false, true, "stalled/deny/cancel"}},
		"abort, effectful":        {0, polite(time.Hour), watchdog.Abort, want{minute, false, unknown, deny, false, true, "stalled/deny/cancel"}},
		"nudge, read-only":        {middleware.ReadOnly, polite(time.Hour), watchdog.Nudge, want{minute, false, stalled, middleware.VerdictModify, true, false, "stalled/modify/cancel"}},
		"nudge, effectful":        {0, polite(time.Hour), watchdog.Nudge, want{minute, false, unknown, deny, false, false, "stalled/modify/cancel"}},
		"escalate, polling":       {middleware.Polling, polite(time.Hour), watchdog.Escalate, want{minute, false, stalled, middleware.VerdictEscalate, false, false, "stalled/escalate/cancel"}},
		"escalate, effectful":     {0, polite(time.Hour), watchdog.Escalate, want{minute, false, unknown, middleware.VerdictEscalate, false, false, "stalled/escalate/cancel"}},
		"observe":                 {0, polite(time.Hour), watchdog.Observe, want{time.Hour, true, 0, 0, false, false, "stalled/abstain/proceed"}},
		"zero action":             {0, polite(time.Hour), 0, want{minute, false, unknown, deny, false, true, "stalled/deny/cancel"}},
		"deaf and well":           {0, deaf(2*minute, nil), watchdog.Abort, want{2 * minute, true, 0, 0, false, true, "stalled/deny/cancel"}},
		"deaf and well, nudged":   {0, deaf(2*minute, nil), watchdog.Nudge, want{2 * minute, true, 0, 0, false, false, "stalled/modify/cancel"}},
		"deaf and failed":         {0, deaf(2*minute, errTool), watchdog.Abort, want{2 * minute, false, unknown, deny, false, true, "stalled/deny/cancel"}},
		"deaf, failed, read-only": {middleware.ReadOnly, deaf(2*minute, errTool), watchdog.Abort, want{2 * minute, false, stalled, deny, false, true, "stalled/deny/cancel"}},
		"observed and failed":     {middleware.ReadOnly, deaf(2*minute, errTool), watchdog.Observe, want{2 * minute, false, middleware.ReasonToolFailed, 0, true, false, "stalled/abstain/proceed"}},
		"panic after cancellation": {middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-ctx.Done()
			panic(secret)
		}, watchdog.Abort, want{minute, false, stalled, deny, false, true, "stalled/deny/cancel"}},
		"panic, nudged": {middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-ctx.Done()
			panic(secret)
		}, watchdog.Nudge, want{minute, false, middleware.ReasonPanic, 0, false, false, "stalled/modify/cancel"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				dog := newDog(t, watchdog.Config{Policy: always(tc.action), Observer: rec})
				tool := toolOf(t, "work", tc.effect, tc.tool, dog.Tool())
				ctx, run := startRun(t.Context(), t)
				began := time.Now()
				res, err := tool.Do(ctx, "", secret)
				if took := time.Since(began); took != tc.want.after {
					t.Errorf("returned after %v, want %v", took, tc.want.after)
				}
				if (err == nil) != tc.want.ok || (res != nil) != tc.want.ok {
					t.Fatalf("got %v, %v", res, err)
				}
				if got := middleware.ReasonOf(err); got != tc.want.reason {
					t.Errorf("reason %v, want %v", got, tc.want.reason)
				}
				if _, told := tool.Observation(ctx, err); told != tc.want.told {
					t.Errorf("the run goes on: %v, want %v", told, tc.want.told)
				}
				if tc.want.verdict != 0 {
					if !errors.Is(err, middleware.ReasonStalled) {
						t.Error("stalled is not found in the error")
					}
					d, ok := errors.AsType[*middleware.Denial](err)
					if !ok || d.Verdict() != tc.want.verdict || d.Action() != middleware.ActionCancel || d.Run() != run.ID() {
						t.Errorf("denial %v", d)
					}
				}
				if s := fmt.Sprintf("%+v %#v", err, err); strings.Contains(s, "SECRET") {
					t.Errorf("the error shows content: %s", s)
				}
				c, r, halted := run.Halted()
				if halted != tc.want.halted || halted && (c != middleware.ComponentWatchdog || r != middleware.ReasonStalled) {
					t.Errorf("halted: %v %v %v", halted, c, r)
				}
				if got := strings.Join(rec.verdicts(), " "); got != tc.want.report {
					t.Errorf("decisions %s, want %s", got, tc.want.report)
				}
				for _, d := range rec.decisions() {
					if d.Duration != time.Minute || d.Severity != 0.5 || d.Label != tool.Label() || d.Run != run.ID() || d.Seq != 1 {
						t.Errorf("decision %+v", d)
					}
				}
				if halted {
					if _, err := tool.Do(ctx, "", "next"); !errors.Is(err, middleware.ReasonStalled) {
						t.Errorf("the call after an abort: got %v", err)
					}
				}
			})
		})
	}
}

// TestStallCause: the tool can see why its context is done, at the moment.
func TestStallCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newDog(t, watchdog.Config{StallTimeout: 30 * time.Millisecond})
		var cause error
		tool := toolOf(t, "work", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)

			return nil, ctx.Err()
		}, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		_, err := tool.Do(ctx, "", "x")
		if !errors.Is(cause, middleware.ReasonStalled) || !errors.Is(err, context.Canceled) {
			t.Errorf("cause %v, error %v", cause, err)
		}
		if ctx.Err() != nil {
			t.Error("the run's context is done")
		}
	})
}

// TestStallAtTheLimit: a tool that returns at the very moment has either come
// back in time or is cancelled; it is never half of both.
func TestStallAtTheLimit(t *testing.T) {
	t.Parallel()
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			rec := &recorder{}
			dog := newDog(t, watchdog.Config{Observer: rec})
			tool := toolOf(t, "work", middleware.ReadOnly, deaf(time.Minute, errTool), dog.Tool())
			ctx, run := startRun(t.Context(), t)
			_, err := tool.Do(ctx, "", "x")
			synctest.Wait()
			_, _, halted := run.Halted()
			if fired := errors.Is(err, middleware.ReasonStalled); fired != halted || fired != (len(rec.decisions()) == 1) {
				t.Errorf("error %v, halted %v, decisions %v", err, halted, rec.verdicts())
			}
		})
	}
}

// TestStallWhileDeciding: a call that comes back while the policy is still
// thinking has come back.
func TestStallWhileDeciding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		back := make(chan struct{})
		dog := newDog(t, watchdog.Config{Observer: rec, Policy: func(watchdog.Detection) watchdog.Action {
			<-back

			return watchdog.Abort
		}})
		tool := toolOf(t, "work", 0, deaf(61*time.Second, errTool), dog.Tool())
		ctx, run := startRun(t.Context(), t)
		_, err := tool.Do(ctx, "", "x")
		close(back)
		synctest.Wait()
		_, _, halted := run.Halted()
		if middleware.ReasonOf(err) != middleware.ReasonToolFailed || halted || len(rec.decisions()) > 0 {
			t.Errorf("got %v, halted %v, decisions %v", err, halted, rec.verdicts())
		}
	})
}

// TestStallTwoCalls: two open calls of one tool have a clock each.
func TestStallTwoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		dog := newDog(t, watchdog.Config{Policy: always(watchdog.Nudge), Observer: rec})
		tool := toolOf(t, "work", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			d, err := time.ParseDuration(call.Input())
			if err != nil {
				return nil, err
			}

			return polite(d)(ctx, call)
		}, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		began := time.Now()
		var wg sync.WaitGroup
		call := func(start time.Duration, work string, after time.Duration, stalled bool) {
			wg.Go(func() {
				<-time.After(start)
				_, err := tool.Do(ctx, "", work)
				if took := time.Since(began); took != after || errors.Is(err, middleware.ReasonStalled) != stalled {
					t.Errorf("%s from %v on: returned at %v with %v", work, start, took, err)
				}
			})
		}
		call(0, "10s", 10*time.Second, false)
		call(1*time.Second, "1h", 61*time.Second, true)
		call(5*time.Second, "59s", 64*time.Second, false)
		call(30*time.Second, "2h", 90*time.Second, true)
		call(62*time.Second, "3h", 122*time.Second, true)
		call(300*time.Second, "4h", 360*time.Second, true) // the alarm had nothing to do meanwhile
		wg.Wait()
		var seqs []uint64
		for _, d := range rec.decisions() {
			seqs = append(seqs, d.Seq)
		}
		if fmt.Sprint(seqs) != "[1 2 3 4]" {
			t.Errorf("decisions %v", seqs)
		}
	})
}

func TestPause(t *testing.T) {
	t.Parallel()
	after := func(d time.Duration) { <-time.After(d) }
	for name, tc := range map[string]struct {
		work    func(ctx context.Context)
		stalled time.Duration // from the start; 0: it goes well
	}{
		"not paused": {func(context.Context) {}, time.Minute},
		"paused": {func(ctx context.Context) {
			after(50 * time.Second)
			resume := middleware.Pause(ctx)
			after(time.Hour)
			resume()
			resume() // harmless
		}, time.Hour + time.Minute},
		"paused twice": {func(ctx context.Context) {
			for range 3 {
				after(10 * time.Second)
				resume := middleware.Pause(ctx)
				after(time.Hour)
				resume()
			}
		}, 3*time.Hour + time.Minute},
		"nested": {func(ctx context.Context) {
			outer := middleware.Pause(ctx)
			inner := middleware.Pause(ctx)
			after(time.Hour)
			outer()
			after(time.Hour)
			inner()
		}, 2*time.Hour + time.Minute},
		"same pause resumed twice": {func(ctx context.Context) {
			one := middleware.Pause(ctx)
			two := middleware.Pause(ctx)
			one()
			one()
			after(time.Hour)
			two()
		}, time.Hour + time.Minute},
		"never resumed": {func(ctx context.Context) {
			middleware.Pause(ctx)
			after(24 * time.Hour)
		}, 0},
		"returns while paused": {func(ctx context.Context) { middleware.Pause(ctx) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				dog := newDog(t, watchdog.Config{Observer: rec})
				var late func()
				tool := toolOf(t, "work", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
					late = func() { middleware.Pause(ctx)() }
					tc.work(ctx)
					if tc.stalled == 0 {
						return echo(ctx, call)
					}
					<-ctx.Done()

					return nil, ctx.Err()
				}, dog.Tool())
				ctx, run := startRun(t.Context(), t)
				began := time.Now()
				_, err := tool.Do(ctx, "", "x")
				late() // after the call: nothing happens
				<-time.After(time.Hour)
				if stalled := errors.Is(err, middleware.ReasonStalled); stalled != (tc.stalled > 0) || stalled != (len(rec.decisions()) == 1) {
					t.Errorf("got %v, decisions %v", err, rec.verdicts())
				}
				if took := time.Since(began) - time.Hour; tc.stalled > 0 && took != tc.stalled {
					t.Errorf("stalled after %v, want %v", took, tc.stalled)
				}
				for _, d := range rec.decisions() {
					if d.Duration != time.Minute {
						t.Errorf("a pause is part of the time: %v", d.Duration)
					}
				}
				run.End()
			})
		})
	}
}

// TestPauseOrder: what was paused comes back into the right place.
func TestPauseOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newDog(t, watchdog.Config{Policy: always(watchdog.Nudge)})
		tool := toolOf(t, "work", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if call.Input() == "paused" {
				<-time.After(30 * time.Second)
				resume := middleware.Pause(ctx)
				<-time.After(70 * time.Second)
				resume() // at 100 s, with 30 s left
			}
			<-ctx.Done()

			return nil, ctx.Err()
		}, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		began := time.Now()
		var wg sync.WaitGroup
		for name, at := range map[string][2]time.Duration{
			"paused": {0, 130 * time.Second}, "early": {65 * time.Second, 125 * time.Second}, "late": {90 * time.Second, 150 * time.Second},
			"later": {99 * time.Second, 159 * time.Second},
		} {
			wg.Go(func() {
				<-time.After(at[0])
				if _, err := tool.Do(ctx, "", name); !errors.Is(err, middleware.ReasonStalled) {
					t.Errorf("%s: got %v", name, err)
				}
				if took := time.Since(began); took != at[1] {
					t.Errorf("%s: stalled at %v, want %v", name, took, at[1])
				}
			})
		}
		wg.Wait()
	})
}

// TestPauseAround: a tool that calls another guarded tool of its run does not
// age while that one is paused.
func TestPauseAround(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		dog := newDog(t, watchdog.Config{Observer: rec})
		approved := toolOf(t, "approved", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			resume := middleware.Pause(ctx)
			<-time.After(time.Hour)
			resume()

			return echo(ctx, call)
		}, dog.Tool())
		outer := toolOf(t, "outer", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			return approved.Do(ctx, "", call.Input())
		})
		stacked := toolOf(t, "stacked", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			return approved.Do(ctx, "", call.Input())
		}, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		for _, tool := range []*middleware.GuardedTool{outer, stacked} {
			if _, err := tool.Do(ctx, "", "x"); err != nil {
				t.Errorf("%s: got %v", tool.Label(), err)
			}
		}
		if len(rec.decisions()) > 0 {
			t.Errorf("decisions %v", rec.verdicts())
		}
	})
}

// TestPauseRace lets pauses and the alarm meet at one moment, for the race
// detector; the clock must stop exactly once.
func TestPauseRace(t *testing.T) {
	t.Parallel()
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			rec := &recorder{}
			dog := newDog(t, watchdog.Config{Observer: rec})
			tool := toolOf(t, "work", middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						<-time.After(time.Minute)
						resume := middleware.Pause(ctx)
						<-time.After(time.Second)
						resume()
					})
				}
				wg.Wait()
				<-ctx.Done()

				return nil, ctx.Err()
			}, dog.Tool())
			ctx, _ := startRun(t.Context(), t)
			_, err := tool.Do(ctx, "", "x")
			synctest.Wait() // the observer hears of it on the timer's goroutine
			if !errors.Is(err, middleware.ReasonStalled) || len(rec.decisions()) != 1 {
				t.Errorf("got %v, decisions %v", err, rec.verdicts())
			}
		})
	}
}

// TestStallStops: whatever the end of a call, its clock does not ring later.
func TestStallStops(t *testing.T) {
	t.Parallel()
	for name, fn := range map[string]middleware.ToolHandler{
		"result": echo,
		"error":  func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, errTool },
		"panic":  func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(secret) },
		"goexit": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			runtime.Goexit()

			return nil, errTool
		},
	} {
		for _, settled := range []bool{true, false} {
			t.Run(fmt.Sprint(name, settled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rec := &recorder{}
					layers := []middleware.ToolMiddleware{newDog(t, watchdog.Config{Observer: rec}).Tool()}
					end := echo
					if settled {
						end = fn
					} else { // in a layer
						layers = append(layers, func(middleware.ToolHandler) middleware.ToolHandler { return fn })
					}
					tool := toolOf(t, "work", 0, end, layers...)
					ctx, run := startRun(t.Context(), t)
					done := make(chan struct{})
					go func() {
						defer close(done)
						_, _ = tool.Do(ctx, "", "x")
					}()
					<-done
					<-time.After(time.Hour)
					if _, _, halted := run.Halted(); halted || len(rec.decisions()) > 0 {
						t.Errorf("the clock of a call that ended rang: %v", rec.verdicts())
					}
				})
			})
		}
	}
}

// TestStallAfterTheRun: the clock of an open call outlives its run; nobody else
// would cancel the call.
func TestStallAfterTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dog := newDog(t, watchdog.Config{})
		tool := toolOf(t, "work", middleware.ReadOnly, polite(time.Hour), dog.Tool())
		ctx, run := startRun(t.Context(), t)
		go func() {
			<-time.After(time.Second)
			run.End()
		}()
		began := time.Now()
		_, err := tool.Do(ctx, "", "x")
		if took := time.Since(began); took != time.Minute || !errors.Is(err, middleware.ReasonStalled) {
			t.Errorf("got %v after %v", err, took)
		}
		if _, err := tool.Do(ctx, "", "y"); err == nil {
			t.Error("a call after the end of the run was made")
		}
	})
}

// TestStallOwed: an escalation about a call that went well all the same reaches
// the run with its next call, once.
func TestStallOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		dog := newDog(t, watchdog.Config{Policy: always(watchdog.Escalate), Observer: rec})
		slow := toolOf(t, "slow", 0, deaf(2*time.Minute, nil), dog.Tool())
		quick := toolOf(t, "quick", 0, echo, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		if _, err := slow.Do(ctx, "", "x"); err != nil {
			t.Fatalf("the result of an effect that happened was lost: %v", err)
		}
		_, err := quick.Do(ctx, "", "y")
		d, ok := errors.AsType[*middleware.Denial](err)
		if !ok || d.Reason() != middleware.ReasonStalled || d.Verdict() != middleware.VerdictEscalate {
			t.Errorf("got %v", err)
		}
		if _, err := quick.Do(ctx, "", "y"); err != nil {
			t.Errorf("owed twice: %v", err)
		}
		if got := fmt.Sprint(rec.verdicts()); got != "[stalled/escalate/cancel stalled/escalate/block]" {
			t.Errorf("decisions %s", got)
		}
	})
}

// TestStallPolicyFails: something is decided about a stalled call whatever
// happens on the timer's goroutine.
func TestStallPolicyFails(t *testing.T) {
	t.Parallel()
	panicking := func(watchdog.Detection) watchdog.Action { panic(secret) }
	exiting := func(watchdog.Detection) watchdog.Action { runtime.Goexit(); return watchdog.Observe }
	for name, cfg := range map[string]watchdog.Config{
		"panic":  {Policy: panicking},
		"goexit": {Policy: exiting},
		"clock":  {Policy: always(watchdog.Observe), Now: func() time.Time { panic(secret) }},
	} {
		for _, mode := range middleware.FailModes() {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					rec := &recorder{}
					cfg := cfg
					cfg.FailMode, cfg.Observer = mode, rec
					tool := toolOf(t, "work", middleware.ReadOnly, polite(2*time.Minute), newDog(t, cfg).Tool())
					ctx, _ := startRun(t.Context(), t)
					var wg sync.WaitGroup
					for i := range 3 { // one policy's end is not the other calls'
						wg.Go(func() {
							_, err := tool.Do(ctx, "", strconv.Itoa(i))
							if closed := mode == middleware.FailClosed; errors.Is(err, middleware.ReasonStalled) != closed || (err != nil) != closed {
								t.Errorf("got %v", err)
							}
						})
					}
					wg.Wait()
					want := map[middleware.FailMode]string{
						middleware.FailClosed: "[stalled/deny/cancel detector_failed/deny/cancel",
						middleware.FailOpen:   "[stalled/abstain/proceed detector_failed/abstain/proceed",
					}[mode]
					if got := fmt.Sprint(rec.verdicts()); !strings.HasPrefix(got, want) || len(rec.decisions()) != 6 {
						t.Errorf("decisions %s", got)
					}
				})
			})
		}
	}
}

// TestStallInnerDenial: a layer inside that refused knows why.
func TestStallInnerDenial(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		action  watchdog.Action
		foreign bool
		reason  middleware.Reason
	}{
		"abort":           {watchdog.Abort, false, middleware.ReasonStalled},
		"nudge":           {watchdog.Nudge, false, middleware.ReasonAdmissionStopped},
		"another run's":   {watchdog.Abort, true, middleware.ReasonOutcomeUnknown},
		"another's nudge": {watchdog.Nudge, true, middleware.ReasonOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				other, err := ident.NewRunID()
				if err != nil {
					t.Fatal(err)
				}
				gate := func(middleware.ToolHandler) middleware.ToolHandler {
					return func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
						<-ctx.Done()
						id := middleware.RunFrom(ctx).ID()
						if tc.foreign {
							id = other
						}

						return nil, middleware.NewDenial(middleware.Refusal{
							Run: id, Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped,
						})
					}
				}
				tool := toolOf(t, "pay", 0, echo, newDog(t, watchdog.Config{Policy: always(tc.action)}).Tool(), gate)
				ctx, _ := startRun(t.Context(), t)
				_, err = tool.Do(ctx, "", "x")
				if middleware.ReasonOf(err) != tc.reason || !errors.Is(err, middleware.ReasonAdmissionStopped) {
					t.Errorf("got %v", err)
				}
				if _, told := tool.Observation(ctx, err); told {
					t.Error("the run goes on")
				}
			})
		})
	}
}

// TestStallCallerCanceled: the caller's cancellation is not a stall.
func TestStallCallerCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		tool := toolOf(t, "work", middleware.ReadOnly, polite(time.Hour), newDog(t, watchdog.Config{Observer: rec}).Tool())
		ctx, run := startRun(t.Context(), t)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := tool.Do(ctx, "", "x")
		if _, _, halted := run.Halted(); halted || errors.Is(err, middleware.ReasonStalled) || !errors.Is(err, middleware.ReasonCanceled) {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Hour)
		if len(rec.decisions()) > 0 {
			t.Errorf("decisions %v", rec.verdicts())
		}
	})
}

func TestDisableStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool := toolOf(t, "work", middleware.ReadOnly, polite(time.Hour), newDog(t, watchdog.Config{DisableStall: true}).Tool())
		ctx, _ := startRun(t.Context(), t)
		if _, err := tool.Do(ctx, "", "x"); err != nil {
			t.Errorf("got %v", err)
		}
	})
}
