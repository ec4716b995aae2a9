package admission

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/ident"
)

// No reader of ours holds its locks for longer than one batch: a commit has to
// wait for it, and a stop is a commit.
const (
	batchRows = 1000
	batchTime = 50 * time.Millisecond
	// passes is how often a verification begins anew because something moved that
	// no transition moves.
	passes = 3
)

var (
	errFull  = errors.New("new receipts alone do not explain the change")
	errAgain = errors.New("the state has to be verified before the lock is taken")
)

// refresh returns the verified state of this moment: the last one, if nothing
// has changed since.
func (s *SQLiteStore) refresh(ctx context.Context, wait *time.Duration) (*snapshot, error) {
	if snap := s.last.Load(); snap != nil && s.detect.peek(snap) {
		return snap, nil
	}
	if err := s.acquire(ctx, wait); err != nil {
		return nil, err
	}
	defer s.release()

	return s.renew(ctx, wait)
}

// renew is refresh for the caller that holds the semaphore. A state that cannot
// be verified is forgotten: the next check begins at the first receipt.
func (s *SQLiteStore) renew(ctx context.Context, wait *time.Duration) (*snapshot, error) {
	var next *snapshot
	err := retry(ctx, wait, func() (err error) {
		next, err = s.verify(ctx)

		return err
	})
	switch {
	case err == nil:
		s.last.Store(next)
		s.background.arm(s.verifyAgain)
	case !isBusy(err):
		s.drop()
	}

	return next, err
}

// drop forgets the verified state and closes what it was read through.
func (s *SQLiteStore) drop() {
	s.last.Store(nil)
	s.session.close()
	s.session = nil
}

func (s *SQLiteStore) verify(ctx context.Context) (*snapshot, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	snap := s.last.Load()
	if snap != nil {
		// Another check may have verified it while this one waited.
		if same, err := s.detect.compare(ctx, snap); same && err == nil || isBusy(err) {
			return snap, err
		}
	}
	if _, err := s.files.check(); err != nil {
		return nil, err
	}
	if snap != nil {
		next, err := s.advance(ctx, snap)
		if err == nil || isBusy(err) {
			return next, err
		}
	}

	return s.reopen(ctx)
}

// advance verifies the receipts after snap, if they alone explain what changed;
// else it fails, and everything has to be verified.
func (s *SQLiteStore) advance(ctx context.Context, snap *snapshot) (next *snapshot, err error) {
	k := snap.session.conn
	err = k.reading(ctx, func() (err error) {
		if next, err = s.follow(ctx, k, snap); err == nil {
			next.version, err = k.dataVersion(ctx)
		}

		return err
	})
	if err == nil {
		s.seen(next.view.head)
	}

	return next, err
}

// follow is advance in a transaction of k.
func (s *SQLiteStore) follow(ctx context.Context, k *conn, snap *snapshot) (*snapshot, error) {
	mark := s.highest()
	anchor, err := k.anchorHead(ctx, "anchor.head", s.key)
	if err != nil {
		return nil, err
	}
	if anchor.Generation < snap.view.head.Generation || anchor.Generation-snap.view.head.Generation > batchRows {
		return nil, errFull
	}
	v := snap.view.clone()
	if _, err := s.receipts(ctx, k, v.head.Generation, batchRows, func(r Receipt, digest ident.Digest) (bool, error) {
		return true, s.apply(v, r, digest, mark)
	}); err != nil {
		return nil, err
	}
	// Both files are locked now, so what is in the headers is committed.
	now, err := s.observe(snap.session)
	if err != nil {
		return nil, err
	}
	if v.head != anchor || !reaches(v, mark) || !now.follows(&snap.moment, v.head.Generation-snap.view.head.Generation) {
		return nil, errFull
	}

	return &snapshot{moment: now, session: snap.session, view: v}, nil
}

// apply folds a receipt into v. On the way up v has to pass through what was
// seen before.
func (s *SQLiteStore) apply(v *view, r Receipt, digest ident.Digest, mark Head) error {
	if !v.fold(r, digest) {
		return errReceipt
	}
	if v.head.Generation == 1 && !s.pin.IsZero() && v.head.Digest != s.pin {
		return errPin
	}
	if v.head.Generation == mark.Generation && v.head != mark {
		return errBack
	}

	return nil
}

