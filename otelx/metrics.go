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
	b := instrumentBuilder{meter: meter, described: Instruments()}
	m.operation = b.histogram(metricOperation)
	m.tool = b.histogram(metricTool)
	m.agent = b.histogram(metricAgent)
	m.decisions = b.counter(metricDecisions)
	m.decisionDuration = b.histogram(metricDecisionDuration)
	m.attempts = b.counter(metricAttempts)
	m.transitions = b.counter(metricTransitions)
	m.timeInState = b.histogram(metricTimeInState)
	m.fill = b.histogram(metricFill)
	m.drift = b.histogram(metricDrift)
	m.handoffs = b.counter(metricHandoffs)
	m.trips = b.counter(metricTrips)
	m.rejected = b.counter(metricRejected)
	m.openSeries()

	return m, b.err
}

// instrumentBuilder makes instruments as they are described, and keeps the first
// error, so that making them all reads as a table.
type instrumentBuilder struct {
	meter     metric.Meter
	described []Instrument
	err       error
}

func (b *instrumentBuilder) keep(err error, missing bool) {
	if err == nil && missing {
		err = errNothing
	}
	if b.err == nil {
		b.err = err
	}
}

func (b *instrumentBuilder) find(name string) (d Instrument) {
	for _, d := range b.described {
		if d.Name == name {
			return d
		}
	}

	return d
}

func (b *instrumentBuilder) histogram(name string) metric.Float64Histogram {
	d := b.find(name)
	h, err := b.meter.Float64Histogram(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.About),
		metric.WithExplicitBucketBoundaries(d.Buckets...))
	b.keep(err, h == nil)

	return h
}

func (b *instrumentBuilder) counter(name string) metric.Int64Counter {
	d := b.find(name)
	c, err := b.meter.Int64Counter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.About))
	b.keep(err, c == nil)

	return c
}

func (b *instrumentBuilder) gauge(name string) metric.Float64ObservableGauge {
	d := b.find(name)
	g, err := b.meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.About))
	b.keep(err, g == nil)

	return g
}

func (m *meters) reject(ctx context.Context, r rejection) {
	m.rejected.Add(ctx, 1, m.rejectedSeries.get(newKey(uint8(r), 0, 0, 0)).add...)
}
