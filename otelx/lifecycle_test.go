package otelx_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// endings counts how often each span ended.
type endings struct {
	mu      sync.Mutex
	started int
	ended   map[trace.SpanID]int
}

func (e *endings) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started++
}

func (e *endings) OnEnd(s sdktrace.ReadOnlySpan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended == nil {
		e.ended = make(map[trace.SpanID]int)
	}
	e.ended[s.SpanContext().SpanID()]++
}

func (*endings) Shutdown(context.Context) error   { return nil }
func (*endings) ForceFlush(context.Context) error { return nil }

func tool(t *testing.T, tel *otelx.Telemetry, effect middleware.Effect, fn middleware.ToolHandler) *middleware.GuardedTool {
	t.Helper()
	g, err := middleware.NewTool(middleware.ToolConfig{
		Name: "issue_refund", Label: refund, Effect: effect, Chain: middleware.TraceTool(tel), Observer: tel,
	}, fn)
	if err != nil {
		t.Fatal(err)
	}

	return g
}

// Every span ends exactly once, whatever the tool does, and says how it ended.
func TestEverySpanEndsOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		effect middleware.Effect
		fn     func(ctx context.Context, cancel context.CancelFunc) (*middleware.ToolResult, error)
		want   string
	}{
		{"return", middleware.Effectful, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{}, nil
		}, ""},
		{"error", middleware.Effectful, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			return nil, errSecret
		}, "tool_failed"},
		{"nil result", middleware.Effectful, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			return nil, nil
		}, "outcome_unknown"},
		{"panic", middleware.ReadOnly, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			panic(errSecret)
		}, "panic"},
		{"panic of an effectful tool", middleware.Effectful, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			panic(secret)
		}, "outcome_unknown"},
		{"Goexit", middleware.Effectful, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			runtime.Goexit()

			return nil, nil
		}, "panic"},
		{"cancel", middleware.ReadOnly, func(ctx context.Context, cancel context.CancelFunc) (*middleware.ToolResult, error) {
			cancel()

			return nil, ctx.Err()
		}, "canceled"},
		{"timeout", middleware.ReadOnly, func(context.Context, context.CancelFunc) (*middleware.ToolResult, error) {
			return nil, context.DeadlineExceeded
		}, "timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			counter, recorder := &endings{}, tracetest.NewSpanRecorder()
			f := open(t, func(c *otelx.Config) {
				c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(counter), sdktrace.WithSpanProcessor(recorder))
			})
			f.spans = recorder
			ctx, _ := startRun(t)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			g := tool(t, f.Telemetry, tt.effect, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
				return tt.fn(ctx, cancel)
			})
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = g.Do(ctx, "", secret)
			}()
			<-done
			s := f.span(t, "execute_tool issue_refund")
			if got := attrs(s.Attributes())["error.type"]; got != tt.want {
				t.Errorf("error.type %q, want %q", got, tt.want)
			}
			if len(s.Events()) != 0 || s.Status().Description != "" {
				t.Errorf("events %v, status %+v", s.Events(), s.Status())
			}
			if counter.started != 1 || len(counter.ended) != 1 || counter.ended[s.SpanContext().SpanID()] != 1 {
				t.Errorf("started %d, ended %v", counter.started, counter.ended)
			}
		})
	}
}

// A refused tool has its decision and no execute_tool span.
func TestDeniedToolHasNoToolSpan(t *testing.T) {
	t.Parallel()
	f := open(t)
	gate := func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			middleware.Notify(ctx, f, middleware.Decision{
				Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
				Reason: middleware.ReasonAdmissionStopped, Label: call.Label(),
			})

			return nil, middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped})
		}
	}
	g, err := middleware.NewTool(middleware.ToolConfig{
		Name: "issue_refund", Chain: middleware.Chain(gate, middleware.TraceTool(f)),
	}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		t.Error("the tool ran")

		return &middleware.ToolResult{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := startRun(t)
	if _, err := g.Do(ctx, "", secret); !errors.Is(err, middleware.ReasonAdmissionStopped) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"interlock.admission"}, names(f.spans.Ended())); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestParents(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, _ := startRun(t)
	runCtx, endRun := middleware.StartOp(ctx, f, middleware.OpRun, ident.Label{}, 0)

	fallbackCtx, endFallback := middleware.StartOp(runCtx, f, middleware.OpFallback, ident.Label{}, 0)
	for i, candidate := range []ident.Label{primary, backup} {
		_, end := middleware.StartOp(fallbackCtx, f, middleware.OpAttempt, candidate, i+1)
		end(middleware.Outcome{})
	}
	endFallback(middleware.Outcome{})

	middleware.Notify(runCtx, f, middleware.Decision{Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow})
	toolCtx, endTool := middleware.StartOp(runCtx, f, middleware.OpTool, refund, 1)
	middleware.Notify(toolCtx, f, middleware.Decision{
		Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny, Reason: middleware.ReasonStalled,
	})
	endTool(middleware.Outcome{})
	endRun(middleware.Outcome{})

	run := f.span(t, "invoke_agent refund-desk")
	for _, edge := range [][2]string{
		{"interlock.fallback", "invoke_agent refund-desk"},
		{"chat primary", "interlock.fallback"},
		{"chat backup", "interlock.fallback"},
		{"interlock.admission", "invoke_agent refund-desk"},
		{"execute_tool issue_refund", "invoke_agent refund-desk"},
		{"interlock.watchdog", "execute_tool issue_refund"},
	} {
		if !isChild(f.span(t, edge[0]), f.span(t, edge[1])) {
			t.Errorf("%s is no child of %s", edge[0], edge[1])
		}
	}
	if run.Parent().IsValid() {
		t.Error("the run has a parent")
	}
}

