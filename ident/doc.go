// Package ident holds the names that may leave the process: canonical,
// content-free value types, and nothing else.
//
//	id, err := ident.ParseWorkflowID("workflow:org.example/refunds@1.0.0")
//	run, err := ident.NewRunID()              // run_ + 32 hex digits
//	tool := ident.MustLabel("lookup_order")   // a telemetry name
//
// Five types: [WorkflowID] and [ToolID] are reverse-domain identifiers,
// [RunID] is 128 random bits, [Label] is a short name from a fixed grammar,
// [Digest] is a SHA-256 value. Each has private fields and a zero value that is
// invalid (for Digest: the all-zero digest), is comparable, and is safe for
// concurrent use. String gives the value; GoString and %#v give a redaction, so
// that a dump of a structure does not become an inventory of identifiers.
//
// A value that does not parse is an [Error] with a [Code]. No error of this
// package contains any part of what was given to it: identifiers often come
// from configuration and requests, and both can hold secrets.
//
// The grammar is hygiene: it keeps control characters, spaces and long text out.
// What keeps content out is that the library renders only identifiers that were
// registered at construction.
package ident
