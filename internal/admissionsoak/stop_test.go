//go:build linux

package admissionsoak_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/admission"
)

var global = admission.Transition{Scope: admission.Global()}

// pair is the bytes of both files at one moment.
type pair [2][]byte

func read(dir string) (p pair) {
	cfg := config(dir)
	p[0], p[1] = must(os.ReadFile(cfg.Ledger)), must(os.ReadFile(cfg.Anchor))

	return p
}

// replace puts other files in the place of those that are there.
func (p pair) replace(dir string, which ...int) {
	for _, i := range which {
		path := [...]string{config(dir).Ledger, config(dir).Anchor}[i]
		name := filepath.Join(filepath.Dir(path), "new")
		try(os.WriteFile(name, p[i], 0o600))
		try(os.Rename(name, path))
	}
}

// overwrite writes into the files that are there.
func (p pair) overwrite(dir string, which ...int) {
	for _, i := range which {
		path := [...]string{config(dir).Ledger, config(dir).Anchor}[i]
		f := must(os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0))
		_ = must(f.Write(p[i]))
		try(f.Close())
	}
}

// disturbance is what somebody does to the files after the stop has returned.
// open is the state before the stop, stopped the one after.
type disturbance struct {
	name string
	do   func(dir string, open, stopped pair)
	want string // of a check then
	// seen: both files together are as they were. That is noticed by a process that
	// has seen the stop, and outside of what local files can tell anybody else.
	seen bool
}

var disturbances = []disturbance{
	{"nothing", func(string, pair, pair) {}, "admission_stopped", false},
	{"the same bytes in new files", func(dir string, _, stopped pair) { stopped.replace(dir, 0, 1) }, "admission_stopped", false},
	{"a new ledger with the same bytes", func(dir string, _, stopped pair) { stopped.replace(dir, 0) }, "admission_stopped", false},
	{"the same bytes once more", func(dir string, _, stopped pair) { stopped.overwrite(dir, 0, 1) }, "admission_stopped", false},
	{"both restored", func(dir string, open, _ pair) { open.replace(dir, 0, 1) }, "untrusted_state", true},
	{"both overwritten", func(dir string, open, _ pair) { open.overwrite(dir, 0, 1) }, "untrusted_state", true},
	{"the ledger restored", func(dir string, open, _ pair) { open.replace(dir, 0) }, "untrusted_state", false},
	{"the anchor restored", func(dir string, open, _ pair) { open.replace(dir, 1) }, "untrusted_state", false},
	{"the anchor overwritten", func(dir string, open, _ pair) { open.overwrite(dir, 1) }, "untrusted_state", false},
	{"the anchor removed", func(dir string, _, _ pair) { try(os.Remove(config(dir).Anchor)) }, "untrusted_state", false},
	{"the ledger emptied", func(dir string, _, _ pair) { try(os.Truncate(config(dir).Ledger, 0)) }, "untrusted_state", false},
}

// TestStopThenCheck: a stop that has returned in one process is seen by every
// check that begins afterwards in another one, whatever is done to the files.
func TestStopThenCheck(t *testing.T) {
	t.Parallel()
	stores, rounds := pick(1, 50), 100
	for range stores { // a new one now and then: a restored file is verified from the first receipt on
		stopThenCheck(t, rounds)
	}
	t.Logf("%d rounds in 3 processes", stores*rounds)
}

func stopThenCheck(t *testing.T, rounds int) {
	t.Helper()
	dir := newStore(t)
	operator := openController(t, dir)
	agents := []*process{start(t, "agent", dir), start(t, "checker", dir)}
	agents[0].do(t, "hammer", "global")
	workflow := refunds.String()
	scope := global
	for round := range rounds {
		if _, err := operator.Enable(t.Context(), scope); err != nil { // what was stopped
			t.Fatalf("round %d: enable: %v", round, err)
		}
		scope = global
		if round%3 == 1 {
			scope.Scope = admission.Workflow(refunds)
		}
		for _, a := range agents {
			// Without this the test would not notice a check that always refuses.
			if p, c := a.again(t, "preview", workflow), a.again(t, "check", workflow); p.Code != "ok" || c.Code != "ok" {
				t.Fatalf("round %d: %q and %q although enabled", round, p.Code, c.Code)
			}
		}
		disturbed := round%4 == 3
		var open pair
		if disturbed {
			open = read(dir)
		}
		if _, err := operator.Stop(t.Context(), scope); err != nil {
			t.Fatalf("round %d: stop: %v", round, err)
		}
		stopped := now()
		d := disturbances[0]
		var head pair
		if disturbed {
			head = read(dir)
			d = disturbances[round/4%len(disturbances)]
			if d.seen {
				for _, a := range agents {
					a.again(t, "check", workflow)
				}
			}
			d.do(dir, open, head)
		}
		for _, a := range agents {
			if r := a.again(t, "check", workflow); r.Code != d.want || r.Admitted > stopped {
				t.Errorf("round %d, %s: %q, want %q; a check that began %d ns after the stop was admitted",
					round, d.name, r.Code, d.want, max(0, r.Admitted-stopped))
			}
		}
		if disturbed { // and back: the state is what it was, not what it was before
			head.replace(dir, 0, 1)
			for _, a := range agents {
				if r := a.again(t, "check", workflow); r.Code != "admission_stopped" {
					t.Errorf("round %d, after %s: %q", round, d.name, r.Code)
				}
			}
		}
	}
	for _, a := range agents {
		a.end()
	}
}

// again does what is not refused because others verified for longer than it
// waits: on a busy machine that happens, and it says nothing.
func (p *process) again(tb testing.TB, op, workflow string) (r report) {
	tb.Helper()
	for range 100 {
		if r = p.do(tb, op, workflow); r.Code != "store_busy" {
			break
		}
	}

	return r
}
