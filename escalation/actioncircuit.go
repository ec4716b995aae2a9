package escalation

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// actionCircuit is the state of one workflow. Nothing is called under its lock
// but gobreaker, whose callbacks read what the lock guards.
type actionCircuit struct {
	cfg   *ActionConfig
	seq   *atomic.Uint64
	label ident.Label

	// word is what a call of a closed breaker reads without the lock: generation,
	// whether there is a failure since the last success, and state.
	word atomic.Uint64

	mu           sync.Mutex
	breaker      *gobreaker.TwoStepCircuitBreaker[struct{}] // of this generation; nil while open
	failures     int                                        // in a row
	hard         int                                        // among them
	tripped      bool
	since        time.Time // when it opened; zero: the clock failed
	opened       int       // since it was closed
	parked       int       // refusals since the last transition
	trials       []*actionTrial
	handoff      Handoff
	handedOff    uint64 // the Seq of its trip
	history      [MaxHistory]ActionTransition
	transitioned int
	adapted      adapted
}

// How long a trial may take for a caller that waits: so many recovery times, and
// no less than this.
const (
	trialRecoveries = 10
	trialPatience   = 10 * time.Minute
)

// The parts of a word.
const (
	wordState   = 3
	wordFailing = 4
	wordBits    = 3
)

func stateOf(word uint64) middleware.CircuitState { return middleware.CircuitState(word & wordState) }

// What gobreaker is told.
var (
	errActionFailed   = errors.New("interlock: escalation: action failed")
	errActionExcluded = errors.New("interlock: escalation: action excluded")
)

// actionTrial is a place among MaxTrial, from the start of a trial until it is
// back, or lost.
type actionTrial struct {
	gen    uint64
	place  actionPlace
	left   <-chan struct{} // closed when the caller has left; nil: never
	begun  time.Time
	permit func(error)
}

// actionTicket is the right to make one action.
type actionTicket struct {
	gen   uint64
	trial *actionTrial // nil in a closed breaker
}

// actionEvent is one decision to be told after unlock.
type actionEvent struct {
	seq          uint64
	state        middleware.CircuitState // the new one; zero: no transition
	reading      actionReading
	reason       middleware.Reason
	count, limit int
}

// actionReport is what came of one step of the machine.
type actionReport struct {
	events   [2]actionEvent
	told     int
	lost     *actionPlace // where it happened, if not where it was found
	evaluate bool         // the profile is due
	risk     float64      // of the action
}

func newActionCircuit(cfg *ActionConfig, seq *atomic.Uint64, label ident.Label) *actionCircuit {
	c := &actionCircuit{cfg: cfg, seq: seq, label: label}
	c.adapted = adapted{threshold: cfg.FailureThreshold, recovery: cfg.Recovery}
	c.begin(middleware.CircuitClosed)

	return c
}

// begin starts a generation. The trial's breaker trips at the first failure.
func (c *actionCircuit) begin(state middleware.CircuitState) {
	c.failures, c.hard, c.parked, c.tripped = 0, 0, 0, false
	gen := c.gen() + 1
	c.word.Store(gen<<wordBits | uint64(state))
	if c.breaker = nil; state == middleware.CircuitOpen {
		return
	}
	c.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		ReadyToTrip: func(n gobreaker.Counts) bool {
			c.failures = int(n.ConsecutiveFailures)
			c.tripped = state == middleware.CircuitHalfOpen || c.failures >= c.adapted.threshold || c.hard >= c.cfg.HardFailures

			return c.tripped
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errActionExcluded) },
	})
}

func (c *actionCircuit) gen() uint64 { return c.word.Load() >> wordBits }

func (c *actionCircuit) state() middleware.CircuitState { return stateOf(c.word.Load()) }

// quick is enter for a closed breaker.
func (c *actionCircuit) quick() (actionTicket, bool) {
	w := c.word.Load()

	return actionTicket{gen: w >> wordBits}, stateOf(w) == middleware.CircuitClosed
}

// enter asks for the right to make an action. fit says that it may be a trial.
func (c *actionCircuit) enter(p actionPlace, left <-chan struct{}, fit bool, now time.Time) (t actionTicket, rep actionReport, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findLost(now, &rep)
	if c.state() == middleware.CircuitOpen && c.due(now) {
		c.transit(&rep, middleware.CircuitHalfOpen, readNothing, middleware.ReasonTrial, c.opened, now)
	}
	switch c.state() {
	case middleware.CircuitClosed:
		return actionTicket{gen: c.gen()}, rep, true
	case middleware.CircuitHalfOpen:
		if !fit || len(c.trials) >= c.cfg.MaxTrial {
			break
		}
		t = actionTicket{trial: &actionTrial{place: p, left: left, begun: now}}
		if c.renew(&t) {
			c.trials = append(c.trials, t.trial)

			return t, rep, true
		}
	default:
	}
	c.parked++

	return actionTicket{}, rep, false
}

// again gives the ticket of a trial to its next slice.
func (c *actionCircuit) again(t *actionTicket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.renew(t)
}

func (c *actionCircuit) renew(t *actionTicket) bool {
	t.gen = c.gen()
	t.trial.gen, t.trial.permit = t.gen, nil
	if c.breaker == nil {
		return false
	}
	permit, err := c.breaker.Allow()
	t.trial.permit = permit

	return err == nil
}

// release gives the place of a trial back.
func (c *actionCircuit) release(trial *actionTrial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.trials, trial); i >= 0 {
		c.trials = slices.Delete(c.trials, i, i+1)
	}
}

