package otelx_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// Every value of every enum has an attribute text of its own.
func TestEnumTotality(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) { c.MeterProvider = nil })
	check := func(n int, key string, decision func(i int) middleware.Decision, text func(i int) string) {
		t.Helper()
		if n == 0 {
			t.Fatalf("%s: the enum is empty", key)
		}
		seen := make(map[string]bool)
		for i := range n {
			f.spans.Reset()
			f.Observe(context.Background(), decision(i))
			ended := f.spans.Ended()
			if len(ended) != 1 {
				t.Fatalf("%s: %s has %d spans", key, text(i), len(ended))
			}
			got := attrs(ended[0].Attributes())[key]
			if got != text(i) || got == "" || got == "_OTHER" || got == "invalid" || seen[got] {
				t.Errorf("%s: %s renders as %q", key, text(i), got)
			}
			seen[got] = true
		}
	}
	deny := func(d middleware.Decision) middleware.Decision {
		if d.Component == 0 {
			d.Component = middleware.ComponentBudget
		}
		if d.Verdict == 0 {
			d.Verdict = middleware.VerdictDeny
		}

		return d
	}
	check(len(middleware.Components()), "interlock.decision.component",
		func(i int) middleware.Decision {
			return deny(middleware.Decision{Component: middleware.Components()[i]})
		},
		func(i int) string { return middleware.Components()[i].String() })
	check(len(middleware.Verdicts()), "interlock.decision.verdict",
		func(i int) middleware.Decision { return deny(middleware.Decision{Verdict: middleware.Verdicts()[i]}) },
		func(i int) string { return middleware.Verdicts()[i].String() })
	check(len(middleware.Actions()), "interlock.decision.action",
		func(i int) middleware.Decision { return deny(middleware.Decision{Action: middleware.Actions()[i]}) },
		func(i int) string { return middleware.Actions()[i].String() })
	check(len(middleware.Reasons()), "interlock.decision.reason",
		func(i int) middleware.Decision { return deny(middleware.Decision{Reason: middleware.Reasons()[i]}) },
		func(i int) string { return middleware.Reasons()[i].String() })
	check(len(middleware.AttemptOutcomes()), "interlock.attempt.outcome",
		func(i int) middleware.Decision {
			return deny(middleware.Decision{Outcome: middleware.AttemptOutcomes()[i]})
		},
		func(i int) string { return middleware.AttemptOutcomes()[i].String() })
	check(len(middleware.CircuitStates()), "interlock.circuit.state",
		func(i int) middleware.Decision {
			return deny(middleware.Decision{Circuit: middleware.CircuitStates()[i]})
		},
		func(i int) string { return middleware.CircuitStates()[i].String() })
	check(len(middleware.FailureClasses()), "interlock.escalation.class",
		func(i int) middleware.Decision {
			return deny(middleware.Decision{Class: middleware.FailureClasses()[i]})
		},
		func(i int) string { return middleware.FailureClasses()[i].String() })
	check(len(middleware.FailModes()), "interlock.fail_mode",
		func(i int) middleware.Decision {
			return deny(middleware.Decision{FailMode: middleware.FailModes()[i], Reason: middleware.ReasonDetectorFailed})
		},
		func(i int) string { return middleware.FailModes()[i].String() })
}

// Every reason gives a tool's span the error type that the vocabulary says, or
// none where it is no failure.
func TestErrorTypeTotality(t *testing.T) {
	t.Parallel()
	f := open(t)
	for _, r := range middleware.Reasons() {
		f.spans.Reset()
		_, end := f.Start(context.Background(), middleware.OpTool, refund, 1)
		end(middleware.Outcome{Decision: middleware.Decision{Reason: r}})
		want := ""
		if e := r.ErrorType(); e != 0 {
			want = e.String()
		}
		if got := attrs(f.span(t, "execute_tool issue_refund").Attributes())["error.type"]; got != want {
			t.Errorf("%v: error.type %q, want %q", r, got, want)
		}
	}
	series := points(t, f.metrics(t)["gen_ai.execute_tool.duration"])
	for _, p := range series {
		if e, there := p.attrs["error.type"]; there && (e == "" || e == "invalid") {
			t.Errorf("series %v", p.attrs)
		}
	}
	if len(series) < 10 {
		t.Errorf("only %d series: the test does not reach the metric", len(series))
	}
}

