package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/otelx"
)

// hostileProcessor panics where it is told to.
type hostileProcessor struct{ onStart, onEnd bool }

func (h hostileProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	if h.onStart {
		panic(errBoom)
	}
}

func (h hostileProcessor) OnEnd(sdktrace.ReadOnlySpan) {
	if h.onEnd {
		panic(errBoom)
	}
}

func (hostileProcessor) Shutdown(context.Context) error   { return nil }
func (hostileProcessor) ForceFlush(context.Context) error { return nil }

// blocked is an exporter that does not come back before it is released.
type blocked struct {
	release chan struct{}
	calls   *int // behind release
}

func (b blocked) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	*b.calls++
	<-b.release

	return nil
}

func (b blocked) Export(context.Context, *metricdata.ResourceMetrics) error {
	*b.calls++
	<-b.release

	return nil
}

func (blocked) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

func (blocked) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}
func (blocked) Shutdown(context.Context) error   { return nil }
func (blocked) ForceFlush(context.Context) error { return nil }

// panicking is an exporter that panics, on the goroutine of the call.
type panicking struct{}

func (panicking) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { panic(errBoom) }
func (panicking) Shutdown(context.Context) error                             { return nil }

// panickingTracers gives tracers that panic, and panickingSpans spans that do.
type panickingTracers struct{ tracenoop.TracerProvider }

func (panickingTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return panickingTracer{} }

type panickingTracer struct{ tracenoop.Tracer }

func (panickingTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic(errBoom)
}

type panickingSpans struct{ tracenoop.TracerProvider }

func (panickingSpans) Tracer(string, ...trace.TracerOption) trace.Tracer { return spanTracer{} }

type spanTracer struct{ tracenoop.Tracer }

func (spanTracer) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, panickingSpan{}
}

type panickingSpan struct{ tracenoop.Span }

func (panickingSpan) IsRecording() bool          { panic(errBoom) }
func (panickingSpan) End(...trace.SpanEndOption) { panic(errBoom) }

// panickingMeters gives instruments that panic.
type panickingMeters struct{ metricnoop.MeterProvider }

func (panickingMeters) Meter(string, ...metric.MeterOption) metric.Meter { return panickingMeter{} }

type panickingMeter struct{ metricnoop.Meter }

func (panickingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return panickingCounter{}, nil
}

func (panickingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return panickingHistogram{}, nil
}

type panickingCounter struct{ metricnoop.Int64Counter }

func (panickingCounter) Add(context.Context, int64, ...metric.AddOption) { panic(errBoom) }

type panickingHistogram struct{ metricnoop.Float64Histogram }

func (panickingHistogram) Record(context.Context, float64, ...metric.RecordOption) { panic(errBoom) }

// Whatever the providers do, the calls of a guard come out as they would without
// telemetry, and not a moment later. Time in the bubble only passes while all
// wait, so one call that waited for an exporter would be seen.
func TestHostileProviders(t *testing.T) {
	t.Parallel()
	type providers struct {
		traces  trace.TracerProvider
		metrics metric.MeterProvider
		after   func(t *testing.T) // releases, and checks that the hostile part was reached
	}
	sdk := func(o ...sdktrace.TracerProviderOption) providers {
		return providers{traces: sdktrace.NewTracerProvider(o...)}
	}
	for name, open := range map[string]func() providers{
		"processor panics at the start":      func() providers { return sdk(sdktrace.WithSpanProcessor(hostileProcessor{onStart: true})) },
		"processor panics at the end":        func() providers { return sdk(sdktrace.WithSpanProcessor(hostileProcessor{onEnd: true})) },
		"exporter panics, not batched":       func() providers { return sdk(sdktrace.WithSyncer(panicking{})) },
		"tracer panics":                      func() providers { return providers{traces: panickingTracers{}} },
		"span panics":                        func() providers { return providers{traces: panickingSpans{}} },
		"instruments panic":                  func() providers { return providers{metrics: panickingMeters{}} },
		"exporter of spans blocks, batched":  blockedSpans(func(tp trace.TracerProvider, a func(*testing.T)) providers { return providers{tp, nil, a} }),
		"exporter of metrics blocks, reader": blockedMetrics(func(mp metric.MeterProvider, a func(*testing.T)) providers { return providers{nil, mp, a} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := open()
				tel, err := otelx.New(otelx.Config{
					TracerProvider: p.traces, MeterProvider: p.metrics,
					Agents: []ident.Label{ident.MustLabel("desk")}, Tools: []ident.Label{ident.MustLabel("look")},
				})
				if err != nil {
					t.Fatal(err)
				}
				hostile := newSpanWorld(t)
				hostile.guard = newGuard(t, func(c *interlock.Config) { c.Observer, c.Tracer, c.Fallback.NoRetry = tel, tel, true })
				began := time.Now()
				got := outcomes(t, hostile)
				if took := time.Since(began); took != 0 {
					t.Errorf("the calls waited %v", took)
				}
				if want := outcomes(t, newSpanWorld(t)); got != want {
					t.Errorf("came out as\n%s\nwithout hostility as\n%s", got, want)
				}
				if p.after != nil {
					p.after(t)
				}
			})
		})
	}
}

// outcomes makes many calls of each kind and says how they came out.
func outcomes(t *testing.T, w *spanWorld) string {
	t.Helper()
	var text strings.Builder
	const enough = 40 // fills the queue of the batches several times
	for i := range enough {
		for _, fail := range []error{nil, errBoom} {
			w.tool = func(context.Context) (string, error) { return "fine", fail }
			w.model = func(ctx context.Context) (*llms.ContentResponse, error) {
				if fail != nil {
					return nil, fail
				}

				return answers(ctx)
			}
			err := w.guard.Do(t.Context(), desk, func(ctx context.Context) error {
				return errors.Join(w.callTool(ctx, t), w.askModel(ctx, t), fail)
			})
			if i == 0 {
				_, _ = fmt.Fprintln(&text, err)
			}
		}
	}

	return text.String()
}

// blockedSpans opens a tracer provider whose exporter blocks, behind a short
// queue; blockedMetrics a meter provider of that kind.
func blockedSpans[P any](with func(trace.TracerProvider, func(*testing.T)) P) func() P {
	return func() P {
		b := blocked{release: make(chan struct{}), calls: new(int)}
		tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(b,
			sdktrace.WithMaxQueueSize(8), sdktrace.WithMaxExportBatchSize(4), sdktrace.WithExportTimeout(0)))

		return with(tp, func(t *testing.T) {
			t.Helper()
			synctest.Wait()
			if *b.calls != 1 {
				t.Errorf("the exporter was called %d times", *b.calls)
			}
			close(b.release)
			if err := tp.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func blockedMetrics[P any](with func(metric.MeterProvider, func(*testing.T)) P) func() P {
	return func() P {
		b := blocked{release: make(chan struct{}), calls: new(int)}
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(b,
			sdkmetric.WithInterval(time.Nanosecond), sdkmetric.WithTimeout(time.Hour))))
		<-time.After(time.Second) // it exports, and blocks

		return with(mp, func(t *testing.T) {
			t.Helper()
			synctest.Wait()
			if *b.calls != 1 {
				t.Errorf("the exporter was called %d times", *b.calls)
			}
			close(b.release)
			if err := mp.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
