//nolint:mnd // widths and ranges of made-up words
package looptrace

import (
	"fmt"
	"strconv"
	"strings"
)

// draft is a trace that is being generated.
type draft struct {
	*random

	trace   Trace
	turn    int
	serial  int  // for things that are new
	outages bool // whether the provider fails now and then
	form    int  // of what is volatile: a tool has one
	marks   []int
}

func (r *random) draft(family, id string) *draft {
	return &draft{random: r, trace: Trace{V: Version, ID: id, Family: family}, outages: r.chance(4), form: r.n(6)}
}

// call is what a step asks for.
type call struct {
	tool, args string
}

// tool registers a tool, once.
func (d *draft) tool(name, effect string) string {
	for _, t := range d.trace.Tools {
		if t.Name == name {
			return name
		}
	}
	d.trace.Tools = append(d.trace.Tools, Tool{Name: name, Effect: effect})

	return name
}

// add appends a step that opens a turn.
func (d *draft) add(s Step) {
	if d.outages && s.Infra == "" && d.chance(6) {
		d.outage()
	}
	d.turn++
	s.Turn = d.turn
	if s.Tool != "" && d.chance(2) {
		s.Thought = pick(d.random, thoughts)
	}
	d.trace.Steps = append(d.trace.Steps, s)
}

func (d *draft) outage() {
	d.turn++
	d.trace.Steps = append(d.trace.Steps, Step{
		Turn: d.turn, Infra: pick(d.random, []string{"rate_limited", "overloaded", "timeout", "network"}),
	})
}

// beside puts the last step into the turn of the step before it.
func (d *draft) beside() {
	last := &d.trace.Steps[len(d.trace.Steps)-1]
	d.turn--
	last.Turn, last.Thought = d.turn, ""
}

func (d *draft) does(c call, answer string) {
	d.add(Step{Tool: c.tool, Args: &c.args, Result: ResultOK, Text: &answer})
}

func (d *draft) fails(c call, message string) {
	d.add(Step{Tool: c.tool, Args: &c.args, Result: ResultError, Text: &message})
}

func (d *draft) refused(c call) { d.add(Step{Tool: c.tool, Args: &c.args, Result: ResultRefused}) }

func (d *draft) invents(c call) {
	offered := false
	d.add(Step{Tool: c.tool, Args: &c.args, Offered: &offered})
}

func (d *draft) says(answer, reply string) {
	s := Step{Answer: &answer}
	if reply != "" {
		s.Reply = &reply
	}
	d.add(s)
}

// mark counts the last step as one of those that the label is about.
func (d *draft) mark() { d.marks = append(d.marks, len(d.trace.Steps)) }

// loop labels the draft: stop from the n-th marked step, by the m-th.
func (d *draft) loop(why string, n, m int) *Trace {
	d.trace.Label, d.trace.Why = LabelLoop, why
	d.trace.Earliest, d.trace.StopBy = d.marks[n-1], d.marks[m-1]

	return d.finish()
}

func (d *draft) ok(why string) *Trace {
	d.trace.Label, d.trace.Why = LabelOK, why
	final := "Final Answer: that is all I could find."
	if d.trace.Style != StyleText {
		final = strings.TrimPrefix(final, "Final Answer: ")
	}
	d.says(final, "")

	return d.finish()
}

func (d *draft) finish() *Trace {
	if d.trace.Prompt == "" {
		d.trace.Prompt = "Take care of the " + pick(d.random, nouns) + " of " + pick(d.random, places) + "."
	}
	t := d.trace

	return &t
}

// work is honest work: other records, other answers.
func (d *draft) work(steps int) {
	read := d.tool("open_"+pick(d.random, nouns), "read_only")
	write := d.tool("annotate", "effectful")
	for range steps {
		id := d.fresh()
		if d.chance(4) {
			d.does(call{write, object("record", strconv.Itoa(id))}, "noted")
		} else {
			d.does(call{read, object("record", strconv.Itoa(id))}, d.news())
		}
	}
}

// fresh returns a number that was not used in this trace.
func (d *draft) fresh() int {
	d.serial += 1 + d.n(9)

	return 1000 + d.serial
}

// news returns a text that was not given before in this trace.
func (d *draft) news() string {
	return fmt.Sprintf("%s %s, entry %d", pick(d.random, adjectives), pick(d.random, nouns), d.fresh())
}

// object writes arguments of one or two string fields.
func object(pairs ...string) string {
	var out strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(strconv.Quote(pairs[i]) + ": " + strconv.Quote(pairs[i+1]))
	}

	return "{" + out.String() + "}"
}

// respelled returns the same two fields in another spelling.
func (d *draft) respelled(key1, value1, key2 string, number int) string {
	a := strconv.Quote(key1) + pick(d.random, []string{":", ": ", " : "}) + strconv.Quote(value1)
	n := strconv.Itoa(number)
	b := strconv.Quote(key2) + pick(d.random, []string{":", ": "}) + pick(d.random, []string{n, n + ".0", n + "e0", n + "0e-1"})
	if d.chance(2) {
		a, b = b, a
	}

	return pick(d.random, []string{"{", "{ ", "{\n  "}) + a +
		pick(d.random, []string{",", ", ", ",\n  "}) + b + pick(d.random, []string{"}", " }", "\n}"})
}

// volatile returns the text with something beside it that changes and says
// nothing, in one form for a trace.
func (d *draft) volatile(text string) string {
	switch d.form {
	case 0:
		return fmt.Sprintf("%s\nread at %02d:%02d:%02d", text, d.n(24), d.n(60), d.n(60))
	case 1:
		return fmt.Sprintf("%s (took %dms)", text, d.between(2, 900))
	case 2:
		return fmt.Sprintf("request %08x-%04x-4%03x-9%03x-%012x\n%s",
			d.next()>>32, d.next()>>48, d.next()>>52, d.next()>>52, d.next()>>16, text)
	case 3:
		return fmt.Sprintf("%s\n2026-%02d-%02dT%02d:%02d:00Z", text, d.between(1, 12), d.between(10, 28), d.n(24), d.n(60))
	case 4:
		return fmt.Sprintf("%s\npeer 10.0.%d.7:%d, handle 0x%x", text, d.form, d.between(30000, 60000), d.next()>>16|1<<44)
	default:
		return text
	}
}

//nolint:gochecknoglobals // words, compiled in
var (
	nouns = []string{
		"invoice", "shelf", "boat", "ticket", "meter", "garden", "recipe", "tram", "letter", "engine", "ward", "lamp",
		"route", "parcel", "choir", "bridge", "ledger", "kettle", "museum", "harbour",
	}
	places = []string{
		"Alma", "Birk", "Dale", "Eid", "Foss", "Gran", "Holt", "Klev", "Lund", "Moen", "Nes", "Rud", "Sand", "Tveit", "Vik", "Aas",
	}
	adjectives = []string{"open", "closed", "late", "spare", "old", "second", "broken", "shared", "rented", "lost"}
	thoughts   = []string{
		"I look at this first.", "Perhaps this time.", "That was not what I need.", "Another idea.", "Now I know what to do.",
		"Let me make sure.", "The last answer may have been incomplete.", "I go on with the task.", "I have to be careful here.",
		"This is different from before.", "Only this is left.", "The user is waiting for it.",
	}
)
