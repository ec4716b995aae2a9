package escalation_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// BenchmarkTool is the cost of the layer for a call that succeeds, and for one
// whose failure is counted.
func BenchmarkTool(b *testing.B) {
	b.Run("success", func(b *testing.B) {
		e := newBench(b, nil)
		ctx, _ := e.start(b, b.Context())
		res := &middleware.ToolResult{}
		h := e.Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil })
		call := &middleware.ToolCall{}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = h(ctx, call)
		}
	})
	b.Run("no class", func(b *testing.B) {
		e := newBench(b, nil)
		ctx, run := e.start(b, b.Context())
		err := denial(run.ID(), middleware.ComponentBudget, middleware.ReasonBudgetExceeded, middleware.VerdictDeny)
		h := e.Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, err })
		call := &middleware.ToolCall{}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = h(ctx, call)
		}
	})
	b.Run("halting", func(b *testing.B) {
		e := newBench(b, func(c *escalation.Config) {
			c.Policy = escalation.Policy{Uncertainty: 1, PermissionDenial: 1, ToolFailure: 1, Total: 1}
			c.Sink, c.Observer = nil, nil
		})
		h := e.Tool()(fails)
		call := &middleware.ToolCall{}
		b.ReportAllocs()
		for b.Loop() {
			ctx, run, err := middleware.StartRun(b.Context(), middleware.RunConfig{Workflow: workflow})
			if err != nil {
				b.Fatal(err)
			}
			_, _ = h(ctx, call)
			run.End()
		}
	})
}

func BenchmarkRecordFailure(b *testing.B) {
	sum := digest(1)
	b.ReportAllocs()
	for b.Loop() {
		br := newBreaker(b, escalation.DefaultPolicy())
		_, _ = br.RecordFailure(toolFailure, sum, at)
	}
}

func BenchmarkParseHandoff(b *testing.B) {
	data := []byte(golden(b, toolFailure))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := escalation.ParseHandoff(data, at); err != nil {
			b.Fatal(err)
		}
	}
}
