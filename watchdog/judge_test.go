package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func finds(d watchdog.Detection) watchdog.Detector {
	return watchdog.DetectorFunc(func(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
		return d, true, nil
	})
}

func quiet(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
	return watchdog.Detection{}, false, nil
}

func fails(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
	return watchdog.Detection{}, true, errTool
}

func panics(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) { panic(secret) }

// TestJudge shows what detectors, policy and fail mode make of one call.
func TestJudge(t *testing.T) {
	t.Parallel()
	custom := finds(watchdog.Detection{})
	quiet, fails, panics := watchdog.DetectorFunc(quiet), watchdog.DetectorFunc(fails), watchdog.DetectorFunc(panics)
	open := middleware.FailOpen
	badPolicy := func(watchdog.Detection) watchdog.Action { panic(secret) }
	for name, tc := range map[string]struct {
		detectors []watchdog.Detector
		policy    watchdog.Policy
		mode      middleware.FailMode
		reason    middleware.Reason // 0: the call is made
		verdict   middleware.Verdict
		halted    bool
		decisions string
	}{
		"nothing":  {[]watchdog.Detector{quiet}, nil, 0, 0, 0, false, ""},
		"abort":    {[]watchdog.Detector{quiet, custom}, nil, 0, middleware.ReasonCustomDetector, middleware.VerdictDeny, true, "custom/deny/block"},
		"nudge":    {[]watchdog.Detector{custom}, always(watchdog.Nudge), 0, middleware.ReasonCustomDetector, middleware.VerdictModify, false, "custom/modify/block"},
		"escalate": {[]watchdog.Detector{custom}, always(watchdog.Escalate), 0, middleware.ReasonCustomDetector, middleware.VerdictEscalate, false, "custom/escalate/block"},
		"observe":  {[]watchdog.Detector{custom}, always(watchdog.Observe), 0, 0, 0, false, "custom/abstain/proceed"},
		"zero action": {[]watchdog.Detector{custom}, always(0), open, middleware.ReasonCustomDetector, middleware.VerdictDeny, true,
			"custom/deny/block"},
		"unknown action": {[]watchdog.Detector{custom}, always(99), open, middleware.ReasonCustomDetector, middleware.VerdictDeny, true,
			"custom/deny/block"},
		"first decides": {[]watchdog.Detector{finds(watchdog.Detection{Reason: middleware.ReasonDrift}), custom}, nil, 0,
			middleware.ReasonDrift, middleware.VerdictDeny, true, "drift/deny/block custom/abstain/block"},
		"error closed":   {[]watchdog.Detector{fails}, nil, 0, middleware.ReasonDetectorFailed, middleware.VerdictDeny, false, "detector_failed/deny/block"},
		"error open":     {[]watchdog.Detector{fails}, nil, open, 0, 0, false, "detector_failed/abstain/proceed"},
		"panic closed":   {[]watchdog.Detector{panics}, nil, 0, middleware.ReasonDetectorFailed, middleware.VerdictDeny, false, "detector_failed/deny/block"},
		"panic open":     {[]watchdog.Detector{panics}, nil, open, 0, 0, false, "detector_failed/abstain/proceed"},
		"policy closed":  {[]watchdog.Detector{custom}, badPolicy, 0, middleware.ReasonDetectorFailed, middleware.VerdictDeny, false, "custom/deny/block detector_failed/deny/block"},
		"policy open":    {[]watchdog.Detector{custom}, badPolicy, open, 0, 0, false, "custom/abstain/proceed detector_failed/abstain/proceed"},
		"others advance": {[]watchdog.Detector{fails, panics, custom}, always(watchdog.Escalate), 0, middleware.ReasonCustomDetector, middleware.VerdictEscalate, false, "detector_failed/abstain/block " + "detector_failed/abstain/block custom/escalate/block"},
		"failure is stricter than a nudge": {[]watchdog.Detector{custom, fails}, always(watchdog.Nudge), 0, middleware.ReasonDetectorFailed,
			middleware.VerdictDeny, false, "custom/abstain/block detector_failed/deny/block"},
		"failure is stricter than observing": {[]watchdog.Detector{custom, fails}, always(watchdog.Observe), 0, middleware.ReasonDetectorFailed,
			middleware.VerdictDeny, false, "custom/abstain/block detector_failed/deny/block"},
		"open failure leaves a nudge": {[]watchdog.Detector{fails, custom}, always(watchdog.Nudge), open, middleware.ReasonCustomDetector,
			middleware.VerdictModify, false, "detector_failed/abstain/block custom/modify/block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			dog := newDog(t, watchdog.Config{Detectors: tc.detectors, Policy: tc.policy, FailMode: tc.mode, Observer: rec})
			called := false
			tool := toolOf(t, "pay", middleware.Effectful, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				called = true

				return echo(ctx, c)
			}, dog.Tool())
			ctx, run := startRun(t.Context(), t)
			_, err := tool.Do(ctx, "", secret)
			if called != (tc.reason == 0) || (err == nil) != called {
				t.Fatalf("called: %v, error %v", called, err)
			}
			if err != nil {
				d, ok := errors.AsType[*middleware.Denial](err)
				if !ok || d.Reason() != tc.reason || d.Verdict() != tc.verdict || d.Component() != middleware.ComponentWatchdog ||
					d.Run() != run.ID() {
					t.Errorf("got %v, verdict %v; want %v, %v", err, d.Verdict(), tc.reason, tc.verdict)
				}
				if s := fmt.Sprintf("%+v %#v", err, err); strings.Contains(s, "SECRET") {
					t.Errorf("the error shows content: %s", s)
				}
			}
			if _, _, halted := run.Halted(); halted != tc.halted {
				t.Errorf("halted: %v, want %v", halted, tc.halted)
			}
			if got := strings.Join(rec.verdicts(), " "); got != tc.decisions {
				t.Errorf("decisions\ngot  %s\nwant %s", got, tc.decisions)
			}
			for i, d := range rec.decisions() {
				if d.Reason == middleware.ReasonDetectorFailed && d.FailMode != tc.mode || d.Seq == 0 {
					t.Errorf("decision %d: %+v", i, d)
				}
			}
		})
	}
}

