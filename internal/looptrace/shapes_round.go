//nolint:mnd // the numbers are those of the label rule
package looptrace

import (
	"fmt"
	"strconv"
	"strings"
)

// answered is a call with its answer.
type answered struct {
	call

	text string
}

// known returns n different calls that read, with their answers.
func (d *draft) known(n int) []answered {
	all := make([]answered, 0, n)
	for range n {
		all = append(all, answered{d.lookup(), d.news()})
	}

	return all
}

func cycleFamily(period int) string {
	switch period {
	case 2:
		return "ping_pong"
	case 3, 4, 5: //nolint:mnd // the families
		return "cycle_" + strconv.Itoa(period)
	default:
		return "cycle_long"
	}
}

// Rule R3: the start of the 3rd round to the end of the 5th.
func rounds(r *random, id string, loop bool) *Trace {
	period := r.between(2, 9)
	d := r.draft(cycleFamily(period), id)
	d.work(d.n(6))
	round := d.known(period)
	n := 2
	if loop {
		n = d.between(5, 6)
	}
	for range n {
		for _, a := range round {
			d.does(a.call, d.volatile(a.text))
			d.mark()
		}
	}
	if loop {
		return d.loop("A round of known calls.", 2*period+1, 5*period)
	}
	d.work(d.between(2, 6))

	return d.ok("Two rounds, then something else.")
}

// Rule R3 with one element that is another each round: in its arguments only,
// or in what it brings.
func roundsWithOneOther(r *random, id string, loop bool) *Trace {
	d := r.draft("cycle_variant", id)
	period := d.between(2, 5)
	d.work(d.n(5))
	round := d.known(period)
	other := d.n(period)
	for range d.between(5, 7) {
		for i, a := range round {
			switch {
			case i != other:
				d.does(a.call, d.volatile(a.text))
			case loop:
				d.does(call{a.tool, object("place", pick(d.random, places), "id", strconv.Itoa(d.fresh()))}, "nothing found")
			default:
				d.does(call{a.tool, object("id", strconv.Itoa(d.fresh()))}, d.news())
			}
			d.mark()
		}
	}
	if loop {
		return d.loop("A round in which one call has other arguments and the same answer.", 2*period+1, 5*period)
	}

	return d.ok("A round in which one call brings something each time.")
}

// Rule R4: the 4th to the 10th failing check.
func editsAndChecks(r *random, id string, loop bool) *Trace {
	d := r.draft("edit_test_same", id)
	edit := d.tool("edit_"+pick(d.random, nouns), "effectful")
	check, message := call{d.tool("test_all", "read_only"), "{}"}, "FAIL "+d.news()
	d.work(d.n(4))
	n := d.between(3, 6)
	if loop {
		n = d.between(10, 13)
	}
	for range n {
		d.does(call{edit, object("line", strconv.Itoa(d.fresh()))}, "edited")
		d.fails(check, d.volatile(message))
		d.mark()
	}
	if loop {
		return d.loop("Other edits, one failing check.", 4, 10)
	}
	d.does(call{edit, object("line", strconv.Itoa(d.fresh()))}, "edited")
	d.does(check, "all passed")

	return d.ok("The check passes in time.")
}

// Errors that move on; the loop moves in a circle, because edits are undone.
func movingErrors(r *random, id string, loop bool) *Trace {
	d := r.draft("edit_test_moving", id)
	edit := d.tool("edit_"+pick(d.random, nouns), "effectful")
	check := call{d.tool("test_all", "read_only"), "{}"}
	if !loop {
		for range d.between(6, 16) {
			d.does(call{edit, object("line", strconv.Itoa(d.fresh()))}, "edited")
			d.fails(check, "FAIL "+d.news())
		}
		d.does(check, "all passed")

		return d.ok("The error moves on.")
	}
	period := d.between(2, 3)
	var edits, errs []string
	for range period {
		edits, errs = append(edits, object("line", strconv.Itoa(d.fresh()))), append(errs, "FAIL "+d.news())
	}
	for range d.between(5, 6) {
		for i := range period {
			d.does(call{edit, edits[i]}, "edited")
			d.mark()
			d.fails(check, errs[i])
			d.mark()
		}
	}

	return d.loop("Edits undo each other, their errors take turns.", 4*period+1, 8*period+1)
}

// The same sets of calls, a turn each; or other ones.
func parallelSets(r *random, id string, loop bool) *Trace {
	d := r.draft("parallel_reads", id)
	width := d.between(2, 4)
	d.work(d.n(4))
	set := d.known(width)
	n := 2
	if loop {
		n = d.between(5, 7)
	}
	for range n {
		d.together(shuffled(d.random, set))
	}
	if loop {
		return d.loop("The same set in each turn.", 2*width+1, 5*width)
	}
	for range d.between(1, 5) {
		d.together(d.known(width))
	}

	return d.ok("The same set twice, then others.")
}

// together makes the calls in one turn.
func (d *draft) together(set []answered) {
	fails := d.outages
	for i, a := range set {
		d.outages = fails && i == 0
		d.does(a.call, a.text)
		if i > 0 {
			d.beside()
		}
		d.mark()
	}
	d.outages = fails
}

// Rule R7: the 3rd time of a known call, or 8 dry steps, to 20 dry steps.
func rotation(r *random, id string, loop bool) *Trace {
	d := r.draft("rotating_tools", id)
	set := d.known(d.between(5, 7))
	for _, a := range set {
		d.does(a.call, d.volatile(a.text))
	}
	if !loop {
		for range d.between(2, 4) {
			for _, a := range shuffled(d.random, set)[:d.between(2, 4)] {
				d.does(a.call, d.volatile(a.text))
			}
			d.work(d.between(1, 3))
		}

		return d.ok("Known calls in no order, and something new between.")
	}
	times := make(map[call]int)
	earliest, last := 0, -1
	for i := range d.between(20, 26) {
		k := d.n(len(set))
		if k == last {
			k = (k + 1) % len(set)
		}
		last = k
		d.does(set[k].call, d.volatile(set[k].text))
		d.mark()
		times[set[k].call]++
		if earliest == 0 && (times[set[k].call] == 2 || i == 7) { // the third time with the first one above
			earliest = i + 1
		}
	}

	return d.loop("Known calls with known answers, in no order.", earliest, 20)
}

// Items of a shown list, each once; or some of them round and round.
func batches(r *random, id string, loop bool) *Trace {
	d := r.draft("batch", id)
	list := call{d.tool("list_"+pick(d.random, nouns), "read_only"), "{}"}
	effect, answer := "effectful", "handled"
	if d.chance(2) {
		effect, answer = "read_only", "in order"
	}
	handle := d.tool("handle", effect)
	items := make([]string, 0, 24)
	for range d.between(10, 24) {
		items = append(items, fmt.Sprintf("%s-%d", pick(d.random, nouns), d.fresh()))
	}
	d.does(list, strings.Join(items, "\n"))
	if !loop {
		for _, item := range items {
			d.does(call{handle, object("item", item)}, answer)
		}

		return d.ok("Each item of the list once.")
	}
	n := d.between(3, 6)
	for range d.between(5, 6) {
		for _, item := range items[:n] {
			d.does(call{handle, object("item", item)}, answer)
			d.mark()
		}
	}
	if effect == "effectful" {
		return d.loop("The same items are handled again and again.", 2*n+1, 4*n+1)
	}

	return d.loop("The same items are looked at again and again.", 2*n+1, 5*n)
}
