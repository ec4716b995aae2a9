package otelx

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/middleware"
)

// Kinds of instruments, as [Instrument] says them.
const (
	KindCounter   = "counter"
	KindHistogram = "histogram"
	KindGauge     = "gauge"
)

// Instrument describes one instrument. The instruments are made from these
// descriptions, so that what dashboards, alerts and pages stand on is what is
// recorded.
type Instrument struct {
	Name, Kind, Unit string
	Attributes       []string  // keys; one is absent from a series where it does not apply
	Buckets          []float64 // upper bounds, of a histogram
	About            string
}

// SpanShape describes one kind of span.
type SpanShape struct {
	Name       string   // {label} stands for a registered label or _OTHER
	Kind       string   // client or internal
	When       string   // it is opened
	Attributes []string // keys; one is absent where it does not apply
	Links      []string // keys of the attributes of its links, if it can have any
}

// Sources of the values of attributes, as [Attribute] says them. There is no
// other one.
const (
	SourceClosed     = "closed list"
	SourceRegistered = "registered name"
	SourceNumber     = "number"
	SourceRandom     = "random identifier"
)

// Attribute describes the key of an attribute and where its values come from.
// Of a closed list and of registered names, what is outside is _OTHER.
type Attribute struct {
	Key, Source string
	Values      []string // of a closed list
	About       string
}

// Instruments returns the description of every instrument, in the order of the
// documentation.
func Instruments() []Instrument {
	circuit, component := keys(keyCircuitLabel, keyCircuitState), keys(keyComponent, keyAction)

	return []Instrument{
		histogram(metricOperation, "s", operationBuckets(), keys(keyOperation, keyProvider, keyRequestModel, keyErrorType),
			"Duration of one model attempt."),
		histogram(metricTool, "s", operationBuckets(), keys(keyTool, keyErrorType), "Duration of one tool call that really ran."),
		histogram(metricAgent, "s", agentBuckets(), keys(keyAgent, keyErrorType), "Duration of one agent run."),
		counter(metricDecisions, "{decision}", keys(keyComponent, keyVerdict, keyAction, keyReason), "Decisions of every component."),
		histogram(metricDecisionDuration, "s", decisionBuckets(), component, "How long deciding took."),
		counter(metricAttempts, "{attempt}", keys(keyRequestModel, keyOutcome), "Attempts of the fallback model."),
		counter(metricTransitions, "{transition}", slices.Concat(circuit, keys(keyReason)),
			"Changes of the state of breakers, to the state that is named."),
		histogram(metricTimeInState, "s", stateBuckets(), circuit, "How long a breaker was in a state it has left."),
		histogram(metricFill, "1", shareBuckets(), nil, "Share of the context window in use."),
		histogram(metricDrift, "1", shareBuckets(), nil, "Distance of the context from the task."),
		counter(metricHandoffs, "{handoff}", keys(keyClass), "Runs, and workflows whose actions are parked, handed to a human."),
		counter(metricTrips, "{trip}", keys(keyReason), "Findings of the watchdog."),
		counter(metricRejected, "{value}", keys(keyKind), "Values that were not registered and render as _OTHER."),
		gauge(metricCircuitState, "1", circuit, "1 for the state that a breaker is in."),
		gauge(metricAdmissionState, "{scope}", keys(keyScope, keyAdmissionState), "Scopes of a kind that are in a state."),
		gauge(metricQueue, "{handoff}", nil, "Handoffs that wait for a human."),
		gauge(metricInFlight, "{effect}", nil, "Effects that have begun and not ended."),
	}
}

// Spans returns the description of every kind of span, in the order of the
// documentation.
func Spans() []SpanShape {
	const client, internal = "client", "internal"
	decision := DecisionSet()
	decided := func(name, when string) SpanShape {
		return SpanShape{Name: name, Kind: internal, When: when, Attributes: slices.Concat(decision, keys(keyErrorType))}
	}

	return []SpanShape{
		{
			Name: operationAgent + " {label}", Kind: internal, When: "a run; without an agent's label just " + operationAgent,
			Attributes: keys(keyOperation, keyAgent, keyRunID, keyWorkflowID, keyErrorType), Links: keys(keyLinkKind),
		},
		{
			Name: operationChat + " {label}", Kind: client, When: "an attempt at a model",
			Attributes: slices.Concat(keys(
				keyOperation, keyProvider, keyRequestModel, keyResponseModel, keyInputTokens, keyOutputTokens, keyFinishReasons,
				keyAttemptNumber, keyErrorType), decision),
		},
		{
			Name: operationTool + " {label}", Kind: internal, When: "a tool that really runs",
			Attributes: keys(keyOperation, keyTool, keyToolType, keyErrorType),
		},
		decided(spanFallback, "a call with several candidates, around its attempts; decisions of fallback and model"),
		decided(spanAdmission, "decisions of admission, approval, chain and run"),
		decided(spanWatchdog, "decisions of the watchdog"),
		decided(spanEscalation, "decisions of escalation and tool"),
		decided(spanBreaker, "decisions of the action breaker and the context limiter"),
		decided(spanBudget, "decisions of the budget"),
	}
}

