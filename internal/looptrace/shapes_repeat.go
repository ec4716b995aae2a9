//nolint:mnd // the numbers are those of the label rule
package looptrace

import (
	"fmt"
	"strconv"
)

// lookup registers a tool that reads, and returns one call of it.
func (d *draft) lookup() call {
	tool := d.tool(pick(d.random, []string{"get_", "find_", "show_"})+pick(d.random, nouns), "read_only")

	return call{tool, object("place", pick(d.random, places), "id", strconv.Itoa(d.fresh()))}
}

// deed registers a tool that changes the world, and returns one call of it.
func (d *draft) deed() call {
	tool := d.tool(pick(d.random, []string{"send_", "book_", "move_"})+pick(d.random, nouns), "effectful")

	return call{tool, object("place", pick(d.random, places), "id", strconv.Itoa(d.fresh()))}
}

// Rule R1, reading: the 3rd to the 7th.
func repeatedReads(r *random, id string, loop bool) *Trace {
	d := r.draft("plain_repeat", id)
	d.work(d.n(8))
	c, answer := d.lookup(), d.news()
	n := d.between(2, 4)
	if loop {
		n = d.between(7, 10)
	}
	for range n {
		d.does(c, answer)
		d.mark()
	}
	if loop {
		return d.loop("One read with one answer, to the end.", 3, 7)
	}
	if n < 4 && d.chance(2) {
		d.does(c, d.news())
	}
	d.work(d.between(2, 5))

	return d.ok("A few equal reads, then something else.")
}

// Rule R1, failing: the 3rd to the 6th.
func repeatedFailures(r *random, id string, loop bool) *Trace {
	d := r.draft("plain_repeat", id)
	d.work(d.n(6))
	c := d.lookup()
	message := pick(d.random, []string{"not reachable", "locked by somebody else", "invalid state", "no permission", "cannot be read"})
	n := d.between(2, 3)
	if loop {
		n = d.between(6, 9)
	}
	for range n {
		d.fails(c, d.volatile(message))
		d.mark()
	}
	if loop {
		return d.loop("One failure, to the end.", 3, 6)
	}
	if d.chance(2) {
		d.does(c, d.news())
	}
	d.work(d.between(2, 5))

	return d.ok("A few equal failures, then it works or another way is taken.")
}

// Rule R1, changing the world: the 3rd to the 5th.
func repeatedEffects(r *random, id string, loop bool) *Trace {
	family := "resolved"
	d := r.draft(family, id)
	d.work(d.n(6))
	c := d.deed()
	n := d.between(1, 2)
	if loop {
		n = d.between(5, 7)
	}
	for range n {
		d.does(c, d.volatile("done"))
		d.mark()
	}
	if loop {
		return d.loop("One effect, over and over.", 3, 5)
	}
	d.does(d.lookup(), d.news())
	d.work(d.between(2, 5))

	return d.ok("Twice at most, then it looks.")
}

// Rule R1 under other spellings; honest: other numbers.
func otherSpelling(r *random, id string, loop bool) *Trace {
	d := r.draft("canonical_arguments", id)
	tool := d.tool("look_up", "read_only")
	d.work(d.n(5))
	place, number := pick(d.random, places), d.between(2, 90)
	if loop {
		answer := d.news()
		for range d.between(7, 10) {
			d.does(call{tool, d.respelled("place", place, "row", number)}, answer)
			d.mark()
		}

		return d.loop("One question in many spellings.", 3, 7)
	}
	for i := range d.between(5, 14) {
		d.does(call{tool, d.respelled("place", place, "row", number+i)}, d.news())
	}

	return d.ok("Questions that look alike and are others.")
}

