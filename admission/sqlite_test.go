package admission_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func files(t *testing.T, d *disk) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found = append(found, strings.TrimPrefix(path, d.dir+"/"))
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func TestInitialize(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	pin, err := admission.Initialize(t.Context(), d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"anchor/anchor.db", "ledger/ledger.db"}, files(t, d)); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{d.cfg.Ledger, d.cfg.Anchor} {
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
	}
	c := d.controller(t)
	want := admission.Status{Scope: global, State: admission.Disabled, Reason: middleware.ReasonAdmissionDisabled, Generation: 1, Digest: pin}
	if st := c.Status(t.Context(), global); st != want {
		t.Errorf("%+v", st)
	}
	rs, err := d.open(t).Receipts(t.Context(), 0, 10)
	if err != nil || len(rs) != 1 || rs[0].Digest() != pin || rs[0].Time != at().Unix() || rs[0].Role != admission.Operator {
		t.Errorf("%v %v", rs, err)
	}
	_, err = admission.Initialize(t.Context(), d.cfg)
	wantErr(t, err, admission.ErrAlreadyInitialized)

	d.cfg.Pin = pin
	enable(t, d.controller(t), global)
	d.cfg.Pin = ident.DigestOf(nil)
	if st := d.controller(t).Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrUntrustedState) || st.Generation != 0 {
		t.Errorf("%+v", st)
	}
}

// TestInitializeRefuses: nothing is written over, and nothing is left behind or
// taken away but what the call made.
func TestInitializeRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(d *disk)
		left    []string
		want    error
	}{
		"empty ledger":    {func(d *disk) { write(d.cfg.Ledger, nil) }, []string{"ledger/ledger.db"}, admission.ErrAlreadyInitialized},
		"empty anchor":    {func(d *disk) { write(d.cfg.Anchor, nil) }, []string{"anchor/anchor.db"}, admission.ErrAlreadyInitialized},
		"old journal":     {func(d *disk) { write(d.cfg.Ledger+"-journal", nil) }, []string{"ledger/ledger.db-journal"}, admission.ErrAlreadyInitialized},
		"link to nowhere": {func(d *disk) { _ = os.Symlink(d.dir+"/x", d.cfg.Anchor) }, []string{"anchor/anchor.db"}, admission.ErrAlreadyInitialized},
		"open folder":     {func(d *disk) { chmod(filepath.Dir(d.cfg.Ledger), 0o777) }, nil, admission.ErrUntrustedState},
		"open anchor":     {func(d *disk) { chmod(filepath.Dir(d.cfg.Anchor), 0o777) }, nil, admission.ErrInvalidAnchor},
		"no key":          {func(d *disk) { d.cfg.Key = admission.Key{} }, nil, admission.ErrInvalidKey},
		"a pin":           {func(d *disk) { d.cfg.Pin = ident.DigestOf(nil) }, nil, admission.ErrUntrustedState},
		"a role":          {func(d *disk) { d.cfg.Role = 9 }, nil, admission.ErrInvalidControlMetadata},
		"before 1970":     {func(d *disk) { d.cfg.Now = func() time.Time { return time.Unix(-1, 0) } }, nil, admission.ErrInvalidTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			tc.prepare(d)
			_, err := admission.Initialize(t.Context(), d.cfg)
			wantErr(t, err, tc.want)
			if diff := cmp.Diff(tc.left, files(t, d)); diff != "" {
				t.Error(diff)
			}
		})
	}
	d := newDisk(t)
	_, err := admission.Initialize(canceledContext(), d.cfg)
	wantErr(t, err, context.Canceled)
	_, err = admission.OpenStore(canceledContext(), newStore(t).cfg)
	wantErr(t, err, context.Canceled)
	d.cfg.Key = admission.Key{}
	_, err = admission.OpenStore(t.Context(), d.cfg)
	wantErr(t, err, admission.ErrInvalidKey)
}

// TestTwoControllers: what one records the other sees at its next check.
func TestTwoControllers(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			operator, agent := d.controller(t), d.controller(t)
			enable(t, operator, global)
			p := preview(t, agent, refunds)
			for range 20 {
				if err := agent.Check(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				stop(t, operator, admission.Workflow(refunds))
				wantErr(t, agent.Check(t.Context(), p), admission.ErrStopped)
				enable(t, operator, admission.Workflow(refunds))
				wantErr(t, agent.Check(t.Context(), p), admission.ErrStaleGeneration)
				p = preview(t, agent, refunds)
			}
		})
	}
}

