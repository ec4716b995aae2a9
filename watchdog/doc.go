// Package watchdog stops an agent that goes round in circles and a tool that
// hangs.
//
//	dog, err := watchdog.New(watchdog.DefaultConfig())
//	…
//	lookup, err := middleware.WrapTool(tool, middleware.ToolConfig{
//		Effect: middleware.ReadOnly,
//		Chain:  middleware.Chain(dog.Tool(), gate),
//	})
//	model, err := middleware.WrapModel(llm, middleware.ModelConfig{Chain: dog.Model()})
//
// Three things are kept apart: a [Detector] says what happened ([Detection]), a
// [Policy] says what should happen ([Action]), and the hook, [Watchdog.Tool] and
// [Watchdog.Model], makes it happen.
//
// # Loops: progress
//
// [LoopProgress], the default, asks whether anything changes that the task can
// use. That is news:
//
//   - a result that a tool has not given before, or an error; and one that this
//     tool with these arguments has not given before, if it is another one than
//     last time;
//   - an effect that succeeds with arguments that it has not had before;
//   - a further item of a list: new arguments that an earlier result or a request
//     to the model has named, or that the result counts (page 3 of 14);
//   - a progress signal that is higher than ever.
//
// Words of a thought, the spelling of arguments, counters and identifiers in
// arguments, the order of lines, clocks and request identifiers in results, and
// errors that only repeat the arguments are none (callkey.Result lists what is
// left out of a result). Calls of one turn are one step, in any order. A call
// that is refused is a step without news. A rule fires before the call that
// would go on with what was seen:
//
//	reason      seen without news between
//	loop        one call with an equal result: 3 times an effect, 4 times a failure or an idempotent effect, 5 times a read
//	cycle       3 rounds of the same 1…8 steps, in any order within a round; one in two may have other arguments that make
//	            no difference; or 2…8 calls in no order at all, 4 times over
//	drift       8 new sets of arguments for one tool, guesses; 6 for a tool that has effects
//	stagnation  8 equal failures of one check, with other effects between: effects are news, but not to this rule
//	waiting     13 equal results of a [middleware.Polling] tool, or of a call with waits between (tools whose name
//	            says sleep, wait, delay or pause; shell commands that begin with sleep); not after ToolResult.Final
//	fuse        Config.Fuse steps of any kind but waiting
//
// At the seam of the model:
//
//	answer_loop   3 equal responses (text and calls) with no call made between, 5 if a human says something new each time;
//	              4 in a row that a textual agent cannot read
//	unknown_tool  3 calls of tools that were not offered
//
// Errors of providers are never evidence, however many. After a detection that
// was only observed the detector is silent until there is news. After one that
// stopped the call, each further call that goes on with it fires again; after
// the fuse, five calls that are new may be tried.
//
// go test -run Corpus -v ./watchdog prints precision and recall on the corpus of
// testdata/corpus, whose README has the rule of its labels.
//
// # Loops: repeat
//
// [LoopRepeat] is the simple rule that is well known: the same tool with the
// same arguments more than LoopThreshold times among the last LoopWindow tool
// calls of the run. It is fooled both ways: changed words hide a loop, and honest
// work repeats itself. Calls that were refused count. After a detection that was
// only observed, the pair is silent until another pair comes; in any other case
// it fires again at its next call.
//
// Arguments are the same if they are the same JSON value, whatever its spelling,
// else the same text without white space at its ends.
//
// # Non-guarantees
//
// What arguments and results alone cannot settle is not seen: agents that thank
// each other in fresh words, one file read at shifted offsets, results that are
// random. A tool that is effectful by default because nobody declared it may
// succeed with ever other arguments for as long as it likes. Signs of failure in
// a result's text are English. The run's budget bounds all of these.
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
// # Confidence
//
// With Config.Regression, a mean of the newer half of the last RegressionWindow
// confidences that lies RegressionDrop below that of the older half is a
// detection, once until it recovers. It needs the watchdog among the run's
// receivers, as the progress signal does; interlock.Guard sees to that.
//
// # Actions
//
//	action     before a call                             in a response                            during a call (stall)
//	Nudge      not made; soft denial, the model is told  a sentence in the next request           cancelled; soft denial if repeatable
//	Abort      not made; hard denial, the run halts      withheld; hard denial, the run halts     cancelled; hard denial, the run halts
//	Escalate   not made; denial that asks for a handoff  withheld; the same denial                cancelled; the same denial; if it went well
//	                                                                                              all the same, the next call gets it
//	Observe    made                                      passed on                                goes on
//
// What a [Poller] finds, and the third unknown tool of a textual agent, takes
// effect at the run's next call. The zero Action, and every unknown one, is
// Abort. A halted run refuses every later call of its tools and models with the
// reason: a run that was aborted never looks like success.
//
// # Order
//
// Inside of the escalation breaker, outside of retry, approval and gate
// ([middleware.StageWatchdog]). Detectors are asked in the order loop,
// regression, Config.Detectors. The first detection decides; the others still
// advance and are reported, as VerdictAbstain.
//
// # Failure
//
// A detector that panics or fails, and a policy that panics, are contained; the
// call then follows Config.FailMode: closed, the default, refuses it with
// detector_failed (a stalled call is cancelled as Abort would), open lets it go
// on. Both are reported. Events that cannot be, an end without a beginning say,
// change nothing and are counted ([Watchdog.Ignored]). Without a run, after its
// end, in a halted run and under a context that is done every call is refused.
//
// # Concurrency and state
//
// A Watchdog is safe for concurrent use and has no goroutine of its own but the
// timer's while it rings, and those of Detach and of a [Runner]. Detectors, the
// policy and the observer are called outside of all locks: detectors and policy
// of a run may run concurrently, the policy for stalls and the observer of them
// on the timer's goroutine. The state of a run is at most 8 KiB
// (TestStateIsBounded, TestStateAtAMillion), does not grow with history, holds
// hashes and no content, and is let go at its end; it is not persisted: a
// restored run begins anew.
//
// # Cost
//
// Beside hashing arguments and results, the rules of progress cost 110 ns where
// calls recur and 270 ns where each is new, and no allocation, at the tenth call
// and at the millionth alike (BenchmarkRules); repeat about 80 ns
// (BenchmarkRepeat: call=10 less hash and off). Hashing takes about 0.4 µs for 30 bytes of
// arguments and 1 µs for a line of results (callkey's BenchmarkCall and
// BenchmarkResult). The stall clock costs about 480 ns and four allocations, most
// of it the cancellable context, whatever the number of open calls
// (BenchmarkStall: on less off); with Detach another 1.8 µs and six allocations.
// Figures of a virtual machine on which a trivial system call takes 1.05 µs.
package watchdog