// Rule R1 with answers that are volatile; honest: the number is the answer.
func volatileAnswers(r *random, id string, loop bool) *Trace {
	d := r.draft("volatile_results", id)
	d.work(d.n(5))
	c := d.lookup()
	noun, value := pick(d.random, nouns), d.between(20, 400)
	if loop {
		text := fmt.Sprintf("%s: %d left", noun, value)
		for range d.between(7, 10) {
			d.does(c, d.volatile(text))
			d.mark()
		}

		return d.loop("Only what is beside the number moves.", 3, 7)
	}
	step, still := d.between(1, 9), 0
	for range d.between(6, 16) {
		d.does(c, d.volatile(fmt.Sprintf("%s: %d left", noun, value)))
		if still < 2 && d.chance(4) {
			still++ // three equal answers at most

			continue
		}
		value, still = value+step, 0
	}

	return d.ok("The number is the answer, and moves.")
}

// Refused calls: the 3rd to the 6th.
func refusals(r *random, id string, loop bool) *Trace {
	d := r.draft("own_refusal", id)
	d.work(d.n(6))
	c := d.deed()
	n := d.between(1, 2)
	if loop {
		n = d.between(6, 9)
	}
	for range n {
		d.refused(c)
		d.mark()
	}
	if loop {
		return d.loop("One refused call, over and over.", 3, 6)
	}
	d.does(d.lookup(), d.news())
	d.work(d.between(1, 4))

	return d.ok("Refused, and another way is taken.")
}

// A check: passing after each change is verification, passing without one is a
// repeat.
func rechecks(r *random, id string, loop bool) *Trace {
	d := r.draft("verification", id)
	check, edit := call{d.tool("check", "read_only"), "{}"}, d.tool("change", "effectful")
	text := fmt.Sprintf("%d checks passed", d.between(4, 60))
	d.work(d.n(4))
	n := d.between(5, 12)
	if loop {
		n = d.between(7, 10)
		d.does(call{edit, object("part", strconv.Itoa(d.fresh()))}, "changed")
	}
	for range n {
		if !loop {
			d.does(call{edit, object("part", strconv.Itoa(d.fresh()))}, "changed")
		}
		d.does(check, d.volatile(text))
		d.mark()
	}
	if loop {
		return d.loop("It passes and is run again with nothing between.", 3, 7)
	}

	return d.ok("It passes after each change.")
}

// Equal answers beside a progress signal that stands, or rises.
func signals(r *random, id string, loop bool) *Trace {
	d := r.draft("progress_signal", id)
	d.work(d.n(4))
	c, answer := d.deed(), "accepted"
	n := d.between(6, 20)
	if loop {
		n = d.between(5, 7)
	}
	value := float64(d.between(1, 50))
	for range n {
		d.does(c, answer)
		reported := value
		d.trace.Steps[len(d.trace.Steps)-1].Progress = &reported
		d.mark()
		if !loop {
			value += float64(d.between(1, 3))
		}
	}
	if loop {
		return d.loop("The signal stands.", 3, 5)
	}

	return d.ok("The signal rises.")
}

// Failures of the provider: never a loop themselves.
func outages(r *random, id string, loop bool) *Trace {
	d := r.draft("infrastructure", id)
	d.outages = false
	d.work(d.between(1, 5))
	if !loop {
		for range d.between(5, 50) {
			d.outage()
		}
		d.work(d.between(1, 5))

		return d.ok("The provider fails for a while.")
	}
	c, answer := d.lookup(), d.news()
	for range d.between(7, 9) {
		for range d.n(4) {
			d.outage()
		}
		d.does(c, answer)
		d.mark()
	}

	return d.loop("A repeat between failures of the provider.", 3, 7)
}

// Long honest work in which one call recurs; the loop gets stuck in it.
func longWork(r *random, id string, loop bool) *Trace {
	d := r.draft("long_honest", id)
	d.outages = false
	status, answer := d.lookup(), d.news()
	for range d.between(7, 11) {
		d.work(d.between(3, 5))
		d.does(status, answer)
	}
	if !loop {
		d.work(d.between(3, 8))

		return d.ok("Long work in which one call recurs.")
	}
	d.work(2)
	stuck, text := d.lookup(), d.news()
	for range d.between(7, 9) {
		d.does(stuck, d.volatile(text))
		d.mark()
	}

	return d.loop("Long work, then one read to the end.", 3, 7)
}
