package middleware_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

type receiverFunc func(ctx context.Context, r *middleware.Run, s middleware.Signal)

func (f receiverFunc) ReceiveSignal(ctx context.Context, r *middleware.Run, s middleware.Signal) {
	f(ctx, r, s)
}

func TestSignalRanges(t *testing.T) {
	t.Parallel()
	smallest := math.SmallestNonzeroFloat64
	for _, tc := range []struct {
		value          float64
		unit, progress bool
	}{
		{0, true, true}, {math.Copysign(0, -1), true, true}, {smallest, true, true}, {1, true, true},
		{math.Nextafter(1, 2), false, true}, {math.MaxFloat64, false, true}, {-smallest, false, false},
		{-1, false, false}, {math.NaN(), false, false}, {math.Inf(1), false, false}, {math.Inf(-1), false, false},
	} {
		for kind := range 256 {
			k := middleware.SignalKind(kind)
			want := false
			switch k {
			case middleware.SignalConfidence, middleware.SignalDrift, middleware.SignalRisk:
				want = tc.unit
			case middleware.SignalProgress:
				want = tc.progress
			}
			if got := (middleware.Signal{Kind: k, Value: tc.value}).Valid(); got != want {
				t.Errorf("%v %v: valid is %v", k, tc.value, got)
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	var first, second []middleware.Signal
	var of []*middleware.Run
	ctx, r := start(t, middleware.RunConfig{Receivers: []middleware.SignalReceiver{
		receiverFunc(func(_ context.Context, r *middleware.Run, s middleware.Signal) {
			first, of = append(first, s), append(of, r)
		}),
		receiverFunc(func(context.Context, *middleware.Run, middleware.Signal) { panic(secret) }),
		nil,
		receiverFunc(func(_ context.Context, _ *middleware.Run, s middleware.Signal) { second = append(second, s) }),
	}})
	good := middleware.Signal{Kind: middleware.SignalProgress, Value: 12}
	if !middleware.Report(ctx, good) || len(first) != 1 || first[0] != good || of[0] != r || len(second) != 1 {
		t.Errorf("delivered %v, %v", first, second)
	}
	for _, bad := range []middleware.Signal{
		{}, {Kind: middleware.SignalRisk, Value: math.NaN()}, {Kind: middleware.SignalDrift, Value: 1.5}, {Kind: 200, Value: 0.5},
	} {
		if middleware.Report(ctx, bad) {
			t.Errorf("delivered %v", bad)
		}
	}
	if r.IgnoredSignals() != 4 || len(first) != 1 {
		t.Errorf("counted %d, delivered %v", r.IgnoredSignals(), first)
	}
	nested, _ := startIn(ctx, t, middleware.RunConfig{})
	if !middleware.Report(nested, good) || len(first) != 1 {
		t.Error("a nested run's signal reached the outer one")
	}
	r.End()
	if middleware.Report(ctx, good) || middleware.Report(ctx, middleware.Signal{}) || middleware.Report(t.Context(), good) {
		t.Error("delivered without a run")
	}
	if len(first) != 1 || r.IgnoredSignals() != 4 {
		t.Errorf("after the end: delivered %v, counted %d", first, r.IgnoredSignals())
	}
}

func TestReportBelongsToTheCall(t *testing.T) {
	t.Parallel()
	var got *toolCall
	ctx, _ := start(t, middleware.RunConfig{Receivers: []middleware.SignalReceiver{
		receiverFunc(func(ctx context.Context, _ *middleware.Run, _ middleware.Signal) {
			got, _ = middleware.ToolCallFrom(ctx)
		}),
	}})
	var want *toolCall
	_, err := newTool(t, middleware.ToolConfig{}, func(ctx context.Context, call *toolCall) (*toolResult, error) {
		want = call
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.5})

		return &toolResult{}, nil
	}).Do(ctx, "", "")
	if err != nil || got == nil || got != want {
		t.Errorf("got %p, want %p, %v", got, want, err)
	}
}

// clock counts how often it is paused.
type clock struct {
	mu     sync.Mutex
	paused int
	broken bool
}

func (c *clock) Pause() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.broken {
		return nil
	}

	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paused--
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	middleware.Pause(t.Context())() // nothing to stop
	ctx, r := start(t, middleware.RunConfig{})
	middleware.Pause(ctx)()

	c := &clock{}
	ctx = middleware.ContextWithPauser(ctx, c)
	outer, inner := middleware.Pause(ctx), middleware.Pause(ctx)
	if c.paused != 2 {
		t.Errorf("paused %d times", c.paused)
	}
	inner()
	inner()
	if c.paused != 1 {
		t.Errorf("resuming twice left %d", c.paused)
	}
	outer()
	if c.paused != 0 {
		t.Errorf("left %d", c.paused)
	}
	middleware.Pause(middleware.ContextWithRun(ctx, r))()
	if middleware.RunFrom(ctx) != r || c.paused != 0 {
		t.Error("the clock's context lost its run, or a run took the clock along")
	}
	middleware.Pause(middleware.ContextWithPauser(ctx, &clock{broken: true}))()
	middleware.Pause(middleware.ContextWithPauser(ctx, nil))()
}
