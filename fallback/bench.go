package fallback

import (
	"time"

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
type bench struct {
	gen     uint64 // counts changes
	benched bool
	until   time.Time
	probe   *probe // in flight
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
	index int
	gen   uint64
	probe *probe
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

// takeLocked gives out a ticket; a candidate that is benched is probed by it.
func (m *Model) takeLocked(index int) (ticket, *change) {
	b := &m.benches[index]
	t := ticket{index: index, gen: b.gen}
	if !b.benched {
		return t, nil
	}
	b.probe = &probe{done: make(chan struct{})}
	t.probe = b.probe

	return t, m.changeLocked(index, middleware.CircuitHalfOpen, middleware.ReasonProbe)
}

// verdict is what an attempt says of its candidate.
type verdict struct {
	result probeResult
	class  Class
	status int
	bench  time.Duration
}

// settle ends an attempt: it applies the verdict and, if it was a probe, lets the waiting calls go on.
func (m *Model) settle(t ticket, v verdict) *change {
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	b := &m.benches[t.index]
	var out *change
	switch {
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

	return out
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
	d := classTable[c].bench
	switch {
	case d == 0, last == 0, m.cfg.Pinned && index == last:
		return 0
	case classTable[c].move == moveAuth && m.cfg.OnAuth != AuthNext:
		return 0
	case m.cfg.Pinned:
		return forever
	default:
		return max(d, min(retryAfter, benchLong))
	}
}

// forever is longer than any process runs, and far from an overflow of time.Time.
const forever = 100 * 365 * 24 * time.Hour

// activeLocked is where a call starts: at the first that is not benched, else at the one whose bench ends soonest.
func (m *Model) activeLocked(now time.Time) int {
	soonest := -1
	for i := range m.benches {
		b := &m.benches[i]
		if c := b.circuit(now); c == middleware.CircuitClosed || (c == middleware.CircuitHalfOpen && b.probe == nil) {
			return i
		}
		if soonest < 0 || b.until.Before(m.benches[soonest].until) {
			soonest = i
		}
	}

	return soonest
}
