package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// readTimeout bounds how long a check waits for a locked store.
	readTimeout = 250 * time.Millisecond
	// firstRetry and lastRetry are the pauses between attempts at a lock.
	firstRetry = time.Millisecond
	lastRetry  = 20 * time.Millisecond
)

var errClosed = errors.New("store is closed")

// StoreConfig says where a SQLite store is and what signs it.
type StoreConfig struct {
	// Ledger is the path of the file with the receipts. Required. A relative
	// path is made absolute, and links among its folders are followed, once.
	Ledger string
	// Anchor is the path of the file that says which receipt is the last. It
	// belongs on storage that no restore of the ledger touches. Required.
	Anchor string
	// Key signs both. Required.
	Key Key
	// Pin is the digest of the first receipt, as [Initialize] returned it; a
	// store with another one is untrusted. Default zero: any.
	Pin ident.Digest
	// Role is recorded in the receipt that [Initialize] writes. Default Operator.
	Role Role
	// Now is the clock for the receipt that [Initialize] writes. Default
	// time.Now.
	Now func() time.Time
}

// SQLiteStore keeps receipts in two SQLite files on one host. It is safe for
// concurrent use. A nil, zero or closed one fails with untrusted_state. Once it
// has been read it holds a connection and descriptors, until Close.
type SQLiteStore struct {
	files    files
	broken   error // why the ledger's place cannot be used; the anchor may survive
	key      Key
	pin      ident.Digest
	readOnly bool
	detect   detector
	closed   atomic.Bool

	last       atomic.Pointer[snapshot] // nil: nothing is verified
	verifier   chan struct{}            // a semaphore: who has it may use and change session
	session    *session                 // that of last
	mark       highWater
	background background
}

// highWater is the highest head that this process has seen in a store.
type highWater struct {
	mu   sync.Mutex
	head Head
}

var _ Store = (*SQLiteStore)(nil)

// OpenStore opens a store that may stop and enable, and that brings a commit
// which a dead process left half-done to its end. It fails for what the
// configuration is to blame for: invalid_key, invalid_anchor (path, folder, file
// system), untrusted_state (the form of the ledger's path). What is found, or
// not found, in the ledger's place is told by Head, and so by every check: a
// program starts, and refuses effects.
func OpenStore(ctx context.Context, cfg StoreConfig) (*SQLiteStore, error) {
	return openStore(ctx, cfg, false)
}

// OpenChecker opens a store that can only be checked: files are opened
// read-only, transitions are store_failed, and a commit that a dead process left
// half-done is untrusted_state until a writer has opened the store.
func OpenChecker(ctx context.Context, cfg StoreConfig) (*SQLiteStore, error) {
	return openStore(ctx, cfg, true)
}

func openStore(ctx context.Context, cfg StoreConfig, readOnly bool) (*SQLiteStore, error) {
	if cfg.Key.IsZero() {
		return nil, fail(middleware.ReasonInvalidKey, nil)
	}
	if err := wellFormed(cfg.Ledger); err != nil {
		return nil, fail(middleware.ReasonUntrustedState, err)
	}
	s := &SQLiteStore{key: cfg.Key, pin: cfg.Pin, readOnly: readOnly, detect: newDetector(), verifier: make(chan struct{}, 1)}
	var err error
	if s.files.anchor, err = resolve(cfg.Anchor); err == nil {
		err = checkPlace(s.files.anchor)
	}
	if err != nil {
		return nil, fail(middleware.ReasonInvalidAnchor, err)
	}
	if s.files.ledger, s.broken = resolve(cfg.Ledger); s.broken == nil {
		if err := s.files.distinct(); err != nil {
			return nil, fail(middleware.ReasonInvalidAnchor, err)
		}
	}
	if err := anchorFile(s.files); err != nil {
		return nil, fail(middleware.ReasonInvalidAnchor, err)
	}
	if ctx.Err() != nil {
		return nil, canceled(ctx)
	}
	ownLocks()

	return s, nil
}

// anchorFile verifies the anchor's own file, if there is one: that it is missing
// is found on loading.
func anchorFile(f files) error {
	anchor, err := checkFile(f.anchor)
	switch {
	case isMissing(err):
		return nil
	case err != nil:
		return err
	case f.ledger != "" && sameFile(f.ledger, anchor):
		return errSame
	}

	return nil
}

// ownLocks asks SQLite for locks that do not vanish when some other part of the
// program opens and closes the same file. Where the program has used SQLite
// before, or the system has no such locks, it stays at the usual ones: see
// descriptors.
func ownLocks() { _, _ = sqlite.OFDLocking(true) }

// Format prints the type for every verb and flag: paths may tell something.
func (*SQLiteStore) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "admission.SQLiteStore") }

