package otelx

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// A run that is resumed in another process is a trace of its own, whose run span
// has a link to the one that it continues. It is never a child of that: its
// parent has ended, may belong to another sampling decision, and came from
// storage.

const (
	resumeSection = "telemetry"
	resumeSchema  = "interlock.telemetry.v1"
)

// linkKind says why a span has a link.
type linkKind uint8

const (
	_ linkKind = iota
	linkResumed

	linkKindEnd
)

var linkNames = [linkKindEnd]string{linkResumed: "resumed"} //nolint:gochecknoglobals // compiled table

// position is where the trace of a run is: its run span in the last process
// that recorded one.
type position struct {
	before trace.SpanContext // of an earlier process, invalid if there was none
	now    atomic.Pointer[trace.SpanContext]
}

// positionJSON is the persisted form: random identifiers and a flag, no trace
// state, which others write. The fields stand in the order of their keys.
type positionJSON struct {
	Schema string    `json:"schema_version"`
	Span   *spanJSON `json:"span"` // null if no process recorded the run
}

type spanJSON struct {
	Sampled bool   `json:"sampled"`
	SpanID  string `json:"span_id"`
	TraceID string `json:"trace_id"`
}

// Slot persists with a run where its trace is, so that the run span of a process
// that restores it has a link there. It belongs into [middleware.RunConfig].Slots
// of runs that are saved; a guard puts it there by itself. A nil *Telemetry has
// a slot that keeps what an earlier process wrote: switching telemetry on or off
// refuses no saved run.
//
// A section that is not exactly what it writes is invalid_run_state.
func (t *Telemetry) Slot() middleware.Slot {
	if t == nil {
		return newSlot()
	}

	return t.slot
}

func newSlot() *middleware.PerRun[position] {
	return &middleware.PerRun[position]{
		Name: resumeSection,
		New:  func(*middleware.Run) (*position, error) { return &position{}, nil },
		Save: savePosition,
		Load: loadPosition,
	}
}

func savePosition(p *position) ([]byte, error) {
	form := positionJSON{Schema: resumeSchema}
	at := p.before
	if now := p.now.Load(); now != nil {
		at = *now
	}
	if at.IsValid() {
		form.Span = &spanJSON{Sampled: at.IsSampled(), SpanID: at.SpanID().String(), TraceID: at.TraceID().String()}
	}

	return json.Marshal(form)
}

func loadPosition(_ *middleware.Run, section []byte) (*position, error) {
	var form positionJSON
	dec := json.NewDecoder(bytes.NewReader(section))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&form); err != nil || form.Schema != resumeSchema {
		return nil, invalidPosition(err)
	}
	// Rendering it again must give the same bytes: that settles order, spelling,
	// double and missing keys.
	if again, err := json.Marshal(form); err != nil || !bytes.Equal(again, section) {
		return nil, invalidPosition(err)
	}
	if form.Span == nil {
		return &position{}, nil
	}
	traceID, err := trace.TraceIDFromHex(form.Span.TraceID) // lower case, not zero
	if err != nil {
		return nil, invalidPosition(err)
	}
	spanID, err := trace.SpanIDFromHex(form.Span.SpanID)
	if err != nil {
		return nil, invalidPosition(err)
	}

	return &position{before: spanContext(traceID, spanID, form.Span.Sampled)}, nil
}

func spanContext(t trace.TraceID, s trace.SpanID, sampled bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: t, SpanID: s, TraceFlags: trace.TraceFlags(0).WithSampled(sampled), Remote: true,
	})
}

func invalidPosition(cause error) error {
	return middleware.NewFailure(middleware.ComponentRun, middleware.ReasonInvalidRunState, ident.Label{}, cause)
}

// startRun opens the span of a run, with a link if the run was resumed, and
// notes where the trace now is.
func (t *Telemetry) startRun(ctx context.Context, e *entry) (context.Context, trace.Span) {
	p, err := t.slot.Get(middleware.RunFrom(ctx))
	if err != nil { // no run, or one that has ended
		return startSpan(ctx, t.tracer, e.span, e.options)
	}
	options := e.options
	if p.before.IsValid() {
		options = append(slices.Clip(options), trace.WithLinks(trace.Link{
			SpanContext: p.before, Attributes: []attribute.KeyValue{keyLinkKind.String(linkNames[linkResumed])},
		}))
	}
	ctx, span := startSpan(ctx, t.tracer, e.span, options)
	p.note(span)

	return ctx, span
}

// note keeps the position of a span that somebody will be able to look at. A
// tracer that does not record may have given the span of the caller.
func (p *position) note(span trace.Span) {
	defer func() { _ = recover() }() // of a span that panics
	if span == nil || !span.IsRecording() {
		return
	}
	sc := span.SpanContext()
	if sc.IsValid() {
		at := spanContext(sc.TraceID(), sc.SpanID(), sc.IsSampled())
		p.now.Store(&at)
	}
}
