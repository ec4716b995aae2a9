package admission_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	refunds = ident.MustWorkflowID("workflow:org.example/refunds@1.0.0")
	billing = ident.MustWorkflowID("workflow:org.example/billing")

	global = admission.Global()
)

func at() time.Time { return time.Unix(1_800_000_000, 0) }

func testKey(tb testing.TB, seed byte) admission.Key {
	tb.Helper()
	k, err := admission.ParseKey(append(bytes.Repeat([]byte{seed}, 31), seed+1))
	if err != nil {
		tb.Fatal(err)
	}

	return k
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}

	return v
}

// memoryStore is a second store: receipts in a slice. It shows that what the
// controller knows of a store is in the interface.
type memoryStore struct {
	key admission.Key

	mu       sync.Mutex
	closed   bool
	receipts []admission.Receipt
	err      error           // of the next Heads
	proven   admission.Head  // beside err
	strict   bool            // a stop has to name the head too
	onHead   func()          // called by Head before it reads, without the lock
	onAppend func() error    // called by Append before it writes, without the lock
	hold     []chan struct{} // each Head waits for its own, having read
	reached  chan<- struct{} // told when a Head waits
}

func newMemoryStore(tb testing.TB) *memoryStore {
	tb.Helper()
	s := &memoryStore{key: testKey(tb, 'm')}
	s.receipts = append(s.receipts, must(s.key.Sign(admission.Receipt{
		Generation: 1, Scope: global, State: admission.Disabled, Role: admission.Operator, Reason: admission.Initialized,
	})))

	return s
}

func (s *memoryStore) Head(ctx context.Context) (admission.Head, error) {
	if s.onHead != nil {
		s.onHead()
	}
	if ctx.Err() != nil {
		return admission.Head{}, ctx.Err()
	}
	s.mu.Lock()
	h, err := s.proven, s.err
	if s.closed {
		err = admission.ErrUntrustedState
	}
	if err == nil && len(s.receipts) > 0 {
		last := s.receipts[len(s.receipts)-1]
		h = admission.Head{Generation: last.Generation, Digest: last.Digest()}
	}
	var wait chan struct{}
	if len(s.hold) > 0 {
		wait, s.hold = s.hold[0], s.hold[1:]
	}
	s.mu.Unlock()
	if wait != nil {
		s.reached <- struct{}{}
		<-wait
	}

	return h, err
}

func (s *memoryStore) Receipts(_ context.Context, after uint64, limit int) ([]admission.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, admission.ErrUntrustedState
	}
	from := int(min(after, uint64(len(s.receipts))))

	return append([]admission.Receipt(nil), s.receipts[from:min(from+limit, len(s.receipts))]...), nil
}

