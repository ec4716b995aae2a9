package otelx

import (
	"context"
	"math"

	"go.opentelemetry.io/otel/metric"
)

// rejection says what kind of value was not rendered as it came.
type rejection uint8

const (
	_ rejection = iota
	rejectedAgent
	rejectedTool
	rejectedCandidate
	rejectedModel
	rejectedWorkflow
	rejectedLabel
	rejectedEnum
	rejectedOperation
	rejectedGauge

	rejectionEnd
)

var rejectionNames = [rejectionEnd]string{ //nolint:gochecknoglobals // compiled table
	rejectedAgent: "agent", rejectedTool: "tool", rejectedCandidate: "candidate", rejectedModel: "model",
	rejectedWorkflow: "workflow", rejectedLabel: "label", rejectedEnum: "enum", rejectedOperation: "operation",
	rejectedGauge: "gauge",
}

// outside stands for every value outside of its enum: it renders as _OTHER.
const outside = math.MaxUint8

// closed returns e as part of a key. Zero stays zero.
func closed[E enum](e E) uint8 {
	if e != 0 && !known(e) {
		return outside
	}

	return uint8(e)
}

// required is closed for an enum that has to be given.
func required[E enum](e E) uint8 {
	if e == 0 {
		return outside
	}

	return closed(e)
}

// meters are the instruments and their series.
type meters struct {
	operation, tool, agent metric.Float64Histogram
	decisions              metric.Int64Counter
	decisionDuration       metric.Float64Histogram
	attempts               metric.Int64Counter
	transitions            metric.Int64Counter
	timeInState            metric.Float64Histogram
	fill, drift            metric.Float64Histogram
	handoffs               metric.Int64Counter
	trips                  metric.Int64Counter
	rejected               metric.Int64Counter

	operationSeries, toolSeries, agentSeries *series
	decisionSeries, durationSeries           *series
	attemptSeries                            *series
	transitionSeries, stateSeries            *series
	handoffSeries, tripSeries                *series
	rejectedSeries                           *series

	registry *registry
	states   circuitClocks
}

func newMeters(meter metric.Meter, r *registry) (*meters, error) {
	m := &meters{registry: r}
	b := instrumentBuilder{meter: meter}
	m.operation = b.histogram(metricOperation, "s", "Duration of one model attempt.", operationBuckets())
	m.tool = b.histogram(metricTool, "s", "Duration of one tool call that really ran.", operationBuckets())
	m.agent = b.histogram(metricAgent, "s", "Duration of one agent run.", agentBuckets())
	m.decisions = b.counter(metricDecisions, "{decision}", "Decisions of every component.")
	m.decisionDuration = b.histogram(metricDecisionDuration, "s", "How long deciding took.", decisionBuckets())
	m.attempts = b.counter(metricAttempts, "{attempt}", "Attempts of the fallback model.")
	m.transitions = b.counter(metricTransitions, "{transition}", "Changes of the state of breakers.")
	m.timeInState = b.histogram(metricTimeInState, "s", "How long a breaker was in a state it has left.", stateBuckets())
	m.fill = b.histogram(metricFill, "1", "Share of the context window in use.", shareBuckets())
	m.drift = b.histogram(metricDrift, "1", "Distance of the context from the task.", shareBuckets())
	m.handoffs = b.counter(metricHandoffs, "{handoff}", "Runs handed to a human.")
	m.trips = b.counter(metricTrips, "{trip}", "Findings of the watchdog.")
	m.rejected = b.counter(metricRejected, "{value}", "Values that were not registered and render as _OTHER.")
	m.openSeries()

	return m, b.err
}

// instrumentBuilder keeps the first error, so that making fifteen instruments
// reads as a table.
type instrumentBuilder struct {
	meter metric.Meter
	err   error
}

func (b *instrumentBuilder) keep(err error, missing bool) {
	if err == nil && missing {
		err = errNothing
	}
	if b.err == nil {
		b.err = err
	}
}

func (b *instrumentBuilder) histogram(name, unit, about string, buckets []float64) metric.Float64Histogram {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(about),
		metric.WithExplicitBucketBoundaries(buckets...))
	b.keep(err, h == nil)

	return h
}

func (b *instrumentBuilder) counter(name, unit, about string) metric.Int64Counter {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
	b.keep(err, c == nil)

	return c
}

func (m *meters) reject(ctx context.Context, r rejection) {
	m.rejected.Add(ctx, 1, m.rejectedSeries.get(newKey(uint8(r), 0, 0, 0)).add...)
}