// TestFailingPolicyHasNoHole: a refusal in a run that goes on does not make the
// loop detector silent.
func TestFailingPolicyHasNoHole(t *testing.T) {
	t.Parallel()
	dog := newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat, Policy: func(watchdog.Detection) watchdog.Action { panic(secret) }})
	tool := toolOf(t, "pay", middleware.Effectful, echo, dog.Tool())
	ctx, _ := startRun(t.Context(), t)
	for i := range 8 {
		if _, err := tool.Do(ctx, "", "same"); (err == nil) != (i < 3) {
			t.Errorf("call %d: got %v", i+1, err)
		}
	}
}

// TestDetectorIsCompleted: a detector of the user cannot say what it does not
// know.
func TestDetectorIsCompleted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		found    watchdog.Detection
		reason   middleware.Reason
		severity float64
	}{
		"zero":           {watchdog.Detection{}, middleware.ReasonCustomDetector, 0.5},
		"own":            {watchdog.Detection{Reason: middleware.ReasonCycle, Severity: 0.25}, middleware.ReasonCycle, 0.25},
		"foreign reason": {watchdog.Detection{Reason: middleware.ReasonAdmissionStopped, Severity: 1}, middleware.ReasonCustomDetector, 1},
		"stalled":        {watchdog.Detection{Reason: middleware.ReasonStalled}, middleware.ReasonCustomDetector, 0.5},
		"NaN":            {watchdog.Detection{Severity: math.NaN()}, middleware.ReasonCustomDetector, 0.5},
		"too large":      {watchdog.Detection{Severity: 1.5}, middleware.ReasonCustomDetector, 0.5},
		"negative":       {watchdog.Detection{Severity: -1}, middleware.ReasonCustomDetector, 0.5},
		"numbers stay":   {watchdog.Detection{Count: 7, Limit: 5, Strike: 99, Elapsed: 5}, middleware.ReasonCustomDetector, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []watchdog.Detection
			dog := newDog(t, watchdog.Config{Detectors: []watchdog.Detector{finds(tc.found)}, Policy: func(d watchdog.Detection) watchdog.Action {
				got = append(got, d)

				return watchdog.Observe
			}})
			tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
			ctx, run := startRun(t.Context(), t)
			for i := range 2 {
				_, _ = tool.Do(ctx, "", string(rune('a'+i)))
			}
			for i, d := range got {
				if d.Reason != tc.reason || d.Severity != tc.severity || d.Strike != i+1 || d.Run != run.ID() ||
					d.Label != tool.Label() || d.Count != tc.found.Count || d.Limit != tc.found.Limit || d.Elapsed != 0 || d.At.IsZero() {
					t.Errorf("got %+v", d)
				}
			}
			if len(got) != 2 {
				t.Errorf("%d detections, want 2", len(got))
			}
		})
	}
}

