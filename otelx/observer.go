package otelx

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Observe counts d, and gives it a span where the contract wants one. Panics of
// the providers are contained.
//
// On an idle 2-core virtual machine (BenchmarkObserve): 9 ns without providers or
// with no-op ones (a bare no-op span takes 53 ns and 1 allocation), 370 ns and no
// allocation for the two metrics of a decision, 2.8 µs and 5 for a recorded span,
// 3 allocations of the API itself for the global provider without an SDK; an allow
// decision with DisableAllowSpans costs no more than its metrics.
func (t *Telemetry) Observe(ctx context.Context, d middleware.Decision) {
	if t == nil {
		return
	}
	if t.meters != nil {
		t.count(ctx, &d)
	}
	if t.tracer != nil && t.wantsSpan(&d) {
		t.decide(ctx, &d)
	}
}

// wantsSpan says which decisions get a span of their own.
func (t *Telemetry) wantsSpan(d *middleware.Decision) bool {
	switch {
	case spanOf(d.Component) == "":
		return false // no component: counted
	case isAttempt(d) && d.Outcome != middleware.OutcomeSkipped:
		return false // attributes of the chat span; a skipped attempt has none
	case brokeDown(d):
		return true // an error, whatever was then done
	case isReading(d):
		return false // metrics
	default:
		return d.Verdict != middleware.VerdictAllow || t.allowSpans
	}
}

func isAttempt(d *middleware.Decision) bool {
	return d.Component == middleware.ComponentFallback && d.Outcome != 0
}

// isReading reports that the context limiter measured, found nothing, and left
// the request as it is.
func isReading(d *middleware.Decision) bool {
	return d.Component == middleware.ComponentContext && (d.Reason == 0 || d.Reason == middleware.ReasonOK) &&
		(d.Verdict == middleware.VerdictAllow || d.Verdict == middleware.VerdictAbstain)
}

// spanOf maps components to the six names of the contract. Those that it does
// not name go where an operator looks for them; the attribute
// interlock.decision.component says which one it was.
func spanOf(c middleware.Component) string {
	switch c {
	case middleware.ComponentAdmission, middleware.ComponentApproval, // whether the call may be made
		middleware.ComponentChain, middleware.ComponentRun:
		return spanAdmission
	case middleware.ComponentFallback, middleware.ComponentModel:
		return spanFallback
	case middleware.ComponentWatchdog:
		return spanWatchdog
	case middleware.ComponentEscalation, middleware.ComponentTool: // what counts as a failure of the run
		return spanEscalation
	case middleware.ComponentBreaker, middleware.ComponentContext: // the limiter's events feed the action breaker
		return spanBreaker
	case middleware.ComponentBudget:
		return spanBudget
	default:
		return ""
	}
}

// decide makes the span of a decision. It marks when the decision was made; how
// long it took is a metric.
func (t *Telemetry) decide(ctx context.Context, d *middleware.Decision) {
	_, span := startSpan(ctx, t.tracer, spanOf(d.Component), t.registry.decision)
	if span == nil {
		return
	}
	t.describe(ctx, span, d)
	endSpan(span)
}

func (t *Telemetry) describe(ctx context.Context, span trace.Span, d *middleware.Decision) {
	defer func() { _ = recover() }() // the span is still ended
	if !span.IsRecording() {
		return
	}
	attrs := t.appendDecision(ctx, make([]attribute.KeyValue, 0, decisionAttributes), d)
	if brokeDown(d) {
		attrs = withErrorType(attrs, d.Reason.ErrorType())
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attrs...)
}

// brokeDown reports that the component itself failed: such a decision did not
// work, whatever was then done. A refusal is a decision that worked, and so is
// that of the action breaker to count an action's panic.
func brokeDown(d *middleware.Decision) bool {
	switch d.Reason {
	case middleware.ReasonPanic:
		return d.Component != middleware.ComponentBreaker
	case middleware.ReasonDetectorFailed, middleware.ReasonSummaryFailed, middleware.ReasonSinkFailed,
		middleware.ReasonStoreFailed:
		return true
	default:
		return false
	}
}

// decisionAttributes is how many attributes most decisions have at most.
const decisionAttributes = 16

// appendDecision renders the decision set: what does not apply is absent.
func (t *Telemetry) appendDecision(
	ctx context.Context, attrs []attribute.KeyValue, d *middleware.Decision,
) []attribute.KeyValue {
	attrs = append(attrs,
		enumAttr(keyComponent, d.Component), enumAttr(keyVerdict, d.Verdict), keyID.String(newDecisionID()))
	attrs = appendEnum(attrs, keyAction, d.Action)
	attrs = appendEnum(attrs, keyReason, d.Reason)
	attrs = appendEnum(attrs, keyOutcome, d.Outcome)
	attrs = appendEnum(attrs, keyCircuitState, d.Circuit)
	attrs = appendEnum(attrs, keyClass, d.Class)
	if d.FailMode != middleware.FailClosed || brokeDown(d) {
		attrs = append(attrs, enumAttr(keyFailMode, d.FailMode))
	}
	attrs = appendCount(attrs, keySeq, d.Seq)
	attrs = appendCount(attrs, keyGeneration, d.Generation)
	attrs = appendCount(attrs, keyAttemptCount, d.Attempt)
	attrs = appendCount(attrs, keyTurn, d.Turn)
	attrs = appendCount(attrs, keyCount, d.Count)
	attrs = appendCount(attrs, keyLimit, d.Limit)
	if d.Severity > 0 && d.Severity <= 1 {
		attrs = append(attrs, keySeverity.Float64(d.Severity))
	}
	if !d.Label.IsZero() {
		e, ok := t.registry.names.find(d.Label)
		if !ok {
			t.reject(ctx, rejectedLabel)
		}
		attrs = append(attrs, e.attrs...)
	}

	return t.appendWorkflow(ctx, attrs, d.Workflow)
}

