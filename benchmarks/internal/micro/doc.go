// Package micro holds the rows of calls without a network: the layers one by
// one, the whole seam around a tool and around a model, the admission check, the
// watchdog, the breakers, and what the machine itself costs.
package micro

import (
	"slices"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Rows that others are compared with.
const (
	Getppid  = "micro/control/getppid"
	Syscalls = "micro/control/check-syscalls"
	Hash     = "micro/control/hash"

	bareTool   = "micro/tool/bare"
	bareModel  = "micro/model/bare"
	adapter    = "micro/tool/adapter-0"
	wrapped    = "micro/model/adapter-0"
	ungated    = "micro/tool/guarded/no-gate"
	gated      = "micro/tool/guarded/strict"
	guardModel = "micro/model/guarded"
)

// Rows returns the rows of the set. Ledgers come from l.
func Rows(l *fixture.Ledgers) []row.Row {
	rows := slices.Concat(controls(l), tools(l), models(), layers(l), admissions(l), watchdogs(), breakers(), actions())
	for i := range rows {
		rows[i].Set = row.Micro
	}

	return rows
}

// Targets returns the claims about them.
func Targets() []row.Target {
	return []row.Target{
		{
			Why: "Of the call, the four system calls are 55 %. The loop detector, which hashes argument and result, " +
				"and the stall clock are most of the rest, and after a system call they find colder caches than in " +
				"the row without a gate. Telemetry through globals that nobody set costs ten allocations more: the row " +
				"telemetry-unset.",
			Name: "tool-gated", Headline: true,
			About: "the whole guarded call of an effectful tool, strict gate and no-op telemetry, over the check's own system calls",
			Row:   gated, To: Syscalls, AtMost: 1.75, Allocs: 8,
		},
		{
			Name: "tool-ungated", Headline: true, About: "the whole guarded call of a read-only tool, no-op telemetry, over getppid",
			Row: ungated, To: Getppid, AtMost: 3, Allocs: -1,
		},
		{
			Name: "check", Headline: true, About: "the strict check over its own system calls",
			Row: "micro/admission/check-10", To: Syscalls, AtMost: 1.25, Allocs: 0,
		},
		{
			Name: "check-long", About: "the strict check of a ledger of 100,000 receipts over one of 10",
			Row: "micro/admission/check-100000", To: "micro/admission/check-10", AtMost: 1.25, Allocs: 0,
		},
		{
			Name: "bounds", Headline: true,
			About: "what budget and closed action breaker add to a tool call, over gobreaker's two-step form alone",
			Row:   bounds, Over: adapter, To: twoStep, AtMost: 2.2, Allocs: -1, // 400 ns beyond its own, which was 333 ns when the bound was set
		},
		{
			Name: "chain", About: "a chain of ten layers over ten calls nested by hand",
			Row: "micro/chain/composed-10", To: "micro/chain/nested-10", AtMost: 1.5, Allocs: 0,
		},
		{
			Name: "watchdog-history", About: "the loop detector at a run's millionth call over its tenth",
			Row: "micro/watchdog/call-1000000", To: "micro/watchdog/call-10", AtMost: 1.25, Allocs: -1,
		},
	}
}
