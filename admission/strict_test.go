package admission_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/middleware"
)

// patch changes bytes of a file in place, as somebody does who knows its format
// and no lock, and puts the time of the last change back.
func patch(path, old, replacement string) {
	info := must(os.Stat(path))
	data := must(os.ReadFile(path))
	if len(old) != len(replacement) || !bytes.Contains(data, []byte(old)) {
		panic("nothing to patch: " + old)
	}
	f := must(os.OpenFile(path, os.O_RDWR, 0))
	must(f.WriteAt([]byte(replacement), int64(bytes.Index(data, []byte(old)))))
	try(f.Close())
	try(os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// fields is a change of each field of a receipt, and of the anchor, that keeps
// its length.
var fields = map[string][2]string{
	"generation":       {`{"generation":3`, `{"generation":8`},
	"previous digest":  {`"previous_digest":"sha256:0`, `"previous_digest":"sha256:1`},
	"reason":           {`"emergency_stop"`, `"emergency_stap"`},
	"role":             {`"operator"`, `"operatro"`},
	"schema version":   {`admission.v1`, `admission.v2`},
	"scope":            {`example/billing`, `example/refunds`},
	"signature":        {`"signature":"hmac-sha256:`, `"signature":"hmac-sha257:`},
	"state":            {`"state":"stopped"`, `"state":"enabled"`},
	"time":             {`"time":1800000000`, `"time":1800000001`},
	"anchor digest":    {"sha256:", "sha257:"},
	"anchor signature": {"hmac-sha256:", "hmac-sha257:"},
}

// TestPatched: a field that is changed on the disk, without SQLite, so that no
// counter moves. By headers that is seen at the next check, because nobody can
// set the time of a file's last change of state. Where that time is not to be
// had and the other one was put back, it is seen when everything is verified
// again.
func TestPatched(t *testing.T) {
	t.Parallel()
	for name, change := range fields {
		for who, versions := range map[string]bool{"headers": false, "data_version": true} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := newStore(t)
					d.versions = versions
					c := d.controller(t)
					enable(t, c, global)
					stop(t, c, admission.Workflow(billing))
					enable(t, c, global)
					p := preview(t, c, refunds)
					checker := newController(t, d.checker(t))
					if err := checker.Check(t.Context(), p); err != nil {
						t.Fatal(err)
					}
					path := d.cfg.Ledger
					if strings.HasPrefix(name, "anchor") {
						path = d.cfg.Anchor
					}
					patch(path, change[0], change[1])
					if versions {
						if err := checker.Check(t.Context(), p); err != nil {
							t.Errorf("%v was not expected to be seen here", err)
						}
						time.Sleep(admission.VerifyEvery + time.Second) // of the bubble
						synctest.Wait()
					}
					for who, c := range map[string]*admission.Controller{"running": c, "checker": checker, "started": d.controller(t)} {
						if err := c.Check(t.Context(), p); !errors.Is(err, admission.ErrUntrustedState) {
							t.Errorf("%s: %v", who, err)
						}
					}
				})
			})
		}
	}
}

