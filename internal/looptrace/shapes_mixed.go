//nolint:mnd // the numbers are those of the label rule
package looptrace

import (
	"fmt"
	"strconv"
	"strings"
)

// An explanation among the arguments: the loop has nothing else that changes,
// honest work records a thought beside new answers.
func explained(r *random, id string, loop bool) *Trace {
	d := r.draft("slow_drift", id)
	d.work(d.n(5))
	why := func() string { return pick(d.random, thoughts) + " " + d.news() }
	if loop {
		tool, command, answer := d.tool("run_command", "read_only"), "list "+pick(d.random, places), d.news()
		for range d.between(11, 14) {
			d.does(call{tool, object("command", command, "explanation", why())}, answer)
			d.mark()
		}

		return d.loop("One command under other explanations.", 4, 11)
	}
	think := d.tool("think", "read_only")
	for range d.between(9, 14) {
		d.does(call{think, object("thought", why())}, "recorded")
		d.work(d.between(1, 2))
	}

	return d.ok("Thoughts are recorded beside the work.")
}

// Addresses that an answer has shown, or that are made up; none exists.
func links(r *random, id string, loop bool) *Trace {
	d := r.draft("exploration", id)
	open, search := d.tool("open", "read_only"), d.tool("search", "read_only")
	d.work(d.n(4))
	host := "https://" + strings.ToLower(pick(d.random, places)) + ".example/"
	var pages []string
	for range d.between(11, 14) {
		pages = append(pages, pick(d.random, nouns)+strconv.Itoa(d.fresh()))
	}
	shown := "no results"
	if !loop {
		shown = host + strings.Join(pages, "\n"+host)
	}
	d.does(call{search, object("q", pick(d.random, nouns))}, shown)
	for _, p := range pages {
		d.fails(call{open, object("url", host+p)}, "404 page not found")
		d.mark()
	}
	if loop {
		return d.loop("Addresses are made up.", 4, 11)
	}

	return d.ok("Each shown address once, all are gone.")
}

// A round whose order changes, or that leaves out a call once.
func jitteredRounds(r *random, id string, loop bool) *Trace {
	period := r.between(3, 6)
	d := r.draft(cycleFamily(period), id)
	d.work(d.n(4))
	set := d.known(period)
	if !loop {
		for range d.between(4, 6) {
			for _, a := range shuffled(d.random, set) {
				d.does(a.call, a.text)
			}
			d.work(d.between(1, 2))
		}

		return d.ok("Rounds in any order, each with something new.")
	}
	n, gap := d.between(6, 7), d.between(2, 3)
	for i := range n {
		round := set
		if i == gap {
			round = set[1:]
		} else if i > gap && d.chance(2) {
			round = append([]answered{set[1], set[0]}, set[2:]...)
		}
		for j, a := range round {
			d.does(a.call, d.volatile(a.text))
			if j == 0 || j == len(round)-1 {
				d.mark() // the ends of each round
			}
		}
	}

	return d.loop("A round that is not kept strictly.", 5, 10)
}

// A wait in a shell: nobody declared it.
func shellWaits(r *random, id string, loop bool) *Trace {
	d := r.draft("polling", id)
	d.outages = false
	d.work(d.n(3))
	shell := d.tool("bash", "effectful")
	pause := call{shell, fmt.Sprintf("sleep %d", d.between(5, 120))}
	look := call{shell, "status " + pick(d.random, nouns)}
	n := d.between(6, 11)
	if loop {
		n = d.between(20, 23)
	}
	for range n {
		d.does(pause, "")
		d.does(look, d.volatile("not ready"))
		d.mark()
	}
	if loop {
		return d.loop("Sleeps and looks without end.", 13, 20)
	}
	d.does(pause, "")
	d.does(look, "ready")

	return d.ok("Sleeps and looks, and then it is ready.")
}

// A human who asks anew; the loop has one reply for everything.
func chats(r *random, id string, loop bool) *Trace {
	d := r.draft("monologue", id)
	d.work(d.between(1, 3))
	c, state := d.lookup(), pick(d.random, []string{"on its way", "in the queue", "not yet here"})
	reply := "It is in order. Can I do anything else?"
	for range d.between(6, 8) {
		question := "What about the " + pick(d.random, nouns) + ", " + d.news() + "?"
		if loop {
			d.says(reply, question)
			d.mark()

			continue
		}
		if d.chance(2) {
			d.does(c, state)
		}
		d.says("It is "+state+", and the other one is "+d.news()+".", question)
	}
	if loop {
		return d.loop("One reply to whatever the human says.", 3, 6)
	}

	return d.ok("The human asks anew, each reply is another.")
}

// A textual agent: items of the prompt one by one, or one question on and on.
func textual(r *random, id string, loop bool) *Trace {
	d := r.draft("thought_drift", id)
	d.trace.Style = StyleText
	tool := d.tool("Search", "read_only")
	if loop {
		d.work(d.n(4))
		question, answer := pick(d.random, nouns)+" of "+pick(d.random, places), d.news()
		for range d.between(7, 9) {
			d.does(call{tool, question + pick(d.random, []string{"", " ", "\n"})}, d.volatile(answer))
			d.mark()
		}

		return d.loop("A textual agent with one question.", 3, 7)
	}
	items := shuffled(d.random, places)[:d.between(8, 14)]
	d.trace.Prompt = "Look up each of " + strings.Join(items, ", ") + "."
	for _, item := range items {
		d.does(call{tool, item}, "no entry of that name")
	}

	return d.ok("A textual agent with the items of its prompt.")
}
