// Package admission answers one question at every effect: may this workflow act
// now? Anything but a trustworthy yes is no.
//
//	key, err := admission.LoadKeyFile("/etc/refunds/interlock.key")
//	store, err := admission.OpenStore(ctx, admission.StoreConfig{Ledger: ledger, Anchor: anchor, Key: key, Pin: pin})
//	control, err := admission.New(admission.Config{Store: store})
//
//	// Around a tool, as the last layer before the effect; the run takes its preview when it starts:
//	chain := middleware.Chain(approval, control.Gate().Tool())
//	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: refunds, Previewer: control})
//	// Around anything else:
//	receipt, err := admission.Dispatch(ctx, control, preview, func(ctx context.Context) (string, error) { … })
//
// # Enabling and stopping
//
// Nothing may act until it is enabled, all workflows or one at a time: [New]
// without a store is disabled for good. [Controller.Stop] stops at once, in every
// process of the host that uses the store, and never fails because something is
// stopped already. Each transition raises one number, the generation. A
// [middleware.Preview] holds the generation and receipt that it was taken at, and
// any transition of any scope makes it stale: what a human approved before a stop
// does not happen after the next enable. Verdicts come in this order:
// untrusted_state or store_busy, admission_stopped, admission_disabled,
// stale_generation.
//
// An effect in flight is not recalled. It is counted before it is checked, and
// [Controller.Drain] waits for all that began before, in this process.
//
// # The store
//
// [Initialize] makes two SQLite files. The ledger holds signed receipts, each
// with the digest of the one before; the anchor says which is the last. One
// transaction writes both. The anchor belongs on storage that no restore of the
// ledger touches: then an old ledger, or an old anchor, is untrusted_state, and
// nothing in this package makes it trusted again. To begin anew, move both files
// away, make a new store and give its digest as Pin to every program; one key
// belongs to one store.
//
// Files, key and all folders above them must belong to this user or root and be
// closed to others; network and FUSE file systems are refused. [LoadKeyFile],
// [OpenStore] and [Initialize] say what exactly. On systems that are not Unix
// owners and modes are not verified, and only Linux can tell a file system.
//
// # Cost
//
// Every check opens both files anew and verifies all of both, so a check costs as
// much as the history is long: 0.5 ms and 615 allocations with 10 receipts
// (BenchmarkGate/sqlite-10; the gate itself, 0.2 µs and none, BenchmarkGate/memory).
// A transition costs 11 ms (BenchmarkTransition): it waits for the disk. On a busy
// machine of two cores either took twice to three times as long. The check goes by
// nothing that it has cached, so it misses nothing; a cheaper one that misses
// nothing either is what comes next.
//
// # Concurrency and failure
//
// [Controller], [Gate] and [SQLiteStore] are safe for concurrent use. No lock is
// held while an observer, a store or an effect is called, and no goroutine is
// started. A check waits for a locked store for at most 250 ms and is then refused
// with store_busy; a transition waits until its context is done, or 5 s.
//
// A refused effect is a [middleware.Denial], a failed operation a
// [middleware.Failure]; errors.Is finds the reasons that this package exports as
// Err…. None of their texts holds a path, a key or a word of the database; the
// cause is reached by Unwrap. A store or check that panics refuses. Nil and zero
// values of everything refuse.
//
// # What this does not do
//
// HMAC is symmetric: who can verify can sign. A process that runs as the same
// user can do all that this one can. Ledger and anchor (and key) restored together
// from one older moment are noticed only by processes that have seen more, or by
// a preview that is ahead. Roles are recorded as asserted. And a program that does
// not ask is not stopped.
package admission
