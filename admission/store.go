package admission

import (
	"context"

	"github.com/interlock-go/interlock/ident"
)

// Head is the last receipt of a store: its generation and its digest.
type Head struct {
	Generation uint64
	Digest     ident.Digest
}

// Entry is what is asked to be recorded.
type Entry struct {
	Scope  Scope
	State  State
	Role   Role
	Reason TransitionReason
	Time   int64 // Unix seconds
}

// Store keeps receipts, signed with a key that it holds. The controller holds
// what they amount to. Stores are safe for concurrent use; every error carries
// one of this package's reasons, and everything unknown is untrusted_state.
//
// [SQLiteStore] serves one host. A store for a fleet needs linearizable reads
// and a local memory of the highest generation that this host has seen.
type Store interface {
	// Head returns the last receipt as every process sees it now: a transition
	// that was committed before Head was called is in it. It proves that what is
	// stored can be trusted, or fails with untrusted_state. Beside that error it
	// returns the head that the store can still vouch for, if there is one, so
	// that going back is noticed later. A locked store is waited for, but not
	// longer than 250 ms: then store_busy.
	Head(ctx context.Context) (Head, error)
	// Receipts returns up to limit receipts after a generation, in order, their
	// signatures verified. The caller checks that they link up with a head.
	Receipts(ctx context.Context, after uint64, limit int) ([]Receipt, error)
	// Append records e as the receipt that follows after, and nothing if after
	// is not the head any more (stale_generation). For a stop it should be enough
	// that after is one of the receipts: then e follows the head of that moment,
	// and no number of other transitions can keep a stop out. When it returns nil
	// the receipt is durable. It waits for locks until ctx is done.
	Append(ctx context.Context, after Head, e Entry) (Receipt, error)
	// Close lets go of the store. It fails closed from then on.
	Close() error
}
