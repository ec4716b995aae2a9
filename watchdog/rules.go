package watchdog

import (
	"github.com/interlock-go/interlock/middleware"
)

// After how many equal sights a rule fires: the one that would come next is not
// made. Start values of the principle; the corpus measures them.
const (
	repeatEffect   = 3 // an effectful call that succeeds
	repeatFailure  = 4 // one that fails, or is idempotent
	repeatRead     = 5 // a read-only one
	rounds         = 3
	maxPeriod      = 8
	driftLimit     = 8
	driftTurns     = 3 // a single turn may ask for many things at once
	driftEffect    = 6 // of a tool that changes something, or would
	stagnation     = 8
	waitingLimit   = 13
	unknownLimit   = 3
	fuseGrace      = 5 // new calls after the fuse was told of
	largestCounter = 1 << 14
)

// enter judges a call before it is made and opens its step.
func (t *trail) enter(c *toolCall) (Detection, bool) {
	e, tool := t.findKey(c.key), t.findTool(c.label)
	d, fired := t.judge(c, e, tool)
	if e == nil {
		e = t.addKey(c.key)
		e.step = t.clock // it is the newest one, too
	}
	e.open++
	t.open++

	return d, fired
}

func (t *trail) judge(c *toolCall, e *keyEntry, tool *toolEntry) (Detection, bool) {
	if e != nil && int(e.fails) >= stagnation && t.effects != e.effects && !e.muted {
		return found(middleware.ReasonStagnation, int(e.fails), stagnation), true
	}
	if t.quiet {
		return Detection{}, false
	}
	if e != nil && (c.effect.Changes() || !t.inStep(c, e.step)) {
		reason, limit := middleware.ReasonLoop, repeatLimit(c, e)
		if e.waits {
			reason, limit = middleware.ReasonWaiting, waitingLimit
		}
		if n := t.sights(c, e); n >= limit {
			return found(reason, n, limit), true
		}
	}
	if e != nil && e.same == 0 {
		e = nil // its first call has not come back yet
	}
	if tool != nil && e == nil && tool.epoch == t.epoch && !t.inStep(c, tool.step) {
		reason, limit := middleware.ReasonDrift, driftLimit
		switch {
		case c.polls:
			reason, limit = middleware.ReasonWaiting, waitingLimit
		case c.effect.Changes():
			limit = driftEffect
		}
		if int(tool.drift) >= limit && tool.turns >= driftTurns && !c.waits && !t.grounded(c, tool) {
			return found(reason, int(tool.drift), limit), true
		}
	}
	if !t.sameStep(c) {
		if p := t.period(e, tool); p > 0 {
			return found(middleware.ReasonCycle, rounds, rounds), true
		}
		if d := t.stirs(e); d > 0 {
			return found(middleware.ReasonCycle, rounds+1, rounds+1), true
		}
	}
	if t.dry >= t.fuse && (t.spared == 0 || e != nil) && !c.waits && !c.polls {
		return found(middleware.ReasonFuse, t.dry, t.fuse), true
	}

	return Detection{}, false
}

// sights returns how often the call was made with an equal result and no news
// since; of effects each counts, of reads those of one step are one. Equal effects that are under way at the same time count too, unless
// they are one step: when the first comes back, the others have happened.
func (t *trail) sights(c *toolCall, e *keyEntry) int {
	n := 0
	if e.epoch == t.epoch {
		n = int(e.same)
	}
	if c.turn == 0 && c.effect.Changes() {
		n += int(e.open)
	}

	return n
}

func found(reason middleware.Reason, count, limit int) Detection {
	return Detection{
		Reason: reason, Count: count, Limit: limit, Severity: min(1, float64(count)/float64(2*limit)),
	}
}

func repeatLimit(c *toolCall, e *keyEntry) int {
	switch {
	case e.failing:
		return repeatFailure
	case !c.effect.Changes():
		return repeatRead
	case c.effect == middleware.Idempotent:
		return repeatFailure
	default:
		return repeatEffect
	}
}

// sameStep reports whether the call belongs to the newest step: calls of one
// turn are one.
func (t *trail) sameStep(c *toolCall) bool { return t.clock > 0 && c.turn != 0 && c.turn == t.turn }

// inStep reports whether number is the step that the call belongs to.
func (t *trail) inStep(c *toolCall, number uint32) bool { return t.sameStep(c) && number == t.clock }

// period returns the length of the round that the call goes on with, if it was
// seen three times and the last two brought nothing new; else 0.
func (t *trail) period(e *keyEntry, tool *toolEntry) int {
	for p := uint32(1); p <= maxPeriod && p*rounds <= t.clock && int(2*p) <= t.dry; p++ {
		before := t.clock - p + 1
		goesOn := e != nil && e.step >= before || e == nil && tool != nil && tool.step == before
		if goesOn && t.turns(p) && (p > 1 || t.at(t.clock).calls > 1) {
			return int(p)
		}
	}

	return 0
}

// turns reports whether the newest steps are three rounds of p. Either they are
// the same calls with the same results, in any order within a round, or the
// order is the same and up to every second element has other arguments each time
// as long as they make no difference.
func (t *trail) turns(p uint32) bool {
	loose, ordered, mixed := uint32(0), true, p == 1
	var first, second, third uint64
	for i := range p {
		a, b, c := t.at(t.clock-i), t.at(t.clock-i-p), t.at(t.clock-i-2*p)
		if a.waits || a.news || b.news {
			return false
		}
		first, second, third = first+scatter(a.byKey), second+scatter(b.byKey), third+scatter(c.byKey)
		ordered = ordered && a.byTool == b.byTool && b.byTool == c.byTool
		if a.byKey != b.byKey || b.byKey != c.byKey {
			loose++
		}
		mixed = mixed || a.byTool != t.at(t.clock).byTool
	}
	if !mixed {
		return false // one call again and again is no round of two
	}

	return first == second && second == third || ordered && 2*loose <= p && p > 1
}

// scatter makes the sum over a round say which steps were in it.
func scatter(h uint64) uint64 { return mix(h, saltTool) }

// stirs returns among how many calls the agent goes round without an order, if
// it has done so for three times their number, else 0.
func (t *trail) stirs(e *keyEntry) int {
	if e == nil || t.repeats < rounds*2 || uint32(t.repeats) > t.clock || t.clock-e.step >= uint32(t.repeats) { //nolint:gosec // bounded
		return 0
	}
	distinct := 0
	for i := range t.keys {
		if k := &t.keys[i]; k.same > 0 && t.clock-k.step < uint32(t.repeats) { //nolint:gosec // bounded
			distinct++
		}
	}
	if distinct < 2 || distinct > maxPeriod || t.repeats < rounds*distinct {
		return 0
	}

	return distinct
}

// silence keeps the rules quiet until there is news, after a detection that had
// no consequence.
func (t *trail) silence() {
	t.quiet = true
	for i := range t.keys {
		if e := &t.keys[i]; int(e.fails) >= stagnation {
			e.muted = true
		}
	}
}

// stopped lets a few new calls pass after the fuse blew: the agent was told to
// try something different.
func (t *trail) stopped() {
	if t.dry >= t.fuse && t.spared == 0 {
		t.spared = fuseGrace
	}
}
