package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestRepeat plays sequences of calls and writes for each whether it fired.
func TestRepeat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		threshold, window int
		action            watchdog.Action
		calls             string // of one letter each: a pair of tool and arguments
		fires             string // x where a detection is due
	}{
		"the fourth fires":                {0, 0, watchdog.Nudge, "aaaa", "...x"},
		"others between":                  {0, 0, watchdog.Nudge, "abacada", "......x"},
		"the tenth back counts":           {0, 0, watchdog.Nudge, "aaabcdefga", ".........x"},
		"the eleventh back does not":      {0, 0, watchdog.Nudge, "aaabcdefgha", "..........."},
		"window of threshold+1":           {3, 4, watchdog.Nudge, "aaabaaaa", ".......x"},
		"smallest":                        {1, 2, watchdog.Nudge, "abaabb", "...x.x"},
		"fires again after a nudge":       {0, 0, watchdog.Nudge, "aaaaaa", "...xxx"},
		"refused calls count":             {1, 3, watchdog.Nudge, "aabba", ".x.x."}, // a b a, if they did not
		"silent after being observed":     {0, 0, watchdog.Observe, "aaaaaa", "...x.."},
		"another pair ends the silence":   {0, 0, watchdog.Observe, "aaaaabaa", "...x..x."},
		"two pairs in turn":               {0, 0, watchdog.Observe, "abababababab", "......xxxxxx"},
		"fires again after an escalation": {0, 0, watchdog.Escalate, "aaaaa", "...xx"},
		"a large window":                  {20, 400, watchdog.Nudge, strings.Repeat("ab", 20) + "cab", strings.Repeat(".", 41) + "xx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := &recorder{}
			dog := newDog(t, watchdog.Config{
				Loop: watchdog.LoopRepeat, LoopThreshold: tc.threshold, LoopWindow: tc.window, Policy: always(tc.action), Observer: rec,
			})
			tool := toolOf(t, "probe", middleware.ReadOnly, echo, dog.Tool())
			ctx, _ := startRun(t.Context(), t)
			var fires strings.Builder
			for _, c := range tc.calls {
				before := len(rec.decisions())
				_, err := tool.Do(ctx, "", string(c))
				fired := len(rec.decisions()) > before
				if blocked := err != nil; blocked != (fired && tc.action != watchdog.Observe) {
					t.Fatalf("call %q: fired %v, error %v", c, fired, err)
				}
				fires.WriteString(map[bool]string{true: "x", false: "."}[fired])
			}
			if fires.String() != tc.fires {
				t.Errorf("%s\ngot  %s\nwant %s", tc.calls, fires.String(), tc.fires)
			}
		})
	}
}

func TestRepeatPairs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		inputs [4]string
		fires  bool
	}{
		"spellings": {[4]string{`{"a":1,"b":"é"}`, `{"b":"\u00e9","a":1.0}`, ` {"a" : 10e-1, "b":"é" } `, `{"a":1e0,"b":"\u00E9"}`}, true},
		"text":      {[4]string{"Oslo", " Oslo", "Oslo\n", "\tOslo "}, true},
		"numbers":   {[4]string{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":1}`}, false},
		"letters":   {[4]string{"Oslo", "oslo", "OSLO", "Oslo"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := toolOf(t, "probe", middleware.ReadOnly, echo, newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat}).Tool())
			ctx, _ := startRun(t.Context(), t)
			var err error
			for _, in := range tc.inputs {
				_, err = tool.Do(ctx, "", in)
			}
			if fired := errors.Is(err, middleware.ReasonLoop); fired != tc.fires {
				t.Errorf("fired: %v, want %v (%v)", fired, tc.fires, err)
			}
		})
	}
}

// TestRepeatScope: tools and runs have pairs of their own.
func TestRepeatScope(t *testing.T) {
	t.Parallel()
	dog := newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat})
	one := toolOf(t, "one", middleware.ReadOnly, echo, dog.Tool())
	two := toolOf(t, "two", middleware.ReadOnly, echo, dog.Tool())
	for range 3 {
		ctx, _ := startRun(t.Context(), t)
		for range 3 {
			for _, tool := range []*middleware.GuardedTool{one, two} {
				if _, err := tool.Do(ctx, "", "same"); err != nil {
					t.Fatalf("got %v", err)
				}
			}
		}
	}
}

