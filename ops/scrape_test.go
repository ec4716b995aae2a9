package ops_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// exported is what the library exports, as Prometheus sees it: metrics by the
// names that queries use, their labels, and the values of those labels that are
// a closed list (nil: registered names, any).
type exported map[string]map[string][]string

// translated is what the description of the instruments says is exported. Of a
// histogram there are three metrics, with their suffixes.
func translated(t *testing.T) exported {
	t.Helper()
	metrics := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	kinds := map[string]otlptranslator.MetricType{
		otelx.KindCounter: otlptranslator.MetricTypeMonotonicCounter, otelx.KindGauge: otlptranslator.MetricTypeGauge,
		otelx.KindHistogram: otlptranslator.MetricTypeHistogram,
	}
	values := map[string][]string{}
	for _, a := range otelx.Attributes() {
		if a.Source == otelx.SourceClosed {
			values[a.Key] = a.Values
		}
	}
	e := exported{}
	for _, i := range otelx.Instruments() {
		name, err := metrics.Build(otlptranslator.Metric{Name: i.Name, Unit: i.Unit, Type: kinds[i.Kind]})
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string][]string{}
		for _, a := range i.Attributes {
			label, err := (&otlptranslator.LabelNamer{}).Build(a)
			if err != nil {
				t.Fatal(err)
			}
			labels[label] = values[a]
		}
		if i.Kind != otelx.KindHistogram {
			e[name] = labels

			continue
		}
		e[name+"_sum"], e[name+"_count"] = labels, labels
		e[name+"_bucket"] = maps.Clone(labels)
		e[name+"_bucket"]["le"] = nil
	}
	if len(e) == 0 {
		t.Fatal("nothing is exported")
	}

	return e
}

// scraped runs the real telemetry through OpenTelemetry's exporter for
// Prometheus, as it is by default, with at least one series of each instrument.
// It is slow enough to be done once.
var scraped = sync.OnceValues(func() ([]*dto.MetricFamily, error) {
	registry := prom.NewRegistry()
	exporter, err := prometheus.New(prometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	tool, agent, model := ident.MustLabel("issue_refund"), ident.MustLabel("desk"), ident.MustLabel("primary")
	tel, err := otelx.New(otelx.Config{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
		Tools:         []ident.Label{tool}, Agents: []ident.Label{agent},
		Candidates: []otelx.Candidate{{Label: model, Provider: ident.MustLabel("openai"), Model: ident.MustModelLabel("gpt-4o")}},
		Gauges:     []middleware.GaugeSource{states{model}},
	})
	if err != nil {
		return nil, err
	}
	record(tel, tool, agent, model)

	return registry.Gather()
})

// states are the gauges of a breaker, of admission, of a queue and of effects.
type states struct{ breaker ident.Label }

func (s states) Gauges() []middleware.Gauge {
	return []middleware.Gauge{
		{Kind: middleware.GaugeQueue, Value: 1}, {Kind: middleware.GaugeInFlight, Value: 1},
		{Kind: middleware.GaugeCircuit, Label: s.breaker, Circuit: middleware.CircuitOpen, Value: 1},
		{Kind: middleware.GaugeAdmission, Global: true, Reason: middleware.ReasonAdmissionEnabled, Value: 1},
	}
}

func record(tel *otelx.Telemetry, tool, agent, model ident.Label) {
	ctx := context.Background()
	for op, label := range map[middleware.Op]ident.Label{
		middleware.OpRun: agent, middleware.OpAttempt: model, middleware.OpTool: tool,
	} {
		_, end := tel.Start(ctx, op, label, 1)
		end(middleware.Outcome{Decision: middleware.Decision{Reason: middleware.ReasonTimeout}})
	}
	deny := middleware.Decision{
		Seq: 1, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock, Label: model, Duration: time.Microsecond,
	}
	for _, change := range []func(d *middleware.Decision){
		func(d *middleware.Decision) {
			d.Component, d.Reason = middleware.ComponentWatchdog, middleware.ReasonLoop
		},
		func(d *middleware.Decision) {
			d.Component, d.Outcome = middleware.ComponentFallback, middleware.OutcomeTimeout
		},
		func(d *middleware.Decision) {
			d.Component, d.Circuit, d.Reason = middleware.ComponentBreaker, middleware.CircuitOpen, middleware.ReasonCircuitOpen
		},
		func(d *middleware.Decision) {
			d.Component, d.Circuit, d.Reason, d.Seq = middleware.ComponentBreaker, middleware.CircuitHalfOpen, middleware.ReasonTrial, 2
		},
		func(d *middleware.Decision) {
			d.Component, d.Verdict = middleware.ComponentEscalation, middleware.VerdictEscalate
			d.Class, d.Reason = middleware.FailureTool, middleware.ReasonCircuitOpen
		},
		func(d *middleware.Decision) { d.Component, d.Fill, d.Drift = middleware.ComponentContext, 0.5, 0.5 },
		func(d *middleware.Decision) {
			d.Component, d.Label = middleware.ComponentFallback, ident.MustLabel("unknown")
			d.Outcome = middleware.OutcomeError
		},
	} {
		d := deny
		change(&d)
		tel.Observe(ctx, d)
	}
}

// What is scraped from the real telemetry is what the translation of its
// description says, name by name and label by label.
func TestScrape(t *testing.T) {
	t.Parallel()
	families, err := scraped()
	if err != nil {
		t.Fatal(err)
	}
	left := translated(t)
	for _, f := range families {
		name := f.GetName()
		if name == "target_info" {
			continue
		}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			delete(left, name+"_bucket")
			delete(left, name+"_sum")
			name += "_count"
		}
		labels, ok := left[name]
		if !ok {
			t.Errorf("%s was scraped, and is no translation of an instrument", name)

			continue
		}
		delete(left, name)
		got := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(l.GetName(), "otel_scope_") {
					continue // the exporter's own
				}
				got[l.GetName()] = true
				if v := labels[l.GetName()]; v != nil && l.GetValue() != "_OTHER" && !slices.Contains(v, l.GetValue()) {
					t.Errorf("%s: %s is %q, which is in no closed list", name, l.GetName(), l.GetValue())
				}
			}
		}
		if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(labels)); !slices.Equal(g, w) {
			t.Errorf("%s was scraped with the labels %v, not %v", name, g, w)
		}
	}
	for name := range left {
		t.Errorf("%s was not scraped", name)
	}
}
