package escalation

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// MaxQueueHandoffs bounds how many handoffs of one file [Queue.List] keeps track
// of, about 160 bytes each; more is queue_full. Move the file away long before
// (a new one begins with the next handoff). Get and Decide have no such bound.
const MaxQueueHandoffs = 1 << 18

// What errors of a [Queue] are asked about with errors.Is.
var (
	ErrUnknownHandoff  error = middleware.ReasonUnknownHandoff
	ErrHandoffDecided  error = middleware.ReasonHandoffDecided
	ErrInvalidDecision error = middleware.ReasonInvalidDecision
	ErrInvalidLabel    error = middleware.ReasonInvalidLabel
	ErrQueueUnreadable error = middleware.ReasonQueueUnreadable
	ErrQueueBusy       error = middleware.ReasonQueueBusy
	ErrQueueFull       error = middleware.ReasonQueueFull
	ErrQueueFailed     error = middleware.ReasonQueueFailed
)

// QueueConfig says where the queue is.
type QueueConfig struct {
	// Path of the file that a [FileSink] writes. Required; it has to exist.
	Path string
	// LockTimeout bounds how long a call waits while others write. Default 0: 5 s.
	LockTimeout time.Duration
	// Now is the clock that tells what is expired. Default nil: time.Now.
	Now func() time.Time
}

// Queue reads what a [FileSink] wrote, and appends what reviewers decided. The
// file is the whole state; nothing is ever changed or removed in it:
//
//	{"evidence":[],…}     a [Handoff], by the sink
//	{"decided_at":…}      a [Review] of a handoff that stands before it, by [Queue.Decide]
//
// A handoff is named by its digest ([Handoff.Digest]); a run may have two, of
// the escalation breaker and of the action breaker. One that was delivered twice
// is one. Its first valid review counts:
//
//	waiting → decided   Decide, once, before the expiry
//	waiting → expired   30 minutes after it was issued; it can no more be decided
//
// A review is a record for people. Nothing in this module reads it to permit
// anything: no run goes on, no effect is approved and no breaker closes by it.
//
// The file is opened for each call with the checks of the sink: no symbolic
// link, a regular file of this user, mode 0600. It is read line by line, in
// bounded memory; each line is parsed strictly. A line that is no record, or a
// review that does not count, is damage: it is reported by number and code, and
// the lines around it are read. An end of the file without a newline, which a
// crash or a full disk leaves behind, is reported as cut; the next line that is
// appended, here or by the sink, ends it first. Appending is done under the
// sink's exclusive lock of the file, as one write, on disk before it returns;
// several processes lose nothing, and of several that decide one wins.
//
// It is safe for concurrent use and starts no goroutine. Errors carry codes
// alone: queue_unreadable (missing, or refused by the checks), queue_busy (the
// lock was not to be had in time, or the context ended), queue_failed (reading
// or writing), unknown_handoff, handoff_decided, handoff_expired,
// handoff_not_yet_valid, invalid_decision, invalid_label, invalid_timestamp,
// queue_full.
type Queue struct {
	path     string
	now      func() time.Time
	patience time.Duration
	limit    int           // MaxQueueHandoffs
	turn     chan struct{} // one at a time in this process, so that few poll the lock

	mu      sync.Mutex
	known   bool    // whether the last reading succeeded
	waiting []int64 // when each handoff that waited then expires, sorted
}

var _ middleware.GaugeSource = (*Queue)(nil)

// NewQueue returns the queue of a file, which it opens once to find out early
// what would fail later: that is queue_unreadable. A field out of
// bounds is a [ConfigError].
func NewQueue(cfg QueueConfig) (*Queue, error) {
	if cfg.Path == "" {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "Path", bound: "set"}
	}
	if cfg.LockTimeout < 0 {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "LockTimeout", bound: "at least 0"}
	}
	if cfg.LockTimeout == 0 {
		cfg.LockTimeout = lockLimit
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	abs, err := filepath.Abs(cfg.Path) // a later chdir does not move it
	if err != nil {
		return nil, failure(middleware.ReasonQueueUnreadable, err)
	}
	q := &Queue{path: abs, now: cfg.Now, patience: cfg.LockTimeout, limit: MaxQueueHandoffs, turn: make(chan struct{}, 1)}
	f, err := q.open(openRead)
	if err != nil {
		return nil, err
	}
	_ = f.Close()

	return q, nil
}

// List reads the file and gives yield every handoff, in the order in which they
// were delivered; afterwards it returns what the file holds altogether. A nil
// yield is for the report alone. yield is called outside of all locks; an error
// of its own ends List, which returns it as it is.
//
// List also brings the count of [Queue.Gauges] up to date: call it from time to
// time where alerts look at that.
func (q *Queue) List(ctx context.Context, yield func(QueueEntry) error) (QueueReport, error) {
	x, err := q.list(ctx, yield)
	if q != nil {
		q.remember(x)
	}
	if x == nil {
		return QueueReport{}, err
	}

	return x.report, err
}

// list returns nil for an index that is not that of the whole file.
func (q *Queue) list(ctx context.Context, yield func(QueueEntry) error) (*queueIndex, error) {
	f, err := q.open(openRead)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := q.clock()
	if err != nil {
		return nil, err
	}
	size, err := q.wholeSize(ctx, f)
	if err != nil {
		return nil, err
	}
	x := newQueueIndex(now, q.limit)
	if _, err := eachLine(ctx, f, 0, size, x.add); err != nil {
		return nil, err
	}
	x.count()
	if yield == nil {
		return x, nil
	}
	_, err = eachLine(ctx, f, 0, size, func(l queueLine) error {
		if e, ok := x.entry(l); ok {
			return yield(e)
		}

		return nil
	})

	return x, err
}

