package otelx

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/interlock-go/interlock/middleware"
)

// openSeries says, for each instrument, what a key renders as.
func (m *meters) openSeries() {
	r := m.registry
	ended := func(t *table) *series { // name, error type
		return newSeries(
			func(k key) []attribute.KeyValue {
				a, e, _, _ := k.parts()

				return withErrorType(t.all[a].metric, middleware.ErrorType(e))
			},
			func(k key) key {
				_, e, _, _ := k.parts()

				return newKey(t.other.index, e, 0, 0)
			},
		)
	}
	m.operationSeries, m.toolSeries, m.agentSeries = ended(r.candidates), ended(r.tools), ended(r.agents)
	m.decisionSeries = newSeries(decisionSeries, func(k key) key {
		a, b, _, _ := k.parts()

		return newKey(a, b, outside, outside)
	})
	m.durationSeries = newSeries(durationSeries, same)
	m.attemptSeries = newSeries(func(k key) []attribute.KeyValue {
		a, o, _, _ := k.parts()

		return []attribute.KeyValue{requestModel(r.candidates.all[a]), enumAttr(keyOutcome, middleware.AttemptOutcome(o))}
	}, same)
	m.transitionSeries = newSeries(func(k key) []attribute.KeyValue {
		a, c, reason, _ := k.parts()
		attrs := []attribute.KeyValue{r.names.all[a].metric[0], enumAttr(keyCircuitState, middleware.CircuitState(c))}

		return withReason(attrs, reason)
	}, func(k key) key {
		_, c, _, _ := k.parts()

		return newKey(r.names.other.index, c, outside, 0)
	})
	m.stateSeries = newSeries(func(k key) []attribute.KeyValue { return circuitSeries(r, k) }, same)
	m.handoffSeries = newSeries(func(k key) []attribute.KeyValue {
		a, _, _, _ := k.parts()

		return []attribute.KeyValue{enumAttr(keyClass, middleware.FailureClass(a))}
	}, same)
	m.tripSeries = newSeries(func(k key) []attribute.KeyValue {
		a, _, _, _ := k.parts()

		return withReason(nil, a)
	}, same)
	m.rejectedSeries = newSeries(func(k key) []attribute.KeyValue {
		a, _, _, _ := k.parts()

		return []attribute.KeyValue{keyKind.String(rejectionNames[a])}
	}, same)
}

// same is the fold of an instrument whose tables have fewer than 900 combinations.
func same(k key) key { return k }

func decisionSeries(k key) []attribute.KeyValue {
	c, v, a, reason := k.parts()
	attrs := []attribute.KeyValue{
		enumAttr(keyComponent, middleware.Component(c)), enumAttr(keyVerdict, middleware.Verdict(v)),
	}

	return withReason(withAction(attrs, a), reason)
}

func durationSeries(k key) []attribute.KeyValue {
	c, a, _, _ := k.parts()

	return withAction([]attribute.KeyValue{enumAttr(keyComponent, middleware.Component(c))}, a)
}

func circuitSeries(r *registry, k key) []attribute.KeyValue {
	a, c, _, _ := k.parts()

	return []attribute.KeyValue{r.names.all[a].metric[0], enumAttr(keyCircuitState, middleware.CircuitState(c))}
}

func withAction(attrs []attribute.KeyValue, a uint8) []attribute.KeyValue {
	if a == 0 {
		return attrs
	}

	return append(attrs, enumAttr(keyAction, middleware.Action(a)))
}

func withReason(attrs []attribute.KeyValue, r uint8) []attribute.KeyValue {
	if r == 0 {
		return attrs
	}

	return append(attrs, enumAttr(keyReason, middleware.Reason(r)))
}

func withErrorType(attrs []attribute.KeyValue, e middleware.ErrorType) []attribute.KeyValue {
	if e == 0 {
		return attrs
	}

	return append(slices.Clip(attrs), enumAttr(keyErrorType, e))
}

// requestModel returns the attribute of a candidate's model.
func requestModel(e *entry) attribute.KeyValue { return e.attrs[len(e.attrs)-1] }
