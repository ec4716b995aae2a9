package middleware

// Reason is why a component decided as it did: one closed list with the codes
// of every part of the library. The zero value is no reason and never allows
// anything.
//
// A Reason is an error, so that packages can export readable names for what a
// caller asks about, and errors.Is finds it in a [Denial] and in every failure
// of the library:
//
//	var ErrStopped error = middleware.ReasonAdmissionStopped
type Reason uint8

// The reasons, by the part that gives them.
const (
	_ Reason = iota

	// Chain, run and adapters.
	ReasonOK
	ReasonNilHandler
	ReasonUnsafeOrder
	ReasonNoRun
	ReasonRunEnded
	ReasonUnknownWorkflow
	ReasonInvalidRunState
	ReasonCanceled
	ReasonPanic
	ReasonOutcomeUnknown
	ReasonToolFailed
	ReasonToolTimeout
	ReasonModelFailed
	ReasonAgentFailed
	ReasonInvalidConfig
	ReasonAlreadyWrapped
	ReasonDuplicateTool
	ReasonDuplicateLabel
	ReasonInvalidLabel

	// Escalation breaker and handoffs.
	ReasonCircuitOpen
	ReasonInvalidThreshold
	ReasonInvalidTimestamp
	ReasonInvalidDigest
	ReasonInvalidClass
	ReasonFailureCounted
	ReasonLowConfidence
	ReasonHumanGate
	ReasonSafetyReview
	ReasonInvalidHandoff
	ReasonHandoffExpired
	ReasonHandoffFuture
	ReasonSinkFailed

	// Review queue.
	ReasonUnknownHandoff
	ReasonHandoffDecided
	ReasonInvalidDecision
	ReasonQueueUnreadable
	ReasonQueueBusy
	ReasonQueueFull
	ReasonQueueFailed

	// Action breaker and budget.
	ReasonParked
	ReasonGuardrail
	ReasonDuplicateAction
	ReasonActionFailed
	ReasonContextDrift
	ReasonContextFull
	ReasonSummaryFailed
	ReasonRecovered
	ReasonTrial
	ReasonProfileChanged
	ReasonBudgetExceeded
	ReasonToolLimit
	ReasonInvalidLimit

	// Watchdog.
	ReasonLoop
	ReasonCycle
	ReasonDrift
	ReasonStagnation
	ReasonFuse
	ReasonWaiting
	ReasonAnswerLoop
	ReasonUnknownTool
	ReasonStalled
	ReasonRegression
	ReasonCustomDetector
	ReasonDetectorFailed
	ReasonAbandoned

	// Admission.
	ReasonAdmissionDisabled
	ReasonAdmissionEnabled
	ReasonAdmissionStopped
	ReasonStaleGeneration
	ReasonUntrustedState
	ReasonStoreBusy
	ReasonInvalidScope
	ReasonInvalidTransition
	ReasonInvalidTime
	ReasonInvalidKey
	ReasonUnreadableKey
	ReasonInvalidAnchor
	ReasonStoreFailed
	ReasonApprovalRequired
	ReasonApprovalRefused
	ReasonAlreadyInitialized
	ReasonNotConfigured
	ReasonInvalidControlMetadata

	// Fallback: the failure classes, then what the chain did.
	ReasonRateLimited
	ReasonOverloaded
	ReasonNetwork
	ReasonTimeout
	ReasonBadResponse
	ReasonQuota
	ReasonNotFound
	ReasonAuth
	ReasonContextLength
	ReasonContentFilter
	ReasonInvalidRequest
	ReasonUnknownError
	ReasonExhausted
	ReasonInterrupted
	ReasonBenched
	ReasonProbe
	ReasonIneligible
	ReasonNoCandidate
	ReasonUnknownProvider
	ReasonKeyAmbiguous
	ReasonKeyMissing

	reasonEnd
)

