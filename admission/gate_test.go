package admission_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

// testRun is a run and a guarded tool in it.
type testRun struct {
	ctx     context.Context //nolint:containedctx // that of the run
	run     *middleware.Run
	gate    middleware.ToolMiddleware
	preview middleware.Preview // if not zero, the run's Previewer gives it
	kind    middleware.Effect
	do      func(context.Context)
	called  int
}

func (r *testRun) Preview(ctx context.Context, w ident.WorkflowID) (middleware.Preview, error) {
	return r.preview, nil
}

func startRun(tb testing.TB, c *admission.Controller, w ident.WorkflowID) *testRun {
	tb.Helper()
	r := &testRun{gate: c.Gate().Tool()}
	ctx, run, err := middleware.StartRun(tb.Context(), middleware.RunConfig{Workflow: w, Previewer: c})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })
	r.ctx, r.run = ctx, run

	return r
}

func (r *testRun) effect(tb testing.TB) error {
	tb.Helper()
	ctx := r.ctx
	if !r.preview.IsZero() {
		var run *middleware.Run
		ctx, run, _ = middleware.StartRun(tb.Context(), middleware.RunConfig{Workflow: r.run.Workflow(), Previewer: r})
		defer run.End()
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "refund", Effect: r.kind, Chain: r.gate},
		func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			r.called++
			if r.do != nil {
				r.do(ctx)
			}

			return &middleware.ToolResult{}, nil
		})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = tool.Do(ctx, "", "")

	return err
}

func TestGateConformance(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	enable(t, c, global)
	conformance.Tool(t, conformance.ToolSuite{
		New: func(*testing.T) middleware.ToolMiddleware { return c.Gate().Tool() },
		Run: func(*testing.T) middleware.RunConfig { return middleware.RunConfig{Previewer: c} },
	})
	if n := c.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []middleware.Decision
	s := newMemoryStore(t)
	c := newController(t, s, middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, d)
	}))
	before := startRun(t, c, refunds) // while disabled: without a preview
	wantErr(t, before.effect(t), admission.ErrDisabled)
	enable(t, c, global)
	wantErr(t, before.effect(t), admission.ErrStaleGeneration)
	if _, err := before.run.Preview(before.ctx); err != nil {
		t.Fatal(err)
	}
	if err := before.effect(t); err != nil {
		t.Error(err)
	}
	run := startRun(t, c, refunds)
	if err := run.effect(t); err != nil {
		t.Error(err)
	}
	stop(t, c, global)
	wantErr(t, run.effect(t), admission.ErrStopped)
	run.kind = middleware.Idempotent
	wantErr(t, run.effect(t), admission.ErrStopped)
	run.kind = middleware.ReadOnly
	if err := run.effect(t); err != nil {
		t.Error(err)
	}
	run.kind = middleware.Polling
	if err := run.effect(t); err != nil {
		t.Error(err)
	}
	enable(t, c, global)
	run.kind = middleware.Effectful
	wantErr(t, run.effect(t), admission.ErrStaleGeneration)
	if run.called != 3 || before.called != 1 || c.InFlight() != 0 {
		t.Errorf("%d and %d effects, %d in flight", run.called, before.called, c.InFlight())
	}

	want := []struct {
		reason     middleware.Reason
		generation uint64
	}{
		{middleware.ReasonAdmissionDisabled, 1}, {middleware.ReasonStaleGeneration, 2}, {middleware.ReasonAdmissionEnabled, 2},
		{middleware.ReasonAdmissionEnabled, 2}, {middleware.ReasonAdmissionStopped, 3}, {middleware.ReasonAdmissionStopped, 3},
		{middleware.ReasonStaleGeneration, 4},
	}
	if len(heard) != len(want) {
		t.Fatalf("%d decisions", len(heard))
	}
	for i, d := range heard {
		verdict, action := middleware.VerdictDeny, middleware.ActionBlock
		if want[i].reason == middleware.ReasonAdmissionEnabled {
			verdict, action = middleware.VerdictAllow, middleware.ActionProceed
		}
		if d.Seq != uint64(i+1) || d.Component != middleware.ComponentAdmission || d.Verdict != verdict || d.Action != action ||
			d.Reason != want[i].reason || d.Generation != want[i].generation || d.Workflow != refunds || d.Attempt != 1 ||
			d.Label.String() != "refund" || d.Run.IsZero() {
			t.Errorf("decision %d: %+v", i, d)
		}
	}
}

