package otelx

import "go.opentelemetry.io/otel/attribute"

// scopeName names the instrumentation scope of spans and metrics.
const scopeName = "github.com/interlock-go/interlock/otelx"

// other stands for every value that is outside of its closed set or registry.
const other = "_OTHER"

// Attribute keys that are published by OpenTelemetry. A test compares them with
// semconv v1.41.0, the last Go package that has them; they are constants here
// so that a newer package cannot rename what dashboards stand on.
const (
	keyOperation     = attribute.Key("gen_ai.operation.name")
	keyAgent         = attribute.Key("gen_ai.agent.name")
	keyProvider      = attribute.Key("gen_ai.provider.name")
	keyRequestModel  = attribute.Key("gen_ai.request.model")
	keyResponseModel = attribute.Key("gen_ai.response.model")
	keyInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	keyOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	keyFinishReasons = attribute.Key("gen_ai.response.finish_reasons")
	keyTool          = attribute.Key("gen_ai.tool.name")
	keyToolType      = attribute.Key("gen_ai.tool.type")
	keyErrorType     = attribute.Key("error.type")
)

// Attribute keys of this library.
const (
	keyRunID      = attribute.Key("interlock.run.id")
	keyWorkflowID = attribute.Key("interlock.workflow.id")

	keyComponent = attribute.Key("interlock.decision.component")
	keyVerdict   = attribute.Key("interlock.decision.verdict")
	keyAction    = attribute.Key("interlock.decision.action")
	keyReason    = attribute.Key("interlock.decision.reason")
	keyID        = attribute.Key("interlock.decision.id")
	keySeq       = attribute.Key("interlock.decision.seq")
	keyLabel     = attribute.Key("interlock.decision.label")
	keyTurn      = attribute.Key("interlock.decision.turn")
	keyCount     = attribute.Key("interlock.decision.count")
	keyLimit     = attribute.Key("interlock.decision.limit")
	keySeverity  = attribute.Key("interlock.decision.severity")
	keyFailMode  = attribute.Key("interlock.fail_mode")

	keyGeneration     = attribute.Key("interlock.admission.generation")
	keyScope          = attribute.Key("interlock.admission.scope")
	keyAdmissionState = attribute.Key("interlock.admission.state")
	keyAttemptNumber  = attribute.Key("interlock.attempt.number")
	keyAttemptCount   = attribute.Key("interlock.attempt.count")
	keyOutcome        = attribute.Key("interlock.attempt.outcome")
	keyCircuitState   = attribute.Key("interlock.circuit.state")
	keyCircuitLabel   = attribute.Key("interlock.circuit.label")
	keyClass          = attribute.Key("interlock.escalation.class")
	keyKind           = attribute.Key("interlock.telemetry.kind")
	keyLinkKind       = attribute.Key("interlock.link.kind")
)

// Values and span names that are published.
const (
	operationChat  = "chat"
	operationAgent = "invoke_agent"
	operationTool  = "execute_tool"
	toolFunction   = "function"
)

// Names of the decision spans.
const (
	spanAdmission  = "interlock.admission"
	spanFallback   = "interlock.fallback"
	spanWatchdog   = "interlock.watchdog"
	spanEscalation = "interlock.escalation"
	spanBreaker    = "interlock.breaker"
	spanBudget     = "interlock.budget"
)

// Names of the instruments. gen_ai.invoke_agent.duration and
// gen_ai.execute_tool.duration are in no Go package: they are defined by
// model/gen-ai/metrics.yaml of github.com/open-telemetry/semantic-conventions-genai
// (pull request 201), as it stands at commit
// 004902b8cb70aa5ae6ca4ae07132b7daabcd3e10.
const (
	metricOperation = "gen_ai.client.operation.duration"
	metricTool      = "gen_ai.execute_tool.duration"
	metricAgent     = "gen_ai.invoke_agent.duration"

	metricDecisions        = "interlock.decisions"
	metricDecisionDuration = "interlock.decision.duration"
	metricAttempts         = "interlock.fallback.attempts"
	metricTransitions      = "interlock.circuit.transitions"
	metricTimeInState      = "interlock.circuit.time_in_state"
	metricFill             = "interlock.context.fill"
	metricDrift            = "interlock.context.drift"
	metricHandoffs         = "interlock.escalation.handoffs"
	metricTrips            = "interlock.watchdog.trips"
	metricRejected         = "interlock.telemetry.rejected"

	metricCircuitState   = "interlock.circuit.state"
	metricAdmissionState = "interlock.admission.state"
	metricQueue          = "interlock.escalation.queue"
	metricInFlight       = "interlock.effects.in_flight"
)

// enum is a closed set of the vocabulary: what may become an attribute's text.
type enum interface {
	~uint8
	String() string
}

// enumText returns the text of e, or _OTHER for a value outside of its set.
func enumText[E enum](e E) string {
	s := e.String()
	if s == "invalid" { // what every enum of the vocabulary renders outside of its set
		return other
	}

	return s
}

func enumAttr[E enum](k attribute.Key, e E) attribute.KeyValue {
	return k.String(enumText(e))
}

// known reports whether e is in its closed set.
func known[E enum](e E) bool { return enumText(e) != other }