// TestDetectorOrder: registration order, the loop detector first, all of them
// for each call.
func TestDetectorOrder(t *testing.T) {
	t.Parallel()
	var asked []string
	named := func(name string) watchdog.Detector {
		return watchdog.DetectorFunc(func(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
			asked = append(asked, name)

			return watchdog.Detection{Reason: middleware.ReasonCycle}, true, nil
		})
	}
	rec := &recorder{}
	detectors := []watchdog.Detector{named("first"), named("second")}
	dog := newDog(t, watchdog.Config{
		Loop: watchdog.LoopRepeat, LoopThreshold: 1, Detectors: detectors, Policy: always(watchdog.Observe), Observer: rec,
	})
	detectors[0] = watchdog.DetectorFunc(panics) // New has a copy
	tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
	ctx, _ := startRun(t.Context(), t)
	for range 2 {
		if _, err := tool.Do(ctx, "", "same"); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"first", "second", "first", "second"}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	custom := " " + strings.Repeat("cycle/abstain/proceed ", 2)
	want := custom + "loop/abstain/proceed" + custom
	if got := " " + strings.Join(rec.verdicts(), " ") + " "; got != want {
		t.Errorf("decisions\ngot  %s\nwant %s", got, want)
	}
}

// TestGoexit: a detector or a policy that ends its goroutine ends the call.
func TestGoexit(t *testing.T) {
	t.Parallel()
	exits := watchdog.DetectorFunc(func(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
		runtime.Goexit()

		return watchdog.Detection{}, false, nil
	})
	for name, cfg := range map[string]watchdog.Config{
		"detector": {Detectors: []watchdog.Detector{exits}, FailMode: middleware.FailOpen},
		"policy": {Detectors: []watchdog.Detector{finds(watchdog.Detection{})}, FailMode: middleware.FailOpen,
			Policy: func(watchdog.Detection) watchdog.Action {
				runtime.Goexit()

				return watchdog.Observe
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := false
			tool := toolOf(t, "pay", middleware.Effectful, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				called = true

				return echo(ctx, c)
			}, newDog(t, cfg).Tool())
			ctx, run := startRun(t.Context(), t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = tool.Do(ctx, "", "x")
			}()
			<-done
			if called {
				t.Error("the call was made")
			}
			run.End()
		})
	}
}

// TestObserverOutsideOfLocks: an observer, a policy and a detector may call
// guarded tools of the same run.
func TestObserverOutsideOfLocks(t *testing.T) {
	t.Parallel()
	var inner *middleware.GuardedTool
	depth := 0
	again := func(ctx context.Context) {
		if depth < 3 {
			depth++
			_, _ = inner.Do(ctx, "", "same")
		}
	}
	var current context.Context
	dog := newDog(t, watchdog.Config{
		Loop: watchdog.LoopRepeat, LoopThreshold: 1,
		Observer: middleware.ObserverFunc(func(ctx context.Context, _ middleware.Decision) { again(ctx); panic(secret) }),
		Policy: func(watchdog.Detection) watchdog.Action {
			again(current)

			return watchdog.Nudge
		},
	})
	inner = toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
	current, _ = startRun(t.Context(), t)
	for i := range 3 {
		if _, err := inner.Do(current, "", "same"); (err == nil) != (i == 0) {
			t.Errorf("call %d: got %v", i+1, err)
		}
	}
	if depth != 3 {
		t.Errorf("called again %d times, want 3", depth)
	}
}
