package admission

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

var errRows = errors.New("a statement changed more or less than one row")

// Append implements [Store]. Receipt and anchor are one transaction. What was
// verified before is proven to be unchanged inside of it.
func (s *SQLiteStore) Append(ctx context.Context, after Head, e Entry) (Receipt, error) {
	if err := s.usable(); err != nil {
		return Receipt{}, err
	}
	if s.broken != nil {
		return Receipt{}, fail(middleware.ReasonUntrustedState, s.broken)
	}
	if s.readOnly {
		return Receipt{}, fail(middleware.ReasonStoreFailed, nil)
	}
	wait := defaultTransitionTimeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	var r Receipt
	err := retry(ctx, &wait, func() (err error) {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		r, err = s.commit(ctx, &wait, after, e)

		return err
	})
	switch {
	case err == nil:
		return r, nil
	case isBusy(err):
		return Receipt{}, fail(middleware.ReasonStoreBusy, err)
	case middleware.ReasonOf(err) != 0:
		return Receipt{}, err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // time ran out while it was verified
		return Receipt{}, canceled(ctx)
	}

	return Receipt{}, fail(middleware.ReasonUntrustedState, err)
}

// commit makes one attempt. Errors without a reason are what was found; those
// with a reason are what was done.
func (s *SQLiteStore) commit(ctx context.Context, wait *time.Duration, after Head, e Entry) (Receipt, error) {
	snap, err := s.refresh(ctx, wait)
	if err != nil {
		return Receipt{}, err
	}
	before, err := s.files.check()
	if err != nil {
		return Receipt{}, err
	}
	k, err := openBoth(ctx, s.files, accessWrite)
	if err != nil {
		return Receipt{}, err
	}
	defer k.close() // an open transaction is rolled back
	if err := k.syncExtra(ctx); err != nil {
		return Receipt{}, err
	}
	if err := retry(ctx, wait, func() error { return k.exec(ctx, "BEGIN IMMEDIATE") }); err != nil {
		return Receipt{}, err
	}
	// Nobody else can commit now.
	if snap, err = s.follow(ctx, k, snap); err != nil {
		if isBusy(err) {
			return Receipt{}, err
		}

		return Receipt{}, errAgain // what is wrong is found by refresh
	}
	v := snap.view
	if v.head != after {
		recorded := false
		if e.State == Stopped {
			recorded, err = k.recorded(ctx, after)
		}
		if err != nil {
			return Receipt{}, err
		}
		if !recorded {
			return Receipt{}, fail(middleware.ReasonStaleGeneration, nil)
		}
	}
	r, err := s.next(v, e)
	if err != nil {
		return Receipt{}, err
	}
	if err := k.write(ctx, r, s.key); err != nil {
		return Receipt{}, failedWrite(err)
	}
	// A file that was replaced by now would take the receipt with it.
	if now, err := s.files.check(); err != nil || !before.same(now) {
		return Receipt{}, errReplaced
	}
	if err := k.commit(ctx, wait); err != nil {
		return Receipt{}, failedWrite(err)
	}
	s.seen(Head{Generation: r.Generation, Digest: r.Digest()})
	if now, err := s.files.check(); err != nil || !before.same(now) {
		return Receipt{}, errReplaced
	}

	return r, nil
}

// next makes and signs the receipt for e that follows v.
func (s *SQLiteStore) next(v *view, e Entry) (Receipt, error) {
	if e.Time < 0 {
		return Receipt{}, fail(middleware.ReasonInvalidTime, nil)
	}
	if reason := v.permit(e.Scope, e.State, e.Reason); reason != 0 {
		return Receipt{}, fail(reason, nil)
	}

	return s.key.Sign(Receipt{
		Generation: v.head.Generation + 1, Previous: v.head.Digest,
		Scope: e.Scope, State: e.State, Role: e.Role, Reason: e.Reason, Time: e.Time,
	})
}

// write puts a receipt and its anchor into the transaction.
func (k *conn) write(ctx context.Context, r Receipt, key Key) error {
	document := r.Document()
	generation := int64(r.Generation) //nolint:gosec // a signed receipt's is in range
	h := Head{Generation: r.Generation, Digest: ident.DigestOf(document)}
	res, err := k.c.ExecContext(context.WithoutCancel(ctx),
		"INSERT INTO main.receipts(generation, document) VALUES(?, ?)", generation, string(document))
	if err := oneRow(res, err); err != nil {
		return err
	}
	statement := "UPDATE anchor.head SET generation = ?, digest = ?, signature = ? WHERE id = 1"
	if r.Generation == 1 {
		statement = "INSERT INTO anchor.head(id, generation, digest, signature) VALUES(1, ?, ?, ?)"
	}
	res, err = k.c.ExecContext(context.WithoutCancel(ctx), statement,
		generation, h.Digest.String(), newSigner(key).anchor(h))

	return oneRow(res, err)
}

func oneRow(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errRows
	}

	return nil
}

