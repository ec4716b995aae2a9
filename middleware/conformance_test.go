package middleware_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, mw := range map[string]middleware.ToolMiddleware{
		"Recover":    middleware.Recover[*middleware.ToolCall, *middleware.ToolResult],
		"RequireRun": middleware.RequireRun[*middleware.ToolCall, *middleware.ToolResult],
		"Settle":     middleware.Settle,
		"TraceTool":  middleware.TraceTool(nopTracer{}),
		"Chain":      middleware.Chain(middleware.Recover, middleware.RequireRun, middleware.TraceTool(nil)),
		"At": middleware.At(middleware.StageGate, func(next middleware.ToolHandler) middleware.ToolHandler {
			return next
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Tool(t, conformance.ToolSuite{New: func(*testing.T) middleware.ToolMiddleware { return mw }})
		})
	}
	for name, mw := range map[string]middleware.ModelMiddleware{
		"model Recover":    middleware.Recover[*middleware.ModelCall, *middleware.ModelResult],
		"model RequireRun": middleware.RequireRun[*middleware.ModelCall, *middleware.ModelResult],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Model(t, conformance.ModelSuite{New: func(*testing.T) middleware.ModelMiddleware { return mw }})
		})
	}
}

type nopTracer struct{}

func (nopTracer) Start(
	ctx context.Context, _ middleware.Op, _ ident.Label, _ int,
) (context.Context, middleware.End) {
	return ctx, func(middleware.Outcome) {}
}
