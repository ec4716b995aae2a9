package fallback

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// maxAttempts is how many attempts belong to a call, over retries and candidates.
const maxAttempts = 6

// timing is what the specification fixes. Tests scale it, all of it by one factor, so that the ratios stay.
type timing struct {
	short, long    time.Duration // benches
	first, longest time.Duration // backoff
	second         time.Duration // a tenth of the window of the retry share
}

func specified() timing {
	return timing{
		short: 30 * time.Second, long: 10 * time.Minute,
		first: 250 * time.Millisecond, longest: 8 * time.Second,
		second: time.Second,
	}
}

// again is the wish to ask the same candidate again, after a wait. The zero value is none.
type again struct {
	wanted bool
	wait   time.Duration
}

// wish says whether the class of a failure permits to ask its candidate again, and after which wait. The bench has the last word:
// see settle.
func (w *walk) wish(ctx context.Context, e *ended) again {
	limit := classTable[e.class].again
	if w.m.cfg.NoRetry || e.denied || e.chunks > 0 || w.again >= limit || w.number+w.unasked() >= maxAttempts {
		return again{}
	}
	if w.backoff == nil {
		w.backoff = &backoff.ExponentialBackOff{
			InitialInterval: w.m.timing.first, Multiplier: 2, MaxInterval: w.m.timing.longest,
		}
		w.backoff.Reset()
	}
	step := w.backoff.NextBackOff() // of the schedule; the jitter is full, and ours
	wait := e.retryAfter + time.Duration(w.m.random()*float64(step))
	if wait > w.patience() || !fits(ctx, wait) {
		return again{}
	}

	return again{wanted: true, wait: wait}
}

// patience is how long a call waits for a candidate that has said when to come again: not longer than the longest
// backoff if somebody else can be asked at once, else as long as an attempt may take.
func (w *walk) patience() time.Duration {
	if w.unasked() > 0 || w.m.limits.whole == NoLimit {
		return w.m.timing.longest
	}

	return max(w.m.timing.longest, w.m.limits.whole)
}

// unasked counts the candidates further down that can take the call: an attempt is kept for each.
func (w *walk) unasked() (n int) {
	for _, c := range w.m.candidates[w.next:] {
		if w.unfit(c) == 0 {
			n++
		}
	}

	return n
}

// fits reports whether a wait ends before the caller's deadline.
func fits(ctx context.Context, wait time.Duration) bool {
	at, ok := ctx.Deadline()

	return !ok || time.Until(at) > wait
}

// random returns a number of [0, 1). A source of the caller that fails is not asked again in this place.
func (m *Model) random() (r float64) {
	if m.cfg.Rand == nil {
		return rand.Float64() //nolint:gosec // jitter is no secret
	}
	defer func() {
		if recover() != nil || !(r >= 0 && r < 1) {
			r = rand.Float64() //nolint:gosec // as above
		}
	}()

	return m.cfg.Rand()
}

// pause waits before the same candidate is asked again.
func (w *walk) pause(ctx context.Context, c *candidate, wait time.Duration) error {
	w.m.reportRetry(ctx, c, w.number, w.last.Class(), wait)
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	if ctx.Err() != nil {
		return middleware.NewCanceled(ctx, middleware.ComponentFallback, ident.Label{}, w.last)
	}

	return nil
}

const (
	freeRetries = 10 // in the window, whatever the number of calls
	callsPerOne = 5  // 20 %
	slots       = 11 // ten for the calls, one more for the retries: neither count is ever too kind
)

// share bounds the retries of the last ten seconds by the calls of the last ten seconds. It is kept under the model's
// lock.
type share struct {
	newest  int64 // slot of the clock
	calls   [slots]int
	retries [slots]int
}

// turn makes the slot of now the newest one, and forgets what is too old. A clock that goes back stays where it is.
func (s *share) turn(now time.Time, second time.Duration) int {
	slot := now.UnixNano() / int64(second)
	if ahead := slot - s.newest; ahead > 0 {
		for i := range min(ahead, slots) {
			s.calls[(slot-i)%slots], s.retries[(slot-i)%slots] = 0, 0
		}
		s.newest = slot
	}

	return int(((s.newest % slots) + slots) % slots)
}

func (s *share) call(now time.Time, second time.Duration) { s.calls[s.turn(now, second)]++ }

// retry takes a retry, if the share has one left.
func (s *share) retry(now time.Time, second time.Duration) bool {
	at := s.turn(now, second)
	calls, retries := 0, 0
	for i := range slots {
		retries += s.retries[i]
		if i != (at+1)%slots { // the oldest
			calls += s.calls[i]
		}
	}
	if retries >= freeRetries+calls/callsPerOne {
		return false
	}
	s.retries[at]++

	return true
}