var reasonNames = []string{ //nolint:gochecknoglobals // compiled table
	ReasonOK: "ok", ReasonNilHandler: "nil_handler", ReasonUnsafeOrder: "unsafe_order", ReasonNoRun: "no_run",
	ReasonRunEnded: "run_ended", ReasonUnknownWorkflow: "unknown_workflow", ReasonInvalidRunState: "invalid_run_state",
	ReasonCanceled: "canceled", ReasonPanic: "panic", ReasonOutcomeUnknown: "outcome_unknown",
	ReasonToolFailed: "tool_failed", ReasonToolTimeout: "tool_timeout", ReasonModelFailed: "model_failed", ReasonAgentFailed: "agent_failed",
	ReasonInvalidConfig: "invalid_config", ReasonAlreadyWrapped: "already_wrapped",
	ReasonDuplicateTool: "duplicate_tool", ReasonDuplicateLabel: "duplicate_label", ReasonInvalidLabel: "invalid_label",

	ReasonCircuitOpen: "circuit_open", ReasonInvalidThreshold: "invalid_threshold",
	ReasonInvalidTimestamp: "invalid_timestamp", ReasonInvalidDigest: "invalid_digest",
	ReasonInvalidClass: "invalid_class", ReasonFailureCounted: "failure_counted", ReasonLowConfidence: "low_confidence",
	ReasonHumanGate: "human_gate", ReasonSafetyReview: "safety_review", ReasonInvalidHandoff: "invalid_handoff",
	ReasonHandoffExpired: "handoff_expired", ReasonHandoffFuture: "handoff_not_yet_valid", ReasonSinkFailed: "sink_failed",

	ReasonUnknownHandoff: "unknown_handoff", ReasonHandoffDecided: "handoff_decided", ReasonInvalidDecision: "invalid_decision",
	ReasonQueueUnreadable: "queue_unreadable", ReasonQueueBusy: "queue_busy", ReasonQueueFull: "queue_full",
	ReasonQueueFailed: "queue_failed",

	ReasonParked: "parked", ReasonGuardrail: "guardrail", ReasonDuplicateAction: "duplicate_action",
	ReasonActionFailed: "action_failed", ReasonContextDrift: "context_drift", ReasonContextFull: "context_full",
	ReasonSummaryFailed: "summary_failed",
	ReasonRecovered:     "recovered", ReasonTrial: "trial", ReasonProfileChanged: "profile_changed",
	ReasonBudgetExceeded: "budget_exceeded", ReasonToolLimit: "tool_limit", ReasonInvalidLimit: "invalid_limit",

	ReasonLoop: "loop", ReasonCycle: "cycle", ReasonDrift: "drift", ReasonStagnation: "stagnation", ReasonFuse: "fuse",
	ReasonWaiting: "waiting", ReasonAnswerLoop: "answer_loop", ReasonUnknownTool: "unknown_tool",
	ReasonStalled: "stalled", ReasonRegression: "regression", ReasonCustomDetector: "custom",
	ReasonDetectorFailed: "detector_failed", ReasonAbandoned: "abandoned",

	ReasonAdmissionDisabled: "admission_disabled", ReasonAdmissionEnabled: "admission_enabled",
	ReasonAdmissionStopped: "admission_stopped", ReasonStaleGeneration: "stale_generation",
	ReasonUntrustedState: "untrusted_state", ReasonStoreBusy: "store_busy", ReasonInvalidScope: "invalid_scope",
	ReasonInvalidTransition: "invalid_transition", ReasonInvalidTime: "invalid_time", ReasonInvalidKey: "invalid_key",
	ReasonUnreadableKey: "unreadable_key", ReasonInvalidAnchor: "invalid_anchor", ReasonStoreFailed: "store_failed",
	ReasonApprovalRequired: "approval_required", ReasonApprovalRefused: "approval_refused",
	ReasonAlreadyInitialized: "already_initialized", ReasonNotConfigured: "not_configured",
	ReasonInvalidControlMetadata: "invalid_control_metadata",

	ReasonRateLimited: "rate_limited", ReasonOverloaded: "overloaded", ReasonNetwork: "network",
	ReasonTimeout: "timeout", ReasonBadResponse: "bad_response", ReasonQuota: "quota", ReasonNotFound: "not_found",
	ReasonAuth: "auth", ReasonContextLength: "context_length", ReasonContentFilter: "content_filter",
	ReasonInvalidRequest: "invalid_request", ReasonUnknownError: "unknown", ReasonExhausted: "exhausted",
	ReasonInterrupted: "interrupted", ReasonBenched: "benched", ReasonProbe: "probe", ReasonIneligible: "ineligible",
	ReasonNoCandidate: "no_candidate", ReasonUnknownProvider: "unknown_provider", ReasonKeyAmbiguous: "key_ambiguous",
	ReasonKeyMissing: "key_missing",
}

var _ error = Reason(0)

// String returns the code, as it stands in telemetry and command output.
func (r Reason) String() string { return enumName(reasonNames, r) }

// Error returns "interlock: " and the code.
func (r Reason) Error() string { return "interlock: " + r.String() }

// Reasons returns the closed set, for tables and tests.
func Reasons() []Reason { return enumAll(ReasonOK, reasonEnd) }

// ParseReason returns the reason with this code.
func ParseReason(code string) (Reason, bool) {
	for r, name := range reasonNames {
		if name == code && name != "" {
			return Reason(r), true
		}
	}

	return 0, false
}