func TestNudgeThenAbort(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	var calls atomic.Int64
	dog := newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat, Policy: watchdog.TwoStrikes(), Observer: rec})
	tool := toolOf(t, "lookup", middleware.ReadOnly, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		calls.Add(1)

		return echo(ctx, c)
	}, dog.Tool())
	ctx, run := startRun(t.Context(), t)
	for range 3 {
		if _, err := tool.Do(ctx, "", secret); err != nil {
			t.Fatal(err)
		}
	}
	_, err := tool.Do(ctx, "", secret)
	if !errors.Is(err, middleware.ReasonLoop) || !soft(t, err) {
		t.Fatalf("first strike: got %v", err)
	}
	if text, told := tool.Observation(ctx, err); !told || !strings.Contains(text, "not made") {
		t.Errorf("the model is told %q, %v", text, told)
	}
	if _, err := tool.Do(ctx, "", "other"); err != nil {
		t.Errorf("the run goes on after a nudge: got %v", err)
	}
	_, err = tool.Do(ctx, "", secret)
	if !errors.Is(err, middleware.ReasonLoop) || soft(t, err) {
		t.Fatalf("second strike: got %v", err)
	}
	if _, told := tool.Observation(ctx, err); told {
		t.Error("the run goes on after an abort")
	}
	if c, r, halted := run.Halted(); !halted || c != middleware.ComponentWatchdog || r != middleware.ReasonLoop {
		t.Errorf("halted: %v %v %v", c, r, halted)
	}
	if _, err := tool.Do(ctx, "", "another"); !errors.Is(err, middleware.ReasonLoop) {
		t.Errorf("a call after the abort: got %v", err)
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("the tool was called %d times, want 4", n)
	}
	seen := rec.decisions()
	if got := fmt.Sprint(rec.verdicts()); got != "[loop/modify/block loop/deny/block]" {
		t.Fatalf("decisions: %s", got)
	}
	for i, d := range seen {
		if d.Component != middleware.ComponentWatchdog || d.Run != run.ID() || d.Workflow != run.Workflow() ||
			d.Label != tool.Label() || d.Attempt != 1 || d.Count != 4+i || d.Limit != 3 || d.Seq != uint64(i+1) {
			t.Errorf("decision %d: %+v", i, d)
		}
	}
	if seen[0].Severity < 0.66 || seen[0].Severity > 0.67 {
		t.Errorf("severity %v, want 4/6", seen[0].Severity)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if s := fmt.Sprintf(verb, err) + fmt.Sprintf(verb, seen); strings.Contains(s, "SECRET") {
			t.Errorf("%s shows content: %s", verb, s)
		}
	}
}

func TestDetectionIsWhole(t *testing.T) {
	t.Parallel()
	var got []watchdog.Detection
	dog := newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat, Policy: func(d watchdog.Detection) watchdog.Action {
		got = append(got, d)

		return watchdog.Nudge
	}})
	tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
	ctx, run := startRun(t.Context(), t)
	for range 8 {
		_, _ = tool.Do(ctx, "", "same")
	}
	if len(got) != 5 {
		t.Fatalf("%d detections, want 5", len(got))
	}
	for i, d := range got {
		if d.Reason != middleware.ReasonLoop || d.Strike != i+1 || d.Count != 4+i || d.Limit != 3 || d.Run != run.ID() ||
			d.Label != tool.Label() || d.At.IsZero() || d.Elapsed != 0 || d.Severity != min(1, float64(4+i)/6) {
			t.Errorf("detection %d: %+v", i, d)
		}
	}
}

// TestConcurrentCalls: of many equal calls at once, exactly threshold are made.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	for _, action := range []watchdog.Action{watchdog.Nudge, watchdog.Escalate} {
		var made, refused atomic.Int64
		dog := newDog(t, watchdog.Config{Loop: watchdog.LoopRepeat, Policy: always(action), LoopWindow: 100})
		tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
		ctx, _ := startRun(t.Context(), t)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				_, err := tool.Do(ctx, "", "same")
				switch {
				case err == nil:
					made.Add(1)
				case errors.Is(err, middleware.ReasonLoop):
					refused.Add(1)
				default:
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if made.Load() != 3 || refused.Load() != 61 {
			t.Errorf("%v: %d made, %d refused; want 3 and 61", action, made.Load(), refused.Load())
		}
	}
}

func TestDisableLoop(t *testing.T) {
	t.Parallel()
	tool := toolOf(t, "lookup", middleware.ReadOnly, echo, newDog(t, watchdog.Config{DisableLoop: true}).Tool())
	ctx, _ := startRun(t.Context(), t)
	for range 20 {
		if _, err := tool.Do(ctx, "", "same"); err != nil {
			t.Fatal(err)
		}
	}
}