func (t *Telemetry) appendWorkflow(
	ctx context.Context, attrs []attribute.KeyValue, id ident.WorkflowID,
) []attribute.KeyValue {
	if id.IsZero() {
		return attrs
	}
	if w, ok := t.registry.workflows[id]; ok {
		return append(attrs, w)
	}
	t.reject(ctx, rejectedWorkflow)

	return append(attrs, keyWorkflowID.String(other))
}

func appendEnum[E enum](attrs []attribute.KeyValue, k attribute.Key, e E) []attribute.KeyValue {
	if e == 0 {
		return attrs
	}

	return append(attrs, enumAttr(k, e))
}

func appendCount[N int | uint64](attrs []attribute.KeyValue, k attribute.Key, n N) []attribute.KeyValue {
	if n <= 0 || uint64(n) > math.MaxInt64 {
		return attrs
	}

	return append(attrs, k.Int64(int64(n)))
}

// newDecisionID draws 128 random bits, so that a log line and a span can be
// told to be about one decision without either holding anything of it.
func newDecisionID() string {
	const prefix = "dec_"
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails, by its contract
	var text [len(prefix) + 2*len(raw)]byte
	copy(text[:], prefix)
	hex.Encode(text[len(prefix):], raw[:])

	return string(text[:])
}

// count feeds every metric that a decision can feed.
func (t *Telemetry) count(ctx context.Context, d *middleware.Decision) {
	defer func() { _ = recover() }() // telemetry cannot change the outcome
	m := t.meters
	component, verdict := required(d.Component), required(d.Verdict)
	action, reason := closed(d.Action), closed(d.Reason)
	if component == outside || verdict == outside || action == outside || reason == outside {
		m.reject(ctx, rejectedEnum)
	}
	m.decisions.Add(ctx, 1, m.decisionSeries.get(newKey(component, verdict, action, reason)).add...)
	if d.Duration > 0 && isDeciding(d) {
		m.decisionDuration.Record(ctx, d.Duration.Seconds(), m.durationSeries.get(newKey(component, action, 0, 0)).record...)
	}
	if d.Circuit != 0 {
		t.countCircuit(ctx, d, reason)
	}
	switch d.Component {
	case middleware.ComponentFallback:
		if d.Outcome != 0 {
			e, ok := t.registry.candidates.find(d.Label)
			if !ok {
				m.reject(ctx, rejectedCandidate)
			}
			m.attempts.Add(ctx, 1, m.attemptSeries.get(newKey(e.index, closed(d.Outcome), 0, 0)).add...)
		}
	case middleware.ComponentContext:
		m.countContext(ctx, d)
	case middleware.ComponentWatchdog:
		if isTrip(d) {
			m.trips.Add(ctx, 1, m.tripSeries.get(newKey(reason, 0, 0, 0)).add...)
		}
	case middleware.ComponentEscalation, middleware.ComponentBreaker:
		if d.Verdict == middleware.VerdictEscalate && d.Reason != middleware.ReasonSinkFailed {
			m.handoffs.Add(ctx, 1, m.handoffSeries.get(newKey(required(d.Class), 0, 0, 0)).add...)
		}
	default:
	}
}

// isDeciding reports that the duration is that of deciding, not that of an
// attempt, of a call that stalled, of a wait, or a new recovery time.
func isDeciding(d *middleware.Decision) bool {
	switch d.Reason {
	case middleware.ReasonStalled, middleware.ReasonAbandoned, middleware.ReasonProfileChanged:
		return false
	default:
		return d.Outcome == 0 && d.Action != middleware.ActionWait
	}
}

func (t *Telemetry) countCircuit(ctx context.Context, d *middleware.Decision, reason uint8) {
	m := t.meters
	e, ok := t.registry.names.find(d.Label)
	if !ok && !d.Label.IsZero() {
		m.reject(ctx, rejectedLabel)
	}
	state := closed(d.Circuit)
	m.transitions.Add(ctx, 1, m.transitionSeries.get(newKey(e.index, state, reason, 0)).add...)
	k, ok := t.registry.circuitKey(d)
	if !ok || state == outside {
		return
	}
	if left, lasted, ok := m.states.enter(k, d, t.now()); ok {
		m.timeInState.Record(ctx, lasted.Seconds(), m.stateSeries.get(newKey(e.index, uint8(left), 0, 0)).record...)
	}
}

func (m *meters) countContext(ctx context.Context, d *middleware.Decision) {
	if !isShare(d.Fill) || !isShare(d.Drift) || (d.Fill == 0 && d.Drift == 0) {
		return
	}
	m.fill.Record(ctx, d.Fill)
	m.drift.Record(ctx, d.Drift)
}

// isShare keeps NaN and infinities out, which would spoil a sum for good. A
// fill above 1 is a request that is larger than the window.
func isShare(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// isTrip reports that a detector found something, whatever the policy then did.
// The watchdog numbers its decisions; a refusal without a number is that of a
// call in a run that it has halted before, by the run check.
func isTrip(d *middleware.Decision) bool {
	if d.Seq == 0 && d.Verdict == middleware.VerdictDeny {
		return false
	}

	return d.Reason >= middleware.ReasonLoop && d.Reason <= middleware.ReasonCustomDetector
}
