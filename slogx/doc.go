// Package slogx writes every decision as one structured line of log/slog, for
// those who run without OpenTelemetry. A line contains no content.
//
//	lines, err := slogx.New(slogx.Config{
//		Logger:    slog.New(slog.NewJSONHandler(os.Stderr, nil)),
//		Labels:    []ident.Label{refund, primary, desk},
//		Workflows: []ident.WorkflowID{refunds},
//	})
//	guard, err := interlock.New(interlock.Config{Observer: lines, …})
//
// # What can be in it
//
// The message is always [Message]. The keys are those of package otelx's spans
// and metrics, so that a line and a span are found by the same words; what does
// not apply is absent. A value is a word of a closed list, a number, a label or
// workflow that was registered in [Config], or the random identifier of the run.
// What is not registered, or outside of its list, is _OTHER and counted by
// [Observer.Rejected]. Time, level, and what the logger and its handler add by
// themselves come from there: the context is handed to the handler.
//
// The level says the verdict: allow and abstain are Debug, modify is Info, deny
// and escalate are Warn, anything else is Error; see [Config].Levels.
//
// # Concurrency and failure
//
// An [*Observer] is safe for concurrent use as far as its handler is, takes no
// lock and starts no goroutine. A handler that panics or fails is contained and
// counted by [Observer.Failed]; one that blocks holds the call, so give a slow
// one a queue of its own.
//
// A line costs what log/slog takes for a line of as many attributes, with as many
// allocations; where the level is not enabled it costs a hundredth of that, and
// none (BenchmarkObserve).
package slogx
