package interlock_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// process is a guard with telemetry of its own, as another process would have.
func process(t *testing.T, withTracer bool) (*interlock.Guard, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	tel, err := otelx.New(otelx.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Agents:         []ident.Label{ident.MustLabel("desk")}, Workflows: []ident.WorkflowID{desk},
	})
	if err != nil {
		t.Fatal(err)
	}

	return newGuard(t, func(c *interlock.Config) {
		c.Observer = tel
		if withTracer {
			c.Tracer = tel
		}
	}), spans
}

// A run that a guard saved and another one restores has a span of its own in
// each of them, with a link from the later to the earlier one. A process without
// a tracer in between keeps it.
func TestResumedRunHasALink(t *testing.T) {
	t.Parallel()
	first, before := process(t, true)
	between, _ := process(t, false)
	last, after := process(t, true)

	_, run, err := first.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []*interlock.Guard{between, last} {
		data, err := run.Save()
		if err != nil {
			t.Fatal(err)
		}
		run.End(nil)
		if _, run, err = g.RestoreRun(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	run.End(nil)

	const name = "invoke_agent desk"
	origins, resumed := before.Ended(), after.Ended()
	if len(origins) != 1 || len(resumed) != 1 || origins[0].Name() != name || resumed[0].Name() != name {
		t.Fatalf("spans %v and %v", origins, resumed)
	}
	links := resumed[0].Links()
	if len(links) != 1 || links[0].SpanContext.SpanID() != origins[0].SpanContext().SpanID() ||
		links[0].SpanContext.TraceID() != origins[0].SpanContext().TraceID() {
		t.Fatalf("links %v, want %v", links, origins[0].SpanContext())
	}
	if a := links[0].Attributes; len(a) != 1 || string(a[0].Key) != "interlock.link.kind" || a[0].Value.AsString() != "resumed" {
		t.Errorf("attributes of the link %v", a)
	}
	if resumed[0].Parent().IsValid() || resumed[0].SpanContext().TraceID() == origins[0].SpanContext().TraceID() {
		t.Error("the run that is continued became a parent")
	}
}

// A tracer that is not otelx has no slot, and a saved run goes between both.
func TestSavedRunWithAnotherTracer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the wall time that a run has used is saved too: here it stands still
		with, _ := process(t, true)
		without := newGuard(t, func(c *interlock.Config) { c.Tracer = tracerOf{} })
		_, run, err := with.StartRun(t.Context(), desk)
		if err != nil {
			t.Fatal(err)
		}
		data, err := run.Save()
		if err != nil {
			t.Fatal(err)
		}
		run.End(nil)
		if _, run, err = without.RestoreRun(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		again, err := run.Save()
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s became %s, %v", data, again, err)
		}
		run.End(nil)
	})
}

// tracerOf opens nothing: StartOp contains its nil method.
type tracerOf struct{ middleware.Tracer }
