package otelx_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

const (
	otherSpan = `{"schema_version":"interlock.telemetry.v1","span":{"sampled":true,"span_id":"00f067aa0ba902b7","trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}}`
	noSpan    = `{"schema_version":"interlock.telemetry.v1","span":null}`
)

// savedRun is a run as another process saved it, with this section.
func savedRun(tb testing.TB, section string) []byte {
	tb.Helper()
	_, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: refunds, Slots: []middleware.Slot{(*otelx.Telemetry)(nil).Slot()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer run.End()
	data, err := run.Save()
	if err != nil {
		tb.Fatal(err)
	}
	if !strings.Contains(string(data), noSpan) {
		tb.Fatalf("no section in %s", data)
	}

	return []byte(strings.Replace(string(data), noSpan, section, 1))
}

// resumedRun returns a context with a run that continues what another process
// saved with this section.
func resumedRun(tb testing.TB, tel *otelx.Telemetry, section string) context.Context {
	tb.Helper()
	ctx, run, err := middleware.RestoreRun(context.Background(), middleware.RunConfig{
		Label: desk, Slots: []middleware.Slot{tel.Slot()},
	}, savedRun(tb, section))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })

	return ctx
}

// A run that goes from process to process: each has a trace of its own, with a
// link to the run span of the one before that recorded it.
func TestResumedRunIsALink(t *testing.T) {
	t.Parallel()
	first, second, third := open(t), open(t), open(t)
	silent := open(t, func(c *otelx.Config) { c.TracerProvider = tracenoop.NewTracerProvider() })
	cfg := func(f *otelx.Telemetry) middleware.RunConfig {
		return middleware.RunConfig{Workflow: refunds, Label: desk, Slots: []middleware.Slot{f.Slot()}}
	}
	ctx, run, err := middleware.StartRun(context.Background(), cfg(first.Telemetry))
	if err != nil {
		t.Fatal(err)
	}
	// The request of each process has a span of its own, which is the parent.
	request := func(f *fixture) context.Context {
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans))
		ctx, span := provider.Tracer("http").Start(context.Background(), "POST /refunds")
		t.Cleanup(func() { span.End() })

		return ctx
	}
	for _, f := range []*fixture{first, silent, second, third} {
		inner, end := f.Start(ctx, middleware.OpRun, ident.Label{}, 0)
		f.Observe(inner, middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
		data, err := run.Save()
		if err != nil {
			t.Fatal(err)
		}
		end(middleware.Outcome{})
		run.End()
		next := map[*fixture]*fixture{first: silent, silent: second, second: third, third: third}[f]
		if ctx, run, err = middleware.RestoreRun(request(next), cfg(next.Telemetry), data); err != nil {
			t.Fatal(err)
		}
	}
	run.End()

	const name = "invoke_agent refund-desk"
	if links := first.span(t, name).Links(); len(links) != 0 {
		t.Errorf("the first process has links: %v", links)
	}
	for before, after := range map[*fixture]*fixture{first: second, second: third} {
		origin, s := before.span(t, name), after.span(t, name)
		if len(s.Links()) != 1 {
			t.Fatalf("%d links", len(s.Links()))
		}
		link := s.Links()[0]
		if link.SpanContext.TraceID() != origin.SpanContext().TraceID() || link.SpanContext.SpanID() != origin.SpanContext().SpanID() ||
			!link.SpanContext.IsRemote() || link.SpanContext.TraceState().Len() != 0 {
			t.Errorf("link to %v, want %v", link.SpanContext, origin.SpanContext())
		}
		if diff := cmp.Diff(map[string]string{"interlock.link.kind": "resumed"}, attrs(link.Attributes)); diff != "" {
			t.Errorf("attributes of the link (-want +got):\n%s", diff)
		}
		if s.SpanContext().TraceID() == origin.SpanContext().TraceID() || s.Parent().SpanID() == origin.SpanContext().SpanID() {
			t.Error("the run that is continued became a parent")
		}
		if !s.Parent().IsValid() || s.Parent().TraceID() != s.SpanContext().TraceID() {
			t.Error("the request of the process is no parent")
		}
		if d := after.span(t, "interlock.budget"); !isChild(d, s) || len(d.Links()) != 0 {
			t.Error("what the resumed run decides is not its child")
		}
	}
}

// Telemetry that is switched on or off between two processes refuses no run,
// and what one of them wrote is kept for the one after.
func TestSlotWithoutTelemetry(t *testing.T) {
	t.Parallel()
	var off *otelx.Telemetry
	ctx, run, err := middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: []middleware.Slot{off.Slot()}}, savedRun(t, otherSpan))
	if err != nil {
		t.Fatal(err)
	}
	if _, end := middleware.StartOp(ctx, off, middleware.OpRun, desk, 0); end == nil {
		t.Error("no end")
	}
	data, err := run.Save()
	if err != nil || !strings.Contains(string(data), otherSpan) {
		t.Errorf("saved %s, %v", data, err)
	}
	run.End()
	// A metered run without a tracer keeps it too.
	f := open(t, func(c *otelx.Config) { c.TracerProvider = nil })
	ctx, run, err = middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: []middleware.Slot{f.Slot()}}, data)
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	_, end := f.Start(ctx, middleware.OpRun, desk, 0)
	end(middleware.Outcome{})
	if again, err := run.Save(); err != nil || string(again) != string(data) {
		t.Errorf("saved %s, %v", again, err)
	}
}

