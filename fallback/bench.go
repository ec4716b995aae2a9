package fallback

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/interlock-go/interlock/middleware"
)

// bench is the state of one candidate, under the model's lock.
//
//	state     | holds                          | a call
//	available | not benched                    | asks it
//	benched   | benched, before until          | skips it; probes it only if nobody else can be asked
//	half-open | benched, after until           | probes it, one call at a time; the others skip it
//
//	event on the way out of an attempt   | from any state
//	success                              | available
//	failure of a class that benches      | benched
//	anything else                        | as it was
//
// An attempt that began before the last change is old news: it changes nothing, but may lengthen a bench.
//
// Beside it, a breaker counts the failures in a row over all calls: a failure that is retried does not bench, but the
// third in a row does, and where nobody is benched (a single candidate) it ends the retries. The breaker says *that*, the
// bench says *when*: its own timeout is over at once, so that it admits one trial whenever the bench lets one through.
// While nothing has failed since the last success, its permits would say nothing and are not taken.
type bench struct {
	gen     uint64 // counts changes
	benched bool
	until   time.Time
	probe   *probe // in flight

	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	failing bool // the breaker has counted a failure since the last success
}

// breakAfter is how many failures in a row open a breaker.
const breakAfter = 3

// What a breaker is told of an attempt.
var (
	errFailed    = errors.New("interlock: fallback: failed")
	errUndecided = errors.New("interlock: fallback: undecided")
)

func newBench() bench {
	return bench{breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     1, // of a nanosecond
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakAfter },
		IsExcluded:  func(err error) bool { return errors.Is(err, errUndecided) },
	})}
}

// allow takes a permit of the breaker, nil if it has none to give.
func (b *bench) allow() func(error) {
	permit, err := b.breaker.Allow()
	if err != nil {
		return nil
	}

	return permit
}

// count tells the breaker how an attempt ended, and reports whether it is open now.
func (b *bench) count(t ticket, r probeResult) (open bool) {
	if t.permit == nil && t.gen == b.gen && (r == probeFailed || (r == probeSucceeded && b.failing)) {
		t.permit = b.allow()
	}
	if t.permit == nil {
		return b.failing && b.breaker.State() != gobreaker.StateClosed
	}
	switch r {
	case probeSucceeded:
		t.permit(nil)
	case probeFailed:
		b.failing = true
		t.permit(errFailed)
	default:
		t.permit(errUndecided)
	}
	open = b.breaker.State() != gobreaker.StateClosed
	if r == probeSucceeded && !open {
		b.failing = false
	}

	return open
}

// probe is an attempt that others wait for. Its result is written before done is closed.
type probe struct {
	done   chan struct{}
	result probeResult
	class  Class
	status int
}

type probeResult uint8

const (
	probeUndecided probeResult = iota // says nothing of the candidate: its caller left, or the request was at fault
	probeSucceeded
	probeFailed
)

// ticket is the right to ask one candidate. It is given back by settle.
type ticket struct {
	index  int
	gen    uint64
	probe  *probe
	permit func(error) // of the breaker, nil if it has nothing to say
}

// change of a candidate's state, to be reported after unlock.
type change struct {
	seq    uint64
	index  int
	state  middleware.CircuitState
	reason middleware.Reason
}

func (b *bench) circuit(now time.Time) middleware.CircuitState {
	switch {
	case !b.benched:
		return middleware.CircuitClosed
	case b.probe == nil && now.Before(b.until):
		return middleware.CircuitOpen
	default:
		return middleware.CircuitHalfOpen
	}
}

// free reports whether a call may ask the candidate now, as its probe or because it is not benched.
func (b *bench) free(now time.Time) bool {
	return !b.benched || (b.probe == nil && !now.Before(b.until))
}

