package admission_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"github.com/interlock-go/interlock/admission"
)

// lockingChild is set in a process that this test starts: how SQLite locks is
// settled once for a process, when it first locks a file.
const lockingChild = "INTERLOCK_TEST_LOCKING"

// TestLocking runs the part below in processes of their own: in a program that
// had opened another SQLite database before this package was asked for anything,
// and in one that had not.
func TestLocking(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"foreign database first", "ours first"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockingChild$", "-test.v")
			cmd.Env = append(os.Environ(), lockingChild+"="+how)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "what had to be shown was shown") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestLockingChild does nothing but in such a process.
func TestLockingChild(t *testing.T) { //nolint:paralleltest // alone in its process
	how := os.Getenv(lockingChild)
	if how == "" {
		return
	}
	if how == "foreign database first" {
		db := must(sql.Open("sqlite", filepath.Join(t.TempDir(), "application.db")))
		defer db.Close()
		must(db.Exec("CREATE TABLE t(x)"))
	}
	d := newStore(t)
	if sqlite.OFDLockingEnabled() != (how == "ours first") {
		t.Fatal("not the locks that this is about")
	}
	one, two := d.open(t), d.open(t)
	operator, agent := newController(t, one), newController(t, two)
	enable(t, operator, global)
	p := preview(t, agent, refunds)

	// The program reads the ledger, and closes what it read it through, in the
	// middle of a transition: while a reader keeps it from committing.
	reader := must(sql.Open("sqlite", d.cfg.Anchor))
	tx := must(reader.Begin())
	var n int
	try(tx.QueryRow("SELECT count(*) FROM head").Scan(&n))
	stopped := make(chan error, 1)
	go func() {
		_, err := operator.Stop(t.Context(), admission.Transition{Scope: admission.Workflow(billing)})
		stopped <- err
	}()
	for {
		if _, err := os.Stat(d.cfg.Ledger + "-journal"); err == nil {
			break
		}
	}
	for _, path := range []string{d.cfg.Ledger, d.cfg.Anchor} {
		f := must(os.Open(path))
		must(io.Copy(io.Discard, f))
		try(f.Close())
	}
	try(tx.Rollback())
	try(reader.Close())
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if err := agent.Check(t.Context(), p); !errors.Is(err, admission.ErrStaleGeneration) {
		t.Error(err)
	}
	for range 50 {
		must(os.ReadFile(d.cfg.Ledger))
		stop(t, operator, global)
		if err := agent.Check(t.Context(), p); !errors.Is(err, admission.ErrStopped) {
			t.Error(err)
		}
		must(os.ReadFile(d.cfg.Anchor))
		enable(t, operator, global)
		if err := agent.Check(t.Context(), preview(t, agent, refunds)); err != nil {
			t.Error(err)
		}
	}

	// A store that is closed, or that opens its files anew, takes no lock from
	// another one: with POSIX locks its descriptors wait for the last connection.
	copyFile(d.cfg.Ledger, d.dir+"/copy")
	try(os.Rename(d.dir+"/copy", d.cfg.Ledger))
	must(two.Head(t.Context()))
	try(two.Close())
	kept := admission.KeptDescriptors()
	if posix := how == "foreign database first"; posix != (kept > 0) {
		t.Errorf("%d descriptors are kept", kept)
	}
	must(one.Head(t.Context()))
	try(one.Close())
	if kept := admission.KeptDescriptors(); kept != 0 {
		t.Errorf("%d descriptors are kept for nobody", kept)
	}
	fmt.Println("what had to be shown was shown")
}
