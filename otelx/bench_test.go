package otelx_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

func benchTelemetry(b *testing.B, change func(*otelx.Config)) *otelx.Telemetry {
	b.Helper()
	cfg := config()
	change(&cfg)
	tel, err := otelx.New(cfg)
	if err != nil {
		b.Fatal(err)
	}

	return tel
}

func noopTracer(c *otelx.Config) { c.TracerProvider = tracenoop.NewTracerProvider() }

// apiOnly is an application without an SDK: the global provider, which one may be put behind later.
func apiOnly(c *otelx.Config)   { c.TracerProvider = otel.GetTracerProvider() }
func recording(c *otelx.Config) { c.TracerProvider = sdktrace.NewTracerProvider() }
func sampledOut(c *otelx.Config) {
	c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
}
func counting(c *otelx.Config) {
	c.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

func both(c *otelx.Config) { recording(c); counting(c) }

func without(f func(*otelx.Config)) func(*otelx.Config) {
	return func(c *otelx.Config) { f(c); c.DisableAllowSpans = true }
}

// BenchmarkObserve is one allow decision of admission, as a gate reports it.
func BenchmarkObserve(b *testing.B) {
	d := middleware.Decision{
		Seq: 1, Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Reason: middleware.ReasonAdmissionEnabled, Workflow: refunds, Label: refund, Turn: 1, Attempt: 1, Generation: 4, Duration: 8000,
	}
	ctx := context.Background()
	b.Run("nobody listens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			middleware.Notify(ctx, nil, d)
		}
	})
	b.Run("bare no-op span", func(b *testing.B) {
		tracer := tracenoop.NewTracerProvider().Tracer("")
		options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
		b.ReportAllocs()
		for b.Loop() {
			_, span := tracer.Start(ctx, "interlock.admission", options...)
			span.End()
		}
	})
	for _, bb := range []struct {
		name   string
		change func(*otelx.Config)
	}{
		{"off", func(*otelx.Config) {}},
		{"no-op tracer", noopTracer},
		{"API only", apiOnly},
		{"no-op tracer, no allow spans", without(noopTracer)},
		{"sampled out", sampledOut},
		{"recording", recording},
		{"recording, no allow spans", without(recording)},
		{"metrics", counting},
		{"recording and metrics", both},
		{"recording and metrics, no allow spans", without(both)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			tel := benchTelemetry(b, bb.change)
			b.ReportAllocs()
			for b.Loop() {
				middleware.Notify(ctx, tel, d)
			}
		})
	}
}

// BenchmarkDecision is a tool call behind a gate that reports one allow decision,
// beside the bare call: the same without a gate. What the decision costs is the
// difference to "gate, nobody listens".
func BenchmarkDecision(b *testing.B) {
	var result middleware.ToolResult
	tool := middleware.ToolHandler(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return &result, nil })
	gate := func(o middleware.Observer) middleware.ToolMiddleware {
		return func(next middleware.ToolHandler) middleware.ToolHandler {
			return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				middleware.Notify(ctx, o, middleware.Decision{
					Seq: 1, Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
					Reason: middleware.ReasonAdmissionEnabled, Workflow: refunds, Label: call.Label(), Turn: call.Turn(),
					Attempt: call.Attempt(), Generation: 4, Duration: 8000,
				})

				return next(ctx, call)
			}
		}
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: refunds, Label: desk})
	if err != nil {
		b.Fatal(err)
	}
	defer run.End()
	called := func(b *testing.B, chain middleware.ToolMiddleware) {
		b.Helper()
		g, err := middleware.NewTool(middleware.ToolConfig{Name: "issue_refund", Chain: chain}, tool)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Do(ctx, "id", ""); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bare call", func(b *testing.B) { called(b, nil) })
	b.Run("gate, nobody listens", func(b *testing.B) { called(b, gate(nil)) })
	for _, bb := range []struct {
		name   string
		change func(*otelx.Config)
	}{
		{"no-op tracer", noopTracer},
		{"API only", apiOnly},
		{"recording", recording},
		{"no-op tracer, no allow spans", without(noopTracer)},
		{"recording, no allow spans", without(recording)},
		{"metrics", counting},
		{"recording and metrics", both},
		{"recording and metrics, no allow spans", without(both)},
	} {
		b.Run(bb.name, func(b *testing.B) { called(b, gate(benchTelemetry(b, bb.change))) })
	}
}

// BenchmarkTool is a tool call with its span, beside the bare call.
func BenchmarkTool(b *testing.B) {
	var result middleware.ToolResult
	bare := middleware.ToolHandler(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return &result, nil })
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: refunds, Label: desk})
	if err != nil {
		b.Fatal(err)
	}
	defer run.End()
	guarded := func(b *testing.B, chain middleware.ToolMiddleware) {
		b.Helper()
		g, err := middleware.NewTool(middleware.ToolConfig{Name: "issue_refund", Chain: chain}, bare)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Do(ctx, "id", ""); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("bare", func(b *testing.B) { guarded(b, nil) })
	for _, bb := range []struct {
		name   string
		change func(*otelx.Config)
	}{{"off", func(*otelx.Config) {}}, {"no-op tracer", noopTracer}, {"API only", apiOnly}, {"recording", recording}, {"metrics", counting}, {"recording and metrics", both}} {
		b.Run(bb.name, func(b *testing.B) { guarded(b, middleware.TraceTool(benchTelemetry(b, bb.change))) })
	}
}

// BenchmarkMiss is the price of a name that is not registered.
func BenchmarkMiss(b *testing.B) {
	tel := benchTelemetry(b, counting)
	ctx, unknown := context.Background(), ident.MustLabel("unknown")
	b.ReportAllocs()
	for b.Loop() {
		_, end := tel.Start(ctx, middleware.OpTool, unknown, 1)
		end(middleware.Outcome{})
	}
}