// tampering is what somebody with access to the files can do to them, at
// generation 4: disabled, enabled, billing stopped, enabled.
var tampering = map[string]struct {
	do func(d *disk)
	// generation that is still known to a process that starts afterwards: that of
	// the anchor, if it survived.
	known uint64
}{
	"ledger truncated":  {func(d *disk) { truncate(d.cfg.Ledger, 4096) }, 4},
	"ledger empty":      {func(d *disk) { truncate(d.cfg.Ledger, 0) }, 4},
	"ledger noise":      {func(d *disk) { noise(d.cfg.Ledger) }, 4},
	"anchor empty":      {func(d *disk) { truncate(d.cfg.Anchor, 0) }, 0},
	"anchor noise":      {func(d *disk) { noise(d.cfg.Anchor) }, 0},
	"exchanged":         {func(d *disk) { copyFile(d.cfg.Anchor, d.cfg.Ledger) }, 4},
	"last row deleted":  {ledgerSQL("DELETE FROM receipts WHERE generation = 4"), 4},
	"row deleted":       {ledgerSQL("DELETE FROM receipts WHERE generation = 2"), 4},
	"all rows deleted":  {ledgerSQL("DELETE FROM receipts"), 4},
	"row repeated":      {ledgerSQL("INSERT INTO receipts SELECT 5, document FROM receipts WHERE generation = 4"), 4},
	"rows exchanged":    {ledgerSQL("UPDATE receipts SET document = (SELECT document FROM receipts WHERE generation = 3) WHERE generation = 2"), 4},
	"row moved":         {ledgerSQL("UPDATE receipts SET generation = 0 WHERE generation = 1"), 4},
	"as blob":           {ledgerSQL("UPDATE receipts SET document = CAST(document AS BLOB)"), 4},
	"oversize":          {ledgerSQL("UPDATE receipts SET document = document || printf('%.*c', 20000, ' ') WHERE generation = 4"), 4},
	"huge":              {ledgerSQL("UPDATE receipts SET document = zeroblob(50000000) WHERE generation = 4"), 4},
	"NUL behind":        {ledgerSQL("UPDATE receipts SET document = document || char(0) WHERE generation = 4"), 4},
	"space":             {ledgerSQL("UPDATE receipts SET document = replace(document, ',', ', ') WHERE generation = 4"), 4},
	"trigger":           {ledgerSQL("CREATE TRIGGER x AFTER INSERT ON receipts BEGIN DELETE FROM receipts; END"), 4},
	"view":              {ledgerSQL("CREATE VIEW x AS SELECT 1"), 4},
	"index":             {ledgerSQL("CREATE INDEX x ON receipts(document)"), 4},
	"other table":       {ledgerSQL("CREATE TABLE x(y)"), 4},
	"column":            {ledgerSQL("ALTER TABLE receipts ADD COLUMN x"), 4},
	"write-ahead log":   {ledgerSQL("PRAGMA journal_mode=WAL"), 4},
	"state":             {ledgerSQL(`UPDATE receipts SET document = replace(document, '"stopped"', '"enabled"')`), 4},
	"role":              {ledgerSQL(`UPDATE receipts SET document = replace(document, 'operator', 'incident_commander')`), 4},
	"reason":            {ledgerSQL(`UPDATE receipts SET document = replace(document, 'emergency_stop', 'maintenance')`), 4},
	"scope":             {ledgerSQL(`UPDATE receipts SET document = replace(document, 'billing', 'refunds')`), 4},
	"time":              {ledgerSQL(`UPDATE receipts SET document = replace(document, ':18', ':19')`), 4},
	"generation":        {ledgerSQL(`UPDATE receipts SET document = replace(document, '"generation":4', '"generation":5')`), 4},
	"schema version":    {ledgerSQL(`UPDATE receipts SET document = replace(document, '.v1', '.v2')`), 4},
	"previous digest":   {ledgerSQL(`UPDATE receipts SET document = replace(document, 'sha256:0', 'sha256:1')`), 4},
	"signature":         {ledgerSQL(`UPDATE receipts SET document = replace(document, 'hmac-sha256:', 'hmac-sha256:0')`), 4},
	"anchor lower":      {anchorSQL("UPDATE head SET generation = 3"), 0},
	"anchor higher":     {anchorSQL("UPDATE head SET generation = 5"), 0},
	"anchor digest":     {anchorSQL("UPDATE head SET digest = 'sha256:" + strings.Repeat("0", 64) + "'"), 0},
	"anchor signature":  {anchorSQL("UPDATE head SET signature = 'hmac-sha256:" + strings.Repeat("0", 64) + "'"), 0},
	"anchor no row":     {anchorSQL("DELETE FROM head"), 0},
	"anchor two rows":   {anchorSQL("PRAGMA ignore_check_constraints=ON", "INSERT INTO head SELECT 2, generation, digest, signature FROM head"), 0},
	"anchor trigger":    {anchorSQL("CREATE TRIGGER x AFTER UPDATE ON head BEGIN DELETE FROM head; END"), 0},
	"anchor real":       {anchorSQL("UPDATE head SET generation = 4.5"), 0},
	"anchor text":       {anchorSQL("UPDATE head SET generation = 'canary'"), 0},
	"anchor blob":       {anchorSQL("UPDATE head SET digest = CAST(digest AS BLOB)"), 0},
	"anchor write log":  {anchorSQL("PRAGMA journal_mode=WAL"), 0},
	"anchor old digest": {anchorSQL("UPDATE head SET digest = 'canary'"), 0},
}

