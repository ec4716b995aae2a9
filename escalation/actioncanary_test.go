package escalation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Nothing that the breaker gives away holds an argument, a result, the text of
// an error or the value of a panic.
func TestActionContentFree(t *testing.T) {
	t.Parallel()
	faulty := errors.New("the fault of " + secret)
	var errs []error
	configs := map[string]func(*escalation.ActionConfig){
		"plain": nil,
		"risk fails": func(c *escalation.ActionConfig) {
			c.Risk = func(context.Context, *middleware.ToolCall) (float64, error) { return 0, faulty }
		},
		"risk panics": func(c *escalation.ActionConfig) {
			c.Risk = func(context.Context, *middleware.ToolCall) (float64, error) { panic(faulty) }
		},
		"slice": func(c *escalation.ActionConfig) {
			c.Slice = func(_ context.Context, call *middleware.ToolCall) ([]string, error) {
				return []string{call.Input() + " 1", call.Input() + " 2"}, nil
			}
		},
		"slice fails": func(c *escalation.ActionConfig) {
			c.Slice = func(context.Context, *middleware.ToolCall) ([]string, error) { return nil, faulty }
		},
		"profile and sink fail": func(c *escalation.ActionConfig) {
			c.Profile = &escalation.Profile{Volatility: func(context.Context, ident.WorkflowID) (float64, error) { return 0, faulty }}
			c.Sink = escalation.SinkFunc(func(context.Context, escalation.Handoff) error { panic(faulty) })
		},
	}
	for name, change := range configs {
		r := newRig(t, change)
		for _, fn := range []middleware.ToolHandler{fails, panics, works, func(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{Output: secret + c.Input()}, nil
		}} {
			for _, effect := range middleware.Effects() {
				ctx, run := r.start(t)
				tool := r.tool(t, "act", effect, fn)
				for range 3 {
					_, err := tool.Do(ctx, secret, secret)
					errs = append(errs, err)
					middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalRisk, Value: 0.9})
				}
				run.End()
				r.clock.move(time.Minute)
			}
		}
		decisions, queued := r.log.all(), r.sink.Handoffs()
		if last, ok := r.Handoff(workflow); ok {
			queued = append(queued, last)
		}
		if len(decisions) < 10 || len(queued) == 0 {
			t.Errorf("%s: %d decisions, %d handoffs", name, len(decisions), len(queued))
		}
		for _, d := range decisions {
			contentFree(t, d)
		}
		for _, h := range queued {
			contentFree(t, h)
			if data, err := h.MarshalJSON(); err != nil || strings.Contains(string(data), "SECRET") {
				t.Errorf("%s: %s, %v", name, data, err)
			}
		}
		for _, tr := range r.History(workflow) {
			contentFree(t, tr)
		}
		for _, g := range r.Gauges() {
			contentFree(t, g)
		}
	}
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
			contentFree(t, err)
		}
	}
	if failed < 100 {
		t.Errorf("%d errors", failed)
	}
}