// TestStrict: what is done to the files between two checks, and what the second
// one says. Each starts at generation 4, enabled.
func TestStrict(t *testing.T) {
	t.Parallel()
	untrusted := admission.ErrUntrustedState
	for name, tc := range map[string]struct {
		do   func(d *disk)
		want error
	}{
		"nothing":     {func(*disk) {}, nil},
		"read":        {func(d *disk) { must(os.ReadFile(d.cfg.Ledger)) }, nil},
		"touched":     {func(d *disk) { try(os.Chtimes(d.cfg.Ledger, at(), at())) }, nil},
		"stopped":     {func(d *disk) { d.stop(global) }, admission.ErrStopped},
		"another one": {func(d *disk) { d.stop(admission.Workflow(billing)) }, admission.ErrStaleGeneration},
		"stopped and enabled": {func(d *disk) {
			d.stop(global)
			d.enable(global)
		}, admission.ErrStaleGeneration},
		"vacuum": {func(d *disk) { raw(d.cfg.Ledger, "VACUUM") }, nil},
		"as it was": {func(d *disk) {
			raw(d.cfg.Ledger, "UPDATE receipts SET document = document || ' ' WHERE generation = 2")
			raw(d.cfg.Ledger, "UPDATE receipts SET document = trim(document) WHERE generation = 2")
		}, nil},
		"copied over itself": {func(d *disk) {
			copyFile(d.cfg.Ledger, d.dir+"/copy")
			try(os.Rename(d.dir+"/copy", d.cfg.Ledger))
		}, nil},
		"linked again": {func(d *disk) { try(os.Link(d.cfg.Anchor, d.dir+"/second")) }, untrusted},
		"moved away":   {func(d *disk) { try(os.Rename(d.cfg.Ledger, d.dir+"/away")) }, untrusted},
		"a link to it": {func(d *disk) {
			try(os.Rename(d.cfg.Ledger, d.dir+"/away"))
			try(os.Symlink(d.dir+"/away", d.cfg.Ledger))
		}, untrusted},
		"exchanged": {func(d *disk) {
			try(os.Rename(d.cfg.Ledger, d.dir+"/l"))
			try(os.Rename(d.cfg.Anchor, d.cfg.Ledger))
			try(os.Rename(d.dir+"/l", d.cfg.Anchor))
		}, untrusted},
		"open to the group": {func(d *disk) { chmod(d.cfg.Anchor, 0o660) }, untrusted},
		"write-ahead log": {func(d *disk) {
			raw(d.cfg.Ledger, "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "DELETE FROM receipts WHERE generation = 4")
		}, untrusted},
		"longer":  {func(d *disk) { truncate(d.cfg.Ledger, must(os.Stat(d.cfg.Ledger)).Size()+4096) }, nil},
		"shorter": {func(d *disk) { truncate(d.cfg.Ledger, 50) }, untrusted},
		"hidden behind a transition": {func(d *disk) {
			d.stop(admission.Workflow(billing))
			raw(d.cfg.Ledger, `UPDATE receipts SET document = replace(document, '"operator"', '"canary"') WHERE generation = 2`)
		}, untrusted},
		"row deleted behind a transition": {func(d *disk) {
			d.stop(admission.Workflow(billing))
			raw(d.cfg.Ledger, `DELETE FROM receipts WHERE generation = 2`)
		}, untrusted},
		"trigger behind a transition": {func(d *disk) {
			d.stop(admission.Workflow(billing))
			raw(d.cfg.Anchor, `CREATE TRIGGER x AFTER UPDATE ON head BEGIN DELETE FROM head; END`)
		}, untrusted},
		"restored behind a transition": {func(d *disk) {
			copyFile(d.cfg.Ledger, d.dir+"/l")
			copyFile(d.cfg.Anchor, d.dir+"/a")
			d.stop(global)
			d.stop(global)
			try(os.Rename(d.dir+"/l", d.cfg.Ledger))
			try(os.Rename(d.dir+"/a", d.cfg.Anchor))
			d.enable(admission.Workflow(billing))
		}, admission.ErrStaleGeneration}, // nobody here has seen the stop: see TestRestored
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, newStore := range detectors {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					writer := d.controller(t)
					enable(t, writer, global)
					enable(t, writer, admission.Workflow(billing))
					enable(t, writer, global)
					s := d.open(t)
					running := newController(t, s)
					p := preview(t, running, refunds)
					checker := newController(t, d.checker(t)) // it reads nothing before it is asked
					tc.do(d)
					for who, c := range map[string]*admission.Controller{"running": running, "checker": checker} {
						for range 2 {
							err := c.Check(t.Context(), p)
							if !errors.Is(err, tc.want) || tc.want == nil && err != nil {
								t.Errorf("%s: %v, want %v", who, errors.Unwrap(err), tc.want)
							}
						}
					}
					if trusted := !errors.Is(tc.want, untrusted); !d.versions && admission.Verified(s) != trusted {
						t.Errorf("the next check goes by what it knows: %v, want %v", !trusted, trusted)
					}
				})
			}
		})
	}
}