func ledgerSQL(statements ...string) func(*disk) {
	return func(d *disk) { raw(d.cfg.Ledger, statements...) }
}

func anchorSQL(statements ...string) func(*disk) {
	return func(d *disk) { raw(d.cfg.Anchor, statements...) }
}

func truncate(path string, size int64) { try(os.Truncate(path, size)) }

func noise(path string) {
	write(path, []byte(strings.Repeat("canary ", 2000)))
}

func tampered(t *testing.T, d *disk) (*disk, *admission.Controller, middleware.Preview) {
	t.Helper()
	c := d.controller(t)
	enable(t, c, global)
	stop(t, c, admission.Workflow(billing))
	enable(t, c, global)

	return d, c, preview(t, c, refunds)
}

// TestTampering: each is seen at the next check, by a process that runs and by
// one that starts, as a writer and as a checker, and nothing mends it.
func TestTampering(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range tampering {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d, running, p := tampered(t, newStore(t))
					tc.do(d)
					checker := newController(t, d.checker(t))
					for who, s := range map[string]struct {
						c     *admission.Controller
						known uint64
					}{"running": {running, 4}, "checker": {checker, tc.known}, "started": {d.controller(t), tc.known}} {
						err := s.c.Check(t.Context(), p)
						wantErr(t, err, admission.ErrUntrustedState)
						if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "canary") {
							t.Errorf("%s: %v", who, err)
						}
						want := admission.Status{Scope: global, State: admission.Stopped, Reason: middleware.ReasonUntrustedState, Generation: s.known}
						if st := s.c.Status(t.Context(), global); st != want {
							t.Errorf("%s: %+v, want %+v", who, st, want)
						}
						_, err = s.c.Stop(t.Context(), admission.Transition{Scope: global})
						wantErr(t, err, admission.ErrUntrustedState)
						_, err = s.c.Enable(t.Context(), admission.Transition{Scope: global})
						wantErr(t, err, admission.ErrUntrustedState)
					}
					// A caller who knows the head cannot write past it either.
					_, err := d.open(t).Append(t.Context(), admission.Head{Generation: 4, Digest: p.Digest()}, admission.Entry{
						Scope: global, State: admission.Stopped, Role: admission.Operator, Reason: admission.EmergencyStop,
					})
					wantErr(t, err, admission.ErrUntrustedState)
					_, err = admission.Initialize(t.Context(), d.cfg)
					wantErr(t, err, admission.ErrAlreadyInitialized)
				})
			}
		})
	}
}

