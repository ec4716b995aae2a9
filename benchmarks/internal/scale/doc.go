// Package scale holds the rows of cost against a quantity that grows: runs that
// live, receipts, decisions, history. Each is a series, with the claim that its
// growth supports.
package scale

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/growth"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// The series.
const (
	liveRuns     = "live-runs"
	liveRunsCold = "live-runs-in-turn"
	memory       = "memory-per-run"
	receipts     = "receipts"
	newReceipt   = "new-receipt"
	start        = "start"
	observers    = "observers"
	decided      = "decisions"
	toolHistory  = "tool-history"
	modelHistory = "model-history"
	messages     = "messages"
)

// Rows returns the rows of the set. Ledgers come from l.
func Rows(l *fixture.Ledgers) []row.Row {
	rows := slices.Concat(runs(), memories(), ledgers(l), decisions(), histories())
	for i := range rows {
		rows[i].Set = row.Scale
		rows[i].Name = fmt.Sprintf("scale/%s/%.0f", rows[i].Series, rows[i].X)
	}

	return rows
}

// GiB over the number of live runs that have to fit into it.
const bytesPerRun = 1 << 30 / 100_000.0

// Targets returns the claims about single rows.
func Targets() []row.Target {
	return []row.Target{{
		Name: "live-runs-memory", Headline: true,
		About: "bytes of one of 100,000 live runs that have made 20 tool calls each: below 1 GiB in all",
		Row:   "scale/" + memory + "/100000", AtMost: bytesPerRun, Allocs: -1,
	}}
}

// Series returns the claims about growth.
func Series() []row.Series {
	flat, linear := growth.Flat.String(), growth.Linear.String()

	return []row.Series{
		{
			Name: liveRuns, Quantity: "live runs of one guard", Want: flat,
			Claim: "a call does not pay for other runs that live: nothing is looked up in a table of all runs",
		},
		{
			Name: liveRunsCold, Quantity: "live runs that call in turn", Want: growth.Logarithmic.String(),
			Claim: "calls of runs in turn pay for the processor's caches at most: each finds the state of its run in memory",
		},
		{
			Name: memory, Quantity: "live runs of 20 calls", Want: flat,
			Claim: "a run needs the same memory, however many there are",
		},
		{
			Name: receipts, Quantity: "receipts in the ledger", Want: flat,
			Claim: "the strict check does not read the ledger while nothing changes",
		},
		{
			Name: newReceipt, Quantity: "receipts in the ledger", Want: flat,
			Claim: "the check after a transition verifies the new receipt, not the old ones",
		},
		{
			Name: start, Quantity: "receipts in the ledger", Want: linear,
			Claim: "opening a store verifies every receipt once",
		},
		{
			Name: observers, Quantity: "observers", Want: linear,
			Claim: "a decision is told to each observer once",
		},
		{
			Name: decided, Quantity: "decisions that were observed before", Want: flat,
			Claim: "telemetry keeps nothing per decision",
		},
		{
			Name: toolHistory, Quantity: "tool calls that the run made before", Want: flat,
			Claim: "a guarded tool call does not grow with what its run did before",
		},
		{
			Name: modelHistory, Quantity: "model calls that the run made before", Want: flat,
			Claim: "a guarded model call does not grow with what its run did before",
		},
		{
			Name: messages, Quantity: "messages of a conversation", Want: linear,
			Claim: "a guarded model call looks at each message at most a fixed number of times",
		},
	}
}
