// Package looptrace is the corpus of the loop detectors: labelled traces of
// agents, their replay through a detector, and the score.
//
//	traces, err := looptrace.Read(file)
//	…
//	for _, t := range traces {
//		firings, err := looptrace.Replay(ctx, looptrace.Progress, t)
//		…
//		report.Add(t, looptrace.Judge(t, firings))
//	}
//
// The schema and the rule of the labels stand in the README.md beside the data,
// watchdog/testdata/corpus. Commands: internal/looptrace/replay scores a file,
// internal/looptrace/show prints one trace as a timeline.
//
// # Replay
//
// A trace is replayed by real calls through the public seams: a fresh run,
// tools registered with their effect class behind Watchdog.Tool, a model behind
// Watchdog.Model that is asked with the conversation so far, signals by
// [middleware.Report]. So what is measured is what users get, and nothing of a
// detector's inside is needed. The policy observes; what it is asked about is a
// firing. Calls of one turn are made one after the other.
//
// # Order, concurrency, state
//
// The package stands beside the chain, not in it. Nothing is shared between two
// replays, so they may run concurrently. A [Report] is not safe for concurrent
// use.
//
// # Failure and content
//
// The parser is strict and bounded: a [ParseError] has a line and a [Code], and
// never an excerpt. A trace that cannot be replayed (the watchdog refuses a
// call, a tool cannot be registered) is an error, never a quiet trace. Only the
// timeline prints content, because that is what it is for.
package looptrace