// takeLocked gives out a ticket; a candidate that is benched is probed by it.
func (m *Model) takeLocked(index int) (ticket, *change) {
	b := &m.benches[index]
	t := ticket{index: index, gen: b.gen}
	if b.failing || b.benched {
		t.permit = b.allow()
	}
	if !b.benched {
		return t, nil
	}
	b.probe = &probe{done: make(chan struct{})}
	t.probe = b.probe

	return t, m.changeLocked(index, middleware.CircuitHalfOpen, middleware.ReasonProbe)
}

// retake gives out a ticket for asking a candidate again, unless it was benched meanwhile.
func (m *Model) retake(index int) (ticket, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.benches[index].benched {
		return ticket{}, false
	}
	t, _ := m.takeLocked(index)

	return t, true
}

// verdict is what an attempt says of its candidate.
type verdict struct {
	result probeResult
	class  Class
	status int
	bench  time.Duration // 0: never
	again  bool          // the caller would rather ask it again
}

// settle ends an attempt: it applies the verdict and, if it was a probe, lets the waiting calls go on. It says whether
// the candidate may be asked again: not after a probe, not when its breaker opens, and not past the share of retries.
func (m *Model) settle(t ticket, v verdict) (out *change, again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &m.benches[t.index]
	if v.result == probeSucceeded && !b.benched && !b.failing && t.permit == nil && t.probe == nil {
		return nil, false // as nearly always
	}
	now := m.cfg.Now()
	open := b.count(t, v.result)
	v.again = v.again && t.probe == nil && !b.benched && !open
	switch {
	case v.again && m.share.retry(now, m.timing.second):
		return nil, true
	case v.result == probeSucceeded && t.gen == b.gen && b.benched:
		b.gen++
		b.benched, b.until = false, time.Time{}
		out = m.changeLocked(t.index, middleware.CircuitClosed, middleware.ReasonRecovered)
	case v.result == probeFailed && v.bench > 0 && t.gen == b.gen:
		b.gen++
		b.benched, b.until = true, now.Add(v.bench)
		out = m.changeLocked(t.index, middleware.CircuitOpen, v.class.Reason())
	case v.result == probeFailed && v.bench > 0 && b.benched && now.Add(v.bench).After(b.until):
		b.until = now.Add(v.bench)
	case t.probe != nil && t.gen == b.gen && now.Before(b.until):
		out = m.changeLocked(t.index, middleware.CircuitOpen, v.class.Reason())
	}
	if t.probe != nil {
		t.probe.result, t.probe.class, t.probe.status = v.result, v.class, v.status
		close(t.probe.done)
		if b.probe == t.probe {
			b.probe = nil
		}
	}

	return out, false
}

func (m *Model) changeLocked(index int, s middleware.CircuitState, r middleware.Reason) *change {
	if m.cfg.Observer == nil {
		return nil
	}

	return &change{seq: m.seq.Add(1), index: index, state: s, reason: r}
}

// benchFor returns how long a failure of candidate index keeps calls away from it; 0: not at all.
func (m *Model) benchFor(index int, c Class, retryAfter time.Duration) time.Duration {
	last := len(m.candidates) - 1
	switch {
	case !m.blames(c), last == 0, m.cfg.Pinned && index == last:
		return 0
	case m.cfg.Pinned:
		return forever
	case classTable[c].bench == benchLong:
		return m.timing.long
	default:
		return max(m.timing.short, min(retryAfter, m.timing.long))
	}
}

// blames reports whether a failure of this class says something about the candidate.
func (m *Model) blames(c Class) bool {
	row := &classTable[c]

	return row.bench != benchNever && (row.move != moveAuth || m.cfg.OnAuth == AuthNext)
}

// forever is longer than any process runs, and far from an overflow of time.Time.
const forever = 100 * 365 * 24 * time.Hour

// activeLocked is where a call starts: at the first that is not benched, else at the one whose bench ends soonest.
func (m *Model) activeLocked(now time.Time) int {
	soonest := -1
	for i := range m.benches {
		b := &m.benches[i]
		if b.free(now) {
			return i
		}
		if soonest < 0 || b.until.Before(m.benches[soonest].until) {
			soonest = i
		}
	}

	return soonest
}
