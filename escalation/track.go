package escalation

import (
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// track is what is kept per run: its breaker, and which actions have had a
// confidence counted. Each entry of unsure stands for a counted failure, so the
// trip bounds it to 32.
type track struct {
	breaker *Breaker

	mu     sync.Mutex
	unsure []action
	next   bool // the run's next action has
	ended  bool
}

func (e *Escalation) newTrack(r *middleware.Run) (*track, error) {
	b, err := NewBreaker(BreakerConfig{Run: r.ID(), Workflow: r.Workflow(), Policy: e.policy})
	if err != nil {
		return nil, err
	}

	return &track{breaker: b}, nil
}

func (e *Escalation) endTrack(t *track) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	e.clearNext(t)
}

func saveTrack(t *track) ([]byte, error) { return t.breaker.MarshalJSON() }

// loadTrack halts the run if the breaker was: a run that was saved in the
// instant between the two would go on otherwise.
func (e *Escalation) loadTrack(r *middleware.Run, section []byte) (*track, error) {
	b, err := ParseBreaker(BreakerConfig{Run: r.ID(), Workflow: r.Workflow(), Policy: e.policy}, section)
	if err != nil {
		return nil, err
	}
	if b.Halted() {
		r.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	}

	return &track{breaker: b}, nil
}

// begin hands a waiting confidence over to the action that begins now.
func (e *Escalation) begin(run *middleware.Run, a action) {
	t, err := e.slot.Get(run)
	if err != nil {
		return // the call goes on, and its failure, which cannot be counted, halts the run
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.clearNext(t) && a != (action{}) {
		t.unsure = append(t.unsure, a)
	}
}

func (e *Escalation) clearNext(t *track) bool {
	if !t.next {
		return false
	}
	t.next = false
	e.waiting.Add(-1)

	return true
}

// recorded is what came of one failure.
type recorded struct {
	handoff *Handoff
	counts  Counts
	seq     uint64
	skipped bool // this action's uncertainty was counted before
	err     error
}

// record counts a failure under one lock, so that its number, its digest and
// its place among the decisions belong together.
func (e *Escalation) record(t *track, run *middleware.Run, p place, f finding, now time.Time) recorded {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known(p.action, f) {
		return recorded{skipped: true}
	}
	count := t.breaker.RecordFailure
	if f.trip {
		count = t.breaker.Trip
	}
	step := t.breaker.Counts().Total() + 1
	var r recorded
	r.handoff, r.err = count(f.class, StepDigest(run.ID(), step, f.component, p.label).Hex(), now)
	r.counts, r.seq = t.breaker.Counts(), e.seq.Add(1)
	if r.err == nil && f.signal {
		e.remember(t, p.action)
	}

	return r
}

// known reports whether f is the uncertainty of an action that has had one
// counted. A returned one ends the action, and with it what is remembered.
func (t *track) known(a action, f finding) bool {
	if f.class != middleware.FailureUncertainty || f.trip {
		return false
	}
	if a == (action{}) {
		return f.signal && t.next
	}
	i := slices.Index(t.unsure, a)
	if i >= 0 && !f.signal {
		t.unsure = slices.Delete(t.unsure, i, i+1)
	}

	return i >= 0
}

func (e *Escalation) remember(t *track, a action) {
	switch {
	case a != (action{}):
		t.unsure = append(t.unsure, a)
	case !t.ended && !t.next:
		t.next = true
		e.waiting.Add(1)
	}
}
