// Package middleware is the core of Interlock: the chain around an agent's
// calls of tools and models, and the words that all its parts share.
//
//	lookup, err := middleware.WrapTool(tool, middleware.ToolConfig{
//		Effect: middleware.ReadOnly,
//		Chain:  middleware.Chain(watch, gate), // watch(gate(tool))
//	})
//	…
//	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow, Previewer: admission})
//	…
//	defer run.End()
//	out, err := chains.Run(ctx, executor, question) // an executor with lookup among its tools
//
// An executor that is not langchaingo's uses [NewTool] and [GuardedTool.Do]; no
// type of langchaingo is needed there. The root package builds the chains in
// the safe order; this one is for those who want only a part of them.
//
// # Order
//
// First is outermost, everywhere: Chain(a, b, c)(h) == a(b(c(h))).
//
//	call ─▶ recover ─▶ run check ─▶ a ─▶ b ─▶ c ─▶ settle ─▶ tool
//	◀──────────────────────────────────────────────────────── result
//
// The adapters ([NewTool], [NewModel]) bring what is around a, b and c. A chain
// is applied once, at construction. Functions are opaque, so the order of a
// hand-made chain cannot be checked there; the parts of the library stand in a
// [Stage] each ([At]) and the first call through a wrong order is refused
// (unsafe_order). The order is that of [Stages]: run, budget, escalation,
// watchdog, context, breaker, retry, approval, gate, fallback, span. A nil
// layer, or a nil handler, refuses every call.
//
// # Failure contract
//
// A refusal is a [Denial]; what was tried and went wrong is a [Failure], a
// [PanicError] or another [Reasoned] error. errors.Is finds the [Reason] of
// each, through every layer and through langchaingo's executor and chains.
// Anything unknown, nil, late or panicking means that there is no effect.
//
// langchaingo's executor ends the run at any error of a tool and throws its
// steps away, so [WrappedTool.Call] decides what it gets
// ([GuardedTool.Observation] decides the same for other executors):
//
//	what happened                                   given to the executor
//	soft denial                                     its fixed sentence, nil error
//	ordinary error of the tool, its own timeout     a fixed sentence with the class, nil error;
//	                                                its text only where released (ErrorText, Observable)
//	hard denial of another run (a nested agent's)   as an error of the tool
//	hard denial of this run, or of admission        the denial: the run ends
//	unknown outcome (timeout, cancel, panic, no     outcome_unknown: the run ends, and
//	result) of a tool that is not repeatable        nobody is invited to pay twice
//	panic of a repeatable tool                      the PanicError: the run ends
//	context done, with an error                     canceled: the run ends
//	context done, without an error                  the result: the effect happened
//
// A model call under a context that is done is canceled whatever came back,
// because clients return half an answer with a nil error; a response that an
// agent would panic on is bad_response.
//
// # Runs
//
// A guarded call belongs to a [Run] that travels in the context; without one it
// is refused (no_run), and so it is after the end (run_ended) and in a run that
// was halted. A run in the context becomes the parent of a new one: ending and
// halting flow down. The run holds the admission [Preview] that effects are
// checked against, and the state that components keep for it ([PerRun]), which
// is let go at the end.
//
// [Run.Save] and [RestoreRun] persist a run as strict, versioned JSON:
// identifiers, the preview, whether it is halted, and a section for each named
// PerRun. A halted run is restored as halted; anything that Save did not write
// is invalid_run_state. Turns and identifiers of calls are not kept: a run is
// saved between two requests, when no call is under way.
//
// # Concurrency
//
// Handlers, tools, models and runs are safe for concurrent use. No lock of this
// package is held while a layer, an observer, a receiver, a function of PerRun
// or a tool runs, and this package starts no goroutine. [ToolCall] and
// [ModelCall] are immutable but for the mark of their stage, which belongs to
// one attempt: attempts that run at once need a copy each ([ToolCall.NextAttempt],
// [ToolCall.Clone], [ModelCall.WithCandidate]).
//
// # Cost
//
// Nothing grows with the history of a run. The whole seam of a tool with eight
// layers costs about half as much as one getppid call on the machine that it
// was measured on, and three allocations (BenchmarkToolSeam beside
// BenchmarkControlGetppid).
//
// # Content
//
// Content is what a prompt, an argument, a result, an error of a tool or model,
// a panic or a provider's identifier of a call says: [ToolCall.Input],
// [ToolCall.ID], [ToolCall.Name], [ToolResult.Output], [ModelCall.Messages], the
// options, [PanicError.Value], [PanicError.Stack] and what Unwrap gives. It
// stays in the process, but for what the agent itself sends to its model. What
// leaves is made of closed enums, numbers and values of package ident: a
// [Decision], the text of an error (for every verb of fmt, and in slog), the
// fixed sentences that a model is told, and a saved run. The sections of a saved
// run are as content-free as the PerRun that wrote them.
package middleware
