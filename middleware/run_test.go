package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

type previewerFunc func(ctx context.Context, w ident.WorkflowID) (middleware.Preview, error)

func (f previewerFunc) Preview(ctx context.Context, w ident.WorkflowID) (middleware.Preview, error) {
	return f(ctx, w)
}

func preview(generation uint64) middleware.Preview {
	return middleware.NewPreview(workflow(), generation, ident.DigestOf([]byte{byte(generation)}))
}

func TestStartRun(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ctx, r := start(t, middleware.RunConfig{
		Label: ident.MustLabel("agent"), Now: func() time.Time { return now }, Random: bytes.NewReader(make([]byte, 16)),
	})
	if middleware.RunFrom(ctx) != r || r.ID().String() != "run_00000000000000000000000000000000" ||
		r.Workflow() != workflow() || r.Label().String() != "agent" || !r.Started().Equal(now) || r.Parent() != nil || r.Check() != nil {
		t.Errorf("got %+v", r)
	}
	_, other := start(t, middleware.RunConfig{})
	_, third := start(t, middleware.RunConfig{ID: other.ID()})
	if other.ID().IsZero() || other.ID() == r.ID() || third.ID() != other.ID() || time.Since(other.Started()) > time.Hour {
		t.Error("identifiers or clock are not as configured")
	}

	for name, tc := range map[string]struct {
		cfg  middleware.RunConfig
		want error
	}{
		"no workflow": {middleware.RunConfig{}, middleware.ReasonUnknownWorkflow},
		"no entropy":  {middleware.RunConfig{Workflow: workflow(), Random: bytes.NewReader([]byte{1})}, nil},
	} {
		ctx, r, err := middleware.StartRun(t.Context(), tc.cfg)
		if err == nil || r != nil || ctx != nil || (tc.want != nil && !errors.Is(err, tc.want)) {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
}

func TestNilRun(t *testing.T) {
	t.Parallel()
	var r *middleware.Run
	if !r.ID().IsZero() || !r.Workflow().IsZero() || !r.Label().IsZero() || r.Parent() != nil || !r.Started().IsZero() ||
		r.IgnoredSignals() != 0 || !r.CurrentPreview().IsZero() || !r.Ended() || r.End() ||
		r.Halt(middleware.ComponentRun, middleware.ReasonLoop) {
		t.Error("a nil run is something")
	}
	if _, _, halted := r.Halted(); halted {
		t.Error("a nil run is halted")
	}
	wantReason(t, r.Check(), middleware.ReasonNoRun)
	_, err := r.Preview(t.Context())
	wantReason(t, err, middleware.ReasonAdmissionDisabled)
	_, err = r.Save()
	wantReason(t, err, middleware.ReasonNoRun)
	_, err = (&middleware.PerRun[int]{New: func(*middleware.Run) (*int, error) { return new(int), nil }}).Get(r)
	wantReason(t, err, middleware.ReasonNoRun)
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	inner, child := startIn(ctx, t, middleware.RunConfig{})
	_, grandchild := startIn(inner, t, middleware.RunConfig{})
	_, sibling := startIn(ctx, t, middleware.RunConfig{})
	if child.Parent() != outer || grandchild.Parent() != child {
		t.Error("a run in the context is not the parent")
	}
	if !child.End() || child.End() {
		t.Error("ending is reported wrongly")
	}
	if !grandchild.Ended() || grandchild.End() || outer.Ended() || sibling.Ended() {
		t.Error("the end went elsewhere than down")
	}
	wantReason(t, grandchild.Check(), middleware.ReasonRunEnded)
	outer.End()
	if !sibling.Ended() {
		t.Error("a child outlives its parent")
	}
	if _, r, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow()}); r != nil || !errors.Is(err, middleware.ReasonRunEnded) {
		t.Errorf("an ended run got a child: %v", err)
	}
}

// The parent ends between the check and the adoption: in the previewer.
func TestRunAdoptedAfterEnd(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	_, r, err := middleware.StartRun(ctx, middleware.RunConfig{
		Workflow: workflow(), Previewer: previewerFunc(func(context.Context, ident.WorkflowID) (middleware.Preview, error) {
			outer.End()

			return preview(1), nil
		}),
	})
	if r != nil {
		t.Error("got a run")
	}
	wantReason(t, err, middleware.ReasonRunEnded)
}

func TestRunEndsOnceAmongMany(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := 0
	for range 32 {
		wg.Go(func() {
			if _, r, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow()}); err == nil {
				r.End()
				if !r.Ended() {
					t.Error("not ended")
				}
			}
		})
		wg.Go(func() {
			if outer.End() {
				mu.Lock()
				defer mu.Unlock()
				ends++
			}
		})
	}
	wg.Wait()
	if ends != 1 {
		t.Errorf("ended %d times", ends)
	}
}

