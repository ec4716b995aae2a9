package otelx_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

func labelOf(s string) ident.Label { return ident.MustModelLabel(s) }

var refund, lookup, primary, backup, desk, openai = labelOf("issue_refund"), labelOf("lookup_order"), labelOf("primary"), labelOf("backup"), labelOf("refund-desk"), labelOf("openai")

var gpt, gptDated, claude, refunds = labelOf("gpt-4o"), labelOf("gpt-4o-2024-08-06"), labelOf("claude-sonnet-4"), ident.MustWorkflowID("workflow:org.example/refunds@1.0.0")

// clock is a clock that the test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

type fixture struct {
	*otelx.Telemetry

	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	clock  *clock
}

func config() otelx.Config {
	return otelx.Config{
		Agents: []ident.Label{desk},
		Tools:  []ident.Label{refund, lookup},
		Candidates: []otelx.Candidate{
			{Label: primary, Provider: openai, Model: gpt},
			{Label: backup, Provider: ident.MustLabel("anthropic"), Model: claude},
		},
		ResponseModels: []ident.Label{gptDated},
		Workflows:      []ident.WorkflowID{refunds},
	}
}

func open(t *testing.T, change ...func(*otelx.Config)) *fixture {
	t.Helper()
	f := &fixture{
		spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader(),
		clock: &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	cfg := config()
	cfg.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans))
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	cfg.Now = f.clock.now
	for _, c := range change {
		c(&cfg)
	}
	tel, err := otelx.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.Telemetry = tel

	return f
}

// span returns the only ended span of this name.
func (f *fixture) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range f.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans named %q, want 1; ended: %v", len(found), name, names(f.spans.Ended()))
	}

	return found[0]
}

func names(spans []sdktrace.ReadOnlySpan) []string {
	var n []string
	for _, s := range spans {
		n = append(n, s.Name())
	}

	return n
}

func attrs(kvs []attribute.KeyValue) map[string]string {
	m := make(map[string]string, len(kvs))
	for _, kv := range kvs {
		m[string(kv.Key)] = kv.Value.String()
	}

	return m
}

// metrics collects and returns the instruments by name.
func (f *fixture) metrics(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()

	return collect(t, f.reader)
}

func collect(t *testing.T, reader *sdkmetric.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	m := make(map[string]metricdata.Metrics)
	for _, s := range rm.ScopeMetrics {
		for _, i := range s.Metrics {
			m[i.Name] = i
		}
	}

	return m
}

// point is one series: its attributes, and its count or value.
type point struct {
	attrs map[string]string
	value float64 // sum of a counter or histogram, reading of a gauge
	count uint64  // of a histogram
}

func points(t *testing.T, m metricdata.Metrics) []point {
	t.Helper()
	var ps []point
	switch d := m.Data.(type) {
	case nil:
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			ps = append(ps, point{attrs: attrs(p.Attributes.ToSlice()), value: float64(p.Value)})
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			ps = append(ps, point{attrs: attrs(p.Attributes.ToSlice()), value: p.Sum, count: p.Count})
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			ps = append(ps, point{attrs: attrs(p.Attributes.ToSlice()), value: p.Value})
		}
	default:
		t.Fatalf("%s has data of type %T", m.Name, d)
	}

	return ps
}

// value returns the value of the series with exactly these attributes.
func value(t *testing.T, m metricdata.Metrics, want map[string]string) (float64, bool) {
	t.Helper()
	for _, p := range points(t, m) {
		if equal(p.attrs, want) {
			return p.value, true
		}
	}

	return 0, false
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}

	return true
}

func wantValue(t *testing.T, m map[string]metricdata.Metrics, name string, want map[string]string, v float64) {
	t.Helper()
	got, ok := value(t, m[name], want)
	if !ok || got < v-1e-9 || got > v+1e-9 {
		t.Errorf("%s%v = %v (present %v), want %v; series: %v", name, want, got, ok, v, points(t, m[name]))
	}
}

// rejected returns the counts of interlock.telemetry.rejected by kind.
func (f *fixture) rejected(t *testing.T) map[string]float64 {
	t.Helper()
	r := make(map[string]float64)
	for _, p := range points(t, f.metrics(t)["interlock.telemetry.rejected"]) {
		r[p.attrs["interlock.telemetry.kind"]] = p.value
	}

	return r
}

// startRun returns a context with a run of the registered workflow.
func startRun(t *testing.T) (context.Context, *middleware.Run) {
	t.Helper()
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: refunds, Label: desk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.End() })

	return ctx, run
}

func isChild(child, parent sdktrace.ReadOnlySpan) bool {
	return child.Parent().SpanID() == parent.SpanContext().SpanID() &&
		child.SpanContext().TraceID() == parent.SpanContext().TraceID()
}
