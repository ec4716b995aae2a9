package interlock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// openLedger returns a store that was provisioned for the test, disabled.
func openLedger(t *testing.T) *admission.SQLiteStore {
	t.Helper()
	dir := t.TempDir()
	cfg := admission.StoreConfig{Ledger: filepath.Join(dir, "ledger.db"), Anchor: filepath.Join(dir, "anchor.db")}
	keyFile := filepath.Join(dir, "key")
	if err := provision(t.Context(), cfg.Ledger, cfg.Anchor, keyFile); err != nil {
		t.Fatal(err)
	}
	var err error
	if cfg.Key, err = admission.LoadKeyFile(keyFile); err != nil {
		t.Fatal(err)
	}
	store, err := admission.OpenStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })

	return store
}

// TestApprover: the guard asks about effects, and for each once; nobody is asked
// about reading.
func TestApprover(t *testing.T) {
	t.Parallel()
	store := openLedger(t)
	approver, err := admission.NewMemoryApprover(admission.MemoryApproverConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var s seen
	g := newGuard(t, func(c *interlock.Config) { c.Admission, c.Approver, c.Observer = store, approver, &s })
	if _, err := g.Admission().Enable(t.Context(), admission.Transition{Scope: admission.Global()}); err != nil {
		t.Fatal(err)
	}
	guarded := guardTools(t, g, echoTool("pay"), interlock.ReadOnly(echoTool("look")))
	pay, look := guarded[0], guarded[1]
	in := func(f func(ctx context.Context) error) error { return g.Do(t.Context(), desk, f) }

	err = in(func(ctx context.Context) error {
		if out, err := look.Call(ctx, "1"); err != nil || out != "look 1" {
			t.Errorf("%q, %v", out, err)
		}
		_, err := pay.Call(ctx, "1")

		return err
	})
	if !errors.Is(err, admission.ErrApprovalRequired) || s.count(middleware.ComponentApproval, middleware.ReasonApprovalRequired) != 1 {
		t.Errorf("not approved: %v", err)
	}
	err = in(func(ctx context.Context) error {
		p := middleware.RunFrom(ctx).CurrentPreview()
		if err := approver.Grant(approver.Ticket(ident.MustLabel("pay"), "1", p)); err != nil {
			return err
		}
		if out, err := pay.Call(ctx, "1"); err != nil || out != "pay 1" {
			t.Errorf("%q, %v", out, err)
		}
		_, err := pay.Call(ctx, "1")

		return err
	})
	if !errors.Is(err, admission.ErrApprovalRequired) {
		t.Errorf("approved once, called twice: %v", err)
	}
}
