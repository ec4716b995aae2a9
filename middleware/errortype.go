package middleware

// ErrorType is the closed list behind the telemetry attribute error.type. The
// zero value is success, which has none.
type ErrorType uint8

// The error types.
const (
	_ ErrorType = iota
	ErrorTimeout
	ErrorCanceled
	ErrorPanic
	ErrorAdmissionDenied
	ErrorCircuitOpen
	ErrorBudgetExceeded
	ErrorExhausted
	ErrorStalled
	ErrorLoop
	ErrorOutcomeUnknown
	ErrorToolFailed
	ErrorProviderRateLimit
	ErrorProviderOverloaded
	ErrorProviderNetwork
	ErrorProviderBadResponse
	ErrorProviderRejected
	ErrorOther

	errorTypeEnd
)

var errorTypeNames = []string{ //nolint:gochecknoglobals // compiled table
	ErrorTimeout: "timeout", ErrorCanceled: "canceled", ErrorPanic: "panic",
	ErrorAdmissionDenied: "admission_denied", ErrorCircuitOpen: "circuit_open",
	ErrorBudgetExceeded: "budget_exceeded", ErrorExhausted: "exhausted", ErrorStalled: "stalled",
	ErrorLoop: "loop", ErrorOutcomeUnknown: "outcome_unknown", ErrorToolFailed: "tool_failed",
	ErrorProviderRateLimit: "provider_rate_limit", ErrorProviderOverloaded: "provider_overloaded",
	ErrorProviderNetwork: "provider_network", ErrorProviderBadResponse: "provider_bad_response",
	ErrorProviderRejected: "provider_rejected", ErrorOther: "_OTHER",
}

// String returns the text of the attribute.
func (e ErrorType) String() string { return enumName(errorTypeNames, e) }

// ErrorTypes returns the closed set, for tables and tests.
func ErrorTypes() []ErrorType { return enumAll(ErrorTimeout, errorTypeEnd) }

// ErrorType maps the reason of a failure to its error type; no failure (the
// zero reason, ok, allow reasons) maps to the zero ErrorType.
func (r Reason) ErrorType() ErrorType { //nolint:cyclop // one table, easiest read as a switch
	switch r {
	case 0, ReasonOK, ReasonAdmissionEnabled, ReasonRecovered:
		return 0
	case ReasonTimeout, ReasonToolTimeout:
		return ErrorTimeout
	case ReasonCanceled:
		return ErrorCanceled
	case ReasonPanic:
		return ErrorPanic
	case ReasonOutcomeUnknown, ReasonAbandoned:
		return ErrorOutcomeUnknown
	case ReasonToolFailed:
		return ErrorToolFailed
	case ReasonCircuitOpen, ReasonParked:
		return ErrorCircuitOpen
	case ReasonBudgetExceeded, ReasonToolLimit:
		return ErrorBudgetExceeded
	case ReasonExhausted, ReasonNoCandidate:
		return ErrorExhausted
	case ReasonStalled:
		return ErrorStalled
	case ReasonLoop, ReasonCycle, ReasonDrift, ReasonStagnation, ReasonFuse, ReasonWaiting, ReasonAnswerLoop, ReasonUnknownTool:
		return ErrorLoop
	case ReasonRateLimited, ReasonQuota:
		return ErrorProviderRateLimit
	case ReasonOverloaded:
		return ErrorProviderOverloaded
	case ReasonNetwork:
		return ErrorProviderNetwork
	case ReasonBadResponse, ReasonInterrupted:
		return ErrorProviderBadResponse
	case ReasonAuth, ReasonNotFound, ReasonContextLength, ReasonContentFilter, ReasonInvalidRequest:
		return ErrorProviderRejected
	default:
		if r >= ReasonAdmissionDisabled && r <= ReasonInvalidControlMetadata {
			return ErrorAdmissionDenied
		}

		return ErrorOther
	}
}