func TestFinishReasonTotality(t *testing.T) {
	t.Parallel()
	for _, r := range middleware.FinishReasons() {
		f := open(t)
		_, end := f.Start(context.Background(), middleware.OpAttempt, primary, 1)
		end(middleware.Outcome{Finish: r})
		if got := attrs(f.span(t, "chat primary").Attributes())["gen_ai.response.finish_reasons"]; got != `["`+r.String()+`"]` {
			t.Errorf("%v renders as %s", r, got)
		}
	}
}

// Names that nobody registered do not become series or span names.
func TestCardinalityOfNames(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) {
		c.Tools, c.Agents = labels("t", otelx.MaxTools), labels("a", otelx.MaxAgents)
		c.Candidates, c.ResponseModels = candidates(otelx.MaxModels), nil
	})
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	spans := make(map[string]bool)
	const names = 10_000
	for i := range names {
		var raw [8]byte
		for j := range raw {
			raw[j] = byte(random.Uint32())
		}
		label := ident.MustLabel("x" + hex.EncodeToString(raw[:]))
		if i%10 == 0 {
			label = ident.MustLabel(fmt.Sprintf("%c%d", "tac"[i/10%3], i/30%70))
		}
		for _, op := range middleware.Ops() {
			_, end := f.Start(ctx, op, label, 1)
			end(middleware.Outcome{})
		}
		f.Observe(ctx, middleware.Decision{
			Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Outcome: middleware.OutcomeError,
			Label: label, Circuit: middleware.CircuitOpen,
		})
	}
	for _, s := range f.spans.Ended() {
		spans[s.Name()] = true
	}
	if limit := otelx.MaxTools + otelx.MaxAgents + otelx.MaxModels + 3 + 1; len(spans) != limit {
		t.Errorf("%d names of spans, want %d", len(spans), limit)
	}
	m := f.metrics(t)
	for name, want := range map[string]int{
		"gen_ai.execute_tool.duration":     otelx.MaxTools + 1,
		"gen_ai.invoke_agent.duration":     otelx.MaxAgents + 1,
		"gen_ai.client.operation.duration": otelx.MaxModels + 1,
		"interlock.fallback.attempts":      otelx.MaxModels + 1,
		"interlock.circuit.transitions":    otelx.MaxTools + otelx.MaxAgents + otelx.MaxModels + 1,
	} {
		if n := len(points(t, m[name])); n != want {
			t.Errorf("%s has %d series, want %d", name, n, want)
		}
	}
	if r := f.rejected(t); r["tool"] < names*0.8 || r["candidate"] < names*0.8 || r["agent"] < names*0.8 {
		t.Errorf("rejected %v of %d", r, names)
	}
}

