package otelxtest

import (
	"context"
	"encoding/json"
	"testing"

	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// Telemetry collects in memory what an application would export: every span,
// also with its events, links, status, resource and scope, and every metric.
type Telemetry struct {
	tb      testing.TB
	spans   *tracetest.InMemoryExporter
	reader  *sdkmetric.ManualReader
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
}

// NewTelemetry returns a collector whose providers are shut down when the test
// ends. Every span is sampled.
func NewTelemetry(tb testing.TB) *Telemetry {
	tb.Helper()
	t := &Telemetry{tb: tb, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	t.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(t.spans))
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(t.reader))
	tb.Cleanup(func() {
		if err := t.tracers.Shutdown(context.Background()); err != nil {
			tb.Error("otelxtest: the tracer provider does not shut down")
		}
		if err := t.meters.Shutdown(context.Background()); err != nil {
			tb.Error("otelxtest: the meter provider does not shut down")
		}
	})

	return t
}

// TracerProvider makes the spans that are collected.
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.tracers }

// MeterProvider makes the instruments that are collected.
func (t *Telemetry) MeterProvider() metric.MeterProvider { return t.meters }

// Traces returns all spans that have ended, as JSON.
func (t *Telemetry) Traces() []byte {
	t.tb.Helper()

	return t.render(t.spans.GetSpans())
}

// Metrics returns the present state of all instruments, as JSON.
func (t *Telemetry) Metrics() []byte {
	t.tb.Helper()
	var rm metricdata.ResourceMetrics
	if t.reader.Collect(context.Background(), &rm) != nil { // its text may be content
		t.tb.Error("otelxtest: the metrics cannot be collected")
	}

	return t.render(rm)
}

func (t *Telemetry) render(v any) []byte {
	t.tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.tb.Error("otelxtest: the telemetry cannot be rendered")
	}

	return text
}
