// Package callkey turns the content of tool calls into short values that can
// only be compared: a [Key] for a tool with its arguments, a [Key] for a
// result, and a binding over any parts. They are made with a random key that
// never leaves the process, so they say nothing to anybody else.
//
//	keys := callkey.New()
//	a := keys.Call(label, `{"id": 7, "page": 1.0}`)
//	b := keys.Call(label, `{"page":1,"id":7}`)
//	fmt.Println(a == b)                          // true
//	before := keys.Result(`{"id":7}`, "order 7 shipped at 10:15:02")
//	after := keys.Result(`{"id":7}`, "order 7 shipped at 10:16:40")
//	fmt.Println(before == after)                 // true
//	bound := keys.Sum(label.String(), input, generation)
//
// # Canonical arguments
//
// Arguments that are JSON (RFC 8259) have one key whatever their spelling:
// order of object members, insignificant white space, the form of numbers (1,
// 1.0, 1e0 and 10e-1; compared as decimals of any length, never as floating
// point, so 9007199254740993 is not 9007199254740992; -0 is 0) and escapes in
// strings. Members with equal names are all kept, in their order: parsers
// disagree which one counts. Unicode is not normalised.
//
// Everything else is text, compared after white space at its ends is removed:
// what is not JSON, JSON that nests deeper than [MaxDepth], and JSON with more
// than [MaxMembers] objects and members. Falling back makes equality stricter,
// never wider.
//
// # Result signature
//
// Two results have one signature if they say the same. What counts as volatile
// and is left out is listed at [Keyer.Result].
//
// # Keyed digest
//
// SHA-256 over a random 256-bit key and an encoding in which no message is the
// beginning of another. HMAC adds nothing to that here, because no digest
// leaves memory and the encoding rules out extension, and costs half as much again
// for short arguments (BenchmarkKeyedDigest). A fast hash with a seed
// (hash/maphash) is not made to withstand a model that writes the arguments.
//
// # Concurrency, cost and failure
//
// A Keyer is safe for concurrent use. Time is linear in the input (sorting
// members: n log n), memory is bounded, nothing panics and nothing fails: every
// input has a key. Small inputs allocate nothing (BenchmarkCall).
package callkey
