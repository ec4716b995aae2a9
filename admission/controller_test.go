package admission_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// TestDisabled: without a store nothing is ever admitted, and there is nothing
// to enable.
func TestDisabled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*admission.Controller{"nil": nil, "no store": must(admission.New(admission.Config{}))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := admission.Status{Scope: global, State: admission.Disabled, Reason: middleware.ReasonAdmissionDisabled}
			if st := c.Status(t.Context(), global); st != want {
				t.Errorf("%+v", st)
			}
			_, err := c.Stop(t.Context(), admission.Transition{Scope: global})
			wantErr(t, err, admission.ErrNotConfigured)
			_, err = c.Enable(t.Context(), admission.Transition{Scope: global})
			wantErr(t, err, admission.ErrNotConfigured)
			_, err = c.Preview(t.Context(), refunds)
			wantErr(t, err, admission.ErrDisabled)
			wantErr(t, c.Check(t.Context(), middleware.NewPreview(refunds, 1, ident.DigestOf(nil))), admission.ErrDisabled)
			wantErr(t, c.Check(t.Context(), middleware.Preview{}), admission.ErrDisabled)
			if c.InFlight() != 0 || c.Drain(t.Context()) != nil {
				t.Error("something is in flight")
			}
		})
	}
	if _, err := admission.New(admission.Config{Store: (*admission.SQLiteStore)(nil)}); err == nil {
		t.Error("a nil store was taken for one")
	}
}

type recorder func(act string, scope admission.Scope)

// TestVerdictOrder: the first that applies is the answer.
func TestVerdictOrder(t *testing.T) {
	t.Parallel()
	other := ident.DigestOf([]byte("another history"))
	for name, tc := range map[string]struct {
		prepare func(s *memoryStore, record recorder) // from (enabled, generation 2)
		preview func(p middleware.Preview) middleware.Preview
		want    error
	}{
		"admitted": {want: nil},
		"zero":     {preview: func(middleware.Preview) middleware.Preview { return middleware.Preview{} }, want: admission.ErrStaleGeneration},
		"no workflow": {preview: func(p middleware.Preview) middleware.Preview {
			return middleware.NewPreview(ident.WorkflowID{}, p.Generation(), p.Digest())
		}, want: admission.ErrStaleGeneration},
		"older": {preview: func(p middleware.Preview) middleware.Preview { return middleware.NewPreview(refunds, 1, other) }, want: admission.ErrStaleGeneration},
		"same with other": {preview: func(p middleware.Preview) middleware.Preview {
			return middleware.NewPreview(refunds, p.Generation(), other)
		}, want: admission.ErrUntrustedState},
		"ahead": {preview: func(p middleware.Preview) middleware.Preview {
			return middleware.NewPreview(refunds, p.Generation()+1, other)
		}, want: admission.ErrUntrustedState},
		"stop and enable":      {prepare: func(_ *memoryStore, record recorder) { record("stop", global); record("enable", global) }, want: admission.ErrStaleGeneration},
		"another scope":        {prepare: func(_ *memoryStore, record recorder) { record("stop", admission.Workflow(billing)) }, want: admission.ErrStaleGeneration},
		"stopped":              {prepare: func(_ *memoryStore, record recorder) { record("stop", global) }, want: admission.ErrStopped},
		"workflow stopped":     {prepare: func(_ *memoryStore, record recorder) { record("stop", admission.Workflow(refunds)) }, want: admission.ErrStopped},
		"stopped before ahead": {prepare: func(_ *memoryStore, record recorder) { record("stop", global) }, preview: func(p middleware.Preview) middleware.Preview { return middleware.NewPreview(refunds, 99, other) }, want: admission.ErrStopped},
		"untrusted first": {prepare: func(s *memoryStore, record recorder) {
			record("stop", global)
			s.set(func() { s.err = errors.New("canary") })
		}, want: admission.ErrUntrustedState},
		"busy": {prepare: func(s *memoryStore, _ recorder) {
			s.set(func() { s.err = admission.ErrStoreBusy })
		}, want: admission.ErrStoreBusy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryStore(t)
			c := newController(t, s)
			enable(t, c, global)
			p := preview(t, c, refunds)
			if tc.preview != nil {
				p = tc.preview(p)
			}
			if tc.prepare != nil {
				tc.prepare(s, func(act string, scope admission.Scope) {
					if act == "stop" {
						stop(t, c, scope)
					} else {
						enable(t, c, scope)
					}
				})
			}
			err := c.Check(t.Context(), p)
			if tc.want == nil {
				if err != nil {
					t.Error(err)
				}

				return
			}
			wantErr(t, err, tc.want)
			if d, ok := errors.AsType[*middleware.Denial](err); !ok || d.Component() != middleware.ComponentAdmission || d.Soft() {
				t.Errorf("%T", err)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
				if text := fmt.Sprintf(verb, err); strings.Contains(text, "canary") {
					t.Errorf("%s shows the cause: %s", verb, text)
				}
			}
		})
	}
}

