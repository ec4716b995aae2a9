//nolint:mnd // the numbers are those of the label rule
package looptrace

import (
	"fmt"
	"strconv"
)

// Rule R2: the 4th to the 11th equal answer.
func drifting(r *random, id string, loop bool) *Trace {
	d := r.draft(pick(r, []string{"guessing", "slow_drift"}), id)
	d.work(d.n(6))
	tool := d.tool("search_"+pick(d.random, nouns), "read_only")
	errs, text := d.chance(2), pick(d.random, []string{"nothing found", "no such entry", "0 matches", "not known here"})
	start := d.between(3, 900)
	words := shuffled(d.random, adjectives)
	n := d.between(4, 6)
	if loop {
		n = d.between(11, 14)
	}
	numbers := d.chance(2)
	for i := range n {
		c := call{tool, object("q", fmt.Sprintf("%s %s", words[i%len(words)], nouns[(i+start)%len(nouns)]))}
		if numbers {
			c.args = fmt.Sprintf(`{"near": %d}`, start+i*3)
		}
		if errs {
			d.fails(c, d.volatile(text))
		} else {
			d.does(c, d.volatile(text))
		}
		d.mark()
	}
	if loop {
		return d.loop("Other arguments, one answer.", 4, 11)
	}
	d.does(call{tool, object("q", pick(d.random, places))}, d.news())
	d.work(d.between(1, 4))

	return d.ok("It hits in time.")
}

// Pages; the loop goes on past the end.
func pages(r *random, id string, loop bool) *Trace {
	d := r.draft("paging", id)
	tool := d.tool("page", "read_only")
	size := d.between(5, 50)
	args := func(i int) string { return fmt.Sprintf(`{"offset": %d, "limit": %d}`, i*size, size) }
	n, past := d.between(5, 20), d.between(1, 3)
	if loop {
		n, past = d.between(1, 6), d.between(11, 14)
	}
	for i := range n {
		d.does(call{tool, args(i)}, d.news()+"\n"+d.news())
	}
	for i := range past {
		d.does(call{tool, args(n + i)}, "[]")
		d.mark()
	}
	if loop {
		return d.loop("Past the end, on and on.", 4, 11)
	}

	return d.ok("To the end and a little further.")
}

// Rule R5: the 13th to the 20th equal answer.
func waiting(r *random, id string, loop bool) *Trace {
	d := r.draft("polling", id)
	d.outages = false
	d.work(d.n(4))
	poll := call{d.tool("job_state", "polling"), object("job", strconv.Itoa(d.fresh()))}
	wait := call{d.tool("wait", "read_only"), fmt.Sprintf(`{"seconds": %d}`, d.between(5, 90))}
	state := pick(d.random, []string{"running", "pending", "in the queue", "not ready"})
	waits := d.chance(2)
	n := d.between(9, 12)
	if loop {
		n = d.between(20, 24)
	}
	for range n {
		if waits {
			d.does(wait, "waited")
		}
		d.does(poll, d.volatile(state))
		d.mark()
	}
	if loop {
		return d.loop("A wait without end.", 13, 20)
	}
	d.does(poll, "done")
	d.trace.Steps[len(d.trace.Steps)-1].Final = true
	d.work(d.n(4))

	return d.ok("A wait that ends in time.")
}

// Rule R6: the 3rd to the 7th final answer.
func finalStates(r *random, id string, loop bool) *Trace {
	d := r.draft("polling", id)
	poll := call{d.tool("job_state", "polling"), object("job", strconv.Itoa(d.fresh()))}
	for range d.between(1, 8) {
		d.does(poll, "running")
	}
	n := d.between(1, 2)
	if loop {
		n = d.between(7, 10)
	}
	state := pick(d.random, []string{"done", "failed", "cancelled"})
	for range n {
		d.does(poll, state)
		d.trace.Steps[len(d.trace.Steps)-1].Final = true
		d.mark()
	}
	if loop {
		return d.loop("It has ended, and is asked on.", 3, 7)
	}
	d.work(d.between(2, 5))

	return d.ok("It has ended, and work goes on.")
}

// Rule R10: the 3rd to the 6th invention.
func inventions(r *random, id string, loop bool) *Trace {
	d := r.draft("unknown_tool", id)
	d.work(d.between(1, 6))
	name := func() string {
		return pick(d.random, []string{"fetch_", "make_", "ask_", "run_"}) + pick(d.random, nouns)
	}
	same, other := name(), d.chance(2)
	n := d.between(1, 2)
	if loop {
		n = d.between(6, 8)
	}
	for range n {
		if other {
			same = name()
		}
		d.invents(call{same, object("id", strconv.Itoa(d.fresh()))})
		d.mark()
	}
	if loop {
		return d.loop("Tools that do not exist.", 3, 6)
	}
	d.work(d.between(1, 4))
	d.invents(call{same, "{}"})
	d.work(d.between(1, 4))

	return d.ok("A slip or two, and work between.")
}

// Rule R9: the 4th to the 7th answer that cannot be read.
func unreadAnswers(r *random, id string, loop bool) *Trace {
	d := r.draft("monologue", id)
	d.trace.Style = StyleText
	d.work(d.n(5))
	n := d.between(2, 3)
	if loop {
		n = d.between(7, 9)
	}
	for range n {
		d.says("I would now look for the "+pick(d.random, nouns)+", "+d.news()+".", "")
		d.trace.Steps[len(d.trace.Steps)-1].Unparsable = true
		d.mark()
	}
	if loop {
		return d.loop("Answers that cannot be read, in other words each time.", 4, 7)
	}
	d.work(d.between(1, 4))

	return d.ok("It finds its way back to the form.")
}

// Rule R8: the 3rd to the 6th equal answer.
func equalAnswers(r *random, id string, loop bool) *Trace {
	d := r.draft("monologue", id)
	d.work(d.between(1, 4))
	answer := "I will see to the " + pick(d.random, nouns) + " now."
	n := 2
	if loop {
		n = d.between(6, 8)
	}
	for range n {
		d.says(answer, "Please go on.")
		d.mark()
	}
	if loop {
		return d.loop("It says that it will, and does not.", 3, 6)
	}
	d.work(d.between(1, 4))
	for range d.between(1, 5) {
		d.says("It is about "+d.news()+".", "And the "+pick(d.random, nouns)+"?")
	}

	return d.ok("Said twice, then done; the rest is a conversation.")
}