// TestRestored: an older copy of either file is seen at once and after a
// restart; of both, by those who have seen more.
func TestRestored(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, what := range []string{"ledger", "anchor", "both"} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					running := d.controller(t)
					enable(t, running, global)
					ledger, anchor := filepath.Join(d.dir, "l"), filepath.Join(d.dir, "a")
					copyFile(d.cfg.Ledger, ledger)
					copyFile(d.cfg.Anchor, anchor)
					p := preview(t, running, refunds)
					stop(t, running, global)
					if what != "anchor" {
						copyFile(ledger, d.cfg.Ledger)
					}
					if what != "ledger" {
						if err := os.Rename(anchor, d.cfg.Anchor); err != nil {
							t.Fatal(err)
						}
					}
					wantErr(t, running.Check(t.Context(), p), admission.ErrUntrustedState)
					if st := running.Status(t.Context(), global); st.Generation != 3 {
						t.Errorf("%+v", st)
					}
					err := d.controller(t).Check(t.Context(), p)
					if what == "both" {
						if err != nil { // outside of what two local files can tell; the documentation says so
							t.Error(err)
						}

						return
					}
					wantErr(t, err, admission.ErrUntrustedState)
				})
			}
		})
	}
}

// TestReplaced: delete and initialize again, with the same key.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d, running, p := tampered(t, newStore(t))
			rs := must(d.open(t).Receipts(t.Context(), 0, 1))
			for _, path := range []string{d.cfg.Ledger, d.cfg.Anchor} {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			d.cfg.Now = func() time.Time { return at().Add(time.Hour) }
			if _, err := admission.Initialize(t.Context(), d.cfg); err != nil {
				t.Fatal(err)
			}
			wantErr(t, running.Check(t.Context(), p), admission.ErrUntrustedState)
			fresh := d.controller(t)
			enable(t, fresh, global)
			wantErr(t, running.Check(t.Context(), p), admission.ErrUntrustedState)
			wantErr(t, fresh.Check(t.Context(), p), admission.ErrUntrustedState) // the preview is evidence
			d.cfg.Pin = rs[0].Digest()
			if st := d.controller(t).Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrUntrustedState) {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			d.cfg.Key = testKey(t, 'x')
			if st := d.controller(t).Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrUntrustedState) || st.Generation != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestSignedButInvalid: a receipt that is signed with the right key and may not
// stand where it stands.
func TestSignedButInvalid(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, change := range map[string]func(r *admission.Receipt){
				"disabled again":  func(r *admission.Receipt) { r.State, r.Reason = admission.Disabled, admission.Initialized },
				"other reason":    func(r *admission.Receipt) { r.Reason = admission.EmergencyStop },
				"not linked":      func(r *admission.Receipt) { r.Previous = ident.DigestOf(nil) },
				"generation":      func(r *admission.Receipt) { r.Generation = 4 },
				"workflow at all": func(r *admission.Receipt) { r.Scope = admission.Workflow(refunds) },
				"valid":           nil,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					c := d.controller(t)
					st := stop(t, c, global)
					r := admission.Receipt{
						Generation: 3, Previous: st.Digest, Scope: global, State: admission.Enabled,
						Role: admission.Operator, Reason: admission.ExplicitEnable,
					}
					if change != nil {
						change(&r)
					}
					r = must(d.cfg.Key.Sign(r))
					raw(d.cfg.Ledger, fmt.Sprintf("INSERT INTO receipts VALUES(%d, '%s')", r.Generation, r.Document()))
					raw(d.cfg.Anchor, anchorUpdate(admission.Head{Generation: r.Generation, Digest: r.Digest()}))
					got := c.Status(t.Context(), global)
					if change == nil {
						if got.State != admission.Enabled || got.Generation != 3 {
							t.Errorf("%+v", got) // the forgery of this test itself is right
						}

						return
					}
					if !errors.Is(got.Reason, admission.ErrUntrustedState) {
						t.Errorf("%+v", got)
					}
				})
			}
		})
	}
}

