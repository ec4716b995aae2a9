package storetest

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// pair is an operator and an agent, each with a handle and a controller of its
// own.
type pair struct {
	t               *testing.T
	operator, agent *admission.Controller
	one, two        ident.WorkflowID
}

func newPair(t *testing.T, s Suite) pair {
	t.Helper()
	store := s.New(t)
	p := pair{
		t: t, one: ident.MustWorkflowID("workflow:org.example/one"), two: ident.MustWorkflowID("workflow:org.example/two"),
	}
	var err error
	if p.operator, err = admission.New(admission.Config{Store: store}); err != nil {
		t.Fatal(err)
	}
	if p.agent, err = admission.New(admission.Config{Store: s.Again(t, store)}); err != nil {
		t.Fatal(err)
	}

	return p
}

func (p pair) stop(s admission.Scope) {
	p.t.Helper()
	if _, err := p.operator.Stop(limited(p.t), admission.Transition{Scope: s}); err != nil {
		p.t.Fatalf("stop %v: %v", s, err)
	}
}

func (p pair) enable(s admission.Scope) {
	p.t.Helper()
	if _, err := p.operator.Enable(limited(p.t), admission.Transition{Scope: s}); err != nil {
		p.t.Fatalf("enable %v: %v", s, err)
	}
}

// want compares the states of both workflows.
func (p pair) want(what string, one, two admission.State) {
	p.t.Helper()
	for w, want := range map[ident.WorkflowID]admission.State{p.one: one, p.two: two} {
		if st := p.agent.Status(limited(p.t), admission.Workflow(w)); st.State != want {
			p.t.Errorf("%s: %v is %v, want %v (%v)", what, w, st.State, want, st.Reason)
		}
	}
}

// rules: off by default, scopes that do not touch each other, and a global stop
// that forgets what was enabled and not what was stopped.
func rules(t *testing.T, s Suite) {
	t.Helper()
	const off, on, halted = admission.Disabled, admission.Enabled, admission.Stopped
	p := newPair(t, s)
	all, one, two := admission.Global(), admission.Workflow(p.one), admission.Workflow(p.two)
	p.want("at first", off, off)
	p.enable(one)
	p.want("one enabled", on, off)
	p.stop(two)
	p.want("two stopped", on, halted)
	p.stop(all)
	p.want("all stopped", halted, halted)
	if _, err := p.operator.Enable(limited(t), admission.Transition{Scope: one}); !errors.Is(err, admission.ErrStopped) {
		t.Errorf("one enabled while all are stopped: %v", err)
	}
	p.enable(all)
	p.want("all enabled", on, halted)
	p.enable(two)
	p.want("two enabled", on, on)
	p.stop(one)
	p.stop(one)
	p.want("one stopped twice", halted, on)
}

// previews: a preview is good for its workflow, generation and receipt alone,
// and one that is ahead proves that the store went back.
func previews(t *testing.T, s Suite) {
	t.Helper()
	p := newPair(t, s)
	all := admission.Global()
	if _, err := p.agent.Preview(limited(t), p.one); !errors.Is(err, admission.ErrDisabled) {
		t.Errorf("at first: %v", err)
	}
	p.enable(all)
	preview := func() middleware.Preview {
		v, err := p.agent.Preview(limited(t), p.one)
		if err != nil {
			t.Fatal(err)
		}

		return v
	}
	want := func(what string, v middleware.Preview, want error) {
		if err := p.agent.Check(limited(t), v); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	old := preview()
	want("fresh", old, nil)
	want("none", middleware.Preview{}, admission.ErrStaleGeneration)
	p.stop(all)
	want("stopped", old, admission.ErrStopped)
	p.enable(all)
	want("stopped and enabled", old, admission.ErrStaleGeneration)
	old = preview()
	p.stop(admission.Workflow(p.two))
	want("another workflow stopped", old, admission.ErrStaleGeneration)
	last := preview()
	want("fresh again", last, nil)
	want("another receipt", middleware.NewPreview(p.one, last.Generation(), ident.DigestOf(nil)), admission.ErrUntrustedState)
	want("after the evidence", last, admission.ErrUntrustedState)

	p = newPair(t, s)
	p.enable(all)
	last = preview()
	want("ahead", middleware.NewPreview(p.one, last.Generation()+1, last.Digest()), admission.ErrUntrustedState)
	want("after the evidence", last, admission.ErrUntrustedState)
}
