package admission_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/middleware"
)

// TestForceStop: somebody holds a lock for ever. A stop says so and changes
// nothing; a forced one stops everybody, at once.
func TestForceStop(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path  func(d *disk) string
		locks []string
		reads bool
	}{
		"ledger read":      {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN", "SELECT * FROM receipts"}, true},
		"anchor read":      {func(d *disk) string { return d.cfg.Anchor }, []string{"BEGIN", "SELECT * FROM head"}, true},
		"ledger written":   {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN IMMEDIATE"}, true},
		"ledger exclusive": {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN EXCLUSIVE"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, newStore := range detectors {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					agent, operator := d.controller(t), d.controller(t)
					enable(t, agent, global)
					p := preview(t, agent, refunds)
					lock(t, tc.path(d), tc.locks...)
					brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					_, err := operator.Stop(brief, admission.Transition{Scope: global})
					wantErr(t, err, admission.ErrStoreBusy)
					if err := agent.Check(t.Context(), p); tc.reads && err != nil {
						t.Errorf("before: %v", err)
					}
					st, err := operator.ForceStop(brief, admission.Transition{Scope: global})
					if err != nil || st.State != admission.Stopped || !errors.Is(st.Reason, admission.ErrUntrustedState) || !st.Digest.IsZero() {
						t.Errorf("%+v %v", st, err)
					}
					for who, c := range map[string]*admission.Controller{
						"agent": agent, "operator": operator, "checker": newController(t, d.checker(t)), "started": d.controller(t),
					} {
						if err := c.Check(t.Context(), p); !errors.Is(err, admission.ErrUntrustedState) {
							t.Errorf("%s: %v", who, err)
						}
					}
					if got := operator.Gauges()[1].Reason; got != middleware.ReasonUntrustedState {
						t.Error(got)
					}
					// Nothing mends it but moving it back.
					_, err = d.controller(t).Enable(t.Context(), admission.Transition{Scope: global})
					wantErr(t, err, admission.ErrUntrustedState)
					try(os.Rename(d.cfg.Anchor+".stopped", d.cfg.Anchor))
					if err := agent.Check(t.Context(), p); tc.reads && err != nil {
						t.Errorf("undone: %v", err)
					}
				})
			}
		})
	}
}

// TestForceStopCommits: where nobody holds a lock it is a stop like any other.
func TestForceStopCommits(t *testing.T) {
	t.Parallel()
	d := newStore(t)
	c := d.controller(t)
	enable(t, c, global)
	st, err := c.ForceStop(t.Context(), admission.Transition{Scope: admission.Workflow(refunds)})
	if err != nil || st.Reason != middleware.ReasonAdmissionStopped || st.Generation != 3 {
		t.Errorf("%+v %v", st, err)
	}
	if st := c.Status(t.Context(), global); st.State != admission.Enabled {
		t.Errorf("%+v", st)
	}
	_, err = c.ForceStop(t.Context(), admission.Transition{})
	wantErr(t, err, admission.ErrInvalidScope)
	_, err = (*admission.Controller)(nil).ForceStop(t.Context(), admission.Transition{Scope: global})
	wantErr(t, err, admission.ErrNotConfigured)
	m := newMemoryStore(t) // cannot be forced
	m.onAppend = func() error { return admission.ErrStoreBusy }
	brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = newController(t, m).ForceStop(brief, admission.Transition{Scope: global})
	wantErr(t, err, admission.ErrStoreBusy)
}

// badForcer stays locked, and what should force it fails.
type badForcer struct {
	*memoryStore
	do func() error
}

func (f badForcer) ForceStop(context.Context) error { return f.do() }

func TestForceStopFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func() error
		want error
	}{
		"foreign error": {func() error { return errors.New("canary") }, admission.ErrStoreFailed},
		"own error":     {func() error { return admission.ErrStoreFailed }, admission.ErrStoreFailed},
		"panic":         {func() error { panic("canary") }, admission.ErrUntrustedState},
	} {
		m := newMemoryStore(t)
		m.onAppend = func() error { return admission.ErrStoreBusy }
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := newController(t, badForcer{m, tc.do}).ForceStop(brief, admission.Transition{Scope: global})
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPutAway: nothing is written over, and an anchor that is away is fine.
func TestPutAway(t *testing.T) {
	t.Parallel()
	d := newStore(t)
	s := d.open(t)
	before := must(os.ReadFile(d.cfg.Anchor))
	wantErr(t, d.checker(t).ForceStop(t.Context()), admission.ErrStoreFailed)
	write(d.cfg.Anchor+".stopped", []byte("canary"))
	for range 2 {
		if err := s.ForceStop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := must(os.ReadFile(d.cfg.Anchor + ".stopped")); string(got) != "canary" {
		t.Errorf("%q", got)
	}
	if got := must(os.ReadFile(d.cfg.Anchor + ".stopped.2")); string(got) != string(before) {
		t.Error("not the anchor")
	}
	if left := must(filepath.Glob(d.cfg.Anchor + "*")); len(left) != 2 {
		t.Error(left)
	}
	try(s.Close())
	wantErr(t, s.ForceStop(t.Context()), admission.ErrUntrustedState)
	wantErr(t, (*admission.SQLiteStore)(nil).ForceStop(t.Context()), admission.ErrUntrustedState)
}

// TestReadersLetGo: a verification reads in batches, and stops are recorded
// between two of them.
func TestReadersLetGo(t *testing.T) {
	t.Parallel()
	d := newStore(t)
	d.fill(t, 10_000)
	reader, operator := d.checker(t), d.controller(t)
	operator.Status(t.Context(), global)
	var stops atomic.Int64
	var seen, over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !seen.Load() && !over.Load() {
			before := stops.Load()
			// One can come before its first lock, one after its last.
			if _, err := admission.Verify(context.Background(), reader); err == nil && stops.Load()-before >= 3 {
				seen.Store(true)
			}
		}
	})
	for stops.Load() < 300 && !seen.Load() {
		stop(t, operator, admission.Workflow(billing))
		stops.Add(1)
	}
	over.Store(true)
	wg.Wait()
	if !seen.Load() {
		t.Error("no stop was recorded while a verification was under way")
	}
}
