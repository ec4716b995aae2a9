// Package fallback asks an ordered list of models until one of them gives a whole answer.
//
//	m, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{
//		{Label: ident.MustLabel("primary"), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: gpt},
//		{Label: ident.MustLabel("backup"), Provider: fallback.ProviderAnthropic, ModelName: "claude-sonnet-4", Model: claude},
//	}})
//	if err != nil { … }                              // field and reason, nothing else
//	resp, err := m.GenerateContent(ctx, messages)    // an llms.Model
//	chain := middleware.Chain(outer)(m.Handle)       // or the inner end of a model chain
//	fmt.Println(m.Active())                          // where the next call starts
//
// # One call
//
// A call starts at the first candidate that is not benched. What a failure means is its [Class]: it moves the call to
// the next candidate, or it is returned. A failure that says something about the candidate benches it (30 s, or
// Retry-After if that is longer, at most 10 min; quota, not_found and auth 10 min): later calls start behind it. When
// the bench is over, one call at a time probes the candidate while the others go on down the chain; success brings it
// back. With every candidate benched, a call asks the one whose bench ends soonest, or waits for the probe that is
// asking it and shares its outcome: a chain never refuses without having asked anyone. A single candidate is never
// benched, for there is nowhere to go. At most 6 attempts belong to a call.
//
// The caller's own cancellation, deadline, or error out of its StreamingFunc is never a reason to move on, and wins
// over whatever the provider returned, also over a nil error.
//
// Per attempt, outermost first: span, recover, [Config.Around], bridge, model. The bridge makes agents work across
// vendors: functions become tools, arguments in the history become JSON objects, the choices of one message are merged.
// The name of the candidate's model is the last option of every attempt, so a WithModel of the caller reaches nobody
// else's model.
//
// # Streaming
//
// Once a chunk with text has reached the caller, the call never moves to another candidate: a failure is then an
// [InterruptedError], never a nil error. Chunks that hold only the deltas of tool calls (openai sends those too) do not
// count and are held back until text follows or the attempt has succeeded. Empty chunks are not passed on. Chunks that
// come after their attempt has ended are dropped.
//
// # Whole answers only
//
// A response without choices, with a nil choice, without text and calls, or with a call whose arguments are cut is a
// failure (bad_response), and so is a streamed answer without a reason for its end. Give candidates whose client takes
// an *http.Client a [Transport]: only that sees statuses, Retry-After and a damaged stream that the client reports as a
// success.
//
// # Failures
//
// [ExhaustedError]: everybody failed. [CandidateError]: one candidate failed in a way that is not moved on from, or there
// is only one. [InterruptedError]: as above. A middleware.Denial from inside an attempt is returned as it is. None of their
// texts contains anything that a provider sent; the causes are reachable by Unwrap.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. Its state is under one lock, and no callback runs under it. Clients that ignore
// their context ([Candidate.Deaf]) run on a goroutine of their own that ends when the client returns; those left behind
// are counted ([Model.Abandoned]) and bounded. Probes are released on return, error, panic and runtime.Goexit.
package fallback
