// Package admission answers one question at every effect: may this workflow act
// now? Anything but a trustworthy yes is no.
//
//	key, err := admission.LoadKeyFile("/etc/refunds/interlock.key")
//	store, err := admission.OpenStore(ctx, admission.StoreConfig{Ledger: ledger, Anchor: anchor, Key: key, Pin: pin})
//	control, err := admission.New(admission.Config{Store: store})
//
//	// Around a tool, as the last layers before the effect; the run takes its preview when it starts:
//	chain := middleware.Chain(control.Approvals().Tool(), control.Gate().Tool())
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
// # Approval
//
// With [Config].Approver an effect needs an approval too. It is asked for at each
// attempt, outside of the gate, while the call's stall clock stands still; it is
// bound to tool, input and preview, good for one passage of the gate, and the
// gate looks at it immediately before the effect. A refusal of the gate has spent
// it. [MemoryApprover] is a ready-made approver: humans decide by ticket.
//
// # Provisioning
//
// As the user that the agents run as (or root):
//
//	interlock keygen            32 random bytes, mode 0600
//	interlock init              both files, everything disabled; prints the digest of the first receipt
//	interlock resume            enable, when the agents may begin
//
// with INTERLOCK_STATE, INTERLOCK_ANCHOR and INTERLOCK_KEY_FILE. Give the digest
// that init printed to every program as Pin (INTERLOCK_PIN): then a store that
// somebody deleted and made anew is refused. The ledger holds signed receipts,
// each with the digest of the one before; the anchor says which is the last; one
// transaction writes both.
//
// The anchor belongs where no restore of the ledger reaches: another volume,
// outside of the backup that holds the ledger. Then an old ledger, or an old
// anchor, is untrusted_state. Both on one volume, restored by one snapshot, go
// back together unnoticed. Back up the ledger for the record, not to restore it.
//
// Files, key and all folders above them must belong to this user or root and be
// closed to others; the folder itself may not be a shared one; network and FUSE
// file systems are refused. [LoadKeyFile], [OpenStore] and [Initialize] say what
// exactly. On systems that are not Unix owners and modes are not verified, and
// only Linux can tell a file system. Nothing but this package should open the
// ledger: a copy can be looked at with any SQLite.
//
// # The key
//
// HMAC is symmetric: who can verify can sign. Every process that checks holds the
// key, so whoever runs as the agents' user, or reads its memory, can forge
// receipts. The key shows tampering by everybody else: a restore, a disk, another
// user. It belongs in the secret store of the host (a mounted secret is fine),
// in no backup that holds ledger or anchor, and to one store only. It is not
// rotated in place: stop, move both files away, make a new key and a new store,
// give out the new pin. The old files verify with the old key (interlock verify).
//
// # An emergency stop
//
// Practise it, on a day on which nothing burns:
//
//	interlock stop                    exit 0: every check that begins now, in any process of the host, refuses
//	interlock status                  admission_stopped
//	                                  in each process: Controller.Drain waits for what is in flight
//	interlock resume                  a fresh act: previews and approvals from before stay stale
//
// Exit 1 with store_busy: somebody holds the ledger locked (a backup, a shell, a
// stopped process), nothing was recorded, and admission may still be open. Then:
//
//	interlock stop --force            renames the anchor; no lock prevents that. untrusted_state, exit 0
//
// With store_failed (a full disk) move the anchor away by hand, which does the
// same. It stops every scope. To undo it, find and end who held the lock, move the file
// that ends in .stopped back to the anchor's name, and stop or resume as usual.
// Other hosts, and programs that do not ask, are stopped by nothing of this.
//
// # Recovery from untrusted_state
//
// No command mends it, and nothing is admitted meanwhile. Look first:
//
//	interlock verify                  first_bad_generation, where a receipt is to blame
//
// A file missing or replaced: put the newest one back; a check compares it with
// all that the running processes have seen. A mode, an owner, a folder: mend
// that. A forced stop: see above. A hot journal seen by an [OpenChecker]: any
// writer, also interlock status, brings the commit to its end. Anything else is
// tampering or a broken disk: keep copies of both files, move them away, find out
// why, and make a new store with a new key and pin. Everything is disabled then,
// and every preview and approval void.
//
// # Cost
//
// A check costs what its four system calls cost (one stat and one read for each
// file), and a tenth more; 8 µs where these take 7, no allocation, and the same
// with 10 and with 100,000 receipts (BenchmarkStrictCheck; the rest of the gate,
// 0.3 µs, BenchmarkGate/memory). Opening and verifying everything each time would
// take 0.5 ms with 10 receipts and seconds with 100,000 (BenchmarkOtherChecks).
// After a transition the next check verifies what is new (BenchmarkSlowPath). All
// receipts are verified at the first check and again every ten minutes, in
// batches (BenchmarkStart). On systems other than 64-bit Linux a check asks
// SQLite for its data_version instead: as strict, and some ten times as dear. A
// transition waits for the disk: 11 ms on an idle one (BenchmarkTransition).
//
// What is seen when: whatever goes through SQLite, moves a file's size or times,
// or puts another file in its place, at the next check. Bytes that are changed
// below the file system, at the next verification of all receipts. A folder above
// the files that was opened to others: at the next transition or verification.
// Kernels before 6.13 give all changes of one tick (some 4 ms) the same time: two
// writes to a file within it, of which the second goes past SQLite and keeps the
// size, look like one until the next verification.
//
// # Concurrency and failure
//
// [Controller], [Gate] and [SQLiteStore] are safe for concurrent use. No lock is
// held while an observer, an approver, a store or an effect is called. A store
// that has been read verifies itself in the background, until it is closed. A
// check waits for a locked store for at most 250 ms and is then refused
// with store_busy; a transition waits until its context is done, or 5 s.
//
// A refused effect is a [middleware.Denial], a failed operation a
// [middleware.Failure]; errors.Is finds the reasons that this package exports as
// Err…. None of their texts holds a path, a key or a word of the database; the
// cause is reached by Unwrap. A store or check that panics refuses. Nil and zero
// values of everything refuse.
//
// # What is not protected
//
// A process that runs as the same user can do all that this one can. Ledger and
// anchor (and key) restored together from one older moment are noticed only by
// processes that have seen more, or by a preview that is ahead. Roles are recorded
// as asserted. A program that does not ask is not stopped, and neither is another
// host: the SQLite store serves one. An effect that has begun is not recalled.
package admission
