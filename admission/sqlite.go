package admission

import (
	"context"
	"errors"
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
// concurrent use. A nil or closed one fails with untrusted_state.
type SQLiteStore struct {
	files    files
	broken   error // why the ledger's place cannot be used; the anchor may survive
	key      Key
	pin      ident.Digest
	readOnly bool
	closed   atomic.Bool
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
	s := &SQLiteStore{key: cfg.Key, pin: cfg.Pin, readOnly: readOnly}
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
// before, or the system has no such locks, it stays at the usual ones; this
// package opens no descriptor of a database beside SQLite's own.
func ownLocks() { _, _ = sqlite.OFDLocking(true) }

// Close makes every later call fail. It never fails itself.
func (s *SQLiteStore) Close() error {
	if s != nil {
		s.closed.Store(true)
	}

	return nil
}

// usable returns why no call can be served, or nil.
func (s *SQLiteStore) usable() error {
	if s == nil || s.closed.Load() {
		return fail(middleware.ReasonUntrustedState, errClosed)
	}

	return nil
}

// Head implements [Store]. It opens both files anew and verifies all of both.
func (s *SQLiteStore) Head(ctx context.Context) (Head, error) {
	if err := s.usable(); err != nil {
		return Head{}, err
	}
	var head Head
	err := s.broken
	if err == nil {
		err = retry(ctx, time.Now().Add(readTimeout), func() error {
			v, err := s.readAll(ctx)
			if err == nil {
				head = v.head
			}

			return err
		})
	}
	switch {
	case err == nil:
		return head, nil
	case isBusy(err):
		return Head{}, fail(middleware.ReasonStoreBusy, err)
	case ctx.Err() != nil:
		return Head{}, canceled(ctx)
	case errors.Is(err, errPin):
		return Head{}, fail(middleware.ReasonUntrustedState, err) // another store: its anchor proves nothing
	}

	return s.anchorAlone(ctx), fail(middleware.ReasonUntrustedState, err)
}

// Receipts implements [Store].
func (s *SQLiteStore) Receipts(ctx context.Context, after uint64, limit int) ([]Receipt, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var page []Receipt
	err := s.broken
	if err == nil {
		err = retry(ctx, time.Now().Add(readTimeout), func() (err error) {
			page, err = s.readPage(ctx, after, limit)

			return err
		})
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

// retry calls f until it does not find the store locked, the deadline passes, or
// ctx is done. It returns f's last error.
func retry(ctx context.Context, deadline time.Time, f func() error) error {
	pause := firstRetry
	for {
		err := f()
		left := time.Until(deadline)
		if err == nil || !isBusy(err) || left <= 0 {
			return err
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()

			return err
		}
		pause = min(2*pause, lastRetry)
	}
}
