package otelx_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

func TestOperations(t *testing.T) {
	t.Parallel()
	unknown := ident.MustLabel("made_up_by_a_model")
	tests := []struct {
		name    string
		op      middleware.Op
		label   ident.Label
		attempt int
		out     middleware.Outcome
		span    string
		kind    trace.SpanKind
		attrs   map[string]string
		status  codes.Code
		reject  map[string]float64
	}{
		{
			name: "tool", op: middleware.OpTool, label: refund, attempt: 2, span: "execute_tool issue_refund", kind: trace.SpanKindInternal,
			out:   middleware.Outcome{Decision: middleware.Decision{Component: middleware.ComponentTool, Reason: middleware.ReasonOK}},
			attrs: map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "issue_refund", "gen_ai.tool.type": "function"},
		},
		{
			name: "tool that failed", op: middleware.OpTool, label: refund, span: "execute_tool issue_refund", kind: trace.SpanKindInternal,
			out:    middleware.Outcome{Decision: middleware.Decision{Component: middleware.ComponentTool, Reason: middleware.ReasonOutcomeUnknown}},
			attrs:  map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "issue_refund", "gen_ai.tool.type": "function", "error.type": "outcome_unknown"},
			status: codes.Error,
		},
		{
			name: "tool that is not registered", op: middleware.OpTool, label: unknown, span: "execute_tool _OTHER", kind: trace.SpanKindInternal,
			attrs:  map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "_OTHER", "gen_ai.tool.type": "function"},
			reject: map[string]float64{"tool": 1},
		},
		{
			name: "attempt", op: middleware.OpAttempt, label: primary, attempt: 3, span: "chat primary", kind: trace.SpanKindClient,
			out: middleware.Outcome{
				Decision: middleware.Decision{
					Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
					Reason: middleware.ReasonOK, Outcome: middleware.OutcomeSuccess, Attempt: 3,
				},
				InputTokens: 12, OutputTokens: 34, Finish: middleware.FinishToolCalls, ResponseModel: gptDated,
			},
			attrs: map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
				"gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.usage.input_tokens": "12", "gen_ai.usage.output_tokens": "34",
				"gen_ai.response.finish_reasons": `["tool_calls"]`, "interlock.attempt.number": "3",
				"interlock.decision.component": "fallback", "interlock.decision.verdict": "allow", "interlock.decision.action": "proceed",
				"interlock.decision.reason": "ok", "interlock.attempt.outcome": "success", "interlock.attempt.count": "3",
			},
		},
		{
			name: "attempt answered by the candidate", op: middleware.OpAttempt, label: backup, span: "chat backup", kind: trace.SpanKindClient,
			out: middleware.Outcome{ResponseModel: backup},
			attrs: map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4",
				"gen_ai.response.model": "claude-sonnet-4",
			},
		},
		{
			name: "attempt whose answer is not registered", op: middleware.OpAttempt, label: primary, span: "chat primary", kind: trace.SpanKindClient,
			out: middleware.Outcome{ResponseModel: ident.MustModelLabel("ft:secret"), Finish: middleware.FinishReason(200), InputTokens: -4},
			attrs: map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
				"gen_ai.response.finish_reasons": `["_OTHER"]`,
			},
			reject: map[string]float64{"model": 1},
		},
		{
			name: "attempt that timed out without a reason", op: middleware.OpAttempt, label: backup, span: "chat backup", kind: trace.SpanKindClient,
			out: middleware.Outcome{Decision: middleware.Decision{Outcome: middleware.OutcomeTimeout}},
			attrs: map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4", "error.type": "timeout",
			},
			status: codes.Error,
		},
		{
			name: "attempt at an unknown candidate", op: middleware.OpAttempt, label: unknown, span: "chat _OTHER", kind: trace.SpanKindClient,
			attrs:  map[string]string{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "_OTHER", "gen_ai.request.model": "_OTHER"},
			reject: map[string]float64{"candidate": 1},
		},
		{
			name: "fallback that is exhausted", op: middleware.OpFallback, span: "interlock.fallback", kind: trace.SpanKindInternal,
			out: middleware.Outcome{Decision: middleware.Decision{
				Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Reason: middleware.ReasonExhausted, Attempt: 4,
			}},
			attrs: map[string]string{
				"interlock.decision.component": "fallback", "interlock.decision.verdict": "deny", "interlock.decision.reason": "exhausted",
				"interlock.attempt.count": "4", "error.type": "exhausted",
			},
		},
		{
			name: "run outside of a run", op: middleware.OpRun, span: "invoke_agent", kind: trace.SpanKindInternal,
			attrs: map[string]string{"gen_ai.operation.name": "invoke_agent"},
		},
		{
			name: "run of an unknown agent", op: middleware.OpRun, label: unknown, span: "invoke_agent _OTHER", kind: trace.SpanKindInternal,
			attrs:  map[string]string{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "_OTHER"},
			reject: map[string]float64{"agent": 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			_, end := f.Start(context.Background(), tt.op, tt.label, tt.attempt)
			end(tt.out)
			s := f.span(t, tt.span)
			got := attrs(s.Attributes())
			delete(got, "interlock.decision.id")
			if diff := cmp.Diff(tt.attrs, got); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			if s.SpanKind() != tt.kind {
				t.Errorf("kind %v, want %v", s.SpanKind(), tt.kind)
			}
			if s.Status() != (sdktrace.Status{Code: tt.status}) {
				t.Errorf("status %+v, want %v and no description", s.Status(), tt.status)
			}
			if len(s.Events()) != 0 || len(s.Links()) != 0 {
				t.Error("the span has events or links")
			}
			if tt.reject == nil {
				tt.reject = map[string]float64{}
			}
			if diff := cmp.Diff(tt.reject, f.rejected(t)); diff != "" {
				t.Errorf("rejected (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunSpan(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx, run := startRun(t)
	_, end := f.Start(ctx, middleware.OpRun, ident.Label{}, 0)
	f.clock.advance(3 * time.Second)
	end(middleware.Outcome{Decision: middleware.Decision{Reason: middleware.ReasonLoop}})
	s := f.span(t, "invoke_agent refund-desk")
	want := map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refund-desk", "interlock.run.id": run.ID().String(),
		"interlock.workflow.id": refunds.String(), "error.type": "loop",
	}
	if diff := cmp.Diff(want, attrs(s.Attributes())); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.Status().Code != codes.Error || s.Status().Description != "" {
		t.Errorf("status %+v", s.Status())
	}
	wantValue(t, f.metrics(t), "gen_ai.invoke_agent.duration",
		map[string]string{"gen_ai.agent.name": "refund-desk", "error.type": "loop"}, 3)
}

// A workflow that is not registered is not rendered, even if it parses.
func TestRunSpanOfUnknownWorkflow(t *testing.T) {
	t.Parallel()
	f := open(t)
	foreign := ident.MustWorkflowID("workflow:org.secret/patient-jane-doe")
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: foreign, Label: desk})
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	_, end := f.Start(ctx, middleware.OpRun, ident.Label{}, 0)
	end(middleware.Outcome{})
	if got := attrs(f.span(t, "invoke_agent refund-desk").Attributes())["interlock.workflow.id"]; got != "_OTHER" {
		t.Errorf("workflow renders as %q", got)
	}
	if f.rejected(t)["workflow"] != 1 {
		t.Error("the workflow was not counted as rejected")
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := context.Background()
	for _, op := range []struct {
		op    middleware.Op
		label ident.Label
		took  time.Duration
		out   middleware.Reason
	}{
		{middleware.OpTool, refund, 200 * time.Millisecond, middleware.ReasonOK},
		{middleware.OpTool, refund, 300 * time.Millisecond, middleware.ReasonOK},
		{middleware.OpTool, lookup, 400 * time.Millisecond, middleware.ReasonToolFailed},
		{middleware.OpAttempt, primary, 2 * time.Second, middleware.ReasonRateLimited},
		{middleware.OpAttempt, backup, time.Second, middleware.ReasonOK},
		{middleware.OpFallback, ident.Label{}, time.Second, middleware.ReasonOK},
	} {
		_, end := f.Start(ctx, op.op, op.label, 1)
		f.clock.advance(op.took)
		end(middleware.Outcome{Decision: middleware.Decision{Reason: op.out}})
	}
	m := f.metrics(t)
	wantValue(t, m, "gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "issue_refund"}, 0.5)
	wantValue(t, m, "gen_ai.execute_tool.duration", map[string]string{"gen_ai.tool.name": "lookup_order", "error.type": "tool_failed"}, 0.4)
	wantValue(t, m, "gen_ai.client.operation.duration", map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o", "error.type": "provider_rate_limit",
	}, 2)
	wantValue(t, m, "gen_ai.client.operation.duration", map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4",
	}, 1)
	if len(points(t, m["gen_ai.client.operation.duration"])) != 2 {
		t.Error("the fallback call was measured as a model call")
	}
}

