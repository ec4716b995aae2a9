// Package peers holds the rows of other libraries at the work that Interlock
// does too, in the same run: each row's About says what the work is, and a row
// of ours stands beside it. Where the policies of a peer differ, the rows are
// given equal work: one attempt at the primary, no waits.
//
// What a peer cannot do is not benchmarked but said: [Gaps].
package peers

import (
	"slices"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// talk is how many messages a conversation has.
const talk = 4

// Rows returns the rows of the set. Ledgers come from l.
func Rows(l *fixture.Ledgers) []row.Row {
	rows := slices.Concat(healthy(), outage(), failing(), toolSeams(), agentRuns(), gates(l))
	for i := range rows {
		rows[i].Set = row.Peers
	}

	return rows
}

// Targets returns the claims about them.
func Targets() []row.Target {
	return []row.Target{
		{
			Why: "The policies took 2.9 µs with 33 allocations here, less than the 8.9 µs that the bound was set by. A " +
				"profile of our fallback shows no part above a tenth of it but the two timers of an attempt.",
			Name: "four-policies-healthy", Row: "peers/healthy/failsafe-four-policies", To: "peers/healthy/interlock-fallback",
			About:   "failsafe-go's retry, breaker, fallback and timeout over our fallback, while nothing fails",
			AtLeast: 3, Allocs: -1,
		},
		{
			Why: "Our fallback makes two attempts of its own kind here: both with a timer, the failure classified by " +
				"the client's error text, the bench told, the backup guarded like the primary. The policies run the " +
				"backup as a plain function; the next row gives it policies of its own.",
			Name: "four-policies-failing", Row: "peers/failing/failsafe-four-policies", To: "peers/failing/interlock-fallback", Headline: true,
			About:   "failsafe-go's retry, breaker, fallback and timeout over our fallback, while the primary fails every call",
			AtLeast: 3, Allocs: -1,
		},
		{
			Why:  "As above; a benched primary is passed over in 1.1 µs with 6 allocations.",
			Name: "four-policies-outage", Row: "peers/outage/failsafe-four-policies", To: "peers/outage/interlock-fallback",
			About:   "the same with the primary's breaker open",
			AtLeast: 3, Allocs: -1,
		},
		{
			Why: "Allocation is a third of our call (18 objects, the attempts among them), the timers an eighth, " +
				"classifying a tenth.",
			Name: "four-policies-each", Row: "peers/failing/failsafe-four-policies-each", To: "peers/failing/interlock-fallback",
			About:   "the same while the primary fails every call, with the backup protected as ours is",
			AtLeast: 3, Allocs: -1,
		},
		{
			Name: "naive-gate", Row: "peers/gate/naive-1000", To: "peers/gate/interlock-1000", Headline: true,
			About:   "opening both databases and verifying 1,000 receipts for each call, over the strict check",
			AtLeast: 500, Allocs: -1,
		},
	}
}

// Gap is something that Interlock does and a peer has no way to do.
type Gap struct {
	Peer, Cannot string
}

// Gaps returns what is not benchmarked, because there is nothing to compare with.
func Gaps() []Gap {
	const langchaingo, gobreaker, failsafe, eino, naive = "langchaingo", "gobreaker", "failsafe-go", "eino", "naive gate"

	return []Gap{
		{langchaingo, "refuse a call: its callbacks hear of a tool call but cannot stop it"},
		{langchaingo, "move to another model, retry, or end a call that does not answer"},
		{langchaingo, "notice that an agent repeats itself, but for a count of iterations"},
		{gobreaker, "move to another model: it refuses, and what follows is the caller's"},
		{gobreaker, "tell a refused key from an overload: a failure is a failure, unless the caller classifies it"},
		{gobreaker, "be told to cool down for as long as the provider says"},
		{failsafe, "classify providers' errors, or keep their texts out of what it returns"},
		{failsafe, "check a response, hold back a stream, or rewrite a conversation for another provider's form"},
		{failsafe, "keep state per run: loops, escalation, a halt that flows down to nested runs"},
		{failsafe, "be stopped from another process"},
		{eino, "refuse in a callback: it hears, it cannot stop; a tool middleware can, but there is none that does"},
		{eino, "wrap langchaingo's models and tools: its middleware stands around its own tool node"},
		{eino, "be stopped from another process, or bind an approval to the state it was given in"},
		{naive, "afford itself: it opens and verifies everything for each call, and so grows with the ledger"},
	}
}
