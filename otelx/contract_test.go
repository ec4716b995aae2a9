package otelx_test

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// driveEverything makes every kind of span and a series of every instrument,
// with every attribute that there is.
func driveEverything(t *testing.T, f *fixture) {
	t.Helper()
	ctx, _ := startRun(t)
	_, endResumed := f.Start(resumedRun(t, f.Telemetry, otherSpan), middleware.OpRun, desk, 0)
	endResumed(middleware.Outcome{})
	for _, failed := range []middleware.Reason{middleware.ReasonOK, middleware.ReasonPanic} {
		for _, c := range middleware.Components() {
			for _, v := range middleware.Verdicts() {
				d := everyField(c, v)
				d.Reason = failed
				f.Observe(ctx, d)
				d.Outcome, d.Class = 0, 0
				f.Observe(ctx, d)
			}
		}
		d := everyField(middleware.ComponentFallback, middleware.VerdictDeny)
		d.Reason = failed
		_, end := f.Start(ctx, middleware.OpRun, desk, 0)
		end(middleware.Outcome{Decision: middleware.Decision{Component: middleware.ComponentRun, Reason: failed}})
		_, end = f.Start(ctx, middleware.OpTool, refund, 1)
		end(middleware.Outcome{Decision: middleware.Decision{Component: middleware.ComponentTool, Reason: failed}})
		_, end = f.Start(ctx, middleware.OpFallback, ident.Label{}, 0)
		end(middleware.Outcome{Decision: d})
		_, end = f.Start(ctx, middleware.OpAttempt, primary, 1)
		end(middleware.Outcome{
			Decision: d, InputTokens: 1, OutputTokens: 1, Finish: middleware.FinishStop, ResponseModel: gptDated,
		})
	}
	loop := everyField(middleware.ComponentWatchdog, middleware.VerdictDeny)
	loop.Reason = middleware.ReasonLoop
	f.Observe(ctx, loop)
	for i, c := range middleware.CircuitStates() { // a state that is left
		d := everyField(middleware.ComponentBreaker, middleware.VerdictDeny)
		d.Circuit, d.Seq = c, uint64(100+i)
		f.Observe(ctx, d)
	}
	err := f.Watch(source(func() []middleware.Gauge {
		return []middleware.Gauge{
			{Kind: middleware.GaugeCircuit, Label: primary, Circuit: middleware.CircuitOpen, Value: 1},
			{Kind: middleware.GaugeAdmission, Reason: middleware.ReasonAdmissionStopped, Global: true, Value: 1},
			{Kind: middleware.GaugeQueue, Value: 1}, {Kind: middleware.GaugeInFlight, Value: 1}, {},
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func everyField(c middleware.Component, v middleware.Verdict) middleware.Decision {
	return middleware.Decision{
		Seq: 1, Component: c, Verdict: v, Action: middleware.ActionBlock, Reason: middleware.ReasonPanic, Workflow: refunds,
		Label: refund, Turn: 1, Attempt: 1, Outcome: middleware.OutcomeSkipped, Class: middleware.FailureTool,
		Circuit: middleware.CircuitOpen, FailMode: middleware.FailOpen, Generation: 1, Count: 1, Limit: 1, Severity: 0.5,
		Fill: 0.5, Drift: 0.5, Duration: 1,
	}
}

// What is recorded is what is described: every span, instrument and key, with
// nothing missing on either side, and values of the described source only.
func TestContract(t *testing.T) {
	t.Parallel()
	f := open(t)
	driveEverything(t, f)

	spans, links, used := make(map[string]map[string]bool), make(map[string]map[string]bool), make(map[string]bool)
	for _, s := range f.spans.Ended() {
		name, label, _ := strings.Cut(s.Name(), " ")
		if label != "" {
			name += " {label}"
		}
		shape := find(t, otelx.Spans(), func(s otelx.SpanShape) bool { return s.Name == name })
		if shape.Kind != s.SpanKind().String() {
			t.Errorf("%s: kind %v, described as %s", name, s.SpanKind(), shape.Kind)
		}
		note(spans, name, s.Attributes())
		checkValues(t, s.Attributes(), used)
		for _, l := range s.Links() {
			note(links, name, l.Attributes)
			checkValues(t, l.Attributes, used)
		}
	}
	for _, s := range otelx.Spans() {
		compareKeys(t, s.Name, s.Attributes, spans[s.Name])
		compareKeys(t, s.Name+" links", s.Links, links[s.Name])
	}

	m := f.metrics(t)
	if len(m) != len(otelx.Instruments()) {
		t.Errorf("%d instruments recorded, %d described", len(m), len(otelx.Instruments()))
	}
	for _, i := range otelx.Instruments() {
		got := m[i.Name]
		if got.Unit != i.Unit || got.Description != i.About || kindOf(got) != i.Kind {
			t.Errorf("%s: recorded as %s in %q, described as %s in %q", i.Name, kindOf(got), got.Unit, i.Kind, i.Unit)
		}
		found := make(map[string]bool)
		for _, p := range points(t, got) {
			for k := range p.attrs {
				found[k] = true
			}
		}
		compareKeys(t, i.Name, i.Attributes, found)
		for _, set := range sets(got) {
			checkValues(t, set.ToSlice(), used)
		}
		if h, ok := got.Data.(metricdata.Histogram[float64]); ok {
			if diff := cmp.Diff(i.Buckets, h.DataPoints[0].Bounds); diff != "" {
				t.Errorf("%s: buckets (-described +recorded):\n%s", i.Name, diff)
			}
		}
	}
	for _, a := range otelx.Attributes() {
		if !used[a.Key] {
			t.Errorf("%s is described and used nowhere", a.Key)
		}
	}
}

func find[T any](t *testing.T, all []T, is func(T) bool) T {
	t.Helper()
	i := slices.IndexFunc(all, is)
	if i < 0 {
		t.Fatal("something is recorded that is not described")
	}

	return all[i]
}

func note(into map[string]map[string]bool, name string, kvs []attribute.KeyValue) {
	if into[name] == nil {
		into[name] = make(map[string]bool)
	}
	for _, kv := range kvs {
		into[name][string(kv.Key)] = true
	}
}

func compareKeys(t *testing.T, name string, described []string, recorded map[string]bool) {
	t.Helper()
	want, got := slices.Sorted(slices.Values(described)), make([]string, 0, len(recorded))
	for k := range recorded {
		got = append(got, k)
	}
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s (-described +recorded):\n%s", name, cmp.Diff(want, got))
	}
}

// checkValues says whether each value comes from the source that is described.
func checkValues(t *testing.T, kvs []attribute.KeyValue, used map[string]bool) {
	t.Helper()
	for _, kv := range kvs {
		a := find(t, otelx.Attributes(), func(a otelx.Attribute) bool { return a.Key == string(kv.Key) })
		used[a.Key] = true
		text := strings.Trim(kv.Value.String(), `[]"`)
		ok := false
		switch a.Source {
		case otelx.SourceClosed:
			ok = text == "_OTHER" || slices.Contains(a.Values, text)
		case otelx.SourceRegistered:
			ok = text == "_OTHER" || slices.Contains([]string{
				"issue_refund", "refund-desk", "primary", "openai", "gpt-4o", "gpt-4o-2024-08-06", refunds.String(),
			}, text)
		case otelx.SourceNumber:
			ok = kv.Value.Type() == attribute.INT64 || kv.Value.Type() == attribute.FLOAT64 && !math.IsNaN(kv.Value.AsFloat64())
		case otelx.SourceRandom:
			ok = strings.HasPrefix(text, "dec_") || strings.HasPrefix(text, "run_")
		}
		if !ok {
			t.Errorf("%s = %s, described as %s", kv.Key, text, a.Source)
		}
	}
}

func kindOf(m metricdata.Metrics) string {
	switch m.Data.(type) {
	case metricdata.Sum[int64]:
		return otelx.KindCounter
	case metricdata.Histogram[float64]:
		return otelx.KindHistogram
	case metricdata.Gauge[float64]:
		return otelx.KindGauge
	default:
		return "nothing"
	}
}

func sets(m metricdata.Metrics) []attribute.Set {
	var all []attribute.Set
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			all = append(all, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			all = append(all, p.Attributes)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			all = append(all, p.Attributes)
		}
	}

	return all
}

// The descriptions are the reader's own: changing them changes nothing.
func TestContractIsCopied(t *testing.T) {
	t.Parallel()
	for _, a := range otelx.Attributes() {
		for i := range a.Values {
			a.Values[i] = "changed"
		}
	}
	for _, a := range otelx.Attributes() {
		if slices.Contains(a.Values, "changed") {
			t.Errorf("%s was changed", a.Key)
		}
	}
}

// Every field of a decision is rendered by itself, so that one which is added to
// the vocabulary is not forgotten here.
func TestEveryFieldOfADecision(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"Run":      "on the span of the run", // which is the parent
		"Fill":     "interlock.context.fill",
		"Drift":    "interlock.context.drift",
		"Duration": "interlock.decision.duration",
	}
	all := everyField(middleware.ComponentAdmission, middleware.VerdictDeny)
	rendered := func(d middleware.Decision) map[string]string {
		f := open(t)
		f.Observe(context.Background(), d)
		m := attrs(f.spans.Ended()[0].Attributes())
		delete(m, "interlock.decision.id")

		return m
	}
	bare := middleware.Decision{Component: all.Component, Verdict: all.Verdict}
	before := rendered(bare)
	for field := range reflect.TypeFor[middleware.Decision]().Fields() {
		d := bare
		v := reflect.ValueOf(all).FieldByName(field.Name)
		if field.Name == "Component" { // needed for a span at all
			v = reflect.ValueOf(middleware.ComponentBudget)
		}
		if field.Name == "Verdict" {
			v = reflect.ValueOf(middleware.VerdictModify)
		}
		reflect.ValueOf(&d).Elem().FieldByName(field.Name).Set(v)
		_, known := elsewhere[field.Name]
		if known == !cmp.Equal(before, rendered(d)) {
			t.Errorf("%s: known elsewhere %v, and the span is %v", field.Name, known, rendered(d))
		}
	}
}

// Every closed list that a decision or an outcome has is described, whole.
func TestEveryListIsDescribed(t *testing.T) {
	t.Parallel()
	for _, typ := range []reflect.Type{reflect.TypeFor[middleware.Decision](), reflect.TypeFor[middleware.Outcome]()} {
		for field := range typ.Fields() {
			if field.Type.Kind() != reflect.Uint8 {
				continue
			}
			var words []string
			for i := range math.MaxUint8 + 1 {
				v := reflect.New(field.Type).Elem()
				v.SetUint(uint64(i))
				if s := v.Interface().(interface{ String() string }).String(); s != "invalid" {
					words = append(words, s)
				}
			}
			if !slices.ContainsFunc(otelx.Attributes(), func(a otelx.Attribute) bool { return slices.Equal(a.Values, words) }) {
				t.Errorf("%s: no attribute has the list %v", field.Type, words)
			}
		}
	}
}

// A name that is no label, such as one that a model or a provider made up, has
// none: it is _OTHER and counted.
func TestMalformedNames(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := context.Background()
	malformed := []string{"", "Jane Doe", "refund;drop", "../etc/passwd", strings.Repeat("a", 65), "überweisung", "a..b", "\x00"}
	for _, name := range malformed {
		label, err := ident.NewLabel(name)
		if err == nil {
			t.Fatalf("%q is a label", name)
		}
		for _, op := range []middleware.Op{middleware.OpTool, middleware.OpAttempt} {
			_, end := f.Start(ctx, op, label, 1)
			end(middleware.Outcome{})
		}
	}
	for _, s := range f.spans.Ended() {
		if s.Name() != "execute_tool _OTHER" && s.Name() != "chat _OTHER" {
			t.Errorf("span %s", s.Name())
		}
	}
	want := map[string]float64{"tool": float64(len(malformed)), "candidate": float64(len(malformed))}
	if diff := cmp.Diff(want, f.rejected(t)); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
}