// What a provider does wrong neither reaches the call nor leaves a span open.
func TestHostileProcessor(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"start", "end"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			counter := &endings{}
			f := open(t, func(c *otelx.Config) {
				c.TracerProvider = sdktrace.NewTracerProvider(
					sdktrace.WithSpanProcessor(counter), sdktrace.WithSpanProcessor(hostile{where: where}))
			})
			ctx, _ := startRun(t)
			g := tool(t, f.Telemetry, middleware.Effectful, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
				return &middleware.ToolResult{Output: "done"}, nil
			})
			res, err := g.Do(ctx, "", "")
			if err != nil || res.Output != "done" {
				t.Fatalf("the processor changed the outcome: %v, %v", res, err)
			}
			f.Observe(ctx, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
			if where == "end" && (counter.started != 2 || len(counter.ended) != 2) {
				t.Errorf("started %d, ended %d", counter.started, len(counter.ended))
			}
			m := f.metrics(t) // the other half was told all the same
			wantValue(t, m, "gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "issue_refund"}, 0)
			if len(points(t, m["interlock.decisions"])) != 1 {
				t.Error("the decision was not counted")
			}
		})
	}
}

type hostile struct{ where string }

func (h hostile) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	if h.where == "start" {
		panic(secret)
	}
}

func (h hostile) OnEnd(sdktrace.ReadOnlySpan) {
	if h.where == "end" {
		panic(secret)
	}
}

func (hostile) Shutdown(context.Context) error   { return nil }
func (hostile) ForceFlush(context.Context) error { return nil }

// A span whose own methods panic is still ended once.
func TestHostileSpan(t *testing.T) {
	t.Parallel()
	tracer := &brokenTracer{}
	f := open(t, func(c *otelx.Config) { c.TracerProvider = brokenTracers{tracer: tracer} })
	ctx, _ := startRun(t)
	for _, op := range middleware.Ops() {
		_, end := f.Start(ctx, op, refund, 1)
		end(middleware.Outcome{Decision: middleware.Decision{Verdict: middleware.VerdictDeny, Reason: middleware.ReasonPanic}})
	}
	f.Observe(ctx, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
	if tracer.started != 5 || tracer.ended != 5 {
		t.Errorf("started %d, ended %d", tracer.started, tracer.ended)
	}
}

type brokenTracers struct {
	tracenoop.TracerProvider

	tracer *brokenTracer
}

func (p brokenTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return p.tracer }

type brokenTracer struct {
	tracenoop.Tracer

	started, ended int
}

func (t *brokenTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	t.started++

	return nil, brokenSpan{tracer: t}
}

type brokenSpan struct {
	tracenoop.Span

	tracer *brokenTracer
}

func (brokenSpan) IsRecording() bool                   { return true }
func (brokenSpan) SetAttributes(...attribute.KeyValue) { panic(errSecret) }
func (s brokenSpan) End(...trace.SpanEndOption)        { s.tracer.ended++; panic(secret) }

// Many goroutines at once: no race, nothing lost.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, _ := startRun(t)
	const workers, each = 8, 200
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := range each {
				inner, end := f.Start(ctx, middleware.OpTool, refund, i)
				f.Observe(inner, middleware.Decision{
					Seq: uint64(w*each + i), Component: middleware.ComponentBreaker, Verdict: middleware.VerdictDeny, Label: refund,
					Reason: middleware.Reasons()[i%len(middleware.Reasons())], Circuit: middleware.CircuitStates()[i%3],
				})
				end(middleware.Outcome{})
				if i%50 == 0 {
					_ = f.Watch(source(func() []middleware.Gauge { return []middleware.Gauge{{Kind: middleware.GaugeQueue, Value: 1}} }))
					_ = f.reader.Collect(ctx, new(metricdata.ResourceMetrics))
				}
			}
		})
	}
	group.Wait()
	var decisions float64
	for _, p := range points(t, f.metrics(t)["interlock.decisions"]) {
		decisions += p.value
	}
	if decisions != workers*each || len(f.spans.Ended()) != 2*workers*each {
		t.Errorf("%v decisions, %d spans", decisions, len(f.spans.Ended()))
	}
}

// A collection may come while New is not done yet.
func TestCollectWhileOpening(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = reader.Collect(context.Background(), new(metricdata.ResourceMetrics))
			}
		}
	})
	for range 50 {
		tel, err := otelx.New(otelx.Config{
			MeterProvider: provider, Gauges: []middleware.GaugeSource{source(func() []middleware.Gauge {
				return []middleware.Gauge{{Kind: middleware.GaugeCircuit, Circuit: middleware.CircuitOpen, Value: 1}, {}}
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := tel.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	group.Wait()
}

// Telemetry starts no goroutine and waits for nobody: the clock is only read.
func TestDurationUsesTheClock(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, end := f.Start(context.Background(), middleware.OpTool, refund, 1)
	f.clock.advance(90 * time.Second)
	end(middleware.Outcome{})
	wantValue(t, f.metrics(t), "gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "issue_refund"}, 90)
}