// DecisionSet returns the keys of the attributes that describe a decision.
func DecisionSet() []string {
	return keys(
		keyComponent, keyVerdict, keyAction, keyReason, keyID, keySeq, keyLabel, keyTurn, keyCount, keyLimit, keySeverity, keyFailMode,
		keyGeneration, keyAttemptCount, keyOutcome, keyCircuitState, keyClass, keyWorkflowID,
	)
}

// Attributes returns the description of every key, in the order of the
// documentation.
func Attributes() []Attribute {
	return []Attribute{
		closedList(keyOperation, []string{operationChat, operationAgent, operationTool}, "what was done"),
		registered(keyAgent, "label of the agent"),
		registered(keyProvider, "provider of the candidate"),
		registered(keyRequestModel, "model of the candidate"),
		registered(keyResponseModel, "model that answered; absent if it is not registered"),
		number(keyInputTokens, "as the provider counts them"),
		number(keyOutputTokens, "as the provider counts them"),
		closedList(keyFinishReasons, texts(middleware.FinishReasons()), "why the model stopped; a list of one"),
		registered(keyTool, "label of the tool"),
		closedList(keyToolType, []string{toolFunction}, "always the same"),
		closedList(keyErrorType, texts(middleware.ErrorTypes()), "how an operation failed; absent if it did not"),

		random(keyRunID, "the run"),
		registered(keyWorkflowID, "workflow of the run"),

		closedList(keyComponent, texts(middleware.Components()), "who decided"),
		closedList(keyVerdict, texts(middleware.Verdicts()), "what was decided"),
		closedList(keyAction, texts(middleware.Actions()), "what was done with the call"),
		closedList(keyReason, texts(middleware.Reasons()), "why"),
		random(keyID, "the decision, made while recording; on spans only"),
		number(keySeq, "order of the decisions of one component"),
		registered(keyLabel, "tool, candidate or agent that was decided about"),
		number(keyTurn, "model turn of the run, from 1"),
		number(keyCount, "what was counted"),
		number(keyLimit, "against which limit"),
		number(keySeverity, "0 to 1"),
		closedList(keyFailMode, texts(middleware.FailModes()), "what a failing part means for the call; where it mattered"),

		number(keyGeneration, "of the admission ledger"),
		closedList(keyScope, scopeNames[:], "kind of the scope"),
		closedList(keyAdmissionState, admissionNames[admissionOther+1:], "state of the scope"),
		number(keyAttemptNumber, "of the attempt, from 1"),
		number(keyAttemptCount, "attempts so far"),
		closedList(keyOutcome, texts(middleware.AttemptOutcomes()), "how the attempt ended"),
		closedList(keyCircuitState, texts(middleware.CircuitStates()), "state of the breaker: the new one, or the one that was left"),
		registered(keyCircuitLabel, "label of the candidate, or of the workflow's agent; _OTHER for workflows without one"),
		closedList(keyClass, texts(middleware.FailureClasses()), "what the failure counts as"),
		closedList(keyLinkKind, linkNames[linkResumed:], "why the run span has a link: the run is continued from another process"),
		closedList(keyKind, rejectionNames[rejectedAgent:], "what kind of value was not rendered as it came"),
	}
}

func histogram(name, unit string, buckets []float64, attrs []string, about string) Instrument {
	return Instrument{Name: name, Kind: KindHistogram, Unit: unit, Buckets: buckets, Attributes: attrs, About: about}
}

func counter(name, unit string, attrs []string, about string) Instrument {
	return Instrument{Name: name, Kind: KindCounter, Unit: unit, Attributes: attrs, About: about}
}

func gauge(name, unit string, attrs []string, about string) Instrument {
	return Instrument{Name: name, Kind: KindGauge, Unit: unit, Attributes: attrs, About: about}
}

func closedList(k attribute.Key, values []string, about string) Attribute {
	return Attribute{Key: string(k), Source: SourceClosed, Values: slices.Clone(values), About: about}
}

func registered(k attribute.Key, about string) Attribute {
	return Attribute{Key: string(k), Source: SourceRegistered, About: about}
}

func number(k attribute.Key, about string) Attribute {
	return Attribute{Key: string(k), Source: SourceNumber, About: about}
}

func random(k attribute.Key, about string) Attribute {
	return Attribute{Key: string(k), Source: SourceRandom, About: about}
}

func keys(ks ...attribute.Key) []string {
	s := make([]string, len(ks))
	for i, k := range ks {
		s[i] = string(k)
	}

	return s
}

func texts[E enum](values []E) []string {
	s := make([]string, len(values))
	for i, v := range values {
		s[i] = enumText(v)
	}

	return s
}