// TestGateRefusesOrder: the gate is inside of an approval.
func TestGateRefusesOrder(t *testing.T) {
	t.Parallel()
	c := newController(t, newMemoryStore(t))
	enable(t, c, global)
	run := startRun(t, c, refunds)
	run.gate = middleware.Chain(run.gate, middleware.At(middleware.StageApproval, func(next middleware.ToolHandler) middleware.ToolHandler { return next }))
	wantErr(t, run.effect(t), middleware.ReasonUnsafeOrder)
	if run.called != 0 {
		t.Error("the effect happened")
	}
}

func TestGateOfNobody(t *testing.T) {
	t.Parallel()
	var g *admission.Gate
	for name, mw := range map[string]middleware.ToolMiddleware{"controller": (*admission.Controller)(nil).Gate().Tool(), "gate": g.Tool()} {
		run := startRun(t, nil, refunds)
		run.gate = mw
		wantErr(t, run.effect(t), admission.ErrDisabled)
		if run.called != 0 {
			t.Errorf("%s: the effect happened", name)
		}
		if mw(nil) == nil {
			t.Errorf("%s: no handler", name)
		}
	}
	// Without the adapter around it, a call outside of a run.
	h := newController(t, newMemoryStore(t)).Gate().Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, errors.New("called")
	})
	_, err := h(t.Context(), new(middleware.ToolCall))
	wantErr(t, err, middleware.ReasonNoRun)
}

// TestCanceledBetween: a context that dies while the observer is told, after the
// check said yes, still keeps the effect from happening.
func TestCanceledBetween(t *testing.T) {
	t.Parallel()
	var cancel context.CancelFunc
	c := newController(t, newMemoryStore(t), middleware.ObserverFunc(func(context.Context, middleware.Decision) { cancel() }))
	enable(t, c, global)
	run := startRun(t, c, refunds)
	ctx1, cancel1 := context.WithCancel(run.ctx)
	defer cancel1()
	run.ctx, cancel = ctx1, cancel1
	wantErr(t, run.effect(t), middleware.ReasonCanceled)
	if run.called != 0 {
		t.Error("the effect happened")
	}
	// And one that is dead after the store was read.
	s := newMemoryStore(t)
	c2 := newController(t, s)
	enable(t, c2, global)
	run = startRun(t, c2, refunds)
	ctx, cancel2 := context.WithCancel(run.ctx)
	defer cancel2()
	run.ctx = ctx
	release, reached := make(chan struct{}), make(chan struct{}, 1)
	s.set(func() { s.hold, s.reached = []chan struct{}{release}, reached })
	go func() { <-reached; cancel2(); close(release) }()
	wantErr(t, run.effect(t), middleware.ReasonCanceled)
	if run.called != 0 {
		t.Error("the effect happened")
	}
}

// TestDrain: what began before is waited for, what begins later is not, and a
// blocked effect is never reported as drained.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newController(t, newMemoryStore(t))
		enable(t, c, global)
		p := preview(t, c, refunds)
		begin := func(check admission.Checker) (started, release chan struct{}) {
			started, release = make(chan struct{}), make(chan struct{})
			go func() {
				_, _ = admission.Dispatch(t.Context(), check, p, func(context.Context) (int, error) {
					close(started)
					<-release

					return 0, nil
				})
			}()

			return started, release
		}
		started, first := begin(c)
		<-started
		if err := c.Drain(canceledContext()); !errors.Is(err, middleware.ReasonCanceled) {
			t.Errorf("blocked was reported as %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantErr(t, c.Drain(ctx), context.DeadlineExceeded)

		done := make(chan error, 2)
		go func() { done <- c.Drain(t.Context()) }()
		synctest.Wait()
		started, later := begin(c)
		<-started
		go func() { done <- c.Drain(t.Context()) }() // this one waits for both
		synctest.Wait()
		if c.InFlight() != 2 || len(done) != 0 {
			t.Errorf("%d in flight, %d drained", c.InFlight(), len(done))
		}
		close(first)
		synctest.Wait()
		if c.InFlight() != 1 || len(done) != 1 {
			t.Errorf("%d in flight, %d drained", c.InFlight(), len(done))
		}
		close(later)
		synctest.Wait()
		if len(done) != 2 || <-done != nil || <-done != nil || c.InFlight() != 0 {
			t.Errorf("%d in flight", c.InFlight())
		}
		if err := c.Drain(canceledContext()); err != nil {
			t.Errorf("nothing is in flight: %v", err)
		}
	})
}

