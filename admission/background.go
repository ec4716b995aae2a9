package admission

import (
	"context"
	"sync"
	"time"
)

// verifyEvery is how often the receipts are all verified again: a change of an
// old one that moved neither a counter nor a time is found by that.
const verifyEvery = 10 * time.Minute

// background is one timer that belongs to a store. Between two runs there is no
// goroutine.
type background struct {
	mu      sync.Mutex
	timer   *time.Timer
	closed  bool
	running sync.WaitGroup
}

// arm starts the timer, once.
func (b *background) arm(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.timer != nil {
		return
	}
	b.timer = time.AfterFunc(verifyEvery, func() { b.run(f) })
}

func (b *background) run(f func()) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()

		return
	}
	b.running.Add(1)
	b.mu.Unlock()
	defer b.running.Done()
	f()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.timer.Reset(verifyEvery)
	}
}

// close stops the timer, and waits for a run.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	b.mu.Unlock()
	b.running.Wait()
}

// verifyAgain verifies everything on a connection of its own, beside the checks.
// If that fails, what was verified before counts for nothing, and the next check
// begins at the first receipt. A store that is busy is left to the next time.
func (s *SQLiteStore) verifyAgain() {
	ctx := context.Background()
	n, err := s.openSession(ctx)
	if err == nil {
		_, err = s.verifyAll(ctx, n)
		n.close()
	}
	if err == nil || isBusy(err) {
		return
	}
	s.verifier <- struct{}{}
	defer s.release()
	s.drop()
}
