package escalation

import (
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Design of the budget.
//
// One account per run holds what was used; the limits are configuration. The
// accounts of a run, its parents and its children are one tree under one lock,
// so that a reservation is checked and charged along the whole chain at once:
// nothing is rolled back, and no neighbour ever sees an amount that is taken
// back later. No callback runs under the lock.
//
//	tool call    1 tool call, and 1 of its tool                       kept whatever comes of it
//	model call   1 model call                                         kept whatever comes of it
//	             1 step, unless it is made inside of a tool           given back if the call fails
//	             tokens: the estimate of the request + MaxTokens      settled with the real usage,
//	                                                                  given back if the call fails
//	wall time    looked at by each reservation, runs by itself
//
// A reservation that would pass a limit charges nothing. Of a single tool it is
// refused softly (tool_limit), and the run goes on. Any other stops the run:
//
//	state     tool call            model call of the agent          model call inside a tool
//	open      what fits            what fits, as a step             what fits
//	pending   no, softly           once, as the final answer:       no, softly
//	                               that spends it
//	spent     no: the run ends     no, and nobody is asked          refused
//
// Without FinalAnswer a stop goes from open to spent. The call that stops the
// run is the first one of the new state: if that is a model call of the agent,
// it becomes the final answer itself, because langchaingo's executor ends at an
// error of the model. What the context limiter asks a model for, a summary say,
// is judged as a call inside of a tool. A stopped run stops its children; those that were begun
// before have a final answer of their own, those begun after it have none.

// BudgetSlotName is the name of the budget's section in a persisted run.
const BudgetSlotName = "budget"

// What errors of the budget are asked about with errors.Is.
var (
	ErrBudgetExceeded error = middleware.ReasonBudgetExceeded
	ErrToolLimit      error = middleware.ReasonToolLimit
	ErrInvalidLimit   error = middleware.ReasonInvalidLimit
)

// BudgetConfig says how the work of runs is bounded.
type BudgetConfig struct {
	// Limits of each run, its children included. Default, for the zero value:
	// [DefaultBudget]. Limits with some fields set need all of them but PerTool.
	Limits Limits
	// FinalAnswer lets a run that the budget stopped answer once more, without
	// tools: its refused tool calls are told to the model instead of ending the
	// run. Default false: the first refusal ends it.
	FinalAnswer bool
	// Breaker is told of each run that is stopped. Default nil: nobody.
	Breaker *ActionBreaker
	// Observer hears the decisions. Default nil: nobody.
	Observer middleware.Observer
	// Now is the clock of the wall time. Default nil: time.Now, whose monotonic
	// reading counts. While it panics, calls fail and are not made.
	Now func() time.Time
}

// Budget bounds the work of each run: it reserves before a call and settles
// after it. Refused calls consume nothing, and reservations that are made at
// once never pass a limit together.
//
// It stands outside of everything but the run check ([middleware.StageBudget]).
// It is safe for concurrent use by any number of runs; no goroutine is started.
// The zero value and nil make chains that refuse every call.
//
// An admitted tool call costs a fraction of a microsecond and allocates nothing;
// a model call costs a look at all of its request, and its options are resolved
// if nobody has done so yet (BenchmarkBudget).
type Budget struct {
	limits   Limits
	final    bool
	breaker  *ActionBreaker
	observer middleware.Observer
	now      func() time.Time

	seq  atomic.Uint64
	slot middleware.PerRun[account]
}

// NewBudget returns a budget. It fails with a [ConfigError] of invalid_limit
// that names the first field out of bounds.
func NewBudget(cfg BudgetConfig) (*Budget, error) {
	if cfg.Limits.isZero() {
		cfg.Limits = DefaultBudget()
	}
	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	b := &Budget{
		limits: cfg.Limits.clone(), final: cfg.FinalAnswer, breaker: cfg.Breaker, observer: cfg.Observer, now: cfg.Now,
	}
	b.slot = middleware.PerRun[account]{Name: BudgetSlotName, New: b.newAccount, Save: b.saveAccount, Load: b.loadAccount}

	return b, nil
}

// Limits returns the limits of each run.
func (b *Budget) Limits() Limits {
	if b == nil {
		return Limits{}
	}

	return b.limits.clone()
}

// Slot returns the per-run state, for [middleware.RunConfig]: with it, what was
// used and whether the run is stopped are persisted with the run.
func (b *Budget) Slot() middleware.Slot {
	if b == nil {
		return &middleware.PerRun[account]{} // which no run accepts
	}

	return &b.slot
}

// Usage is what a run and its children have used. Calls under way are counted,
// with the tokens that are reserved for them.
type Usage struct {
	ModelCalls int
	ToolCalls  int
	// PerTool counts the tools that have a limit of their own.
	PerTool map[ident.Label]int
	Tokens  int
	// WallTime since the run's first guarded call.
	WallTime time.Duration
	Steps    int

	// Stopped is the limit that stopped the run, 0 if it is not stopped.
	Stopped Resource
	// Answered reports whether there is no final answer to come any more.
	Answered bool
}

// Used returns what a run has used: nothing after its end.
func (b *Budget) Used(run *middleware.Run) Usage {
	if b == nil || b.slot.New == nil {
		return Usage{}
	}
	a, err := b.slot.Get(run)
	if err != nil {
		return Usage{}
	}

	now, _ := b.clock() // the zero time moves nothing on

	return a.usage(now)
}