// TestSeenBefore: a store that went back is not trusted by who has seen more,
// and stays so when it comes to be longer, or to be as long, with another
// history. Ledger and anchor are restored together.
func TestSeenBefore(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]int{"shorter": 0, "as long": 1, "longer": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, newStore := range detectors {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					seen := []*admission.SQLiteStore{d.open(t), d.checker(t)}
					writer := d.controller(t)
					enable(t, writer, global)
					for from, to := range map[string]string{d.cfg.Ledger: "l", d.cfg.Anchor: "a"} {
						copyFile(from, filepath.Join(d.dir, to))
					}
					stop(t, writer, global)
					for _, s := range seen {
						must(s.Head(t.Context()))
					}
					for to, from := range map[string]string{d.cfg.Ledger: "l", d.cfg.Anchor: "a"} {
						try(os.Rename(filepath.Join(d.dir, from), to))
					}
					fresh := d.controller(t)
					for range later {
						enable(t, fresh, global)
					}
					// The stores alone: no controller remembers anything for them.
					for _, s := range append(seen, seen...) {
						h, err := s.Head(t.Context())
						wantErr(t, err, admission.ErrUntrustedState)
						if h.Generation != 3 && h.Generation != uint64(2+later) {
							t.Errorf("head %d", h.Generation)
						}
					}
					_, err := writer.Stop(t.Context(), admission.Transition{Scope: global})
					wantErr(t, err, admission.ErrUntrustedState)
					if st := fresh.Status(t.Context(), global); st.State != admission.Enabled {
						t.Errorf("%+v", st) // outside of what a process that starts afterwards can know
					}
				})
			}
		})
	}
}

// TestMissing: either file missing, before and after a restart, also as a whole
// folder; and what was known of the other one. Each comes back trusted if the
// file does.
func TestMissing(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]uint64{"ledger": 2, "anchor": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, newStore := range detectors {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					running := d.controller(t)
					enable(t, running, global)
					p := preview(t, running, refunds)
					path := filepath.Join(d.dir, name, name+".db")
					try(os.Rename(path, path+".away"))
					for who, tc := range map[string]struct {
						c     *admission.Controller
						known uint64
					}{"running": {running, 2}, "started": {d.controller(t), known}} {
						wantErr(t, tc.c.Check(t.Context(), p), admission.ErrUntrustedState)
						want := admission.Status{Scope: global, State: admission.Stopped, Reason: middleware.ReasonUntrustedState, Generation: tc.known}
						if st := tc.c.Status(t.Context(), global); st != want {
							t.Errorf("%s: %+v", who, st)
						}
					}
					try(os.Rename(path+".away", path))
					for range 2 {
						if err := running.Check(t.Context(), p); err != nil {
							t.Error(err)
						}
					}
				})
			}
		})
	}
}

// TestReverified: everything is verified again in the background, and Close ends
// that. What was tampered with and mended in between is trusted.
func TestReverified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newStore(t)
		d.versions = true
		s := d.open(t)
		c := newController(t, s)
		enable(t, c, global)
		p := preview(t, c, refunds)
		for range 3 {
			time.Sleep(admission.VerifyEvery + time.Second)
			synctest.Wait()
			if err := c.Check(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		patch(d.cfg.Ledger, `"operator"`, `"operatro"`)
		time.Sleep(admission.VerifyEvery)
		synctest.Wait()
		wantErr(t, c.Check(t.Context(), p), admission.ErrUntrustedState)
		patch(d.cfg.Ledger, `"operatro"`, `"operator"`)
		if err := c.Check(t.Context(), p); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * admission.VerifyEvery)
		synctest.Wait()
		wantErr(t, c.Check(t.Context(), p), admission.ErrUntrustedState)
	})
}

