package otelx

import (
	"context"
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/middleware"
)

// gaugeInstruments are what alerts stand on: states, read at collection.
type gaugeInstruments struct {
	circuit, admission, queue, inFlight metric.Float64ObservableGauge

	circuitSeries, admissionSeries *series
}

// admissionState is the state of a scope as a metric shows it.
type admissionState uint8

const (
	admissionOther admissionState = iota
	admissionEnabled
	admissionDisabled
	admissionStopped
	admissionUntrusted

	admissionStateEnd
)

var admissionNames = [admissionStateEnd]string{ //nolint:gochecknoglobals // compiled table
	admissionOther: other, admissionEnabled: "enabled", admissionDisabled: "disabled",
	admissionStopped: "stopped", admissionUntrusted: "untrusted",
}

func admissionStateOf(r middleware.Reason) admissionState {
	switch r {
	case middleware.ReasonAdmissionEnabled:
		return admissionEnabled
	case middleware.ReasonAdmissionDisabled:
		return admissionDisabled
	case middleware.ReasonAdmissionStopped:
		return admissionStopped
	case middleware.ReasonUntrustedState:
		return admissionUntrusted
	default:
		return admissionOther
	}
}

// Scopes of admission, as parts of a key.
const (
	scopeWorkflow = iota
	scopeGlobal
	scopeEnd
)

var scopeNames = [scopeEnd]string{scopeWorkflow: "workflow", scopeGlobal: "global"} //nolint:gochecknoglobals // compiled table

func (g *gauges) open(meter metric.Meter, t *Telemetry) error {
	b := instrumentBuilder{meter: meter, described: Instruments()}
	g.read = gaugeInstruments{
		circuit:   b.gauge(metricCircuitState),
		admission: b.gauge(metricAdmissionState),
		queue:     b.gauge(metricQueue),
		inFlight:  b.gauge(metricInFlight),
		circuitSeries: newSeries(func(k key) []attribute.KeyValue {
			return circuitSeries(t.registry, k)
		}, same),
		admissionSeries: newSeries(func(k key) []attribute.KeyValue {
			scope, state, _, _ := k.parts()

			return []attribute.KeyValue{keyScope.String(scopeNames[scope]), keyAdmissionState.String(admissionNames[state])}
		}, same),
	}
	if b.err != nil {
		return b.err
	}
	r, err := meter.RegisterCallback(t.readGauges, g.read.circuit, g.read.admission, g.read.queue, g.read.inFlight)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.registered = r

	return nil
}

// readings adds up what all sources say, so that each series is observed once.
type readings struct {
	circuits  map[uint8]*[circuitStates]float64
	admission [scopeEnd]*[admissionStateEnd]float64
	queue     *float64
	inFlight  *float64
}

const circuitStates = int(middleware.CircuitHalfOpen) + 1

func (t *Telemetry) readGauges(ctx context.Context, o metric.Observer) error {
	r := readings{circuits: make(map[uint8]*[circuitStates]float64)}
	for _, s := range t.gauges.current() {
		for _, g := range gaugesOf(s) {
			if kind := r.note(t.registry, &g); kind != 0 {
				t.reject(ctx, kind)
			}
		}
	}
	r.observe(o, &t.gauges.read)

	return nil
}

// gaugesOf contains a source that panics: its readings are then absent, which
// alerts see.
func gaugesOf(s middleware.GaugeSource) (g []middleware.Gauge) {
	defer func() {
		if recover() != nil {
			g = nil
		}
	}()

	return s.Gauges()
}

// note takes a reading, and says what about it was out of its set.
func (r *readings) note(reg *registry, g *middleware.Gauge) rejection {
	if math.IsNaN(g.Value) || math.IsInf(g.Value, 0) {
		return rejectedGauge
	}
	switch g.Kind {
	case middleware.GaugeCircuit:
		return r.noteCircuit(reg, g)
	case middleware.GaugeAdmission:
		return r.noteAdmission(g)
	case middleware.GaugeQueue:
		r.queue = sum(r.queue, g.Value)
	case middleware.GaugeInFlight:
		r.inFlight = sum(r.inFlight, g.Value)
	default:
		return rejectedGauge
	}

	return 0
}

func (r *readings) noteCircuit(reg *registry, g *middleware.Gauge) rejection {
	if g.Circuit == 0 || !known(g.Circuit) {
		return rejectedGauge
	}
	e, registered := reg.names.find(g.Label)
	states := r.circuits[e.index]
	if states == nil {
		states = new([circuitStates]float64)
		r.circuits[e.index] = states
	}
	states[g.Circuit] = max(states[g.Circuit], g.Value) // of several breakers of one label: the worst is seen
	if !registered && !g.Label.IsZero() {
		return rejectedLabel
	}

	return 0
}

func (r *readings) noteAdmission(g *middleware.Gauge) rejection {
	scope := scopeWorkflow
	if g.Global {
		scope = scopeGlobal
	}
	if r.admission[scope] == nil {
		r.admission[scope] = new([admissionStateEnd]float64)
	}
	state := admissionStateOf(g.Reason)
	r.admission[scope][state] += g.Value
	if state == admissionOther {
		return rejectedGauge
	}

	return 0
}

// observe reports the states that nothing is in as 0: a series that just ended
// would leave an alert with its last value.
func (r *readings) observe(o metric.Observer, in *gaugeInstruments) {
	for label, states := range r.circuits {
		for _, c := range middleware.CircuitStates() {
			o.ObserveFloat64(in.circuit, states[c], in.circuitSeries.get(newKey(label, uint8(c), 0, 0)).observe...)
		}
	}
	for scope, states := range r.admission {
		if states == nil {
			continue
		}
		for state, v := range states {
			if admissionState(state) == admissionOther && v == 0 {
				continue
			}
			k := newKey(uint8(scope), uint8(state), 0, 0)
			o.ObserveFloat64(in.admission, v, in.admissionSeries.get(k).observe...)
		}
	}
	if r.queue != nil {
		o.ObserveFloat64(in.queue, *r.queue)
	}
	if r.inFlight != nil {
		o.ObserveFloat64(in.inFlight, *r.inFlight)
	}
}

func sum(total *float64, v float64) *float64 {
	if total == nil {
		return &v
	}
	*total += v

	return total
}
