// Package otelx turns decisions and operations into OpenTelemetry spans and
// metrics that contain no content.
//
//	tel, err := otelx.New(otelx.Config{
//		TracerProvider: otel.GetTracerProvider(),
//		MeterProvider:  otel.GetMeterProvider(),
//		Tools:          []ident.Label{ident.MustLabel("issue_refund")},
//		Candidates:     []otelx.Candidate{{Label: primary, Provider: openai, Model: gpt}},
//	})
//	defer tel.Close()
//	tools := middleware.Chain(gate, middleware.TraceTool(tel)) // a Tracer …
//	middleware.Notify(ctx, tel, decision)                      // … and an Observer
//
// # What can be in it
//
// A value in telemetry is (a) a constant of this source, (b) a label that was
// registered in [Config], (c) a number or boolean, or (d) a random identifier
// that the library made. No function that is called on the request path takes a
// string, an error or an any; labels of calls are looked up in the registry,
// which is frozen by [New]. A miss renders as _OTHER and is counted in
// interlock.telemetry.rejected. There is no switch that lets content in.
//
// # What there is
//
// [Spans], [Attributes] and [Instruments] describe everything, and the
// instruments are made from it; docs/telemetry.md is the same as a page.
//
//	invoke_agent {label}                 a run
//	  interlock.fallback                 a call of a model with several candidates
//	    chat {label}                     an attempt at one of them
//	  interlock.admission, .watchdog, …  a decision
//	  execute_tool {label}               a tool that really runs: a refused one has
//	                                     its decision alone, and the span of one that
//	                                     was left behind ends when the tool does
//
// An operation that failed has error.type and status Error, with an empty
// description; interlock.fallback has error.type alone. A decision that worked
// is Unset, also when it is a refusal, or the count of an action that panicked;
// one whose component broke down (panic, detector_failed, summary_failed,
// sink_failed, store_failed) is Error. Never Ok, never an event.
//
// The decision of an attempt is attributes of its chat span and gets no span of
// its own, but for a skipped attempt, which has no chat span. Readings of the
// context limiter that find nothing are metrics only. Decisions with verdict
// allow get a span unless [Config].DisableAllowSpans is set; they are counted either way.
//
// A run that another process saved ([Telemetry.Slot]) has a span of its own, with
// a link to the one that it continues, whose one attribute says so
// (interlock.link.kind = resumed). That is never its parent.
//
// No instrument has 1000 series: registries and enums are capped, and series
// past 900 of one instrument are folded together as _OTHER. The gauges are read
// from [Config].Gauges and [Telemetry.Watch] at collection; a state that nothing
// is in is 0, and a source that panics is absent.
//
// # Concurrency and failure
//
// A [*Telemetry] is safe for concurrent use and starts no goroutine. Recording
// takes no lock of its own but for changes of a breaker's state. What a
// provider or a processor does wrong (panics, gives nil) is contained: the call
// goes on, the other half is still told, and a span that was opened is ended
// exactly once. What a synchronous exporter costs is paid by the call; use a
// batching one.
//
// nil providers cost nothing: without a TracerProvider no span is opened,
// without a MeterProvider nothing is counted.
package otelx
