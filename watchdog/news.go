package watchdog

import (
	"github.com/interlock-go/interlock/middleware"
)

// leave takes in what came of a call.
func (t *trail) leave(c *toolCall, o *outcome) {
	t.open--
	e, tool := t.findKey(c.key), t.findTool(c.label)
	if e == nil { // it made room for others meanwhile
		e = t.addKey(c.key)
	} else if e.open > 0 {
		e.open--
	}
	if t.made++; o.infra || o.kind == endLost {
		return // says nothing about the agent
	}
	fresh := e.same == 0
	freshTool := tool == nil
	if freshTool {
		tool = t.addTool(c.label)
	}
	if o.kind == endRefused {
		t.step(c, false, e.waits, mix(c.key, saltRefusal), mix(saltTool, saltRefusal))
		e.step, tool.step = t.clock, t.clock

		return
	}
	ofTool := mix(labelHash(c), saltTool)
	byKey, byTool, plain := mix(c.key, o.result), mix(ofTool, o.result), mix(ofTool, o.plain)
	seenKey, seenTool, seenPlain := t.pairs.has(byKey, byTool, plain)
	if plain == byTool {
		seenPlain = seenTool
	}
	if seenPlain {
		byTool = plain // the tool gave this before, word for word
	}
	if !seenKey {
		t.pairs.add(byKey)
	}
	if !seenTool && !seenPlain {
		t.pairs.add(byTool)
	}
	if !seenPlain && plain != byTool {
		t.pairs.add(plain)
	}
	news, item := t.isNews(c, o, tool, fresh, !seenKey, !seenTool && !seenPlain)
	if t.raised && o.kind == endMade {
		news, item, t.raised = true, false, false
	}
	again := c.effect.Changes() || fresh || !t.inStep(c, e.step)
	waited := t.waitedBefore(e)
	if news {
		t.news()
	}
	if seenKey && !waited && !c.waits && !c.polls {
		if !t.sameStep(c) {
			t.repeats = min(t.repeats+1, largestCounter)
		}
	} else {
		t.repeats = 0
	}
	t.step(c, news, c.waits || c.polls || waited, byKey, byTool)
	t.countKey(c, o, e, waited, again)
	t.countTool(c, tool, fresh, news, item, freshTool)
	e.step, tool.step = t.clock, t.clock
}

// isNews reports whether the call brought something that the task can use, and
// whether that is only that it was about a further item of a list.
func (t *trail) isNews(
	c *toolCall, o *outcome, tool *toolEntry, fresh, newPair, newResult bool,
) (news, item bool) {
	if newResult && !c.waits {
		t.known.addText(c.seed, o.text)
	}
	switch {
	case c.waits:
		return false, false
	case c.effect.Changes() && !o.failing && fresh:
		t.effects++

		return true, false
	case newResult:
		return true, false
	case !newPair:
		return false, false
	case !fresh:
		return true, false // this one's answer has moved
	default:
		item = t.grounded(c, tool) || c.counts(o.text)

		return item, item
	}
}

// news begins a new epoch: what was counted is forgotten.
func (t *trail) news() {
	t.epoch++
	t.dry, t.repeats, t.unknown, t.spared, t.quiet = 0, 0, 0, 0, false
}

// step adds a call to the newest step, or begins one.
func (t *trail) step(c *toolCall, news, waits bool, byKey, byTool uint64) {
	if !t.sameStep(c) {
		t.clock++
		t.turn = c.turn
		*t.at(t.clock) = step{}
		if !waits {
			t.dry = min(t.dry+1, largestCounter)
		}
		if t.spared > 0 {
			t.spared--
		}
	}
	s := t.at(t.clock)
	s.byKey += byKey
	s.byTool += byTool
	s.calls++
	s.waits = s.waits || waits
	if s.news = s.news || news; s.news {
		t.dry = 0
	}
}

// waitedBefore reports whether there was a wait between this occurrence of a
// key and the last one.
func (t *trail) waitedBefore(e *keyEntry) bool {
	if e.step == 0 || t.clock-e.step >= maxSteps {
		return false
	}
	for n := e.step + 1; n <= t.clock; n++ {
		if t.at(n).waits {
			return true
		}
	}

	return false
}

// countKey counts equal results of one key.
func (t *trail) countKey(c *toolCall, o *outcome, e *keyEntry, waited, again bool) {
	switch {
	case e.result != o.result || e.epoch != t.epoch || e.same == 0:
		e.same = 1
	case c.waits && e.step+1 != t.clock:
		e.same = 1 // between checks, the checks count
	case again:
		e.same = min(e.same+1, largestCounter)
	}
	if e.result != o.result {
		e.fails, e.muted = 0, false
	}
	if o.failing && (e.effects != t.effects || e.result != o.result) {
		e.fails = min(e.fails+1, largestCounter)
		e.effects = t.effects
	}
	e.result, e.epoch, e.failing = o.result, t.epoch, o.failing
	e.waits = !o.final && (c.waits || waited || c.polls)
}

// countTool counts new arguments of one tool that bring nothing new.
func (t *trail) countTool(c *toolCall, tool *toolEntry, fresh, news, item, freshTool bool) {
	switch {
	case item: // not counted, and no reason to forget the guesses before
	case freshTool || news || tool.epoch != t.epoch:
		tool.drift, tool.turns = 1, 1
	case fresh:
		tool.drift = min(tool.drift+1, largestCounter)
		if !t.inStep(c, tool.step) {
			tool.turns = min(tool.turns+1, largestCounter)
		}
	}
	tool.epoch = t.epoch
	if freshTool || fresh && !news { // while there is news, nobody asks which arguments stay
		tool.values = valueBits(c)
	}
}

// invented counts calls of tools that do not exist: they are dry steps.
func (t *trail) invented(turn, calls int) (Detection, bool) {
	t.unknown = min(t.unknown+calls, largestCounter)
	t.made++ // so that the responses that ask for them are not counted as well
	t.step(&toolCall{turn: turn}, false, false, saltTool, saltTool)
	if t.quiet || t.unknown < unknownLimit {
		return Detection{}, false
	}

	return found(middleware.ReasonUnknownTool, t.unknown, unknownLimit), true
}
