package admission_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// row is one line of the table in the comment of type view.
type row struct{ act, scope, global, own, globalAfter, ownAfter string }

func transitionTable(t *testing.T) []row {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "ledger.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Doc == nil {
			continue
		}
		for line := range strings.SplitSeq(g.Doc.Text(), "\n") {
			w := strings.Fields(line)
			if len(w) == 4 && (w[0] == "stop" || w[0] == "enable") {
				global, own, _ := strings.Cut(w[2], ",")
				globalAfter, ownAfter, _ := strings.Cut(w[3], ",")
				rows = append(rows, row{w[0], w[1], global, own, globalAfter, ownAfter})
			}
		}
	}

	return rows
}

// TestTransitions walks through the table: every state that can be reached,
// every act, exactly one row each.
func TestTransitions(t *testing.T) {
	t.Parallel()
	table := transitionTable(t)
	cases := 0
	for _, globalBefore := range []string{"disabled", "enabled", "stopped"} {
		for _, own := range []string{"-", "enabled", "stopped"} {
			if globalBefore == "stopped" && own == "enabled" {
				continue // a global stop forgets it, and it is refused afterwards
			}
			for _, act := range []string{"stop", "enable"} {
				for _, scope := range []string{"global", "workflow"} {
					var match []row
					for _, r := range table {
						if r.act == act && r.scope == scope && (r.global == "*" || r.global == globalBefore) && (r.own == "*" || r.own == own) {
							match = append(match, r)
						}
					}
					if len(match) != 1 {
						t.Fatalf("%s %s in (%s, %s): %d rows", act, scope, globalBefore, own, len(match))
					}
					cases++
					t.Run(strings.Join([]string{act, scope, globalBefore, own}, "/"), func(t *testing.T) {
						t.Parallel()
						checkTransition(t, match[0], globalBefore, own)
					})
				}
			}
		}
	}
	if cases != 32 {
		t.Errorf("%d cases, want 32", cases)
	}
}

func checkTransition(t *testing.T, r row, globalBefore, own string) {
	t.Helper()
	c := newController(t, newMemoryStore(t))
	scope := admission.Workflow(refunds)
	switch own {
	case "enabled":
		enable(t, c, scope)
	case "stopped":
		stop(t, c, scope)
	}
	switch globalBefore {
	case "enabled":
		enable(t, c, global)
	case "stopped":
		stop(t, c, global)
	}
	before := c.Status(t.Context(), global)
	target := global
	if r.scope == "workflow" {
		target = scope
	}
	do := c.Stop
	if r.act == "enable" {
		do = c.Enable
	}
	_, err := do(t.Context(), admission.Transition{Scope: target})
	after := c.Status(t.Context(), global)
	if r.globalAfter == "admission_stopped" {
		wantErr(t, err, admission.ErrStopped)
		if after != before {
			t.Errorf("a refused transition changed %v to %v", before, after)
		}

		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if after.Generation != before.Generation+1 {
		t.Errorf("generation %d after %d", after.Generation, before.Generation)
	}
	want := r.globalAfter
	if want == "=" {
		want = globalBefore
	}
	if after.State.String() != want {
		t.Errorf("global is %v, want %s", after.State, want)
	}
	// The own state shows where the global one does not override it.
	effective := r.ownAfter
	if effective == "-" || want == "stopped" {
		effective = want
	}
	if got := c.Status(t.Context(), scope).State.String(); got != effective {
		t.Errorf("workflow is %s, want %s", got, effective)
	}
	if want == "stopped" { // look under the override
		enable(t, c, global)
		under := "enabled"
		if r.ownAfter == "stopped" {
			under = "stopped"
		}
		if got := c.Status(t.Context(), scope).State.String(); got != under {
			t.Errorf("after resuming all the workflow is %s, want %s", got, under)
		}
	}
	if got := c.Status(t.Context(), admission.Workflow(billing)).State.String(); want != "stopped" && got != want {
		t.Errorf("another workflow is %s, want %s", got, want)
	}
}

func TestTransitionRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		act  string
		t    admission.Transition
		want error
	}{
		"zero scope":            {"stop", admission.Transition{}, admission.ErrInvalidScope},
		"zero workflow":         {"enable", admission.Transition{Scope: admission.Workflow(ident.WorkflowID{})}, admission.ErrInvalidScope},
		"unknown role":          {"stop", admission.Transition{Scope: global, Role: 9}, admission.ErrInvalidControlMetadata},
		"unknown reason":        {"stop", admission.Transition{Scope: global, Reason: 9}, admission.ErrInvalidControlMetadata},
		"stop for enable":       {"stop", admission.Transition{Scope: global, Reason: admission.ExplicitEnable}, admission.ErrInvalidTransition},
		"stop for initialized":  {"stop", admission.Transition{Scope: global, Reason: admission.Initialized}, admission.ErrInvalidTransition},
		"enable for stop":       {"enable", admission.Transition{Scope: global, Reason: admission.EmergencyStop}, admission.ErrInvalidTransition},
		"enable for initialize": {"enable", admission.Transition{Scope: global, Reason: admission.Initialized}, admission.ErrInvalidTransition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newController(t, newMemoryStore(t))
			do := c.Stop
			if tc.act == "enable" {
				do = c.Enable
			}
			_, err := do(t.Context(), tc.t)
			wantErr(t, err, tc.want)
			if g := c.Status(t.Context(), global).Generation; g != 1 {
				t.Errorf("generation %d", g)
			}
		})
	}
}

