package middleware

// invalid is what every closed enum of the library renders for its zero value
// and for values outside the set.
const invalid = "invalid"

func enumName[E ~uint8](names []string, e E) string {
	if int(e) >= len(names) || names[e] == "" {
		return invalid
	}

	return names[e]
}

// Component names the part of the library that decided.
type Component uint8

// The components. The zero value is invalid.
const (
	_ Component = iota
	ComponentChain
	ComponentRun
	ComponentBudget
	ComponentEscalation
	ComponentWatchdog
	ComponentContext
	ComponentBreaker
	ComponentApproval
	ComponentAdmission
	ComponentFallback
	ComponentTool
	ComponentModel

	componentEnd
)

var componentNames = []string{ //nolint:gochecknoglobals // compiled table
	ComponentChain: "chain", ComponentRun: "run", ComponentBudget: "budget", ComponentEscalation: "escalation",
	ComponentWatchdog: "watchdog", ComponentContext: "context", ComponentBreaker: "breaker",
	ComponentApproval: "approval", ComponentAdmission: "admission", ComponentFallback: "fallback",
	ComponentTool: "tool", ComponentModel: "model",
}

// String returns the component's name.
func (c Component) String() string { return enumName(componentNames, c) }

// Components returns the closed set, for tables and tests.
func Components() []Component { return enumAll(ComponentChain, componentEnd) }

// Verdict is what a component says of a call.
type Verdict uint8

// The verdicts. The zero value is invalid; [NewDenial] reads it as deny.
const (
	_ Verdict = iota
	VerdictAllow
	VerdictDeny
	// VerdictModify: the call was not made and the model is told so, or it was
	// made otherwise than asked.
	VerdictModify
	VerdictEscalate
	VerdictAbstain

	verdictEnd
)

var verdictNames = []string{ //nolint:gochecknoglobals // compiled table
	VerdictAllow: "allow", VerdictDeny: "deny", VerdictModify: "modify",
	VerdictEscalate: "escalate", VerdictAbstain: "abstain",
}

// String returns the verdict's name.
func (v Verdict) String() string { return enumName(verdictNames, v) }

// Verdicts returns the closed set, for tables and tests.
func Verdicts() []Verdict { return enumAll(VerdictAllow, verdictEnd) }

// Action is what was done with the call.
type Action uint8

// The actions. The zero value is invalid; [NewDenial] reads it as block.
const (
	_ Action = iota
	ActionProceed
	ActionBlock
	ActionSubstitute
	ActionWait
	ActionCancel

	actionEnd
)

var actionNames = []string{ //nolint:gochecknoglobals // compiled table
	ActionProceed: "proceed", ActionBlock: "block", ActionSubstitute: "substitute",
	ActionWait: "wait", ActionCancel: "cancel",
}

// String returns the action's name.
func (a Action) String() string { return enumName(actionNames, a) }

// Actions returns the closed set, for tables and tests.
func Actions() []Action { return enumAll(ActionProceed, actionEnd) }

// AttemptOutcome is how one attempt of a model call ended.
type AttemptOutcome uint8

// The outcomes of attempts. The zero value means that no attempt is meant.
const (
	_ AttemptOutcome = iota
	OutcomeSuccess
	OutcomeError
	OutcomeTimeout
	OutcomeCanceled
	OutcomeDiscarded
	OutcomeSkipped

	outcomeEnd
)

var outcomeNames = []string{ //nolint:gochecknoglobals // compiled table
	OutcomeSuccess: "success", OutcomeError: "error", OutcomeTimeout: "timeout",
	OutcomeCanceled: "canceled", OutcomeDiscarded: "discarded", OutcomeSkipped: "skipped",
}

// String returns the outcome's name.
func (o AttemptOutcome) String() string { return enumName(outcomeNames, o) }

// AttemptOutcomes returns the closed set, for tables and tests.
func AttemptOutcomes() []AttemptOutcome { return enumAll(OutcomeSuccess, outcomeEnd) }

// CircuitState is the state of a breaker. The zero value means that no breaker
// is meant.
type CircuitState uint8

// The states.
const (
	_ CircuitState = iota
	CircuitClosed
	CircuitOpen
	CircuitHalfOpen

	circuitEnd
)

var circuitNames = []string{ //nolint:gochecknoglobals // compiled table
	CircuitClosed: "closed", CircuitOpen: "open", CircuitHalfOpen: "half_open",
}

// String returns the state's name.
func (c CircuitState) String() string { return enumName(circuitNames, c) }

// CircuitStates returns the closed set, for tables and tests.
func CircuitStates() []CircuitState { return enumAll(CircuitClosed, circuitEnd) }

// FailMode says what happens to a call when a part that judges it fails itself.
// The zero value is FailClosed.
type FailMode uint8

// The modes.
const (
	// FailClosed refuses the call.
	FailClosed FailMode = iota
	// FailOpen lets the call pass; the failure is still reported.
	FailOpen

	failModeEnd
)

var failModeNames = []string{FailClosed: "closed", FailOpen: "open"} //nolint:gochecknoglobals // compiled table

// String returns the mode's name.
func (m FailMode) String() string { return enumName(failModeNames, m) }

// FailModes returns the closed set, for tables and tests.
func FailModes() []FailMode { return enumAll(FailClosed, failModeEnd) }

// FailureClass is what a failure of a run is counted as by the escalation
// breaker. The zero value is no class.
type FailureClass uint8

// The classes.
const (
	_ FailureClass = iota
	FailureUncertainty
	FailurePermissionDenial
	FailureTool

	failureEnd
)

var failureNames = []string{ //nolint:gochecknoglobals // compiled table
	FailureUncertainty: "uncertainty", FailurePermissionDenial: "permission_denial", FailureTool: "tool_failure",
}

// String returns the class's name.
func (f FailureClass) String() string { return enumName(failureNames, f) }

// FailureClasses returns the closed set, for tables and tests.
func FailureClasses() []FailureClass { return enumAll(FailureUncertainty, failureEnd) }

// FinishReason is why a model stopped, mapped from the provider's own words.
// The zero value means unknown.
type FinishReason uint8

// The finish reasons.
const (
	_ FinishReason = iota
	FinishStop
	FinishLength
	FinishToolCalls
	FinishContentFilter
	FinishError
	FinishOther

	finishEnd
)

var finishNames = []string{ //nolint:gochecknoglobals // compiled table
	FinishStop: "stop", FinishLength: "length", FinishToolCalls: "tool_calls",
	FinishContentFilter: "content_filter", FinishError: "error", FinishOther: "_OTHER",
}

// String returns the published name of the finish reason.
func (f FinishReason) String() string { return enumName(finishNames, f) }

// FinishReasons returns the closed set, for tables and tests.
func FinishReasons() []FinishReason { return enumAll(FinishStop, finishEnd) }

func enumAll[E ~uint8](first, end E) []E {
	all := make([]E, 0, int(end-first))
	for e := first; e < end; e++ {
		all = append(all, e)
	}

	return all
}