// TestChecker: it reads what others write, and writes nothing.
func TestChecker(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			enable(t, d.controller(t), global)
			s := d.checker(t)
			c := newController(t, s)
			if err := c.Check(t.Context(), preview(t, c, refunds)); err != nil {
				t.Error(err)
			}
			_, err := c.Stop(t.Context(), admission.Transition{Scope: global})
			wantErr(t, err, admission.ErrStoreFailed)
			_, err = c.Enable(t.Context(), admission.Transition{Scope: global})
			wantErr(t, err, admission.ErrStoreFailed)
			if st := c.Status(t.Context(), global); st.Generation != 2 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			closed := d.open(t)
			if err := closed.Close(); err != nil {
				t.Error(err)
			}
			for _, s := range []*admission.SQLiteStore{closed, nil} {
				_, err := s.Head(t.Context())
				wantErr(t, err, admission.ErrUntrustedState)
				_, err = s.Receipts(t.Context(), 0, 1)
				wantErr(t, err, admission.ErrUntrustedState)
				_, err = s.Append(t.Context(), admission.Head{}, admission.Entry{})
				wantErr(t, err, admission.ErrUntrustedState)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestHotJournal: a commit that a dead process left half-done. A checker cannot
// play the journal back and trusts nothing; a writer can.
func TestHotJournal(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			enable(t, d.controller(t), global)
			db, err := sql.Open("sqlite", d.cfg.Ledger)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			for _, s := range []string{
				"PRAGMA cache_size=1", "PRAGMA cache_spill=1", "BEGIN IMMEDIATE",
				"WITH RECURSIVE n(i) AS (VALUES(10) UNION ALL SELECT i+1 FROM n WHERE i < 200) INSERT INTO receipts SELECT i, printf('%.*c', 4000, 'x') FROM n",
			} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			// The state on disk at this moment is that of a process that dies now.
			dead := newDisk(t)
			copyFile(d.cfg.Ledger, dead.cfg.Ledger)
			copyFile(d.cfg.Ledger+"-journal", dead.cfg.Ledger+"-journal")
			copyFile(d.cfg.Anchor, dead.cfg.Anchor)
			checker := newController(t, dead.checker(t))
			if st := checker.Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrUntrustedState) || st.Generation != 2 {
				t.Errorf("%+v", st)
			}
			if st := dead.controller(t).Status(t.Context(), global); st.State != admission.Enabled || st.Generation != 2 {
				t.Errorf("%+v", st)
			}
			if st := checker.Status(t.Context(), global); st.State != admission.Enabled {
				t.Errorf("%+v", st)
			}
			// The writer that is still alive holds the ledger for itself by now.
			busy := d.controller(t)
			if st := busy.Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrStoreBusy) || st.State != admission.Stopped {
				t.Errorf("%+v", st)
			}
		})
	}
}

// lock holds a lock on a file until the test ends.
func lock(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLocked: waiting is bounded, nothing changes, and nothing is admitted that
// cannot be read.
func TestLocked(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range map[string]struct {
				path  func(d *disk) string
				locks []string
				reads bool
			}{
				"ledger exclusive": {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN EXCLUSIVE"}, false},
				"anchor exclusive": {func(d *disk) string { return d.cfg.Anchor }, []string{"BEGIN EXCLUSIVE"}, false},
				"ledger written":   {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN IMMEDIATE"}, true},
				"ledger read":      {func(d *disk) string { return d.cfg.Ledger }, []string{"BEGIN", "SELECT * FROM receipts"}, true},
				"anchor read":      {func(d *disk) string { return d.cfg.Anchor }, []string{"BEGIN", "SELECT * FROM head"}, true},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					d := newStore(t)
					enable(t, d.controller(t), global)
					before := must(d.open(t).Head(t.Context()))
					lock(t, tc.path(d), tc.locks...)
					c := d.controller(t)
					_, err := c.Preview(t.Context(), refunds)
					if tc.reads && err != nil {
						t.Error(err)
					}
					if !tc.reads {
						wantErr(t, err, admission.ErrStoreBusy)
						_, err = d.open(t).Receipts(t.Context(), 0, 1)
						wantErr(t, err, admission.ErrStoreBusy)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					defer cancel()
					began := time.Now()
					_, err = c.Stop(ctx, admission.Transition{Scope: global})
					wantErr(t, err, admission.ErrStoreBusy)
					if took := time.Since(began); took > 5*time.Second {
						t.Errorf("the stop came back after %v", took)
					}
					if tc.reads {
						if now := must(d.open(t).Head(t.Context())); now != before {
							t.Errorf("%v became %v", before, now)
						}
					}
				})
			}
		})
	}
}