// TestDrainCountsBeforeCheck: an entry between count and verdict is waited for,
// and a refusal ends it.
func TestDrainCountsBeforeCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore(t)
		c := newController(t, s)
		stop(t, c, global)
		run := startRun(t, c, refunds)
		release, reached := make(chan struct{}), make(chan struct{})
		s.set(func() { s.hold, s.reached = []chan struct{}{release}, reached })
		refused, drained := make(chan error, 1), make(chan error, 1)
		go func() { refused <- run.effect(t) }()
		<-reached
		if c.InFlight() != 1 {
			t.Errorf("%d in flight", c.InFlight())
		}
		go func() { drained <- c.Drain(t.Context()) }()
		synctest.Wait()
		if len(drained) != 0 {
			t.Error("drained before the verdict")
		}
		close(release)
		wantErr(t, <-refused, admission.ErrStopped)
		if err := <-drained; err != nil || c.InFlight() != 0 {
			t.Error(err)
		}
	})
}

func canceledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()

	return ctx
}

//nolint:tparallel // each looks at what is in flight
func TestDispatch(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	enable(t, c, global)
	p := preview(t, c, refunds)
	boom := errors.New("boom")
	yes := admission.CheckFunc(func(context.Context, middleware.Preview) error { return nil })
	//nolint:paralleltest // each looks at what is in flight
	for name, tc := range map[string]struct {
		ctx    context.Context //nolint:containedctx // a row of a table
		check  admission.Checker
		p      middleware.Preview
		effect func(context.Context) (int, error)
		calls  int
		want   error
	}{
		"admitted":       {check: c, p: p, calls: 1},
		"by function":    {check: yes, calls: 1},
		"nil":            {want: admission.ErrDisabled},
		"nil controller": {check: (*admission.Controller)(nil), p: p, want: admission.ErrDisabled},
		"nil function":   {check: admission.CheckFunc(nil), p: p, want: admission.ErrDisabled},
		"zero preview":   {check: c, want: admission.ErrStaleGeneration},
		"nil effect":     {check: c, p: p, effect: nilEffect, want: middleware.ReasonNilHandler},
		"dead context":   {ctx: canceledContext(), check: yes, want: context.Canceled},
		"dead for c":     {ctx: canceledContext(), check: c, p: p, want: context.Canceled},
		"check refuses":  {check: admission.CheckFunc(func(context.Context, middleware.Preview) error { return boom }), want: boom},
		"check panics":   {check: admission.CheckFunc(func(context.Context, middleware.Preview) error { panic("canary") }), want: middleware.ReasonPanic},
		"effect fails":   {check: c, p: p, effect: func(context.Context) (int, error) { return 7, boom }, want: boom},
		"effect panics":  {check: c, p: p, effect: func(context.Context) (int, error) { panic("canary") }, want: middleware.ReasonOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			effect := func(context.Context) (int, error) { calls++; return 42, nil }
			switch {
			case name == "nil effect":
				effect = nil
			case tc.effect != nil:
				effect = tc.effect
			}
			if tc.ctx == nil {
				tc.ctx = t.Context()
			}
			v, err := admission.Dispatch(tc.ctx, tc.check, tc.p, effect)
			if tc.want == nil && (err != nil || v != 42) {
				t.Errorf("%d, %v", v, err)
			}
			if tc.want != nil {
				wantErr(t, err, tc.want)
			}
			if calls != tc.calls || c.InFlight() != 0 {
				t.Errorf("%d calls, %d in flight", calls, c.InFlight())
			}
		})
	}
}

func nilEffect(context.Context) (int, error) { return 0, nil }

// TestGoexit: an effect that exits its goroutine is not in flight any more.
func TestGoexit(t *testing.T) {
	t.Parallel()
	c := newController(t, newMemoryStore(t))
	enable(t, c, global)
	p := preview(t, c, refunds)
	run := startRun(t, c, refunds)
	run.do = func(context.Context) { runtime.Goexit() }
	var wg sync.WaitGroup
	wg.Go(func() { _ = run.effect(t) })
	wg.Go(func() {
		_, _ = admission.Dispatch(t.Context(), c, p, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	})
	wg.Wait()
	if run.called != 1 || c.InFlight() != 0 || c.Drain(canceledContext()) != nil {
		t.Errorf("%d calls, %d in flight", run.called, c.InFlight())
	}
}