func (s *memoryStore) Append(ctx context.Context, after admission.Head, e admission.Entry) (admission.Receipt, error) {
	if s.onAppend != nil {
		if err := s.onAppend(); err != nil {
			return admission.Receipt{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.receipts[len(s.receipts)-1]
	recorded := !s.strict && e.State == admission.Stopped && slices.ContainsFunc(s.receipts, func(r admission.Receipt) bool {
		return r.Generation == after.Generation && r.Digest() == after.Digest
	})
	allowed := e.State == admission.Stopped && (e.Reason == admission.EmergencyStop || e.Reason == admission.Maintenance) ||
		e.State == admission.Enabled && e.Reason == admission.ExplicitEnable
	switch {
	case s.closed:
		return admission.Receipt{}, admission.ErrUntrustedState
	case ctx.Err() != nil:
		return admission.Receipt{}, middleware.ReasonCanceled
	case last.Digest() != after.Digest && !recorded, last.Digest() == after.Digest && last.Generation != after.Generation:
		return admission.Receipt{}, admission.ErrStaleGeneration
	case !allowed:
		return admission.Receipt{}, admission.ErrInvalidTransition
	}
	r, err := s.key.Sign(admission.Receipt{
		Generation: last.Generation + 1, Previous: last.Digest(),
		Scope: e.Scope, State: e.State, Role: e.Role, Reason: e.Reason, Time: e.Time,
	})
	if err == nil {
		s.receipts = append(s.receipts, r)
	}

	return r, err
}

func (s *memoryStore) Close() error {
	s.set(func() { s.closed = true })

	return nil
}

func (s *memoryStore) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func newController(tb testing.TB, s admission.Store, o ...middleware.Observer) *admission.Controller {
	tb.Helper()
	c, err := admission.New(admission.Config{Store: s, Observer: middleware.Observers(o...), Now: at})
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

// disk is a SQLite store in a folder of its own.
type disk struct {
	cfg      admission.StoreConfig
	dir      string
	tb       testing.TB
	versions bool // changes are detected as on systems other than Linux
}

// detectors are both ways to detect a change, as makers of stores.
var detectors = map[string]func(tb testing.TB) *disk{
	"headers": newStore,
	"data_version": func(tb testing.TB) *disk {
		tb.Helper()
		d := newStore(tb)
		d.versions = true

		return d
	},
}

func newDisk(tb testing.TB) *disk {
	tb.Helper()
	dir := tb.TempDir()
	for _, sub := range []string{"ledger", "anchor"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			tb.Fatal(err)
		}
	}

	return &disk{dir: dir, tb: tb, cfg: admission.StoreConfig{
		Ledger: filepath.Join(dir, "ledger", "ledger.db"), Anchor: filepath.Join(dir, "anchor", "anchor.db"),
		Key: testKey(tb, 'k'), Now: at,
	}}
}

func newStore(tb testing.TB) *disk {
	tb.Helper()
	d := newDisk(tb)
	if _, err := admission.Initialize(tb.Context(), d.cfg); err != nil {
		tb.Fatal(err)
	}

	return d
}

func (d *disk) open(tb testing.TB) *admission.SQLiteStore {
	tb.Helper()

	return d.openAs(tb, admission.OpenStore)
}

func (d *disk) checker(tb testing.TB) *admission.SQLiteStore {
	tb.Helper()

	return d.openAs(tb, admission.OpenChecker)
}

func (d *disk) openAs(
	tb testing.TB, open func(context.Context, admission.StoreConfig) (*admission.SQLiteStore, error),
) *admission.SQLiteStore {
	tb.Helper()
	s, err := open(tb.Context(), d.cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if d.versions {
		admission.UseDataVersion(s)
	}
	tb.Cleanup(func() { _ = s.Close() })

	return s
}

// stop and enable record a transition as another process does.
func (d *disk) stop(s admission.Scope)   { stop(d.tb, d.controller(d.tb), s) }
func (d *disk) enable(s admission.Scope) { enable(d.tb, d.controller(d.tb), s) }

// fill writes receipts up to a generation in one transaction for each file: all
// is enabled at generation 2, and then billing again and again.
func (d *disk) fill(tb testing.TB, generation uint64) {
	tb.Helper()
	s := d.open(tb)
	defer s.Close()
	head := must(s.Head(tb.Context()))
	db := must(sql.Open("sqlite", d.cfg.Ledger))
	defer db.Close()
	tx := must(db.Begin())
	insert := must(tx.Prepare("INSERT INTO receipts VALUES(?, ?)"))
	defer insert.Close()
	for head.Generation < generation {
		r := admission.Receipt{
			Generation: head.Generation + 1, Previous: head.Digest, Scope: global, State: admission.Enabled,
			Role: admission.Operator, Reason: admission.ExplicitEnable, Time: at().Unix(),
		}
		if r.Generation > 2 {
			r.Scope = admission.Workflow(billing)
		}
		r = must(d.cfg.Key.Sign(r))
		must(insert.Exec(r.Generation, string(r.Document())))
		head = admission.Head{Generation: r.Generation, Digest: r.Digest()}
	}
	try(tx.Commit())
	raw(d.cfg.Anchor, anchorUpdate(head))
}

// anchorUpdate is what moves an anchor that is signed with the key of a disk.
func anchorUpdate(h admission.Head) string {
	return fmt.Sprintf("UPDATE head SET generation = %d, digest = '%s', signature = 'hmac-sha256:%s'",
		h.Generation, h.Digest, hmacHex('k', fmt.Appendf(nil, "interlock.effect_admission.anchor.v1\n%d\n%s", h.Generation, h.Digest)))
}

func (d *disk) controller(tb testing.TB) *admission.Controller {
	tb.Helper()

	return newController(tb, d.open(tb))
}

// raw runs SQL on one file, as somebody with access to it can.
func raw(path string, statements ...string) {
	db := must(sql.Open("sqlite", path))
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		must(db.Exec(s))
	}
}

func copyFile(from, to string) { try(os.WriteFile(to, must(os.ReadFile(from)), 0o600)) }

// try and must are for steps that have to work: else the test is broken.
func try(err error) {
	if err != nil {
		panic(err)
	}
}

func chmod(path string, mode os.FileMode) { try(os.Chmod(path, mode)) }

func write(path string, data []byte) { try(os.WriteFile(path, data, 0o600)) }

func enable(tb testing.TB, c *admission.Controller, s admission.Scope) admission.Status {
	tb.Helper()
	st, err := c.Enable(tb.Context(), admission.Transition{Scope: s})
	if err != nil {
		tb.Fatalf("enable %v: %v", s, err)
	}

	return st
}

func stop(tb testing.TB, c *admission.Controller, s admission.Scope) admission.Status {
	tb.Helper()
	st, err := c.Stop(tb.Context(), admission.Transition{Scope: s})
	if err != nil {
		tb.Fatalf("stop %v: %v", s, err)
	}

	return st
}

func preview(tb testing.TB, c *admission.Controller, w ident.WorkflowID) middleware.Preview {
	tb.Helper()
	p, err := c.Preview(tb.Context(), w)
	if err != nil {
		tb.Fatalf("preview: %v", err)
	}

	return p
}

func wantErr(tb testing.TB, err, want error) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Errorf("error is %v, want %v", err, want)
	}
}