func TestRunHalts(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	inner, child := startIn(ctx, t, middleware.RunConfig{})
	if outer.Halt(0, middleware.ReasonLoop) || outer.Halt(middleware.ComponentWatchdog, 0) {
		t.Error("halted for nothing")
	}
	if !child.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop) || child.Halt(middleware.ComponentBudget, middleware.ReasonBudgetExceeded) {
		t.Error("the first one does not win")
	}
	if _, _, halted := outer.Halted(); halted {
		t.Error("halting flowed up")
	}
	outer.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	wantReason(t, child.Check(), middleware.ReasonLoop)
	_, second := startUnchecked(ctx)
	if second != nil {
		t.Error("a halted run got a child")
	}
	_, grandchild := startUnchecked(inner)
	if grandchild != nil {
		t.Error("a halted run got a child")
	}
	err := outer.Check()
	wantReason(t, err, middleware.ReasonCircuitOpen)
	if d, _ := errors.AsType[*middleware.Denial](err); d == nil || d.Component() != middleware.ComponentEscalation || d.Run() != outer.ID() || d.Soft() {
		t.Errorf("got %+v", d)
	}
	if c, reason, halted := outer.Halted(); !halted || c != middleware.ComponentEscalation || reason != middleware.ReasonCircuitOpen {
		t.Errorf("got %v %v %v", c, reason, halted)
	}
}

func TestHaltFlowsDown(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	inner, child := startIn(ctx, t, middleware.RunConfig{})
	outer.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	wantReason(t, child.Check(), middleware.ReasonCircuitOpen)
	_, err := newTool(t, middleware.ToolConfig{}, echo).Do(inner, "", "")
	wantReason(t, err, middleware.ReasonCircuitOpen)
}

func startUnchecked(ctx context.Context) (context.Context, *middleware.Run) {
	ctx, r, _ := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow()})

	return ctx, r
}

func TestRunPreview(t *testing.T) {
	t.Parallel()
	foreign := middleware.NewPreview(ident.MustWorkflowID("workflow:org.example/other"), 9, ident.DigestOf(nil))
	denied := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped})
	var give middleware.Preview
	var fail error
	var crash any
	asked := 0
	ctx, r := start(t, middleware.RunConfig{Previewer: previewerFunc(func(_ context.Context, w ident.WorkflowID) (middleware.Preview, error) {
		asked++
		if w != workflow() {
			t.Errorf("asked for %v", w)
		}
		if crash != nil {
			panic(crash)
		}

		return give, fail
	})})
	if asked != 1 || !r.CurrentPreview().IsZero() {
		t.Errorf("asked %d times, got %v", asked, r.CurrentPreview())
	}
	give = preview(3)
	if p, err := r.Preview(ctx); err != nil || p != preview(3) || r.CurrentPreview() != p {
		t.Fatalf("got %v, %v", p, err)
	}
	for name, tc := range map[string]struct {
		give  middleware.Preview
		fail  error
		crash any
		want  error
	}{
		"error":              {preview(4), denied, nil, middleware.ReasonAdmissionStopped},
		"panic":              {preview(4), nil, errSecret, middleware.ReasonPanic},
		"another workflow":   {foreign, nil, nil, middleware.ReasonUntrustedState},
		"zero, but no error": {middleware.Preview{}, nil, nil, middleware.ReasonUntrustedState},
	} {
		give, fail, crash = tc.give, tc.fail, tc.crash
		p, err := r.Preview(ctx)
		if !p.IsZero() || !errors.Is(err, tc.want) || r.CurrentPreview() != preview(3) {
			t.Errorf("%s: got %v, %v; kept %v", name, p, err, r.CurrentPreview())
		}
		contentFree(t, err)
	}

	_, plain := start(t, middleware.RunConfig{})
	_, err := plain.Preview(ctx)
	wantReason(t, err, middleware.ReasonAdmissionDisabled)
}

// A run starts although its workflow may not act: it can still read.
func TestRunStartsWithoutAdmission(t *testing.T) {
	t.Parallel()
	ctx, r := start(t, middleware.RunConfig{Previewer: previewerFunc(func(context.Context, ident.WorkflowID) (middleware.Preview, error) {
		panic(secret)
	})})
	if !r.CurrentPreview().IsZero() || middleware.CheckRun(ctx) != nil {
		t.Errorf("got %v, %v", r.CurrentPreview(), middleware.CheckRun(ctx))
	}
}
