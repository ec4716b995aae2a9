// Package watchdog stops an agent that repeats itself and a tool that hangs.
//
//	dog, err := watchdog.New(watchdog.DefaultConfig())
//	…
//	lookup, err := middleware.WrapTool(tool, middleware.ToolConfig{
//		Effect: middleware.ReadOnly,
//		Chain:  middleware.Chain(dog.Tool(), gate),
//	})
//
// Three things are kept apart: a [Detector] says what happened ([Detection]), a
// [Policy] says what should happen ([Action]), and the hook, [Watchdog.Tool],
// makes it happen.
//
// # Loops
//
// The detector of this package knows one rule, repeat: the same tool with the
// same arguments more than LoopThreshold times among the last LoopWindow tool
// calls of the run. Arguments are the same if they are the same JSON value,
// whatever its spelling, else the same text without white space at its ends.
// Calls that were refused count, by the hook itself too: a model that repeats a
// refused call is in a loop. So does each of several calls of one turn.
//
// After a detection that was only observed, the pair is silent until another
// pair comes. In any other case it fires again at its next call: otherwise a
// nudge would have no second strike, and a refusal in a run that goes on all
// the same would have a hole behind it.
//
// The rule is fooled both ways, as every rule is that looks at calls alone:
// changed words hide a loop, and honest work repeats itself.
//
// # Stalls
//
// A call that is open longer than StallTimeout is a detection, once per call,
// raised by a timer at that moment. The context of the call is cancelled with
// [middleware.ReasonStalled] as its cause. What the agent gets:
//
//	the tool returns                     repeatable tool          any other tool
//	an error                             a denial, stalled        outcome_unknown, and errors.Is(err, stalled)
//	a result (deaf, but it went well)    the result: it happened  the result: it happened
//	nothing within Detach                a denial, stalled        outcome_unknown, and errors.Is(err, stalled)
//
// Detach is off unless it is set: a tool that ignores its context then holds
// its agent for as long as it likes. With it, the call runs on a goroutine of
// its own; if the tool does not come back in the grace time after the
// cancellation, the agent goes on without it. The goroutine is counted
// ([Watchdog.Abandoned]) until it ends, a gate that it reaches late refuses
// because its context is done, and its result is dropped.
//
// [middleware.Pause] stops the clock of the call in its context, and of the
// calls of the same run around it: a paused call does not age.
//
// # Responses
//
// [Watchdog.Model] looks at what a model asks for: a call of a tool that was
// not offered is reported as unknown_tool. It changes nothing.
//
// # Actions
//
//	action     before a call (loop, custom)              during a call (stall)
//	Nudge      not made; soft denial, the model is told  cancelled; soft denial if the tool is repeatable
//	Abort      not made; hard denial, the run is halted  cancelled; hard denial, the run is halted
//	Escalate   not made; denial that asks for a handoff  cancelled; the same denial; if the call went well
//	                                                     all the same, the next call of the run gets it
//	Observe    made                                      goes on
//
// The zero Action, and every unknown one, is Abort. A halted run refuses every
// later call of its tools and models with the reason: a run that was aborted
// never looks like success.
//
// # Order
//
// Inside of the escalation breaker, outside of retry, approval and gate
// ([middleware.StageWatchdog]). Detectors are asked in the order loop, then
// Config.Detectors. The first detection decides; the others still advance and
// are reported, as VerdictAbstain.
//
// # Failure
//
// A detector that panics or fails, and a policy that panics, are contained; the
// call then follows Config.FailMode: closed, the default, refuses it with
// detector_failed (a stalled call is cancelled as Abort would), open lets it go
// on. Both are reported. Without a run, after its end, in a halted run and
// under a context that is done every call is refused.
//
// # Concurrency and state
//
// A Watchdog is safe for concurrent use and has no goroutine of its own but the
// timer's while it rings, and those of Detach. Detectors, the policy and the
// observer are called outside of all locks: detectors and policy of a run may
// run concurrently, the policy for stalls and the observer of them on the
// timer's goroutine. The state of a run is at most 8 KiB, does not grow with
// history, and is let go at its end; it is not persisted: a restored run begins
// with an empty window.
//
// # Cost
//
// Beside hashing the arguments, repeat costs about 80 ns and no allocation, at
// the tenth call and at the millionth alike (BenchmarkRepeat: call=10 less hash
// and off). The stall clock costs about 480 ns and four allocations, most of it
// the cancellable context, whatever the number of open calls (BenchmarkStall: on
// less off); with Detach another 1.8 µs and six allocations. Figures of a
// virtual machine on which a trivial system call takes 1.05 µs.
package watchdog