// Get returns one handoff with its state. It fails with unknown_handoff if none
// of the file has this digest.
func (q *Queue) Get(ctx context.Context, id ident.Digest) (QueueEntry, error) {
	f, err := q.open(openRead)
	if err != nil {
		return QueueEntry{}, err
	}
	defer f.Close()
	now, err := q.clock()
	if err != nil {
		return QueueEntry{}, err
	}
	size, err := q.wholeSize(ctx, f)
	if err != nil {
		return QueueEntry{}, err
	}
	s := newQueueSearch(id)
	if _, err := eachLine(ctx, f, 0, size, s.add); err != nil {
		return QueueEntry{}, err
	}
	if s.handoff.IsZero() {
		return QueueEntry{}, failure(middleware.ReasonUnknownHandoff)
	}

	return newQueueEntry(id, s.handoff, s.review, now), nil
}

// Decide appends a review and returns it. It has to be a decision that the
// handoff offers ([ReviewDecision.Fits]); reviewer is who is on record: a desk or
// a role, better than a person. The handoff has to wait; under the lock that is
// certain, also among processes.
//
// After queue_failed the record may be there or not: Get tells.
func (q *Queue) Decide(ctx context.Context, id ident.Digest, decision ReviewDecision, reviewer ident.Label) (Review, error) {
	if !decision.valid() {
		return Review{}, failure(middleware.ReasonInvalidDecision)
	}
	if !validReviewer(reviewer) {
		return Review{}, failure(middleware.ReasonInvalidLabel)
	}
	f, err := q.open(openDecide)
	if err != nil {
		return Review{}, err
	}
	defer f.Close() // closing also gives the lock back
	size, err := fileSize(f)
	if err != nil {
		return Review{}, err
	}
	// What is there already is read without the lock, which sinks wait for.
	s := newQueueSearch(id)
	whole, err := eachLine(ctx, f, 0, size, s.add)
	if err != nil {
		return Review{}, err
	}
	release, err := q.lock(ctx, f, lockExclusive)
	if err != nil {
		return Review{}, err
	}
	defer release()
	if size, err = fileSize(f); err != nil {
		return Review{}, err
	}
	if _, err := eachLine(ctx, f, whole, size, s.add); err != nil {
		return Review{}, err
	}
	now, err := q.clock()
	if err != nil {
		return Review{}, err
	}
	r := Review{handoff: id, decision: decision, decided: now, reviewer: reviewer}
	if reason := s.refuses(r); reason != 0 {
		return Review{}, failure(reason)
	}

	return r, q.append(f, r)
}

func (q *Queue) append(f *os.File, r Review) error {
	line, err := r.MarshalJSON()
	if err != nil {
		return err
	}
	if err := appendLine(f, q.path, append(line, '\n')); err != nil {
		return failure(middleware.ReasonQueueFailed, err)
	}

	return nil
}

// Gauges returns how many of the handoffs that the last List found are still
// waiting: not decided then, and not expired now. It does no I/O. If the last
// List failed, and before the first one, there is no reading: an alert on its
// absence sees that.
func (q *Queue) Gauges() []middleware.Gauge {
	if q == nil {
		return nil
	}
	now, err := q.clock()
	if err != nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.known {
		return nil
	}
	expired, _ := slices.BinarySearch(q.waiting, now.Unix()+1) // those at or before now

	return []middleware.Gauge{{Kind: middleware.GaugeQueue, Value: float64(len(q.waiting) - expired)}}
}

// Format prints the type for every verb and flag: a path may tell something.
func (q *Queue) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "escalation.Queue") }

func (q *Queue) remember(x *queueIndex) {
	var waiting []int64
	if x != nil {
		waiting = x.waiting()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.known, q.waiting = x != nil, waiting
}

func (q *Queue) open(flag int) (*os.File, error) {
	if q == nil {
		return nil, failure(middleware.ReasonQueueUnreadable)
	}
	f, err := openHandoffs(q.path, flag)
	if err != nil {
		return nil, failure(middleware.ReasonQueueUnreadable, err)
	}

	return f, nil
}

// clock returns the time as records keep it. A clock that panics is none.
func (q *Queue) clock() (now time.Time, err error) {
	defer func() {
		if v := recover(); v != nil {
			now, err = time.Time{}, failure(middleware.ReasonInvalidTimestamp, middleware.NewPanicError(v, nil))
		}
	}()
	now, ok := issueTime(q.now().UTC().Truncate(time.Second))
	if !ok {
		return time.Time{}, failure(middleware.ReasonInvalidTimestamp)
	}

	return now, nil
}

// lock waits for its turn and the lock of f until ctx is done, and at most as
// long as it is configured.
func (q *Queue) lock(ctx context.Context, f *os.File, how lockKind) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	if err := takeTurn(ctx, q.turn); err != nil {
		return nil, failure(middleware.ReasonQueueBusy, err)
	}
	if err := lockFile(ctx, f, how); err != nil {
		<-q.turn
		reason := middleware.ReasonQueueFailed
		if ctx.Err() != nil {
			reason = middleware.ReasonQueueBusy
		}

		return nil, failure(reason, err)
	}

	return func() {
		_ = unlock(f) // else closing does
		<-q.turn
	}, nil
}

// wholeSize returns how long f is while nobody writes: up to there no line is
// half written, and what is written once stays as it is.
func (q *Queue) wholeSize(ctx context.Context, f *os.File) (int64, error) {
	release, err := q.lock(ctx, f, lockShared)
	if err != nil {
		return 0, err
	}
	defer release()

	return fileSize(f)
}

func fileSize(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, failure(middleware.ReasonQueueFailed, err)
	}

	return info.Size(), nil
}
