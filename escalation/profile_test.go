package escalation_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func profiled(base int, v func() (float64, error)) func(*escalation.ActionConfig) {
	return func(c *escalation.ActionConfig) {
		c.FailureThreshold = base
		c.Profile = &escalation.Profile{Volatility: func(_ context.Context, w ident.WorkflowID) (float64, error) {
			if w != workflow {
				return 0, errTool
			}

			return v()
		}}
	}
}

// sureOf reports confidences and makes the twenty successes that have the
// profile evaluated.
func (r *rig) sureOf(tb testing.TB, confidences ...float64) {
	tb.Helper()
	for _, c := range confidences {
		_ = r.call(tb, middleware.ReadOnly, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: c})

			return works(ctx, call)
		})
	}
	for i := len(confidences); i < 20; i++ {
		if err := r.call(tb, middleware.ReadOnly, works); err != nil {
			tb.Fatal(err)
		}
	}
}

// The values are worked out by hand from the formula of Profile.
func TestProfileFormula(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base       int
		volatility float64
		confidence []float64
		threshold  int
		recovery   time.Duration
	}{
		{5, 0, nil, 5, time.Minute},
		{5, 1, nil, 2, 5 * time.Minute},                       // 5·0.4·1
		{5, 0.5, nil, 4, 3 * time.Minute},                     // 5·0.7 = 3.5
		{10, 0.5, []float64{0.6, 1}, 6, 3 * time.Minute},      // 10·0.7·0.9 = 6.3
		{10, 0, []float64{0.6}, 8, time.Minute},               // 10·0.8
		{10, 1, []float64{0.8, 0.8}, 4, 5 * time.Minute},      // 10·0.4·0.9 = 3.6
		{1, 1, nil, 1, 5 * time.Minute},                       // 0.4
		{10, math.NaN(), nil, 4, 5 * time.Minute},             // as 1
		{10, 1.5, nil, 4, 5 * time.Minute},                    // as 1
		{10, -0.5, nil, 4, 5 * time.Minute},                   // as 1
		{100, 0.25, []float64{0.7, 0.9}, 77, 2 * time.Minute}, // 100·0.85·0.9 = 76.5
		{1000, 0.1, []float64{0.65}, 776, 84 * time.Second},   // 1000·0.94·0.825 = 775.5
	} {
		r := newRig(t, profiled(c.base, func() (float64, error) { return c.volatility, nil }))
		r.sureOf(t, c.confidence...)
		changed := 0
		for _, d := range r.log.all() {
			if d.Reason != middleware.ReasonProfileChanged {
				continue
			}
			changed++
			if d.Count != c.threshold || d.Limit != c.base || d.Duration != c.recovery || d.Label != deskLabel || d.Seq == 0 {
				t.Errorf("%+v: threshold %d of %d, recovery %v", c, d.Count, d.Limit, d.Duration)
			}
		}
		if want := b2i(c.threshold != c.base || c.recovery != time.Minute); changed != want {
			t.Errorf("%+v: %d changes, want %d", c, changed, want)
		}
	}
}

// What the profile says is what the breaker does.
func TestProfileApplies(t *testing.T) {
	t.Parallel()
	v := 1.0
	r := newRig(t, profiled(5, func() (float64, error) { return v, nil }))
	r.sureOf(t)
	times(2, do(middleware.ReadOnly, fails))(t, r) // 2 instead of 5
	r.in(t, middleware.CircuitOpen)
	r.clock.move(5*time.Minute - time.Nanosecond) // 5 min instead of 1
	if err := r.call(t, middleware.ReadOnly, works); err == nil {
		t.Error("it recovered before its time")
	}
	r.clock.move(time.Nanosecond)
	v = 0 // evaluated at the transition to half-open
	if err := r.call(t, middleware.ReadOnly, works); err != nil {
		t.Error(err)
	}
	if got := r.log.count(middleware.ReasonProfileChanged); got != 2 {
		t.Errorf("%d changes: %v", got, r.log.reasons())
	}
	times(2, do(middleware.ReadOnly, works))(t, r)
	times(4, do(middleware.ReadOnly, fails))(t, r)
	r.in(t, middleware.CircuitClosed)
}

// Only the last twenty confidences count.
func TestProfileLastTwenty(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *escalation.ActionConfig) {
		profiled(10, func() (float64, error) { return 0, nil })(c)
		c.ConfidenceFloor = 0.1
	})
	low, high := make([]float64, 20), make([]float64, 20)
	for i := range low {
		low[i], high[i] = 0.2, 1
	}
	r.sureOf(t, low...) // 10·0.6
	r.sureOf(t, high...)
	var got []int
	for _, d := range r.log.all() {
		got = append(got, d.Count)
	}
	if len(got) != 2 || got[0] != 6 || got[1] != 10 {
		t.Errorf("thresholds %v, want 6 and 10", got)
	}
}

func TestProfileFaults(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]func() (float64, error){
		"error": func() (float64, error) { return 0, errTool },
		"panic": func() (float64, error) { panic(secret) },
		"exit": func() (float64, error) {
			runtime.Goexit()

			return 0, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, profiled(5, v))
			for range 20 {
				apart(func() { _ = r.call(t, middleware.ReadOnly, works) })
			}
			if r.Faults() != 1 {
				t.Errorf("%d faults", r.Faults())
			}
			if name == "exit" {
				return // its goroutine has gone; the next evaluation is at the next transition
			}
			times(2, do(middleware.ReadOnly, fails))(t, r)
			r.in(t, middleware.CircuitOpen)
		})
	}
}
