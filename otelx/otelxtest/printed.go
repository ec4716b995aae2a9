package otelxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// Printed returns v as fmt's verbs print it, alone and inside of other values,
// and as encoding/json and log/slog (text and JSON) write it. Nothing here
// unwraps an error: what an error shows by itself, wrapped by another one or
// joined with one, is all that is in the answer. Where a method of v panics, so
// does this function, as far as the packages above let it.
func Printed(v any) []byte {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%+q", "%x", "%X", "%d", "%t"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	type visible struct{ Value any }
	type hidden struct{ value any } // fmt cannot call methods of what it reaches through this field
	for _, holder := range []any{
		visible{v}, &visible{v}, hidden{v}, []any{v}, map[string]any{"value": v},
	} {
		fmt.Fprintf(&b, "%v\n%+v\n%#v\n", holder, holder, holder)
	}
	if err, ok := v.(error); ok {
		fmt.Fprintln(&b, err.Error())
		fmt.Fprintln(&b, fmt.Errorf("wrapped: %w", err))
		fmt.Fprintf(&b, "%+v\n", errors.Join(err, err))
	}
	if text, err := json.Marshal(v); err == nil {
		b.Write(append(text, '\n'))
	}
	b.Write(Logged(v))

	return b.Bytes()
}

// Logged returns v as slog's text and JSON handlers write it: as an attribute,
// in a group, and as the attribute of a logger.
func Logged(v any) []byte {
	var b bytes.Buffer
	all := &slog.HandlerOptions{AddSource: false, Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, all), slog.NewJSONHandler(&b, all)} {
		l := slog.New(h)
		l.LogAttrs(context.Background(), slog.LevelError, "logged", slog.Any("value", v))
		l.WithGroup("group").LogAttrs(context.Background(), slog.LevelInfo, "grouped", slog.Any("value", v))
		l.With("value", v).LogAttrs(context.Background(), slog.LevelDebug, "attached")
	}

	return b.Bytes()
}