// reaches reports whether v is not less than what was seen before.
func reaches(v *view, mark Head) bool { return v.head.Generation >= mark.Generation }

// reopen verifies everything, on a new connection and new descriptors, and makes
// them the current ones.
func (s *SQLiteStore) reopen(ctx context.Context) (*snapshot, error) {
	n, err := s.openSession(ctx)
	if err != nil {
		return nil, err
	}
	p, err := s.verifyAll(ctx, n)
	if err != nil {
		n.close()

		return nil, err
	}
	s.session.close()
	s.session = n

	return p.done, nil
}

// verifyAll verifies both files from the first byte on: schema, journal mode,
// every receipt in its place, and last the anchor. It returns how far it came.
func (s *SQLiteStore) verifyAll(ctx context.Context, n *session) (p *pass, err error) {
	for range passes {
		p = &pass{s: s, n: n, view: new(view), mark: s.highest()}
		if err = p.run(ctx); err == nil {
			s.seen(p.view.head)
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}

	return p, err
}

// pass is one way through a ledger, in batches. Between two of them others may
// commit: transitions are followed, anything else is errMoved.
type pass struct {
	s     *SQLiteStore
	n     *session
	view  *view
	mark  Head
	begun bool
	first moment // when the pass began
	start uint64 // the generation of the anchor then
	bad   uint64 // the first receipt that is missing or wrong
	done  *snapshot
}

// run waits for a locked store before each batch anew: it comes nearer to its
// end with each, and a busy writer should not be able to keep it from that.
func (p *pass) run(ctx context.Context) error {
	for p.done == nil {
		wait := readTimeout
		err := retry(ctx, &wait, func() error {
			if err := p.s.usable(); err != nil {
				return err
			}

			return p.n.conn.reading(ctx, func() error { return p.batch(ctx) })
		})
		if err != nil {
			return err
		}
	}

	return nil
}

func (p *pass) batch(ctx context.Context) error {
	k := p.n.conn
	for _, table := range [...][3]string{{"anchor", "head", anchorSchema}, {"main", "receipts", ledgerSchema}} {
		if err := k.checkSchema(ctx, table[0], table[1], table[2]); err != nil {
			return err
		}
	}
	anchor, err := k.anchorHead(ctx, "anchor.head", p.s.key)
	if err != nil {
		return err
	}
	now, err := p.s.observe(p.n) // under the locks of both files
	if err != nil {
		return err
	}
	if !p.begun {
		p.begun, p.first, p.start = true, now, anchor.Generation
	}
	if anchor.Generation < p.start || !now.follows(&p.first, anchor.Generation-p.start) {
		return errMoved
	}
	began := time.Now()
	n, err := p.s.receipts(ctx, k, p.view.head.Generation, batchRows, func(r Receipt, digest ident.Digest) (bool, error) {
		err := p.s.apply(p.view, r, digest, p.mark)

		return time.Since(began) < batchTime, err
	})
	if err != nil {
		p.bad = p.view.head.Generation
		if !errors.Is(err, errPin) && !errors.Is(err, errBack) {
			p.bad++ // it is not in the view
		}

		return err
	}
	if n == batchRows || time.Since(began) >= batchTime {
		return nil
	}

	return p.end(ctx, anchor, &now)
}

// end compares what all receipts amount to with the anchor, in the transaction
// of the last batch.
func (p *pass) end(ctx context.Context, anchor Head, under *moment) error {
	if p.view.head != anchor {
		p.bad = blame(p.view.head, anchor)

		return errAnchor
	}
	if !reaches(p.view, p.mark) {
		return errBack
	}
	// Where another part of the program closes a descriptor of its own, and locks
	// are POSIX ones, they are lost without a word: so look once more.
	now, err := p.s.observe(p.n)
	if err != nil {
		return err
	}
	if !now.same(under) {
		return errMoved
	}
	version, err := p.n.conn.dataVersion(ctx)
	if err != nil {
		return err
	}
	p.done = &snapshot{moment: now, session: p.n, view: p.view, version: version}

	return nil
}