// commit waits for the readers of both files to leave. While it waits SQLite
// lets no new ones in, and the transaction stays as it is. It is never
// interrupted: its answer is always what happened.
func (k *conn) commit(ctx context.Context, wait *time.Duration) error {
	return retry(ctx, wait, func() error { return k.exec(ctx, "COMMIT") })
}

// failedWrite leaves busy as it is, to be tried again, and calls everything else
// store_failed: SQLite has rolled back.
func failedWrite(err error) error {
	if isBusy(err) {
		return err
	}

	return fail(middleware.ReasonStoreFailed, err)
}

// Initialize makes a new store: both files, mode 0600, with the first receipt,
// (global, disabled). It returns the digest of that receipt, which a
// configuration can pin. It refuses every path that exists, an empty file too
// (already_initialized), and takes away what it made if it fails. Other errors
// are invalid_key, invalid_anchor, untrusted_state (the ledger's path, folder or
// file system; also a Pin, which no new store can match), invalid_time and
// store_failed.
func Initialize(ctx context.Context, cfg StoreConfig) (ident.Digest, error) {
	s, err := prepare(cfg)
	if err != nil {
		return ident.Digest{}, err
	}
	now := time.Now
	if cfg.Now != nil {
		now = cfg.Now
	}
	role := Operator
	if cfg.Role != 0 {
		role = cfg.Role
	}
	if role.String() == invalid {
		return ident.Digest{}, fail(middleware.ReasonInvalidControlMetadata, nil)
	}
	first, err := s.next(new(view), Entry{
		Scope: Global(), State: Disabled, Role: role, Reason: Initialized, Time: now().Unix(),
	})
	if err != nil {
		return ident.Digest{}, err
	}
	if ctx.Err() != nil {
		return ident.Digest{}, canceled(ctx)
	}
	ownLocks()
	undo, err := s.files.create()
	if err == nil {
		err = s.fill(ctx, first)
	}
	if err != nil {
		undo()
		if middleware.ReasonOf(err) == 0 {
			err = fail(middleware.ReasonStoreFailed, err)
		}

		return ident.Digest{}, err
	}

	return first.Digest(), nil
}

// prepare verifies the places of a store that is to be made.
func prepare(cfg StoreConfig) (*SQLiteStore, error) {
	if cfg.Key.IsZero() {
		return nil, fail(middleware.ReasonInvalidKey, nil)
	}
	if !cfg.Pin.IsZero() {
		return nil, fail(middleware.ReasonUntrustedState, errPin)
	}
	s := &SQLiteStore{key: cfg.Key}
	for _, place := range [...]struct {
		path   string
		to     *string
		reason middleware.Reason
	}{
		{cfg.Ledger, &s.files.ledger, middleware.ReasonUntrustedState},
		{cfg.Anchor, &s.files.anchor, middleware.ReasonInvalidAnchor},
	} {
		path, err := resolve(place.path)
		if err == nil {
			err = checkPlace(path)
		}
		if err != nil {
			return nil, fail(place.reason, err)
		}
		*place.to = path
	}
	if err := s.files.distinct(); err != nil {
		return nil, fail(middleware.ReasonInvalidAnchor, err)
	}

	return s, nil
}

// create makes both files, and returns what takes away those that this call
// made, and nothing else.
func (f files) create() (undo func(), err error) {
	var made []string
	undo = func() {
		for _, path := range made {
			_ = os.Remove(path)
			for _, side := range sideFiles {
				_ = os.Remove(path + side) // there was none before
			}
		}
	}
	// A journal that is left over would be played back into the new file.
	for _, path := range [...]string{f.ledger, f.anchor} {
		for _, side := range sideFiles {
			if _, err := os.Lstat(path + side); !isMissing(err) {
				return undo, fail(middleware.ReasonAlreadyInitialized, err)
			}
		}
	}
	for _, path := range [...]string{f.ledger, f.anchor} {
		file, err := createNew(path)
		if err != nil {
			return undo, err
		}
		made = append(made, path)
		if err := file.Close(); err != nil { // before SQLite opens it: closing later could drop its locks
			return undo, fail(middleware.ReasonStoreFailed, err)
		}
	}

	return undo, nil
}

// fill writes schema, first receipt and anchor in one transaction.
func (s *SQLiteStore) fill(ctx context.Context, first Receipt) error {
	before, err := s.files.check()
	if err != nil {
		return err
	}
	k, err := openBoth(ctx, s.files, accessWrite)
	if err != nil {
		return err
	}
	defer k.close()
	if err := k.syncExtra(ctx); err != nil {
		return err
	}
	for _, statement := range [...]string{
		"BEGIN IMMEDIATE",
		ledgerSchema,
		"CREATE TABLE anchor." + anchorSchema[len("CREATE TABLE "):],
	} {
		if err := k.exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := k.write(ctx, first, s.key); err != nil {
		return err
	}
	wait := defaultTransitionTimeout
	if err := k.commit(ctx, &wait); err != nil {
		return err
	}
	for _, path := range [...]string{s.files.ledger, s.files.anchor} {
		if err := syncFolder(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if now, err := s.files.check(); err != nil || !before.same(now) {
		return errReplaced
	}

	return nil
}