// findLost takes places back from trials whose callers have left, or wait for
// ever, so that a tool that never returns does not keep the breaker half-open.
func (c *actionCircuit) findLost(now time.Time, rep *actionReport) {
	var lost *actionTrial
	c.trials = slices.DeleteFunc(c.trials, func(t *actionTrial) bool {
		patience := max(trialPatience, trialRecoveries*c.adapted.recovery)
		select {
		case <-t.left:
			patience = c.adapted.recovery
		default:
		}
		if now.IsZero() || now.Sub(t.begun) < patience {
			return false
		}
		if t.gen == c.gen() && c.state() == middleware.CircuitHalfOpen {
			lost = t
		}

		return true
	})
	if lost != nil {
		rep.lost = &lost.place
		c.settleLocked(rep, lost.permit, readLost, now)
	}
}

// due reports whether the recovery time is over. A clock that failed, or went
// back, starts it anew.
func (c *actionCircuit) due(now time.Time) bool {
	if now.IsZero() {
		return false
	}
	if c.since.IsZero() || now.Before(c.since) {
		c.since = now

		return false
	}

	return now.Sub(c.since) >= c.adapted.recovery
}

// settled reports whether the outcome of an action of a closed breaker says
// nothing that is not known: as nearly always.
func (c *actionCircuit) settled(t actionTicket, r actionReading) bool {
	if t.trial != nil || (r != readNothing && r != readExcluded) {
		return false
	}
	w := c.word.Load()

	return r == readExcluded || w>>wordBits != t.gen || (w&wordFailing == 0 && c.cfg.Profile == nil)
}

// settle takes in the outcome of an action, unless its generation is over.
func (c *actionCircuit) settle(t actionTicket, r actionReading, now time.Time) (rep actionReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.gen != c.gen() {
		return rep
	}
	var permit func(error)
	if t.trial != nil {
		permit = t.trial.permit
	}
	c.settleLocked(&rep, permit, r, now)

	return rep
}

// told takes in what happened outside of an action.
func (c *actionCircuit) told(r actionReading, now time.Time) (rep actionReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked(&rep, nil, r, now)

	return rep
}

func (c *actionCircuit) settleLocked(rep *actionReport, permit func(error), r actionReading, now time.Time) {
	if permit == nil {
		if c.breaker == nil {
			return // open: it is known already
		}
		var err error
		if permit, err = c.breaker.Allow(); err != nil {
			return // cannot be: a breaker that has tripped is replaced under this lock
		}
	}
	switch r {
	case readExcluded:
		permit(errActionExcluded)

		return
	case readNothing:
		permit(nil)
		c.succeeded(rep, now)
	default:
		c.failed(rep, permit, r, now)
	}
	if c.cfg.Profile != nil {
		c.adapted.outcomes++
		rep.evaluate = rep.evaluate || c.adapted.outcomes%profileEvery == 0
	}
}

func (c *actionCircuit) succeeded(rep *actionReport, now time.Time) {
	c.failures, c.hard = 0, 0
	if c.state() == middleware.CircuitClosed {
		c.word.Store(c.gen()<<wordBits | uint64(middleware.CircuitClosed))

		return
	}
	if n := int(c.breaker.Counts().ConsecutiveSuccesses); n >= c.cfg.SuccessThreshold {
		c.transit(rep, middleware.CircuitClosed, readNothing, middleware.ReasonRecovered, n, now)
	}
}

func (c *actionCircuit) failed(rep *actionReport, permit func(error), r actionReading, now time.Time) {
	if r.hard() {
		c.hard++
	}
	permit(errActionFailed)
	count, limit := c.failures, c.adapted.threshold
	if c.state() == middleware.CircuitHalfOpen {
		limit = 1
	}
	if r.hard() && count < limit {
		count, limit = c.hard, c.cfg.HardFailures
	}
	c.tell(rep, actionEvent{reading: r, reason: r.reason(), count: count, limit: limit})
	if !c.tripped {
		c.word.Store(c.word.Load() | wordFailing)

		return
	}
	c.transit(rep, middleware.CircuitOpen, r, r.reason(), count, now)
}

// transit changes the state.
func (c *actionCircuit) transit(
	rep *actionReport, to middleware.CircuitState, r actionReading, reason middleware.Reason, count int, now time.Time,
) {
	c.begin(to)
	switch to {
	case middleware.CircuitOpen:
		c.since = now
		c.opened++
	case middleware.CircuitClosed:
		c.opened = 0
	default:
	}
	c.history[c.transitioned%MaxHistory] = ActionTransition{At: now, State: to, Reason: reason, Count: count}
	c.transitioned++
	c.tell(rep, actionEvent{state: to, reading: r, reason: reason, count: count})
	rep.evaluate = c.cfg.Profile != nil
}

func (c *actionCircuit) tell(rep *actionReport, e actionEvent) {
	e.seq = c.seq.Add(1)
	rep.events[rep.told] = e
	rep.told++
}

func (c *actionCircuit) transitions() []ActionTransition {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transitioned <= MaxHistory {
		return slices.Clone(c.history[:c.transitioned])
	}
	oldest := c.transitioned % MaxHistory

	return slices.Concat(c.history[oldest:], c.history[:oldest])
}

func (c *actionCircuit) gauge() middleware.Gauge {
	return middleware.Gauge{Kind: middleware.GaugeCircuit, Label: c.label, Circuit: c.state(), Value: 1}
}
