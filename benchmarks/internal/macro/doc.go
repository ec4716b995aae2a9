// Package macro holds the rows of the set: whole runs of langchaingo agents,
// with its openai client, over HTTP on loopback.
//
// A run is one question: the model asks for one tool, is told the result, and
// answers; so it makes two requests. The bare agent and the guarded one share
// everything but the guard: the same client, the same transport with connections
// that are kept alive, the same provider, which answers at once. The guard has
// its defaults, a ledger that is checked before each call of the tool, and a
// no-op tracer and meter. No real model answers at once: its latency would hide
// what is measured, so the shares that these rows show are the worst case.
//
// With limits between tokens, which are on by default, the fallback streams an
// answer inwardly where no tools are offered (the MRKL agent's always), so that a
// provider that falls silent is noticed. Parsing a stream costs the client more
// than parsing a body; "guarded-unwatched" has these limits off.
//
// A load is some number of runs at a time. Latencies of its runs, and how many
// ended in a second, are rows of their own, taken from the same batch; the batch
// of the bare agent and that of the guarded one take turns.
//
// In the outage a thousand runs are under way at once while the first provider
// answers 503 after ten milliseconds, and the second one works. What is compared
// is the fallback, and code that asks the second whenever the first has failed.
package macro