func TestUnknownOperation(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := context.Background()
	for _, op := range []middleware.Op{0, math.MaxUint8} {
		inner, end := f.Start(ctx, op, refund, 1)
		if inner != ctx || end != nil {
			t.Errorf("operation %d was opened", op)
		}
	}
	if f.rejected(t)["operation"] != 2 || len(f.spans.Started()) != 0 {
		t.Errorf("rejected %v, started %d", f.rejected(t), len(f.spans.Started()))
	}
}

// The zero Model of a candidate is its label.
func TestCandidateWithoutModel(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) {
		c.Candidates = []otelx.Candidate{{Label: primary, Provider: openai}}
		c.ResponseModels = nil
	})
	_, end := f.Start(context.Background(), middleware.OpAttempt, primary, 1)
	end(middleware.Outcome{ResponseModel: primary})
	got := attrs(f.span(t, "chat primary").Attributes())
	if got["gen_ai.request.model"] != "primary" || got["gen_ai.response.model"] != "primary" {
		t.Errorf("attributes %v", got)
	}
}

// An End counts and ends once, also from two goroutines and without StartOp.
func TestEndIsOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	_, end := f.Start(context.Background(), middleware.OpTool, refund, 1)
	done := make(chan struct{})
	for range 2 {
		go func() {
			defer func() { done <- struct{}{} }()
			end(middleware.Outcome{})
		}()
	}
	<-done
	<-done
	f.span(t, "execute_tool issue_refund")
	if p := points(t, f.metrics(t)["gen_ai.execute_tool.duration"]); len(p) != 1 || p[0].count != 1 {
		t.Errorf("measured %+v", p)
	}
}

// A span that does not record gets no attributes and needs none.
func TestNotRecording(t *testing.T) {
	t.Parallel()
	f := open(t, func(c *otelx.Config) {
		c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	})
	ctx, _ := startRun(t)
	inner, end := f.Start(ctx, middleware.OpRun, ident.Label{}, 0)
	if trace.SpanFromContext(inner).IsRecording() {
		t.Fatal("the test records")
	}
	f.Observe(inner, middleware.Decision{
		Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny, Workflow: ident.MustWorkflowID("workflow:org.example/other"),
	})
	end(middleware.Outcome{})
	if r := f.rejected(t); len(r) != 0 {
		t.Errorf("attributes were built for a span that does not record: %v", r)
	}
}