func TestTransitionRecords(t *testing.T) {
	t.Parallel()
	s := newMemoryStore(t)
	c := newController(t, s)
	enable(t, c, global)
	stop(t, c, admission.Workflow(refunds))
	if _, err := c.Stop(t.Context(), admission.Transition{Scope: global, Role: admission.Operator, Reason: admission.Maintenance}); err != nil {
		t.Fatal(err)
	}
	rs := must(s.Receipts(t.Context(), 1, 10))
	want := []admission.Receipt{
		{Scope: global, State: admission.Enabled, Role: admission.Operator, Reason: admission.ExplicitEnable},
		{Scope: admission.Workflow(refunds), State: admission.Stopped, Role: admission.IncidentCommander, Reason: admission.EmergencyStop},
		{Scope: global, State: admission.Stopped, Role: admission.Operator, Reason: admission.Maintenance},
	}
	for i, w := range want {
		r := rs[i]
		if r.Scope != w.Scope || r.State != w.State || r.Role != w.Role || r.Reason != w.Reason || r.Time != at().Unix() {
			t.Errorf("receipt %d is %s", i, r.Document())
		}
	}
}

func TestTransitionTime(t *testing.T) {
	t.Parallel()
	c := must(admission.New(admission.Config{Store: newMemoryStore(t), Now: func() time.Time { return time.Unix(-1, 0) }}))
	_, err := c.Stop(t.Context(), admission.Transition{Scope: global})
	wantErr(t, err, admission.ErrInvalidTime)
}

// TestRace: what another process records between reading and writing.
func TestRace(t *testing.T) {
	t.Parallel()
	race := func(t *testing.T) (*memoryStore, *admission.Controller) {
		t.Helper()
		s := newMemoryStore(t)
		other := newController(t, s)
		once := false
		s.onAppend = func() error {
			if !once {
				once = true
				stop(t, other, global)
			}

			return nil
		}

		return s, newController(t, s)
	}
	t.Run("enable gives way", func(t *testing.T) {
		t.Parallel()
		_, c := race(t)
		_, err := c.Enable(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrStaleGeneration)
		if st := c.Status(t.Context(), global); st.State != admission.Stopped || st.Generation != 2 {
			t.Errorf("%+v", st)
		}
	})
	for name, strict := range map[string]bool{"stop goes before": false, "stop tries again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := race(t)
			s.strict = strict
			st, err := c.Stop(t.Context(), admission.Transition{Scope: admission.Workflow(refunds)})
			if err != nil || st.Generation != 3 || st != c.Status(t.Context(), admission.Workflow(refunds)) {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

func TestStopUntilDeadline(t *testing.T) {
	t.Parallel()
	busy := middleware.NewFailure(middleware.ComponentAdmission, middleware.ReasonStoreBusy, ident.Label{})
	for name, tc := range map[string]struct {
		end  func() context.Context
		want error
	}{
		"deadline": {func() context.Context {
			ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
			cancel()

			return ctx
		}, admission.ErrStoreBusy},
		"canceled": {func() context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()

			return ctx
		}, middleware.ReasonCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryStore(t)
			s.err = busy
			_, err := newController(t, s).Stop(tc.end(), admission.Transition{Scope: global})
			wantErr(t, err, tc.want)
		})
	}
	t.Run("busy at first", func(t *testing.T) {
		t.Parallel()
		s := newMemoryStore(t)
		n := 0
		s.onAppend = func() error {
			if n++; n < 3 {
				return busy
			}

			return nil
		}
		if st := stop(t, newController(t, s), global); st.Generation != 2 || n != 3 {
			t.Errorf("%+v after %d", st, n)
		}
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		s := newMemoryStore(t)
		s.onAppend = func() error { return errors.New("canary") }
		_, err := newController(t, s).Stop(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrStoreFailed)
	})
	t.Run("panics", func(t *testing.T) {
		t.Parallel()
		s := newMemoryStore(t)
		s.onAppend = func() error { panic("canary") }
		_, err := newController(t, s).Stop(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrUntrustedState)
	})
}