// Close lets go of both files and waits for a verification in the background.
// Every later call fails. It never fails itself.
func (s *SQLiteStore) Close() error {
	if s == nil || s.verifier == nil {
		return nil
	}
	s.closed.Store(true) // ends verifications too
	s.background.close()
	s.verifier <- struct{}{}
	defer s.release()
	s.drop()

	return nil
}

// usable returns why no call can be served, or nil.
func (s *SQLiteStore) usable() error {
	if s == nil || s.verifier == nil || s.closed.Load() {
		return fail(middleware.ReasonUntrustedState, errClosed)
	}

	return nil
}

// acquire waits for the semaphore.
func (s *SQLiteStore) acquire(ctx context.Context, wait *time.Duration) error {
	select {
	case s.verifier <- struct{}{}:
		return nil
	default:
	}
	began := time.Now()
	timer := time.NewTimer(*wait)
	defer timer.Stop()
	select {
	case s.verifier <- struct{}{}:
		*wait -= time.Since(began)

		return nil
	case <-timer.C:
	case <-ctx.Done():
	}

	return errWait
}

func (s *SQLiteStore) release() { <-s.verifier }

func (s *SQLiteStore) highest() Head {
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock()

	return s.mark.head
}

func (s *SQLiteStore) seen(h Head) {
	s.mark.mu.Lock()
	defer s.mark.mu.Unlock()
	if h.Generation > s.mark.head.Generation {
		s.mark.head = h
	}
}

// Head implements [Store]. If nothing has changed since the last verification it
// costs four system calls (on Linux) and no allocation; see the package's
// documentation of what it goes by. Else it verifies what is new, and if that
// does not explain the change, everything, on a new connection.
func (s *SQLiteStore) Head(ctx context.Context) (Head, error) {
	if err := s.usable(); err != nil {
		return Head{}, err
	}
	if ctx.Err() != nil {
		return Head{}, canceled(ctx)
	}
	// refresh does the same; here it is before everything that could allocate.
	if snap := s.last.Load(); snap != nil && s.detect.peek(snap) {
		return snap.view.head, nil
	}

	return s.slowHead(ctx)
}

func (s *SQLiteStore) slowHead(ctx context.Context) (Head, error) {
	err := s.broken
	if err == nil {
		var snap *snapshot
		wait := readTimeout
		if snap, err = s.refresh(ctx, &wait); err == nil {
			return snap.view.head, nil
		}
	}
	switch {
	case isBusy(err):
		return Head{}, fail(middleware.ReasonStoreBusy, err)
	case ctx.Err() != nil:
		return Head{}, canceled(ctx)
	case errors.Is(err, errPin):
		return Head{}, fail(middleware.ReasonUntrustedState, err) // another store: its anchor proves nothing
	}
	proven := s.anchorAlone(ctx)
	if mark := s.highest(); mark.Generation > proven.Generation {
		proven = mark
	}

	return proven, fail(middleware.ReasonUntrustedState, err)
}

// Receipts implements [Store]. A page has at most 1,000 receipts.
func (s *SQLiteStore) Receipts(ctx context.Context, after uint64, limit int) ([]Receipt, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var page []Receipt
	err := s.broken
	if err == nil {
		page, err = s.readPage(ctx, after, min(limit, batchRows))
	}
	switch {
	case err == nil:
		return page, nil
	case isBusy(err):
		return nil, fail(middleware.ReasonStoreBusy, err)
	case ctx.Err() != nil:
		return nil, canceled(ctx)
	}

	return nil, fail(middleware.ReasonUntrustedState, err)
}

func (s *SQLiteStore) readPage(ctx context.Context, after uint64, limit int) (page []Receipt, err error) {
	wait := readTimeout
	if err := s.acquire(ctx, &wait); err != nil {
		return nil, err
	}
	defer s.release()
	snap, err := s.renew(ctx, &wait)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = retry(ctx, &wait, func() error {
		return snap.session.conn.reading(ctx, func() error {
			page = page[:0]
			_, err := s.receipts(ctx, snap.session.conn, after, limit, func(r Receipt, _ ident.Digest) (bool, error) {
				page = append(page, r)

				return time.Since(began) < batchTime, nil
			})

			return err
		})
	})

	return page, err
}

// viewAt returns the state that belongs to a head, if that is the one that was
// verified last.
func (s *SQLiteStore) viewAt(h Head) *view {
	if snap := s.last.Load(); snap != nil && snap.view.head == h {
		return snap.view
	}

	return nil
}

// retry calls f until it does not find the store locked, has waited for as long
// as wait says, or ctx is done. It returns f's last error, and leaves in wait
// what is left of it.
func retry(ctx context.Context, wait *time.Duration, f func() error) error {
	pause := firstRetry
	for {
		err := f()
		if err == nil || !isBusy(err) || *wait <= 0 {
			return err
		}
		pause = min(pause, *wait)
		*wait -= pause
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()

			return err
		}
		pause = min(2*pause, lastRetry)
	}
}
