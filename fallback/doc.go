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
// A call starts at the first candidate that is not benched. What a failure means is its [Class]: the same candidate is
// asked again, the call moves to the next one, or the failure is returned. Moving on benches the candidate (30 s, or
// Retry-After if that is longer, at most 10 min; quota, not_found and auth 10 min): later calls start behind it. When
// the bench is over, one call at a time probes the candidate while the others go on down the chain; success brings it
// back. With every candidate benched, a call asks the one whose bench ends soonest, or waits for the probe that is
// asking it and shares its outcome: a chain never refuses without having asked anyone. A single candidate is never
// benched, for there is nowhere to go.
//
// Before the same candidate is asked again, the call waits: 250 ms doubled up to 8 s with full jitter, and what the
// provider asked for, if that fits the caller's deadline and is not longer than 8 s (with nobody else left: than an
// attempt); else it moves on. An outage does not multiply the load: a call makes at most 6 attempts, of which one is kept
// for each candidate not yet asked; three failures in a row, over all calls, end the retries at a candidate and bench it;
// and the retries of the last 10 s are at most 10 and 20 % of its calls.
//
// The caller's own cancellation, deadline, or error out of its StreamingFunc is never a reason to move on, and wins
// over whatever the provider returned, also over a nil error.
//
// Per attempt, outermost first: span, recover, [Config.Around], bridge, model. The bridge makes agents work across
// vendors: functions become tools, arguments in the history become JSON objects, the choices of one message are merged,
// and whatever else a client needs ([Bridge]).
// The name of the candidate's model is the last option of every attempt, so a WithModel of the caller reaches nobody
// else's model.
//
// # What a candidate takes
//
// Clients silently drop what they do not know: tools, stop words, images, all messages but the first. A call is never
// given to a candidate that would drop a part of it ([Capabilities]); it goes past that one, which is reported
// (ineligible) and benches nobody. A list that cannot serve the agent in use is refused by [Config.Requires] when it is
// made.
//
// [Resolve] makes candidates of specs such as "openai:gpt-4o" and a key per provider. The core is built without any
// provider's client: the packages below this one bring in theirs when they are imported, and [Register] takes others.
//
// # Streaming
//
// Once a chunk with text has reached the caller, the call never moves to another candidate: a failure is then an
// [InterruptedError], never a nil error. With [Buffered] chunks reach the caller only after the attempt has succeeded, so
// that a stream which breaks off or falls silent is rescued. Chunks that hold only the deltas of tool calls (openai sends
// those too) do not count and are held back until text follows or the attempt has succeeded. Empty chunks are not passed
// on. Chunks that come after their attempt has ended are dropped.
//
// # Limits
//
// [Config.AttemptTimeout] is for a whole attempt, [Config.FirstToken] and [Config.Idle] watch the tokens of a stream, also
// of one that the model makes inwardly for a call that does not stream: at googleai and ollama, and, where a [Transport]
// sees what else would go unseen, at openai and anthropic; never with tools, and never for several answers. A client that
// tells nothing of a tool call while it reads it (anthropic) is watched through a Transport only. An attempt past a limit
// is cancelled, and nothing of it is used.
//
// # Whole answers only
//
// A response without choices, with a nil choice, without text and calls, or with a call whose arguments are cut is a
// failure (bad_response), so is a streamed answer without a reason for its end, and what one of [Config.Checks] rejects.
// Give candidates whose client takes an *http.Client a [Transport]: only that sees statuses, Retry-After and a damaged
// stream that the client reports as a success.
//
// # Failures
//
// [ExhaustedError]: everybody failed, also a single candidate more than once. [CandidateError]: one candidate failed in a
// way that is not moved on from. [InterruptedError]: as above. A middleware.Denial from inside an attempt is returned as it
// is. None of their texts contains anything that a provider sent; the causes are reachable by Unwrap.
//
// [WithReport] gives the account of a call: who answered, and what each attempt cost at which provider.
//
// # Concurrency
//
// A [Model] is safe for concurrent use. Its state is under one lock, and no callback runs under it. Clients that ignore
// their context ([Candidate.Deaf]) run on a goroutine of their own that ends when the client returns; those left behind
// are counted ([Model.Abandoned]) and bounded. Probes and permits are released on return, error, panic and runtime.Goexit.
package fallback
