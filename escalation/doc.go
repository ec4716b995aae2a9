// Package escalation bounds what agents may do by themselves, and asks a human
// where that ends.
//
//	Escalation      one run       counts failures; halts the run and hands it to a human
//	ActionBreaker   one workflow  parks its actions, across runs, when too many fail
//	Budget          one run       model calls, tool calls, tokens, wall time, steps
//	ContextLimiter  one model     shortens a history that fills the window or drifts
//	Confidence      one model     reports how sure the model is of its answer
//	RiskPatterns    one tool call rates its decoded arguments, for the ActionBreaker
//	Queue           one file      what waits for a human, and what was decided
//
// Each is a part of its own, with its design in its doc comment; a guard of the
// root package puts all of them in their places:
//
//	tools    budget → escalation → watchdog → … → action breaker → approval → gate → tool
//	models   budget → escalation → response watch → … → confidence → context limiter → fallback
//
// The rest of this page is about the breaker of one run.
//
// A [Breaker] counts the failures of one run in three classes and in total. The
// failure that reaches a limit trips it: the run is halted for good, and a
// [Handoff] says, without any content, what a reviewer has to decide.
// [Escalation] is the middleware that feeds one breaker per run and hands the
// handoff to a [Sink].
//
//	sink, err := escalation.NewFileSink("/var/lib/desk/handoffs.jsonl")
//	esc, err := escalation.New(escalation.Config{Sink: sink, Observer: obs})
//	chain := middleware.Chain(middleware.Recover, middleware.RequireRun, esc.Tool(), watch.Tool(), gate.Tool())
//	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{
//		Workflow:  workflow,
//		Receivers: []middleware.SignalReceiver{esc},
//		Slots:     []middleware.Slot{esc.Slot()},
//	})
//	out, err := executor(ctx, chain) // errors.Is(err, escalation.ErrCircuitOpen)
//	handoff, tripped := escalation.HandoffOf(err)
//
// # Order
//
// It stands outside of everything that can refuse or fail ([middleware.StageEscalation]):
// it counts what the watchdog, the breakers, approval, the gate and the tool
// return, and it never sees a call that the run check or the budget refused.
// It calls next exactly once.
//
// # What counts
//
//	permission_denial   refusals of admission (of any run) and of approval
//	tool_failure        errors, panics and Goexit of a tool, outcome_unknown, any refusal of
//	                    another run (a nested agent's), a model chain that is exhausted
//	uncertainty         a nudge of the watchdog, a reported confidence below the floor
//	halts at once       a denial with VerdictEscalate (counted as uncertainty)
//	nothing             budget, parked, halted, run and chain refusals, a watchdog's abort, calls
//	                    whose own context is done (outcome_unknown and panics count all the same),
//	                    and errors of a model until its chain is exhausted
//
// A call counts once. A confidence counts when it is reported; further ones of
// the same action, and a nudge of that action, do not count again. An action is
// a tool call; a confidence that is reported outside of one belongs to the next
// guarded call of the run.
//
// A counted failure below the limits leaves the call's error as it is. The one
// that trips becomes a hard [middleware.Denial] with circuit_open, and so does
// every later failure of a call that was under way. A call that succeeds beside
// a trip keeps its result, because its effect happened; the run's next call is
// refused.
//
// # Concurrency
//
// Everything is safe for concurrent use. Observers and sinks run on the calling
// goroutine, outside of all locks. No goroutine is started. A call that succeeds
// costs well under a microsecond and allocates nothing (BenchmarkTool).
//
// # The human
//
// A [Sink] takes handoffs to where humans look; [FileSink] is a file of JSON
// lines, which [Queue] and `interlock handoffs` read. A decision that is put on
// record there is evidence and permits nothing: a halted run stays halted, and
// an action breaker opens again by supervised trials alone.
//
// # Failure
//
// A run whose failure cannot be counted (its state cannot be made, the clock is
// unusable) is halted without a handoff: counting is what keeps it safe. A sink
// that fails, panics or is late does not un-halt: it is a decision with
// sink_failed, and the handoff stays on the breaker ([Escalation.Handoff]) and
// on the error ([HandoffOf]). No error, decision or handoff holds a prompt, an
// argument, a result, a path or the text of an error.
package escalation