// A span that is recorded but not sampled says so to who comes after.
func TestSlotKeepsTheFlag(t *testing.T) {
	t.Parallel()
	f := open(t)
	section := strings.Replace(otherSpan, "true", "false", 1)
	_, end := f.Start(resumedRun(t, f.Telemetry, section), middleware.OpRun, desk, 0)
	end(middleware.Outcome{})
	link := f.span(t, "invoke_agent refund-desk").Links()[0].SpanContext
	if link.IsSampled() || link.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || link.SpanID().String() != "00f067aa0ba902b7" {
		t.Errorf("link to %v", link)
	}
}

// Of a span that does not record there is nothing to come back to.
func TestSlotOfUnrecordedSpan(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]trace.TracerProvider{
		"no-op": tracenoop.NewTracerProvider(), "sampled out": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
		"broken": brokenTracers{tracer: &brokenTracer{}},
	} {
		f := open(t, func(c *otelx.Config) { c.TracerProvider = provider })
		ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: refunds, Slots: []middleware.Slot{f.Slot()}})
		if err != nil {
			t.Fatal(err)
		}
		defer run.End()
		caller, span := sdktrace.NewTracerProvider().Tracer("").Start(ctx, "caller")
		defer span.End()
		_, end := f.Start(caller, middleware.OpRun, desk, 0)
		end(middleware.Outcome{})
		if data, err := run.Save(); err != nil || !strings.Contains(string(data), noSpan) {
			t.Errorf("%s: saved %s, %v", name, data, err)
		}
	}
}

// Anything that is not exactly what Slot writes is refused.
func TestSlotRefuses(t *testing.T) {
	t.Parallel()
	edit := func(old, repl string) string { return strings.Replace(otherSpan, old, repl, 1) }
	for name, section := range map[string]string{
		"null": `null`, "number": `1`, "empty": `{}`, "string": `"x"`, "array": `[]`,
		"other version":      edit(".v1", ".v2"),
		"no version":         `{"span":null}`,
		"missing span":       `{"schema_version":"interlock.telemetry.v1"}`,
		"empty span":         `{"schema_version":"interlock.telemetry.v1","span":{}}`,
		"zero trace":         edit("4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("0", 32)),
		"zero span":          edit("00f067aa0ba902b7", strings.Repeat("0", 16)),
		"upper case":         edit("4bf92f35", "4BF92F35"),
		"short trace":        edit("4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6"),
		"long span":          edit("00f067aa0ba902b7", "00f067aa0ba902b700"),
		"text for a trace":   edit("4bf92f3577b34da6a3ce929d0e0e4736", "the-patient-jane-doe-of-ward-9-x"),
		"flag as a number":   edit("true", "1"),
		"no flag":            edit(`"sampled":true,`, ""),
		"unknown field":      edit(`"sampled":true,`, `"sampled":true,"secret":"x",`),
		"trace state":        edit(`"span":`, `"state":"a=b","span":`),
		"order":              edit(`"sampled":true,"span_id":"00f067aa0ba902b7"`, `"span_id":"00f067aa0ba902b7","sampled":true`),
		"double":             edit(`"sampled":true,`, `"sampled":true,"sampled":true,`),
		"case of a key":      edit("span_id", "Span_id"),
		"escape in the text": edit("4bf92f35", `\u0034bf92f35`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			_, run, err := middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: []middleware.Slot{f.Slot()}}, savedRun(t, section))
			if run != nil || !errors.Is(err, middleware.ReasonInvalidRunState) {
				t.Fatalf("restored %v, %v", run, err)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "jane-doe") {
				t.Errorf("the error quotes the section: %s", text)
			}
		})
	}
}

// FuzzSlot: a section is refused, or written again byte for byte.
func FuzzSlot(f *testing.F) {
	for _, s := range []string{otherSpan, noSpan, `{}`, `null`, strings.Replace(otherSpan, "true", "false", 1), strings.ToUpper(otherSpan)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, section []byte) {
		if !json.Valid(section) {
			return
		}
		slot := (*otelx.Telemetry)(nil).Slot()
		_, run, err := middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: []middleware.Slot{slot}}, savedRun(t, string(section)))
		if err != nil {
			if err.Error() != "interlock: run: invalid_run_state" {
				t.Fatalf("error %v", err)
			}

			return
		}
		defer run.End()
		data, err := run.Save()
		if err != nil || !strings.Contains(string(data), `"telemetry":`+string(section)) {
			t.Fatalf("%s became %s, %v", section, data, err)
		}
	})
}
