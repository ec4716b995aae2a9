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
// # Spans
//
//	span                  kind      when                              attributes
//	invoke_agent {label}  internal  a run                             gen_ai.operation.name, gen_ai.agent.name,
//	                                                                  interlock.run.id, interlock.workflow.id
//	chat {label}          client    an attempt at a model             gen_ai.operation.name, gen_ai.provider.name,
//	                                                                  gen_ai.request.model, gen_ai.response.model,
//	                                                                  gen_ai.usage.input_tokens,
//	                                                                  gen_ai.usage.output_tokens,
//	                                                                  gen_ai.response.finish_reasons,
//	                                                                  interlock.attempt.number, decision set
//	execute_tool {label}  internal  a tool that really runs           gen_ai.operation.name, gen_ai.tool.name,
//	                                                                  gen_ai.tool.type
//	interlock.fallback    internal  a call with several candidates;   decision set
//	                                decisions of fallback, model
//	interlock.admission   internal  decisions of admission,           decision set
//	                                approval, chain, run
//	interlock.watchdog    internal  decisions of watchdog             decision set
//	interlock.escalation  internal  decisions of escalation, tool     decision set
//	interlock.breaker     internal  decisions of breaker, context     decision set
//	interlock.budget      internal  decisions of budget               decision set
//
// Every operation that failed also has error.type and status Error, with an
// empty description; interlock.fallback has error.type alone. A decision that
// worked is Unset, also when it is a refusal; one whose component broke down
// (panic, detector_failed, sink_failed, store_failed) is Error. Never Ok, never
// an event.
//
// The decision of an attempt is attributes of its chat span and gets no span of
// its own, but for a skipped attempt, which has no chat span. Readings of the
// context limiter are metrics only. Decisions with verdict allow get a span
// unless [Config].DisableAllowSpans is set; they are counted either way.
// A run without a label is a span named invoke_agent.
//
// The decision set; what does not apply is absent:
//
//	interlock.decision.component     who decided
//	interlock.decision.verdict       allow, deny, modify, escalate, abstain
//	interlock.decision.action        proceed, block, substitute, wait, cancel
//	interlock.decision.reason        one of middleware.Reasons
//	interlock.decision.id            random, made while recording; spans only
//	interlock.decision.seq           order of the decisions of one component
//	interlock.decision.label         registered tool, candidate or agent
//	interlock.decision.turn          model turn of the run
//	interlock.decision.count         what was counted
//	interlock.decision.limit         against which limit
//	interlock.decision.severity      0 to 1
//	interlock.fail_mode              closed, open: where it mattered
//	interlock.admission.generation   of the ledger
//	interlock.attempt.count          attempts so far
//	interlock.attempt.outcome        success, error, timeout, canceled, discarded, skipped
//	interlock.circuit.state          new state of a breaker: closed, open, half_open
//	interlock.escalation.class       uncertainty, permission_denial, tool_failure
//	interlock.workflow.id            registered workflow
//
// # Metrics
//
//	gen_ai.client.operation.duration   histogram s   gen_ai.operation.name, gen_ai.provider.name,
//	                                                 gen_ai.request.model, error.type
//	gen_ai.execute_tool.duration       histogram s   gen_ai.tool.name, error.type
//	gen_ai.invoke_agent.duration       histogram s   gen_ai.agent.name, error.type
//	interlock.decisions                counter       interlock.decision.component, .verdict, .action, .reason
//	interlock.decision.duration        histogram s   interlock.decision.component, .action
//	interlock.fallback.attempts        counter       gen_ai.request.model, interlock.attempt.outcome
//	interlock.circuit.transitions      counter       interlock.circuit.label, interlock.circuit.state,
//	                                                 interlock.decision.reason
//	interlock.circuit.time_in_state    histogram s   interlock.circuit.label, interlock.circuit.state (the one left)
//	interlock.context.fill             histogram 1   –
//	interlock.context.drift            histogram 1   –
//	interlock.escalation.handoffs      counter       interlock.escalation.class
//	interlock.watchdog.trips           counter       interlock.decision.reason
//	interlock.telemetry.rejected       counter       interlock.telemetry.kind (agent, tool, candidate, model, workflow,
//	                                                 label, enum, operation, gauge)
//	interlock.circuit.state            gauge         interlock.circuit.label, interlock.circuit.state
//	interlock.admission.state          gauge         interlock.admission.scope (global, workflow),
//	                                                 interlock.admission.state (enabled, disabled, stopped, untrusted)
//	interlock.escalation.queue         gauge         –
//	interlock.effects.in_flight        gauge         –
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