// TestFolderOpened: that a folder above was opened to others changes neither
// file, so a check that asks for nothing else does not see it. It is seen with
// the next transition, and when everything is verified again.
func TestFolderOpened(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(d *disk){
		"transition": func(d *disk) {
			chmod(filepath.Dir(d.cfg.Anchor), 0o700) // the writer's own check would refuse
			d.stop(admission.Workflow(billing))
			chmod(filepath.Dir(d.cfg.Anchor), 0o770)
		},
		"verification": func(*disk) { time.Sleep(admission.VerifyEvery + time.Second) }, // of the bubble
	} {
		for kind, newStore := range detectors {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					d := newStore(t)
					c := d.controller(t)
					enable(t, c, global)
					p := preview(t, c, refunds)
					chmod(filepath.Dir(d.cfg.Anchor), 0o770)
					if err := c.Check(t.Context(), p); err != nil {
						t.Errorf("%v was not expected to be seen here", err)
					}
					next(d)
					synctest.Wait()
					wantErr(t, c.Check(t.Context(), p), admission.ErrUntrustedState)
					chmod(filepath.Dir(d.cfg.Anchor), 0o700)
					if st := c.Status(t.Context(), global); st.State != admission.Enabled {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}

// TestCheckAllocatesNothing: neither the store nor the controller, as long as
// nothing changes.
func TestCheckAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts allocations
	d := newStore(t)
	s := d.open(t)
	c := newController(t, s)
	enable(t, c, global)
	p := preview(t, c, refunds)
	if !admission.Verified(s) {
		t.Fatal("nothing is verified, or this system has no check by headers")
	}
	for name, f := range map[string]func() error{
		"store":      func() error { _, err := s.Head(t.Context()); return err },
		"controller": func() error { return c.Check(t.Context(), p) },
	} {
		var err error
		n := testing.AllocsPerRun(100, func() { err = errors.Join(err, f()) })
		if n != 0 && !raceDetector || err != nil { // which allocates
			t.Errorf("%s: %v allocations, %v", name, n, err)
		}
	}
}

// TestVerify: the first receipt that is to blame.
func TestVerify(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	pin := must(admission.Initialize(t.Context(), d.cfg))
	d.fill(t, 2500)
	head := must(d.open(t).Head(t.Context()))
	v, err := admission.Verify(t.Context(), d.checker(t))
	if want := (admission.Verification{Head: head, First: pin}); v != want || err != nil {
		t.Errorf("%+v %v", v, err)
	}
	m := newMemoryStore(t)
	enable(t, newController(t, m), global)
	if v, err := admission.Verify(t.Context(), m); err != nil || v.Head.Generation != 2 || v.First != m.receipts[0].Digest() {
		t.Errorf("%+v %v", v, err)
	}
	m.receipts = append(m.receipts, admission.Receipt{Generation: 4})
	if v, err := admission.Verify(t.Context(), m); !errors.Is(err, admission.ErrUntrustedState) || v.FirstBad != 3 || v.Head.Generation != 0 {
		t.Errorf("%+v %v", v, err)
	}
	_, err = admission.Verify(t.Context(), (*admission.SQLiteStore)(nil))
	wantErr(t, err, admission.ErrNotConfigured)
	_, err = admission.Verify(canceledContext(), d.open(t))
	wantErr(t, err, middleware.ReasonCanceled)

	for name, tc := range map[string]struct {
		do  func(d *disk)
		bad uint64
	}{
		"row changed": {ledgerSQL(`UPDATE receipts SET document = replace(document, 'v1', 'v2') WHERE generation = 1234`), 1234},
		"row missing": {ledgerSQL(`DELETE FROM receipts WHERE generation = 1234`), 1234},
		"first":       {ledgerSQL(`DELETE FROM receipts WHERE generation = 1`), 1},
		"last":        {ledgerSQL(`DELETE FROM receipts WHERE generation = 2500`), 2500},
		"last ones":   {ledgerSQL(`DELETE FROM receipts WHERE generation > 2000`), 2001},
		"all":         {ledgerSQL(`DELETE FROM receipts`), 1},
		"too many":    {func(d *disk) { raw(d.cfg.Anchor, anchorUpdate(admission.Head{Generation: 2400, Digest: pin})) }, 2401},
		"other last":  {func(d *disk) { raw(d.cfg.Anchor, anchorUpdate(admission.Head{Generation: 2500, Digest: pin})) }, 2500},
		"pin":         {func(d *disk) { d.cfg.Pin = head.Digest }, 1},
		"anchor":      {anchorSQL("DELETE FROM head"), 0},
		"schema":      {ledgerSQL("CREATE TABLE x(y)"), 0},
		"missing":     {func(d *disk) { try(os.Remove(d.cfg.Ledger)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := newDisk(t)
			copyFile(d.cfg.Ledger, own.cfg.Ledger)
			copyFile(d.cfg.Anchor, own.cfg.Anchor)
			tc.do(own)
			v, err := admission.Verify(t.Context(), own.open(t))
			wantErr(t, err, admission.ErrUntrustedState)
			if v.FirstBad != tc.bad || v.Head != (admission.Head{}) || tc.bad > 1 && v.First != pin {
				t.Errorf("%+v, want %d", v, tc.bad)
			}
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), own.dir) {
				t.Error(err)
			}
		})
	}
}