// TestWaits: a lock that is let go is waited for, also by a stop whose readers
// leave only after it has begun to commit.
func TestWaits(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			db, err := sql.Open("sqlite", d.cfg.Ledger)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := tx.QueryRow("SELECT count(*) FROM receipts").Scan(&n); err != nil {
				t.Fatal(err)
			}
			c := d.controller(t)
			done := make(chan error, 1)
			go func() {
				_, err := c.Stop(t.Context(), admission.Transition{Scope: global})
				done <- err
			}()
			// A journal beside the ledger says that the commit waits.
			for {
				if _, err := os.Stat(d.cfg.Ledger + "-journal"); err == nil {
					break
				}
				select {
				case err := <-done:
					t.Fatalf("it did not wait: %v", err)
				default:
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if st := c.Status(t.Context(), global); st.State != admission.Stopped || st.Generation != 2 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestConcurrent: many writers and checkers; each acknowledged transition is one
// receipt, and the chain is whole.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			var wg sync.WaitGroup
			var mu sync.Mutex
			acknowledged := map[uint64]int{}
			for range 4 {
				wg.Go(func() {
					c := d.controller(t)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					for range 5 {
						st, err := c.Stop(ctx, admission.Transition{Scope: admission.Workflow(refunds)})
						if err != nil {
							t.Error(err)

							return
						}
						mu.Lock()
						acknowledged[st.Generation]++
						mu.Unlock()
						if now := c.Status(context.Background(), global); now.Generation < st.Generation && !errors.Is(now.Reason, admission.ErrStoreBusy) {
							t.Errorf("%+v after %d", now, st.Generation)
						}
					}
				})
			}
			wg.Wait()
			head := must(d.open(t).Head(t.Context()))
			if head.Generation != 21 || len(acknowledged) != 20 {
				t.Errorf("head %d, %d acknowledged", head.Generation, len(acknowledged))
			}
		})
	}
}

// TestAppend: the store itself compares and swaps, and takes no invalid receipt.
func TestAppend(t *testing.T) {
	t.Parallel()
	for kind, newStore := range detectors {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := newStore(t)
			s := d.open(t)
			head := must(s.Head(t.Context()))
			good := admission.Entry{Scope: global, State: admission.Enabled, Role: admission.Operator, Reason: admission.ExplicitEnable}
			for name, tc := range map[string]struct {
				after admission.Head
				e     func(e *admission.Entry)
				want  error
			}{
				"no head":     {admission.Head{}, nil, admission.ErrStaleGeneration},
				"other head":  {admission.Head{Generation: 1, Digest: ident.DigestOf(nil)}, nil, admission.ErrStaleGeneration},
				"ahead":       {admission.Head{Generation: 2, Digest: head.Digest}, nil, admission.ErrStaleGeneration},
				"before 1970": {head, func(e *admission.Entry) { e.Time = -1 }, admission.ErrInvalidTime},
				"no scope":    {head, func(e *admission.Entry) { e.Scope = admission.Scope{} }, admission.ErrInvalidScope},
				"disable":     {head, func(e *admission.Entry) { e.State = admission.Disabled }, admission.ErrInvalidTransition},
				"no role":     {head, func(e *admission.Entry) { e.Role = 0 }, admission.ErrInvalidTransition},
			} {
				e := good
				if tc.e != nil {
					tc.e(&e)
				}
				if _, err := s.Append(t.Context(), tc.after, e); !errors.Is(err, tc.want) {
					t.Errorf("%s: %v", name, err)
				}
			}
			_, err := s.Append(canceledContext(), head, good)
			wantErr(t, err, context.Canceled)
			if now := must(s.Head(t.Context())); now != head {
				t.Errorf("%v became %v", head, now)
			}
			halt := good
			halt.State, halt.Reason = admission.Stopped, admission.EmergencyStop
			_, err = s.Append(t.Context(), admission.Head{Generation: 1, Digest: ident.DigestOf(nil)}, halt)
			wantErr(t, err, admission.ErrStaleGeneration) // a stop, but after something that never was
			r, err := s.Append(t.Context(), head, good)
			if err != nil || r.Generation != 2 || r.Previous != head.Digest {
				t.Errorf("%+v %v", r, err)
			}
			if got := must(s.Receipts(t.Context(), 1, 10)); len(got) != 1 || got[0] != r {
				t.Errorf("%+v", got)
			}
			// An enable has to know what it follows; a stop need not know the last of it.
			_, err = s.Append(t.Context(), head, good)
			wantErr(t, err, admission.ErrStaleGeneration)
			if late, err := s.Append(t.Context(), head, halt); err != nil || late.Generation != 3 || late.Previous != r.Digest() {
				t.Errorf("%+v %v", late, err)
			}
			if got := must(s.Receipts(t.Context(), 0, 1)); len(got) != 1 || got[0].Generation != 1 {
				t.Errorf("%+v", got)
			}
			_, err = s.Receipts(canceledContext(), 0, 1)
			wantErr(t, err, context.Canceled)
			_, err = s.Head(canceledContext())
			wantErr(t, err, context.Canceled)
		})
	}
}
