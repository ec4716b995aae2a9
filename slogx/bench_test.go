package slogx_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/slogx"
)

// BenchmarkObserve is one allow decision of admission, as a gate reports it,
// beside a line of log/slog with the same number of attributes.
func BenchmarkObserve(b *testing.B) {
	d := middleware.Decision{
		Seq: 1, Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Reason: middleware.ReasonAdmissionEnabled, Workflow: refunds(), Label: refund(), Turn: 1, Attempt: 1, Generation: 4, Duration: 8000,
	}
	ctx := context.Background()
	debug := &slog.HandlerOptions{Level: slog.LevelDebug}
	nowhere := struct{ io.Writer }{io.Discard} // the work of the handler is what is measured
	b.Run("bare line", func(b *testing.B) {
		logger := slog.New(slog.NewJSONHandler(nowhere, debug))
		b.ReportAllocs()
		for b.Loop() {
			logger.LogAttrs(ctx, slog.LevelDebug, slogx.Message,
				slog.String("a", "admission"), slog.String("b", "allow"), slog.String("c", "proceed"), slog.String("d", "admission_enabled"),
				slog.Int64("e", 1), slog.Int64("f", 4), slog.Int64("g", 1), slog.Int64("h", 1), slog.Float64("i", 8e-6),
				slog.String("j", "issue_refund"), slog.String("k", "workflow:org.example/refunds@1.0.0"))
		}
	})
	for _, bb := range []struct {
		name    string
		handler slog.Handler
	}{
		{"not enabled", slog.NewJSONHandler(nowhere, nil)},
		{"json", slog.NewJSONHandler(nowhere, debug)},
		{"text", slog.NewTextHandler(nowhere, debug)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			o := open(b, io.Discard, func(c *slogx.Config) { c.Logger, c.Now = slog.New(bb.handler), nil })
			b.ReportAllocs()
			for b.Loop() {
				middleware.Notify(ctx, o, d)
			}
		})
	}
}
