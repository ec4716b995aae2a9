package admission_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// model is the specification once more, written the other way round: it keeps
// the whole history and looks back through it.
type model []act

type act struct {
	enable   bool
	workflow ident.WorkflowID // zero: all
}

// enabled goes back to what was last said about all and about w.
func (m model) state(w ident.WorkflowID) admission.State {
	all, own := admission.Disabled, admission.State(0)
	for i, a := range m {
		switch {
		case a.workflow.IsZero() && a.enable:
			all = admission.Enabled
		case a.workflow.IsZero():
			all = admission.Stopped
		case a.workflow == w && !a.enable:
			own = admission.Stopped
		case a.workflow == w:
			own = admission.Enabled
			for _, later := range m[i:] {
				if later.workflow.IsZero() && !later.enable {
					own = 0 // forgotten by a stop of all
				}
			}
		}
	}
	if all == admission.Stopped || own == 0 {
		return all
	}

	return own
}

// FuzzTransitions drives two controllers on one store with a random history and
// compares every verdict with the model.
func FuzzTransitions(f *testing.F) {
	for _, seed := range [][]byte{
		{}, {0}, {3, 0, 3}, {5, 0, 3, 5}, {2, 3, 0, 3}, {0, 5}, {5, 4, 5, 1, 0, 3, 2}, {3, 5, 0, 3, 7, 9, 11, 2, 8},
	} {
		f.Add(seed)
	}
	workflows := []ident.WorkflowID{{}, refunds, billing}
	f.Fuzz(func(t *testing.T, history []byte) {
		s := newMemoryStore(t)
		cs := []*admission.Controller{newController(t, s), newController(t, s)}
		previews := map[ident.WorkflowID]middleware.Preview{}
		var m model
		for _, b := range history[:min(len(history), 60)] {
			a := act{enable: b%2 == 1, workflow: workflows[int(b/2)%len(workflows)]}
			c := cs[int(b/12)%2]
			scope, do := admission.Workflow(a.workflow), c.Stop
			if a.workflow.IsZero() {
				scope = global
			}
			if a.enable {
				do = c.Enable
			}
			refused := a.enable && !a.workflow.IsZero() && m.state(ident.WorkflowID{}) == admission.Stopped
			if _, err := do(t.Context(), admission.Transition{Scope: scope}); refused != errors.Is(err, admission.ErrStopped) || !refused && err != nil {
				t.Fatalf("%v: %v", a, err)
			}
			if !refused {
				m = append(m, a)
			}
			for w, p := range previews { // all were taken before this transition
				want := admission.ErrStaleGeneration
				if m.state(w) == admission.Stopped {
					want = admission.ErrStopped
				}
				if err := cs[0].Check(t.Context(), p); !refused && !errors.Is(err, want) {
					t.Fatalf("%v after %v: %v, want %v", w, m, err, want)
				}
			}
			for _, w := range workflows[1:] {
				want := m.state(w)
				for _, c := range cs {
					st := c.Status(t.Context(), admission.Workflow(w))
					p, err := c.Preview(t.Context(), w)
					if st.State != want || st.Generation != uint64(len(m)+1) || (err == nil) != (want == admission.Enabled) {
						t.Fatalf("%v after %v: %+v, %v, want %v", w, m, st, err, want)
					}
					if err == nil {
						previews[w] = p
						if err := c.Check(t.Context(), p); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
}
