package otelx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

func labels(prefix string, n int) []ident.Label {
	l := make([]ident.Label, n)
	for i := range l {
		l[i] = ident.MustLabel(fmt.Sprintf("%s%d", prefix, i))
	}

	return l
}

func candidates(n int) []otelx.Candidate {
	c := make([]otelx.Candidate, n)
	for i := range c {
		c[i] = otelx.Candidate{Label: ident.MustLabel(fmt.Sprintf("c%d", i)), Provider: openai}
	}

	return c
}

func workflows(n int) []ident.WorkflowID {
	w := make([]ident.WorkflowID, n)
	for i := range w {
		w[i] = ident.MustWorkflowID(fmt.Sprintf("workflow:org.example/w%d", i))
	}

	return w
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	upper := ident.MustModelLabel("Upper/Case")
	tests := []struct {
		name   string
		cfg    otelx.Config
		want   string
		reason middleware.Reason
	}{
		{"agents over the cap", otelx.Config{Agents: labels("a", 17)}, "otelx: Config.Agents: 17 entries, at most 16", middleware.ReasonInvalidConfig},
		{"tools over the cap", otelx.Config{Tools: labels("t", 65)}, "otelx: Config.Tools: 65 entries, at most 64", middleware.ReasonInvalidConfig},
		{"candidates over the cap", otelx.Config{Candidates: candidates(33)}, "otelx: Config.Candidates: 33 entries, at most 32", middleware.ReasonInvalidConfig},
		{"models over the cap", otelx.Config{Candidates: candidates(32), ResponseModels: labels("m", 1)}, "otelx: Config.ResponseModels: 33 entries, at most 32", middleware.ReasonInvalidConfig},
		{"workflows over the cap", otelx.Config{Workflows: workflows(65)}, "otelx: Config.Workflows: 65 entries, at most 64", middleware.ReasonInvalidConfig},
		{"zero agent", otelx.Config{Agents: []ident.Label{desk, {}}}, "otelx: Config.Agents[1]: invalid_label", middleware.ReasonInvalidLabel},
		{"zero tool", otelx.Config{Tools: []ident.Label{{}}}, "otelx: Config.Tools[0]: invalid_label", middleware.ReasonInvalidLabel},
		{"tool with the grammar of models", otelx.Config{Tools: []ident.Label{upper}}, "otelx: Config.Tools[0]: invalid_label", middleware.ReasonInvalidLabel},
		{"tool twice", otelx.Config{Tools: []ident.Label{refund, lookup, refund}}, "otelx: Config.Tools[2]: duplicate_label", middleware.ReasonDuplicateLabel},
		{"agent twice", otelx.Config{Agents: []ident.Label{desk, desk}}, "otelx: Config.Agents[1]: duplicate_label", middleware.ReasonDuplicateLabel},
		{"candidate without label", otelx.Config{Candidates: []otelx.Candidate{{Provider: openai}}}, "otelx: Config.Candidates[0].Label: invalid_label", middleware.ReasonInvalidLabel},
		{"candidate without provider", otelx.Config{Candidates: []otelx.Candidate{{Label: primary}}}, "otelx: Config.Candidates[0].Provider: invalid_label", middleware.ReasonInvalidLabel},
		{"candidate twice", otelx.Config{Candidates: []otelx.Candidate{{Label: primary, Provider: openai}, {Label: primary, Provider: openai}}}, "otelx: Config.Candidates[1].Label: duplicate_label", middleware.ReasonDuplicateLabel},
		{"zero response model", otelx.Config{ResponseModels: []ident.Label{{}}}, "otelx: Config.ResponseModels[0]: invalid_label", middleware.ReasonInvalidLabel},
		{"zero workflow", otelx.Config{Workflows: []ident.WorkflowID{{}}}, "otelx: Config.Workflows[0]: invalid_label", middleware.ReasonInvalidLabel},
		{"workflow twice", otelx.Config{Workflows: []ident.WorkflowID{refunds, refunds}}, "otelx: Config.Workflows[1]: duplicate_label", middleware.ReasonDuplicateLabel},
		{"nil gauge source", otelx.Config{Gauges: []middleware.GaugeSource{nil}}, "otelx: Config.Gauges[0]: invalid_config", middleware.ReasonInvalidConfig},
		{"tracer provider that panics", otelx.Config{TracerProvider: badTracers{}}, "otelx: Config.TracerProvider: invalid_config", middleware.ReasonInvalidConfig},
		{"tracer provider that gives nil", otelx.Config{TracerProvider: nilTracers{}}, "otelx: Config.TracerProvider: invalid_config", middleware.ReasonInvalidConfig},
		{"meter provider that panics", otelx.Config{MeterProvider: badMeters{}}, "otelx: Config.MeterProvider: invalid_config", middleware.ReasonInvalidConfig},
		{"meter provider that gives nil", otelx.Config{MeterProvider: nilMeters{}}, "otelx: Config.MeterProvider: invalid_config", middleware.ReasonInvalidConfig},
		{"meter that fails", otelx.Config{MeterProvider: failingMeters{}}, "otelx: Config.MeterProvider: invalid_config", middleware.ReasonInvalidConfig},
		{"meter that gives nil instruments", otelx.Config{MeterProvider: emptyMeters{}}, "otelx: Config.MeterProvider: invalid_config", middleware.ReasonInvalidConfig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tel, err := otelx.New(tt.cfg)
			if tel != nil || err == nil || err.Error() != tt.want {
				t.Fatalf("New = %v, %v; want %q", tel, err, tt.want)
			}
			if !errors.Is(err, tt.reason) || middleware.ReasonOf(err) != tt.reason {
				t.Errorf("reason is %v, want %v", middleware.ReasonOf(err), tt.reason)
			}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
				if s := fmt.Sprintf(verb, err); strings.Contains(s, secret) || s != tt.want {
					t.Errorf("%s renders %q", verb, s)
				}
			}
		})
	}
}

func TestConfigErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	_, err := otelx.New(otelx.Config{MeterProvider: failingMeters{}})
	refused, ok := errors.AsType[*otelx.ConfigError](err)
	if !ok || refused.Field() != "MeterProvider" || !errors.Is(err, errSecret) {
		t.Errorf("%v does not lead to its cause", err)
	}
}

// The caps themselves are allowed, all at once.
func TestNewAtTheCaps(t *testing.T) {
	t.Parallel()
	_, err := otelx.New(otelx.Config{
		Agents: labels("a", otelx.MaxAgents), Tools: labels("t", otelx.MaxTools),
		Candidates: candidates(otelx.MaxModels), Workflows: workflows(otelx.MaxWorkflows),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Config is copied: labels that are changed afterwards are not registered.
func TestRegistryIsFrozen(t *testing.T) {
	t.Parallel()
	tools := []ident.Label{refund}
	f := open(t, func(c *otelx.Config) { c.Tools = tools })
	tools[0] = lookup
	_, end := middleware.StartOp(context.Background(), f, middleware.OpTool, lookup, 1)
	end(middleware.Outcome{})
	f.span(t, "execute_tool _OTHER")
}

func TestAbsentHalvesDoNothing(t *testing.T) {
	t.Parallel()
	empty, err := otelx.New(otelx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var none *otelx.Telemetry
	for name, tel := range map[string]*otelx.Telemetry{"no providers": empty, "nil": none} {
		ctx := context.Background()
		inner, end := tel.Start(ctx, middleware.OpTool, refund, 1)
		if inner != ctx || end != nil {
			t.Errorf("%s: Start opened something", name)
		}
		tel.Observe(ctx, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
		if err := tel.Watch(); err != nil {
			t.Errorf("%s: Watch: %v", name, err)
		}
		if err := tel.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

//nolint:paralleltest // AllocsPerRun does not work beside other tests
func TestAbsentHalvesAllocateNothing(t *testing.T) {
	empty, err := otelx.New(otelx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if allocs := testing.AllocsPerRun(100, func() {
		middleware.Notify(ctx, empty, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
		_, end := middleware.StartOp(ctx, empty, middleware.OpTool, refund, 1)
		end(middleware.Outcome{})
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A no-op provider is as good as none. An application without an SDK pays for
// what a span of the API itself allocates.
//
//nolint:paralleltest // AllocsPerRun does not work beside other tests
func TestNoOpTracerAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	bare := otel.GetTracerProvider().Tracer("")
	kind := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
	span := testing.AllocsPerRun(100, func() {
		_, span := bare.Start(ctx, "x", kind...)
		span.End()
	})
	for name, tc := range map[string]struct {
		provider trace.TracerProvider
		most     float64
	}{
		"no-op":    {tracenoop.NewTracerProvider(), 0},
		"API only": {otel.GetTracerProvider(), span},
	} {
		f := open(t, func(c *otelx.Config) { c.TracerProvider, c.MeterProvider = tc.provider, metricnoop.NewMeterProvider() })
		if allocs := testing.AllocsPerRun(100, func() {
			middleware.Notify(ctx, f.Telemetry, middleware.Decision{
				Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny, Label: refund, Workflow: refunds,
			})
		}); allocs > tc.most {
			t.Errorf("%s: %v allocations, want %v at most", name, allocs, tc.most)
		}
	}
}

// Recording the metrics of a decision allocates nothing once its series exists.
//
//nolint:paralleltest // AllocsPerRun does not work beside other tests
func TestMetricsAllocateNothing(t *testing.T) {
	f := open(t, func(c *otelx.Config) { c.TracerProvider = nil })
	ctx := context.Background()
	if allocs := testing.AllocsPerRun(100, func() {
		middleware.Notify(ctx, f.Telemetry, middleware.Decision{
			Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Outcome: middleware.OutcomeError,
			Label: primary, Duration: 1000,
		})
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// Each half works without the other.
func TestOneHalf(t *testing.T) {
	t.Parallel()
	t.Run("spans only", func(t *testing.T) {
		t.Parallel()
		f := open(t, func(c *otelx.Config) { c.MeterProvider = nil })
		_, end := f.Start(context.Background(), middleware.OpTool, ident.MustLabel("unknown"), 1)
		end(middleware.Outcome{})
		f.span(t, "execute_tool _OTHER")
	})
	t.Run("metrics only", func(t *testing.T) {
		t.Parallel()
		f := open(t, func(c *otelx.Config) { c.TracerProvider = nil })
		ctx := context.Background()
		inner, end := f.Start(ctx, middleware.OpTool, refund, 1)
		if inner != ctx {
			t.Error("the context changed without a tracer")
		}
		end(middleware.Outcome{})
		wantValue(t, f.metrics(t), "gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "issue_refund"}, 0)
	})
}

// secret is what must not get out of any test.
const secret = "canary-7f3a/Pässwort"

var errSecret = errors.New("provider failed: " + secret)

type badTracers struct{ tracenoop.TracerProvider }

func (badTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { panic(secret) }

type nilTracers struct{ tracenoop.TracerProvider }

func (nilTracers) Tracer(string, ...trace.TracerOption) trace.Tracer { return nil }

type badMeters struct{ metricnoop.MeterProvider }

func (badMeters) Meter(string, ...metric.MeterOption) metric.Meter { panic(errSecret) }

type nilMeters struct{ metricnoop.MeterProvider }

func (nilMeters) Meter(string, ...metric.MeterOption) metric.Meter { return nil }

type failingMeters struct{ metricnoop.MeterProvider }

func (failingMeters) Meter(string, ...metric.MeterOption) metric.Meter { return failingMeter{} }

type failingMeter struct{ metricnoop.Meter }

func (failingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errSecret
}

type emptyMeters struct{ metricnoop.MeterProvider }

func (emptyMeters) Meter(string, ...metric.MeterOption) metric.Meter { return emptyMeter{} }

type emptyMeter struct{ metricnoop.Meter }

func (emptyMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, nil
}
