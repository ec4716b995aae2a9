package otelx_test

import (
	"context"
	"math"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

type source func() []middleware.Gauge

func (s source) Gauges() []middleware.Gauge { return s() }

func TestGauges(t *testing.T) {
	t.Parallel()
	state := middleware.CircuitClosed
	f := open(t, func(c *otelx.Config) {
		c.Gauges = []middleware.GaugeSource{
			source(func() []middleware.Gauge {
				return []middleware.Gauge{
					{Kind: middleware.GaugeCircuit, Label: primary, Circuit: state, Value: 1},
					{Kind: middleware.GaugeCircuit, Label: ident.MustLabel("unknown"), Circuit: middleware.CircuitOpen, Value: 1},
					{Kind: middleware.GaugeCircuit, Label: primary, Circuit: 99, Value: 1},
				}
			}),
			source(func() []middleware.Gauge { panic(secret) }),
			source(func() []middleware.Gauge {
				return []middleware.Gauge{
					{Kind: middleware.GaugeAdmission, Global: true, Reason: middleware.ReasonAdmissionStopped, Value: 1},
					{Kind: middleware.GaugeAdmission, Reason: middleware.ReasonAdmissionEnabled, Value: 1},
					{Kind: middleware.GaugeAdmission, Reason: middleware.ReasonAdmissionEnabled, Value: 1},
					{Kind: middleware.GaugeAdmission, Reason: middleware.ReasonUntrustedState, Value: 1},
					{Kind: middleware.GaugeAdmission, Reason: middleware.ReasonLoop, Value: 1},
					{Kind: middleware.GaugeQueue, Value: 4},
					{Kind: middleware.GaugeInFlight, Value: 2},
					{Kind: middleware.GaugeInFlight, Value: math.NaN()},
					{Kind: 77, Value: 1},
				}
			}),
		}
	})
	// A part that is built later, and reports to the same telemetry.
	if err := f.Watch(source(func() []middleware.Gauge {
		return []middleware.Gauge{{Kind: middleware.GaugeInFlight, Value: 3}, {Kind: middleware.GaugeQueue, Value: 1}}
	})); err != nil {
		t.Fatal(err)
	}
	m := f.metrics(t)
	circuit := func(label, state string) map[string]string {
		return map[string]string{"interlock.circuit.label": label, "interlock.circuit.state": state}
	}
	admission := func(scope, state string) map[string]string {
		return map[string]string{"interlock.admission.scope": scope, "interlock.admission.state": state}
	}
	wantValue(t, m, "interlock.circuit.state", circuit("primary", "closed"), 1)
	wantValue(t, m, "interlock.circuit.state", circuit("primary", "open"), 0)
	wantValue(t, m, "interlock.circuit.state", circuit("_OTHER", "open"), 1)
	wantValue(t, m, "interlock.admission.state", admission("global", "stopped"), 1)
	wantValue(t, m, "interlock.admission.state", admission("global", "enabled"), 0)
	wantValue(t, m, "interlock.admission.state", admission("workflow", "enabled"), 2)
	wantValue(t, m, "interlock.admission.state", admission("workflow", "untrusted"), 1)
	wantValue(t, m, "interlock.admission.state", admission("workflow", "_OTHER"), 1)
	wantValue(t, m, "interlock.escalation.queue", map[string]string{}, 5)
	wantValue(t, m, "interlock.effects.in_flight", map[string]string{}, 5)
	if _, there := value(t, m["interlock.admission.state"], admission("global", "_OTHER")); there {
		t.Error("a state that no scope was in is shown as _OTHER")
	}

	state = middleware.CircuitOpen
	m = f.metrics(t)
	wantValue(t, m, "interlock.circuit.state", circuit("primary", "closed"), 0)
	wantValue(t, m, "interlock.circuit.state", circuit("primary", "open"), 1)
	if r := f.rejected(t); r["gauge"] < 4 || r["label"] < 1 {
		t.Errorf("rejected %v", r)
	}
}

func TestWatchRefusesNil(t *testing.T) {
	t.Parallel()
	f := open(t)
	ok := source(func() []middleware.Gauge { return []middleware.Gauge{{Kind: middleware.GaugeQueue, Value: 1}} })
	if err := f.Watch(ok, nil); err == nil || err.Error() != "otelx: Config.Gauges[1]: invalid_config" {
		t.Errorf("Watch = %v", err)
	}
	if _, there := f.metrics(t)["interlock.escalation.queue"]; there {
		t.Error("a refused call added a source")
	}
}

// A breaker of no name is shown under _OTHER: nothing was refused, as for a
// decision without a label.
func TestGaugeWithoutLabel(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) {
		c.Gauges = []middleware.GaugeSource{source(func() []middleware.Gauge {
			return []middleware.Gauge{{Kind: middleware.GaugeCircuit, Circuit: middleware.CircuitOpen, Value: 1}}
		})}
	})
	wantValue(t, f.metrics(t), "interlock.circuit.state",
		map[string]string{"interlock.circuit.label": "_OTHER", "interlock.circuit.state": "open"}, 1)
	if r := f.rejected(t); len(r) != 0 {
		t.Errorf("rejected %v", r)
	}
}

// Close ends the reading of gauges, and nothing else.
func TestClose(t *testing.T) {
	t.Parallel()
	reads := 0
	f := open(t, func(c *otelx.Config) {
		c.Gauges = []middleware.GaugeSource{source(func() []middleware.Gauge {
			reads++

			return nil
		})}
	})
	f.metrics(t)
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f.metrics(t)
	if reads != 1 {
		t.Errorf("%d reads, want the one before Close", reads)
	}
	f.Observe(context.Background(), middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
	f.span(t, "interlock.budget")
	if len(points(t, f.metrics(t)["interlock.decisions"])) != 1 {
		t.Error("the counters ended with Close")
	}
}

// Two telemetries of one provider do not take each other's gauges away.
func TestCloseIsOnesOwn(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	queue := []middleware.GaugeSource{source(func() []middleware.Gauge {
		return []middleware.Gauge{{Kind: middleware.GaugeQueue, Value: 1}}
	})}
	first, err := otelx.New(otelx.Config{MeterProvider: provider, Gauges: queue})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := otelx.New(otelx.Config{MeterProvider: provider, Gauges: queue}); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wantValue(t, collect(t, reader), "interlock.escalation.queue", map[string]string{}, 1)
}