// Any decision at all, of any values: no instrument reaches 1000 series, and
// past the limit values are folded, not lost.
func TestCardinalityOfDecisions(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) {
		c.Tools, c.TracerProvider = labels("t", otelx.MaxTools), nil
		c.Candidates, c.ResponseModels = candidates(otelx.MaxModels), nil
	})
	ctx := context.Background()
	random := rand.New(rand.NewPCG(3, 4))
	enum := func() uint8 { return uint8(random.UintN(130)) }
	const n = 40_000
	var attempts float64
	for range n {
		d := middleware.Decision{
			Component: middleware.Component(enum() % 16), Verdict: middleware.Verdict(enum() % 7), Action: middleware.Action(enum() % 8),
			Reason: middleware.Reason(enum()), Outcome: middleware.AttemptOutcome(enum() % 8), Circuit: middleware.CircuitState(enum() % 6),
			Class: middleware.FailureClass(enum()), Label: ident.MustLabel(fmt.Sprintf("%c%d", "tc"[random.IntN(2)], random.IntN(64))),
			Duration: 1000,
		}
		if d.Component == middleware.ComponentFallback && d.Outcome != 0 {
			attempts++
		}
		f.Observe(ctx, d)
		_, end := f.Start(ctx, middleware.OpTool, d.Label, 1)
		end(middleware.Outcome{Decision: d})
	}
	m := f.metrics(t)
	totals := make(map[string]float64)
	for name, metric := range m {
		ps := points(t, metric)
		if len(ps) >= 1000 {
			t.Errorf("%s has %d series", name, len(ps))
		}
		for _, p := range ps {
			if p.attrs["otel.metric.overflow"] != "" {
				t.Errorf("%s overflows in the SDK", name)
			}
			totals[name] += p.value
		}
	}
	if totals["interlock.decisions"] != n || totals["interlock.fallback.attempts"] != attempts {
		t.Errorf("counted %v decisions of %d, %v attempts of %v",
			totals["interlock.decisions"], n, totals["interlock.fallback.attempts"], attempts)
	}
	if len(points(t, m["interlock.decisions"])) < 900 || len(points(t, m["gen_ai.execute_tool.duration"])) < 900 {
		t.Error("the test does not reach the limit")
	}
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, _ := startRun(t)
	for _, op := range middleware.Ops() {
		_, end := f.Start(ctx, op, ident.Label{}, 1)
		end(middleware.Outcome{})
	}
	f.Observe(ctx, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny, Duration: 1})
	operation := []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	agent := []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	m := f.metrics(t)
	for name, want := range map[string][]float64{
		"gen_ai.client.operation.duration": operation, "gen_ai.execute_tool.duration": operation, "gen_ai.invoke_agent.duration": agent,
	} {
		h := m[name].Data.(metricdata.Histogram[float64])
		if got := h.DataPoints[0].Bounds; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if m[name].Unit != "s" {
			t.Errorf("%s: unit %q", name, m[name].Unit)
		}
	}
	bounds := m["interlock.decision.duration"].Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
	if bounds[0] != 1e-5 || bounds[len(bounds)-1] != 1 {
		t.Errorf("decision durations: %v", bounds)
	}
}

// No function on the request path takes a string, an error or an any.
func TestShape(t *testing.T) {
	t.Parallel()
	tel := reflect.TypeFor[*otelx.Telemetry]()
	want := map[string]bool{"Observe": true, "Start": true, "Watch": true, "Close": true, "Slot": true}
	for m := range tel.Methods() {
		if !want[m.Name] {
			t.Errorf("method %s: is it called on the request path? Say so here", m.Name)
		}
		for i := 1; i < m.Type.NumIn(); i++ {
			if bad := carrier(m.Type.In(i), nil); bad != "" {
				t.Errorf("%s: %s can carry content", m.Name, bad)
			}
		}
		for out := range m.Type.Outs() {
			if out.Kind() != reflect.Func {
				continue
			}
			for in := range out.Ins() {
				if bad := carrier(in, nil); bad != "" {
					t.Errorf("%s: what it returns takes %s", m.Name, bad)
				}
			}
		}
	}
	// The check itself sees what it should.
	for _, bad := range []any{"", []byte(nil), []string(nil), map[string]int(nil), struct{ A struct{ Name string } }{}, struct{ B *error }{}} {
		if carrier(reflect.TypeOf(bad), nil) == "" {
			t.Errorf("%T passes", bad)
		}
	}
}

// carrier returns the part of typ that can carry text, "" if there is none.
func carrier(typ reflect.Type, seen []reflect.Type) string {
	if slices.Contains(seen, typ) {
		return ""
	}
	seen = append(seen, typ)
	switch typ {
	case reflect.TypeFor[context.Context](), reflect.TypeFor[ident.Label](), reflect.TypeFor[ident.WorkflowID](), reflect.TypeFor[ident.RunID]():
		return "" // looked up in the registry, or random; a context's values are not read but for the run
	}
	switch typ.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return ""
	case reflect.Slice, reflect.Pointer, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 && typ.Elem().PkgPath() == "" {
			return typ.String()
		}

		return carrier(typ.Elem(), seen)
	case reflect.Struct:
		for field := range typ.Fields() {
			if bad := carrier(field.Type, seen); bad != "" {
				return strings.Join([]string{typ.String(), field.Name, bad}, " ")
			}
		}

		return ""
	case reflect.Interface: // a source of gauges: what its methods give
		if typ.NumMethod() == 0 || typ == reflect.TypeFor[error]() {
			return typ.String()
		}
		for m := range typ.Methods() {
			for out := range m.Type.Outs() {
				if bad := carrier(out, seen); bad != "" {
					return bad
				}
			}
		}

		return ""
	default:
		return typ.String()
	}
}
