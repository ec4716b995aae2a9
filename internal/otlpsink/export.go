package otlpsink

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Providers export to a sink with the exporters that applications use.
type Providers struct {
	Traces  *sdktrace.TracerProvider
	Metrics *sdkmetric.MeterProvider
}

// Export returns providers that send to s, in batches, when they are flushed or
// shut down. They are shut down at the end of the test at the latest.
func (s *Sink) Export(tb testing.TB, p Protocol) *Providers {
	tb.Helper()
	traces, err := s.traceExporter(p)
	if err != nil {
		tb.Fatal(err)
	}
	metrics, err := s.metricExporter(p)
	if err != nil {
		tb.Fatal(err)
	}
	out := &Providers{
		Traces: sdktrace.NewTracerProvider(sdktrace.WithBatcher(traces, sdktrace.WithBatchTimeout(time.Hour))),
		Metrics: sdkmetric.NewMeterProvider(
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(time.Hour)))),
	}
	tb.Cleanup(func() { _ = out.shutdown() }) // a second time it does nothing

	return out
}

func (s *Sink) traceExporter(p Protocol) (sdktrace.SpanExporter, error) {
	if p == HTTP {
		return otlptracehttp.New(context.Background(), otlptracehttp.WithEndpoint(s.Endpoint(p)), otlptracehttp.WithInsecure())
	}

	return otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpoint(s.Endpoint(p)), otlptracegrpc.WithInsecure())
}

func (s *Sink) metricExporter(p Protocol) (sdkmetric.Exporter, error) {
	if p == HTTP {
		return otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpoint(s.Endpoint(p)), otlpmetrichttp.WithInsecure())
	}

	return otlpmetricgrpc.New(context.Background(), otlpmetricgrpc.WithEndpoint(s.Endpoint(p)), otlpmetricgrpc.WithInsecure())
}

// Shutdown sends what is left and closes the providers.
func (p *Providers) Shutdown(tb testing.TB) {
	tb.Helper()
	if err := p.shutdown(); err != nil {
		tb.Errorf("otlpsink: %v", err)
	}
}

func (p *Providers) shutdown() error {
	return errors.Join(p.Traces.Shutdown(context.Background()), p.Metrics.Shutdown(context.Background()))
}