func TestPreviewRefused(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	_, err := c.Preview(t.Context(), ident.WorkflowID{})
	wantErr(t, err, admission.ErrInvalidScope)
	_, err = c.Preview(t.Context(), refunds)
	wantErr(t, err, admission.ErrDisabled)
	stop(t, c, global)
	_, err = c.Preview(t.Context(), refunds)
	wantErr(t, err, admission.ErrStopped)
	s.err = admission.ErrUntrustedState
	_, err = c.Preview(t.Context(), refunds)
	wantErr(t, err, admission.ErrUntrustedState)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Preview(ctx, refunds)
	wantErr(t, err, context.Canceled)
	wantErr(t, c.Check(ctx, middleware.Preview{}), middleware.ReasonCanceled)
	if st := c.Status(t.Context(), admission.Scope{}); st.Reason != middleware.ReasonInvalidScope || st.State != admission.Stopped {
		t.Errorf("%+v", st)
	}
}

// TestScopeIsolation: enabling one workflow enables that one.
func TestScopeIsolation(t *testing.T) {
	t.Parallel()
	c := newController(t, newMemoryStore(t))
	enable(t, c, admission.Workflow(refunds))
	if err := c.Check(t.Context(), preview(t, c, refunds)); err != nil {
		t.Error(err)
	}
	_, err := c.Preview(t.Context(), billing)
	wantErr(t, err, admission.ErrDisabled)
	// Its preview is of no use to another workflow.
	p := preview(t, c, refunds)
	wantErr(t, c.Check(t.Context(), middleware.NewPreview(billing, p.Generation(), p.Digest())), admission.ErrDisabled)
	enable(t, c, global)
	p = preview(t, c, refunds)
	run := startRun(t, c, billing)
	run.preview = p
	wantErr(t, run.effect(t), admission.ErrStaleGeneration)
}

// TestGoingBack: once a generation was seen, less is never trusted again.
func TestGoingBack(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*memoryStore, *admission.Controller) {
		t.Helper()
		s := newMemoryStore(t)
		c := newController(t, s)
		enable(t, c, global)
		stop(t, c, global)

		return s, c
	}
	untrusted := func(t *testing.T, c *admission.Controller, generation uint64) {
		t.Helper()
		want := admission.Status{Scope: global, State: admission.Stopped, Reason: middleware.ReasonUntrustedState, Generation: generation}
		if st := c.Status(t.Context(), global); st != want {
			t.Errorf("%+v, want %+v", st, want)
		}
		_, err := c.Enable(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrUntrustedState)
		_, err = c.Stop(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrUntrustedState)
	}
	t.Run("restored", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t)
		s.set(func() { s.receipts = s.receipts[:2] })
		untrusted(t, c, 3)
	})
	t.Run("another history of the same length", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t)
		s.set(func() { s.receipts = s.receipts[:2] })
		stop(t, newController(t, s), admission.Workflow(billing))
		untrusted(t, c, 3)
	})
	t.Run("another history that is longer", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t)
		s.set(func() { s.receipts = s.receipts[:2] })
		other := newController(t, s)
		stop(t, other, admission.Workflow(billing))
		stop(t, other, admission.Workflow(billing))
		untrusted(t, c, 3)
	})
	t.Run("after an own stop", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t) // it has not read since it recorded generation 3
		s.set(func() { s.receipts = s.receipts[:2] })
		other := newController(t, s)
		enable(t, other, global)
		enable(t, other, global)
		wantErr(t, c.Check(t.Context(), preview(t, other, refunds)), admission.ErrUntrustedState)
		if st := newController(t, s).Status(t.Context(), global); st.State != admission.Enabled {
			t.Errorf("%+v", st)
		}
	})
	t.Run("preview ahead", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		enable(t, c, global)
		ahead := middleware.NewPreview(refunds, 9, ident.DigestOf(nil))
		wantErr(t, c.Check(t.Context(), ahead), admission.ErrUntrustedState)
		untrusted(t, c, 9)
	})
	t.Run("preview of another history", func(t *testing.T) {
		t.Parallel()
		_, c := setup(t)
		enable(t, c, global)
		wantErr(t, c.Check(t.Context(), middleware.NewPreview(refunds, 4, ident.DigestOf(nil))), admission.ErrUntrustedState)
		untrusted(t, c, 4)
	})
	t.Run("proven by the store", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t)
		s.set(func() {
			s.err, s.proven = admission.ErrUntrustedState, admission.Head{Generation: 7, Digest: ident.DigestOf(nil)}
		})
		untrusted(t, c, 7)
		s.set(func() { s.err = nil })
		untrusted(t, c, 7)
	})
	t.Run("lower proof changes nothing", func(t *testing.T) {
		t.Parallel()
		s, c := setup(t)
		s.set(func() { s.err, s.proven = admission.ErrUntrustedState, admission.Head{Generation: 1} })
		untrusted(t, c, 3)
		s.set(func() { s.err = nil })
		if st := c.Status(t.Context(), global); st.Reason != middleware.ReasonAdmissionStopped {
			t.Errorf("%+v", st)
		}
	})
}

