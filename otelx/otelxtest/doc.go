// Package otelxtest proves that a chain lets no content out: plant a secret
// wherever content goes in, and look for it, in every spelling, wherever
// something comes out.
//
//	canary := otelxtest.NewCanary(7)
//	tel := otelxtest.NewTelemetry(t)
//	… // build the chain on tel's providers, call it with canary.Phrase()
//	for _, f := range canary.Scan("spans", tel.Traces()) {
//		t.Error(f)
//	}
//
// A [Canary] is a secret with its encodings: as it is, in any letter case,
// escaped for URLs, in hexadecimal digits, in base64 at each of the three
// alignments and in both alphabets, as JSON, as Go source, as a list of bytes.
// [Canary.Scan] says where it stands and in which encoding, never what it is.
//
// Outlets are bytes. [Telemetry] collects the spans and metrics of
// OpenTelemetry's SDK; [Printed] gives a value, most of all an error, in every
// form that fmt, encoding/json and log/slog give it without unwrapping it.
//
// A [Matrix] keeps account of many secrets' ways in and out: each cell of slots
// × outlets is either scanned or named as an exception, with its reason, whose
// secret must really be there; an outlet that does not hold its marker fails
// the test, because a scan of nothing proves nothing.
//
// # What a scan does not see
//
// Parts of a secret, compressed or encrypted bytes, and any encoding that is not
// in [Encodings]. Prove the scan itself with a twin that does it the usual way:
// the same scan must catch it in every outlet.
//
// Everything here is safe for concurrent use, and is meant for tests.
package otelxtest
