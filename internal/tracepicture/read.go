package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"
)

// Bounds of the input. A picture with more rows is no picture.
const (
	maxInput = 8 << 20
	maxSpans = 500
	maxRead  = 100_000
)

// code says what is wrong with the input.
type code string

const (
	codeUnreadable   code = "unreadable"
	codeMalformed    code = "malformed"
	codeInvalidSpan  code = "invalid_span"
	codeInvalidTime  code = "invalid_time"
	codeTooLarge     code = "too_large"
	codeTooManySpans code = "too_many_spans"
	codeNoSpans      code = "no_spans"
	codeNoSuchTrace  code = "no_such_trace"
	codeUnwritable   code = "unwritable"
)

// inputError has a code and a number, never a piece of the input.
type inputError struct {
	code   code
	object int // from 1; 0 if it is about none
}

// Error returns the code and the number of the object.
func (e inputError) Error() string {
	if e.object == 0 {
		return string(e.code)
	}

	return string(e.code) + " (object " + strconv.Itoa(e.object) + ")"
}

// span is what the picture needs of a span.
type span struct {
	trace, id, parent string // lower-case hexadecimal
	name              string
	start, end        time.Time // a zero end: still open
	failed            bool      // status Error
	attributes        map[string]string
}

// wireSpan is the form of OpenTelemetry's stdout exporter.
type wireSpan struct {
	Name        string
	SpanContext *wireContext
	Parent      wireContext
	StartTime   time.Time
	EndTime     time.Time
	Status      struct{ Code string }
	Attributes  []struct {
		Key   string
		Value struct{ Value any }
	}
}

type wireContext struct{ TraceID, SpanID string }

// readSpans reads objects until the end. Objects without a span context are
// metrics and are passed over.
func readSpans(r io.Reader) ([]span, error) {
	limited := &io.LimitedReader{R: r, N: maxInput + 1}
	dec := json.NewDecoder(limited)
	var spans []span
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if limited.N == 0 {
			return nil, inputError{code: codeTooLarge}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, inputError{code: codeMalformed, object: n}
		}
		var w wireSpan
		if err := json.Unmarshal(raw, &w); err != nil { //nolint:musttag // the exporter writes the names of the fields
			return nil, inputError{code: codeMalformed, object: n}
		}
		if w.SpanContext == nil {
			continue
		}
		s, c := w.span()
		if c != "" {
			return nil, inputError{code: c, object: n}
		}
		if spans = append(spans, s); len(spans) > maxRead {
			return nil, inputError{code: codeTooManySpans}
		}
	}
	if len(spans) == 0 {
		return nil, inputError{code: codeNoSpans}
	}

	return spans, nil
}

func (w *wireSpan) span() (span, code) {
	s := span{
		trace: w.SpanContext.TraceID, id: w.SpanContext.SpanID, parent: w.Parent.SpanID,
		name: w.Name, start: w.StartTime, end: w.EndTime, failed: w.Status.Code == "Error", attributes: map[string]string{},
	}
	if !isID(s.trace, 16) || !isID(s.id, 8) || w.Name == "" {
		return s, codeInvalidSpan
	}
	if !isID(s.parent, 8) {
		s.parent = "" // none, or zeros
	}
	if s.start.IsZero() || (!s.end.IsZero() && s.end.Before(s.start)) {
		return s, codeInvalidTime
	}
	for _, a := range w.Attributes {
		if text, ok := a.Value.Value.(string); ok {
			s.attributes[a.Key] = text
		}
	}

	return s, ""
}

// isID reports whether text is an identifier of n bytes that are not all zero.
func isID(text string, n int) bool {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != n {
		return false
	}
	for _, b := range raw {
		if b != 0 {
			return true
		}
	}

	return false
}