// TestBadStore: whatever a store does wrong, nothing is admitted.
func TestBadStore(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *memoryStore){
		"panics":            func(s *memoryStore) { s.onHead = func() { panic("canary") } },
		"no head":           func(s *memoryStore) { s.receipts = nil },
		"receipt missing":   func(s *memoryStore) { s.receipts = append(s.receipts[:1:1], s.receipts[2:]...) },
		"starts later":      func(s *memoryStore) { s.receipts = s.receipts[1:] },
		"foreign error":     func(s *memoryStore) { s.err = errors.New("canary") },
		"receipt of nobody": func(s *memoryStore) { s.receipts = append(s.receipts, admission.Receipt{Generation: 4}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryStore(t)
			first := newController(t, s)
			enable(t, first, global)
			enable(t, first, global)
			p := preview(t, first, refunds)
			spoil(s)
			for _, c := range []*admission.Controller{newController(t, s), first} {
				if c == first && (name == "receipt missing" || name == "starts later") {
					continue // it has read what is missing, and to prove the head is the store's business
				}
				wantErr(t, c.Check(t.Context(), p), admission.ErrUntrustedState)
			}
		})
	}
}

// TestSlowRead: a check whose read is overtaken by one that saw more reads
// again, and is neither admitted by the old state nor takes it for going back.
func TestSlowRead(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	enable(t, c, global)
	p := preview(t, c, refunds)
	release, reached := make(chan struct{}), make(chan struct{})
	s.set(func() { s.hold, s.reached = []chan struct{}{release}, reached })
	result := make(chan error)
	go func() { result <- c.Check(t.Context(), p) }()
	<-reached // it has read generation 2
	stop(t, c, global)
	close(release)
	wantErr(t, <-result, admission.ErrStopped)
	if st := c.Status(t.Context(), global); st.Reason != middleware.ReasonAdmissionStopped {
		t.Errorf("%+v", st)
	}
}

// TestLongHistory: more than a page of receipts.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	for range 1200 {
		stop(t, c, admission.Workflow(billing))
	}
	enable(t, c, global)
	for name, c := range map[string]*admission.Controller{"known": c, "fresh": newController(t, s)} {
		if st := c.Status(t.Context(), global); st.Generation != 1202 || st.State != admission.Enabled {
			t.Errorf("%s: %+v", name, st)
		}
		if st := c.Status(t.Context(), admission.Workflow(billing)); st.State != admission.Stopped {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

func TestGauges(t *testing.T) {
	t.Parallel()
	state := func(c *admission.Controller) middleware.Reason {
		for _, g := range c.Gauges() {
			if g.Kind == middleware.GaugeAdmission && g.Global && g.Value == 1 {
				return g.Reason
			}
		}

		return 0
	}
	if g := (*admission.Controller)(nil).Gauges(); g != nil {
		t.Error(g)
	}
	if got := state(must(admission.New(admission.Config{}))); got != middleware.ReasonAdmissionDisabled {
		t.Error(got)
	}
	s := newMemoryStore(t)
	c := newController(t, s)
	if got := state(c); got != 0 {
		t.Error(got)
	}
	for _, step := range []struct {
		do   func()
		want middleware.Reason
	}{
		{func() { c.Status(t.Context(), global) }, middleware.ReasonAdmissionDisabled},
		{func() { enable(t, c, global) }, middleware.ReasonAdmissionEnabled},
		{func() { stop(t, c, global) }, middleware.ReasonAdmissionStopped},
		{func() { s.err = admission.ErrStoreBusy; c.Status(t.Context(), global) }, middleware.ReasonAdmissionStopped},
		{func() { s.err = admission.ErrUntrustedState; c.Status(t.Context(), global) }, middleware.ReasonUntrustedState},
	} {
		step.do()
		if got := state(c); got != step.want {
			t.Errorf("%v, want %v", got, step.want)
		}
	}
}
