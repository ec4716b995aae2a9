package middleware

import (
	"context"
	"sync/atomic"
)

// Stage is the place of a part in the safe order. Middleware of the library
// marks its stage on the call on the way in; a part that finds a later stage
// already marked outside of it refuses the call with [ReasonUnsafeOrder]: a
// gate outside of an approval, say, would let a stop slip in between.
//
// User's own middleware has no stage and may stand anywhere.
type Stage uint8

// The stages, outermost first. The zero value is before all of them.
const (
	_ Stage = iota
	StageRun
	StageBudget
	StageEscalation
	StageWatchdog
	StageContext
	StageBreaker
	StageRetry
	StageApproval
	StageGate
	StageFallback
	StageSpan

	stageEnd
)

var stageNames = []string{ //nolint:gochecknoglobals // compiled table
	StageRun: "run", StageBudget: "budget", StageEscalation: "escalation", StageWatchdog: "watchdog",
	StageContext: "context", StageBreaker: "breaker", StageRetry: "retry", StageApproval: "approval",
	StageGate: "gate", StageFallback: "fallback", StageSpan: "span",
}

// String returns the stage's name.
func (s Stage) String() string { return enumName(stageNames, s) }

// Stages returns the closed set in order, for tables and tests.
func Stages() []Stage { return enumAll(StageRun, stageEnd) }

// Staged is a call that stages are marked on: [ToolCall] and [ModelCall].
type Staged interface {
	// Enter marks s and returns what was marked before, for Leave. It reports
	// false if a later stage is marked already. The same stage twice is allowed.
	Enter(s Stage) (before Stage, ok bool)
	// Leave takes the mark back, so that an outer layer may call again.
	Leave(before Stage)
}

// mark is the bookkeeping behind Staged. It belongs to one attempt: two
// attempts that run at once need a copy of the call each (NextAttempt).
type mark struct{ stage atomic.Uint32 }

func (m *mark) Enter(s Stage) (Stage, bool) {
	before := Stage(m.stage.Load()) //nolint:gosec // only stages are stored
	if before > s {
		return before, false
	}
	m.stage.Store(uint32(s))

	return before, true
}

func (m *mark) Leave(before Stage) { m.stage.Store(uint32(before)) }

// At makes middleware that marks s and refuses a wrong order, then does what
// mw does. It is how the parts of the library take their place.
func At[In Staged, Out any](s Stage, mw Middleware[In, Out]) Middleware[In, Out] {
	if mw == nil {
		return nil
	}

	return func(next Handler[In, Out]) Handler[In, Out] {
		if next == nil {
			return refuseAll[In, Out]
		}
		inner := mw(next)
		if inner == nil {
			return refuseAll[In, Out]
		}

		return func(ctx context.Context, in In) (Out, error) {
			before, ok := in.Enter(s)
			if !ok {
				var none Out

				return none, NewDenial(Refusal{
					Run: RunFrom(ctx).ID(), Component: ComponentChain, Reason: ReasonUnsafeOrder,
				})
			}
			defer in.Leave(before)

			return inner(ctx, in)
		}
	}
}
