package admission

import (
	"context"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Verification is what [Verify] found.
type Verification struct {
	// Head of a store that stood the test; zero else.
	Head Head
	// First is the digest of the first receipt, which a configuration can pin;
	// zero if that receipt itself is missing or not signed with the key.
	First ident.Digest
	// FirstBad is the generation of the first receipt that is missing, or may not
	// stand where it stands. Zero if no receipt is to blame, but the places of the
	// files, their schema or the anchor, or if there is nothing to blame.
	FirstBad uint64
}

// Verify verifies a store from the first receipt on, whatever was verified
// before, in batches between which others may commit. Of a [SQLiteStore] it
// verifies both files. Errors are untrusted_state, store_busy and canceled.
func Verify(ctx context.Context, s Store) (v Verification, err error) {
	defer containStore(&err)
	files, ok := s.(*SQLiteStore)
	if s == nil || ok && files == nil {
		return v, fail(middleware.ReasonNotConfigured, nil)
	}
	if !ok {
		return verifyStore(ctx, s)
	}
	if err := files.usable(); err != nil {
		return v, err
	}
	v, err = files.verification(ctx)
	switch {
	case err == nil:
		return v, nil
	case isBusy(err):
		return Verification{}, fail(middleware.ReasonStoreBusy, err)
	case ctx.Err() != nil:
		return Verification{}, canceled(ctx)
	}

	return v, fail(middleware.ReasonUntrustedState, err)
}

func (s *SQLiteStore) verification(ctx context.Context) (v Verification, err error) {
	if s.broken != nil {
		return v, s.broken
	}
	n, err := s.openSession(ctx)
	if err != nil {
		return v, err
	}
	defer n.close()
	p, err := s.verifyAll(ctx, n)
	v.First, v.FirstBad = p.view.first, p.bad
	if err == nil {
		v.Head = p.view.head
	}

	return v, err
}

// verifyStore follows the receipts of any store up to its head.
func verifyStore(ctx context.Context, s Store) (v Verification, err error) {
	head, err := s.Head(ctx)
	if err != nil {
		return v, err
	}
	state := new(view)
	for state.head.Generation < head.Generation {
		page, err := s.Receipts(ctx, state.head.Generation, pageSize)
		if err != nil {
			return v, err
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page[:min(uint64(len(page)), head.Generation-state.head.Generation)] {
			if !state.apply(r) {
				return Verification{First: state.first, FirstBad: state.head.Generation + 1}, fail(middleware.ReasonUntrustedState, nil)
			}
		}
	}
	if state.head != head {
		return Verification{First: state.first, FirstBad: blame(state.head, head)}, fail(middleware.ReasonUntrustedState, errAnchor)
	}

	return Verification{Head: head, First: state.first}, nil
}

// blame returns which receipt is missing, is too many or is another one, where
// the last receipt and what should be the last one differ.
func blame(last, want Head) uint64 {
	if last.Generation == want.Generation {
		return last.Generation
	}

	return min(last.Generation, want.Generation) + 1
}
