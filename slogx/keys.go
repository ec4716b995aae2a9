package slogx

// other stands for every value that is not registered or outside of its list.
const other = "_OTHER"

// The keys of a line, which are those of package otelx. A test compares them.
const (
	keyComponent    = "interlock.decision.component"
	keyVerdict      = "interlock.decision.verdict"
	keyAction       = "interlock.decision.action"
	keyReason       = "interlock.decision.reason"
	keySeq          = "interlock.decision.seq"
	keyLabel        = "interlock.decision.label"
	keyTurn         = "interlock.decision.turn"
	keyCount        = "interlock.decision.count"
	keyLimit        = "interlock.decision.limit"
	keySeverity     = "interlock.decision.severity"
	keyDuration     = "interlock.decision.duration" // s
	keyFailMode     = "interlock.fail_mode"
	keyGeneration   = "interlock.admission.generation"
	keyAttemptCount = "interlock.attempt.count"
	keyOutcome      = "interlock.attempt.outcome"
	keyCircuitState = "interlock.circuit.state"
	keyClass        = "interlock.escalation.class"
	keyFill         = "interlock.context.fill"
	keyDrift        = "interlock.context.drift"
	keyWorkflowID   = "interlock.workflow.id"
	keyRunID        = "interlock.run.id"

	maxAttributes = 21
)
