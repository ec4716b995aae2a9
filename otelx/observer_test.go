package otelx_test

import (
	"context"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

func TestDecisionSpan(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Observe(context.Background(), middleware.Decision{
		Seq: 7, Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
		Reason: middleware.ReasonAdmissionStopped, Workflow: refunds, Label: refund, Turn: 2, Attempt: 1, Generation: 42,
		Count: 3, Limit: 5, Severity: 0.5, Class: middleware.FailurePermissionDenial, Circuit: middleware.CircuitOpen,
		FailMode: middleware.FailOpen, Duration: 20 * time.Microsecond,
	})
	s := f.span(t, "interlock.admission")
	got := attrs(s.Attributes())
	if !regexp.MustCompile(`^dec_[0-9a-f]{32}$`).MatchString(got["interlock.decision.id"]) {
		t.Errorf("decision id %q", got["interlock.decision.id"])
	}
	delete(got, "interlock.decision.id")
	want := map[string]string{
		"interlock.decision.component": "admission", "interlock.decision.verdict": "deny", "interlock.decision.action": "block",
		"interlock.decision.reason": "admission_stopped", "interlock.decision.seq": "7", "interlock.decision.label": "issue_refund",
		"interlock.decision.turn": "2", "interlock.attempt.count": "1", "interlock.admission.generation": "42",
		"interlock.decision.count": "3", "interlock.decision.limit": "5", "interlock.decision.severity": "0.5",
		"interlock.escalation.class": "permission_denial", "interlock.circuit.state": "open", "interlock.fail_mode": "open",
		"interlock.workflow.id": refunds.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if s.SpanKind() != trace.SpanKindInternal || s.Status().Code != codes.Unset {
		t.Errorf("kind %v, status %v: a refusal is a decision that worked", s.SpanKind(), s.Status())
	}
}

// What does not apply, or is no number, is absent.
func TestDecisionSpanOfZeroFields(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Observe(context.Background(), middleware.Decision{
		Component: middleware.ComponentBudget, Verdict: middleware.VerdictModify,
		Severity: math.NaN(), Count: -1, Generation: math.MaxUint64,
	})
	got := attrs(f.span(t, "interlock.budget").Attributes())
	delete(got, "interlock.decision.id")
	want := map[string]string{"interlock.decision.component": "budget", "interlock.decision.verdict": "modify"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestDecisionIDsDiffer(t *testing.T) {
	t.Parallel()
	f := open(t)
	for range 2 {
		f.Observe(context.Background(), middleware.Decision{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny})
	}
	ended := f.spans.Ended()
	if len(ended) != 2 || attrs(ended[0].Attributes())["interlock.decision.id"] == attrs(ended[1].Attributes())["interlock.decision.id"] {
		t.Error("two decisions have one id")
	}
}

// Names that are not registered are no part of a decision either.
func TestDecisionOfUnregisteredNames(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Observe(context.Background(), middleware.Decision{
		Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny,
		Label: ident.MustLabel("rm_rf"), Workflow: ident.MustWorkflowID("workflow:org.secret/jane"),
	})
	got := attrs(f.span(t, "interlock.watchdog").Attributes())
	if got["interlock.decision.label"] != "_OTHER" || got["interlock.workflow.id"] != "_OTHER" {
		t.Errorf("attributes %v", got)
	}
	if r := f.rejected(t); r["label"] != 1 || r["workflow"] != 1 {
		t.Errorf("rejected %v", r)
	}
}

func TestWhichDecisionsGetASpan(t *testing.T) {
	t.Parallel()
	type d = middleware.Decision
	tests := []struct {
		name        string
		decision    d
		span        string // "" for none
		withoutAllo string // with DisableAllowSpans
	}{
		{"admission denies", d{Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny}, "interlock.admission", "interlock.admission"},
		{"admission allows", d{Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow}, "interlock.admission", ""},
		{"approval", d{Component: middleware.ComponentApproval, Verdict: middleware.VerdictDeny}, "interlock.admission", "interlock.admission"},
		{"run", d{Component: middleware.ComponentRun, Verdict: middleware.VerdictDeny}, "interlock.admission", "interlock.admission"},
		{"chain", d{Component: middleware.ComponentChain, Verdict: middleware.VerdictDeny}, "interlock.admission", "interlock.admission"},
		{"watchdog nudges", d{Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictModify}, "interlock.watchdog", "interlock.watchdog"},
		{"watchdog observes", d{Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictAbstain}, "interlock.watchdog", "interlock.watchdog"},
		{"escalation", d{Component: middleware.ComponentEscalation, Verdict: middleware.VerdictEscalate}, "interlock.escalation", "interlock.escalation"},
		{"tool", d{Component: middleware.ComponentTool, Verdict: middleware.VerdictDeny}, "interlock.escalation", "interlock.escalation"},
		{"breaker", d{Component: middleware.ComponentBreaker, Verdict: middleware.VerdictDeny}, "interlock.breaker", "interlock.breaker"},
		{"context shortens", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictModify}, "interlock.breaker", "interlock.breaker"},
		{"context reads", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Fill: 0.3}, "", ""},
		{"context abstains", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictAbstain, Fill: 0.3}, "", ""},
		{"context finds the window full and cuts nothing", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Reason: middleware.ReasonContextFull, Fill: 0.9}, "interlock.breaker", ""},
		{"context cannot measure drift", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Reason: middleware.ReasonDetectorFailed}, "interlock.breaker", "interlock.breaker"},
		{"context reads and finds nothing", d{Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Reason: middleware.ReasonOK, Fill: 0.3}, "", ""},
		{"budget", d{Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny}, "interlock.budget", "interlock.budget"},
		{"fallback benches", d{Component: middleware.ComponentFallback, Verdict: middleware.VerdictModify, Reason: middleware.ReasonBenched}, "interlock.fallback", "interlock.fallback"},
		{"fallback probes", d{Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Reason: middleware.ReasonProbe}, "interlock.fallback", ""},
		{"attempt", d{Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Outcome: middleware.OutcomeSuccess}, "", ""},
		{"failed attempt", d{Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Outcome: middleware.OutcomeError}, "", ""},
		{"skipped attempt", d{Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Outcome: middleware.OutcomeSkipped}, "interlock.fallback", "interlock.fallback"},
		{"model", d{Component: middleware.ComponentModel, Verdict: middleware.VerdictDeny}, "interlock.fallback", "interlock.fallback"},
		{"no component", d{Verdict: middleware.VerdictDeny}, "", ""},
		{"unknown component", d{Component: math.MaxUint8, Verdict: middleware.VerdictDeny}, "", ""},
		{"no verdict", d{Component: middleware.ComponentBudget}, "interlock.budget", "interlock.budget"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []struct {
				disable bool
				want    string
			}{{false, tt.span}, {true, tt.withoutAllo}} {
				f := open(t, func(c *otelx.Config) { c.DisableAllowSpans = mode.disable })
				f.Observe(context.Background(), tt.decision)
				var want []string
				if mode.want != "" {
					want = []string{mode.want}
				}
				if diff := cmp.Diff(want, names(f.spans.Ended())); diff != "" {
					t.Errorf("DisableAllowSpans %v, spans (-want +got):\n%s", mode.disable, diff)
				}
				if p := points(t, f.metrics(t)["interlock.decisions"]); len(p) != 1 || p[0].value != 1 {
					t.Errorf("counted as %v: every decision counts once", p)
				}
			}
		})
	}
}

func TestBrokenComponentIsAnError(t *testing.T) {
	t.Parallel()
	for reason, errorType := range map[middleware.Reason]string{
		middleware.ReasonDetectorFailed: "_OTHER", middleware.ReasonPanic: "panic",
		middleware.ReasonSinkFailed: "_OTHER", middleware.ReasonStoreFailed: "admission_denied", middleware.ReasonSummaryFailed: "_OTHER",
	} {
		f := open(t)
		f.Observe(context.Background(), middleware.Decision{
			Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny, Reason: reason,
		})
		s := f.span(t, "interlock.watchdog")
		got := attrs(s.Attributes())
		if s.Status().Code != codes.Error || s.Status().Description != "" || got["error.type"] != errorType || got["interlock.fail_mode"] != "closed" {
			t.Errorf("%v: status %+v, attributes %v", reason, s.Status(), got)
		}
	}
}

// The action breaker counts an action that panicked as the failure that it is:
// nothing of the breaker broke down.
func TestCountedPanicIsNoError(t *testing.T) {
	t.Parallel()
	for _, verdict := range []middleware.Verdict{middleware.VerdictAbstain, middleware.VerdictEscalate} {
		f := open(t)
		f.Observe(context.Background(), middleware.Decision{
			Component: middleware.ComponentBreaker, Verdict: verdict, Reason: middleware.ReasonPanic, Class: middleware.FailureTool,
		})
		s := f.span(t, "interlock.breaker")
		got := attrs(s.Attributes())
		if s.Status().Code != codes.Unset || got["error.type"] != "" || got["interlock.fail_mode"] != "" {
			t.Errorf("%v: status %+v, attributes %v", verdict, s.Status(), got)
		}
	}
}

func TestMetricsOfDecisions(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := context.Background()
	type d = middleware.Decision
	for _, x := range []d{
		{Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed, Reason: middleware.ReasonAdmissionEnabled, Duration: 30 * time.Microsecond},
		{Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed, Reason: middleware.ReasonAdmissionEnabled, Duration: 10 * time.Microsecond},
		{Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Outcome: middleware.OutcomeError, Label: primary, Duration: time.Minute},
		{Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Outcome: middleware.OutcomeSuccess, Label: backup},
		{Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Outcome: middleware.OutcomeSkipped, Label: ident.MustLabel("unknown")},
		{Seq: 1, Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny, Reason: middleware.ReasonStalled, Duration: time.Minute},
		{Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictAbstain, Reason: middleware.ReasonLoop},
		{Component: middleware.ComponentFallback, Verdict: middleware.VerdictModify, Action: middleware.ActionWait, Reason: middleware.ReasonOverloaded, Duration: time.Second},
		{Component: middleware.ComponentBreaker, Verdict: middleware.VerdictAbstain, Reason: middleware.ReasonProfileChanged, Duration: time.Minute},
		{Seq: 2, Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny, Reason: middleware.ReasonDetectorFailed},
		{Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictDeny, Reason: middleware.ReasonStalled}, // of a halted run
		{Component: middleware.ComponentEscalation, Verdict: middleware.VerdictEscalate, Class: middleware.FailureTool, Circuit: middleware.CircuitOpen},
		{Component: middleware.ComponentEscalation, Verdict: middleware.VerdictEscalate, Class: middleware.FailureTool, Reason: middleware.ReasonSinkFailed},
		{Component: middleware.ComponentEscalation, Verdict: middleware.VerdictDeny, Class: middleware.FailureTool},
		{Component: middleware.ComponentBreaker, Verdict: middleware.VerdictAbstain, Class: middleware.FailureUncertainty},
		{Component: middleware.ComponentBreaker, Verdict: middleware.VerdictEscalate, Class: middleware.FailureUncertainty, Circuit: middleware.CircuitOpen},
		{Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Fill: 0.25, Drift: 0},
		{Component: middleware.ComponentContext, Verdict: middleware.VerdictModify, Fill: 0.5, Drift: 0.125},
		{Component: middleware.ComponentContext, Verdict: middleware.VerdictModify, Fill: math.NaN()},
		{Component: middleware.ComponentContext, Verdict: middleware.VerdictModify, Fill: math.Inf(1)},
		{Component: middleware.ComponentContext, Verdict: middleware.VerdictModify},
	} {
		f.Observe(ctx, x)
	}
	m := f.metrics(t)
	key := func(kv ...string) map[string]string {
		w := make(map[string]string)
		for i := 0; i < len(kv); i += 2 {
			w[kv[i]] = kv[i+1]
		}

		return w
	}
	wantValue(t, m, "interlock.decisions", key("interlock.decision.component", "admission", "interlock.decision.verdict", "allow",
		"interlock.decision.action", "proceed", "interlock.decision.reason", "admission_enabled"), 2)
	wantValue(t, m, "interlock.decision.duration", key("interlock.decision.component", "admission", "interlock.decision.action", "proceed"), 40e-6)
	if n := len(points(t, m["interlock.decision.duration"])); n != 1 {
		t.Errorf("%d series of decision durations: an attempt, a stall, a wait or a recovery time is no time of deciding", n)
	}
	wantValue(t, m, "interlock.fallback.attempts", key("gen_ai.request.model", "gpt-4o", "interlock.attempt.outcome", "error"), 1)
	wantValue(t, m, "interlock.fallback.attempts", key("gen_ai.request.model", "claude-sonnet-4", "interlock.attempt.outcome", "success"), 1)
	wantValue(t, m, "interlock.fallback.attempts", key("gen_ai.request.model", "_OTHER", "interlock.attempt.outcome", "skipped"), 1)
	wantValue(t, m, "interlock.watchdog.trips", key("interlock.decision.reason", "stalled"), 1)
	wantValue(t, m, "interlock.watchdog.trips", key("interlock.decision.reason", "loop"), 1)
	if n := len(points(t, m["interlock.watchdog.trips"])); n != 2 {
		t.Errorf("%d series of trips", n)
	}
	wantValue(t, m, "interlock.escalation.handoffs", key("interlock.escalation.class", "tool_failure"), 1)
	wantValue(t, m, "interlock.escalation.handoffs", key("interlock.escalation.class", "uncertainty"), 1)
	wantValue(t, m, "interlock.context.fill", key(), 0.75)
	wantValue(t, m, "interlock.context.drift", key(), 0.125)
}

func TestCircuits(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := context.Background()
	step := func(seq uint64, state middleware.CircuitState, reason middleware.Reason, after time.Duration) {
		f.clock.advance(after)
		f.Observe(ctx, middleware.Decision{
			Seq: seq, Component: middleware.ComponentFallback, Verdict: middleware.VerdictModify, Label: primary, Circuit: state, Reason: reason,
		})
	}
	step(1, middleware.CircuitOpen, middleware.ReasonOverloaded, 0)
	step(2, middleware.CircuitHalfOpen, middleware.ReasonProbe, 30*time.Second)
	step(3, middleware.CircuitClosed, middleware.ReasonRecovered, 2*time.Second)
	step(3, middleware.CircuitOpen, middleware.ReasonOverloaded, time.Second)   // late: an older report
	step(4, middleware.CircuitClosed, middleware.ReasonRecovered, time.Second)  // repeated
	step(5, middleware.CircuitOpen, middleware.ReasonOverloaded, 8*time.Second) // closed for 10 s
	step(6, middleware.CircuitState(9), middleware.ReasonOverloaded, time.Second)
	f.Observe(ctx, middleware.Decision{ // a breaker that is not registered
		Component: middleware.ComponentBreaker, Verdict: middleware.VerdictDeny, Label: ident.MustLabel("unknown"), Circuit: middleware.CircuitOpen,
	})
	m := f.metrics(t)
	wantValue(t, m, "interlock.circuit.transitions", map[string]string{
		"interlock.circuit.label": "primary", "interlock.circuit.state": "open", "interlock.decision.reason": "overloaded",
	}, 3)
	wantValue(t, m, "interlock.circuit.transitions", map[string]string{"interlock.circuit.label": "_OTHER", "interlock.circuit.state": "open"}, 1)
	for state, seconds := range map[string]float64{"open": 30, "half_open": 2, "closed": 10} {
		wantValue(t, m, "interlock.circuit.time_in_state",
			map[string]string{"interlock.circuit.label": "primary", "interlock.circuit.state": state}, seconds)
	}
}

// The breakers of two workflows are two clocks, also where one agent serves
// both; one without a label is _OTHER. Workflows that are not registered have
// one clock per label.
func TestCircuitsOfWorkflows(t *testing.T) {
	t.Parallel()
	tickets := ident.MustWorkflowID("workflow:org.example/tickets@1.0.0")
	f := open(t, func(c *otelx.Config) { c.Workflows = append(c.Workflows, tickets) })
	step := func(seq uint64, w ident.WorkflowID, label ident.Label, state middleware.CircuitState, after time.Duration) {
		f.clock.advance(after)
		f.Observe(context.Background(), middleware.Decision{
			Seq: seq, Component: middleware.ComponentBreaker, Verdict: middleware.VerdictAbstain, Workflow: w, Label: label, Circuit: state,
		})
	}
	step(1, refunds, desk, middleware.CircuitOpen, 0)
	step(2, tickets, desk, middleware.CircuitOpen, 10*time.Second)
	step(3, refunds, desk, middleware.CircuitHalfOpen, 20*time.Second) // open for 30 s
	step(4, tickets, desk, middleware.CircuitHalfOpen, 2*time.Second)  // open for 22 s
	step(5, refunds, ident.Label{}, middleware.CircuitClosed, 5*time.Second)
	step(6, ident.MustWorkflowID("workflow:org.secret/jane"), desk, middleware.CircuitOpen, time.Second)
	step(7, ident.MustWorkflowID("workflow:org.secret/jane"), desk, middleware.CircuitClosed, time.Second) // open for 1 s
	step(8, refunds, ident.Label{}, middleware.CircuitOpen, 2*time.Second)                                 // closed for 4 s
	series := func(label, state string) map[string]string {
		return map[string]string{"interlock.circuit.label": label, "interlock.circuit.state": state}
	}
	m := f.metrics(t)
	wantValue(t, m, "interlock.circuit.time_in_state", series("refund-desk", "open"), 53)
	wantValue(t, m, "interlock.circuit.time_in_state", series("_OTHER", "closed"), 4)
	if n := len(points(t, m["interlock.circuit.time_in_state"])); n != 2 {
		t.Errorf("%d series", n)
	}
	if r := f.rejected(t); r["label"] != 0 {
		t.Errorf("rejected %v", r)
	}
}

// Values outside of the closed sets are _OTHER, on spans and metrics.
func TestOutsideOfEnums(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.Observe(context.Background(), middleware.Decision{
		Component: middleware.ComponentBudget, Verdict: 77, Action: 88, Reason: 250, Outcome: 99, Class: 66, FailMode: 55, Circuit: 44,
	})
	got := attrs(f.span(t, "interlock.budget").Attributes())
	for _, k := range []string{
		"interlock.decision.verdict", "interlock.decision.action", "interlock.decision.reason", "interlock.attempt.outcome",
		"interlock.escalation.class", "interlock.fail_mode", "interlock.circuit.state",
	} {
		if got[k] != "_OTHER" {
			t.Errorf("%s = %q", k, got[k])
		}
	}
	wantValue(t, f.metrics(t), "interlock.decisions", map[string]string{
		"interlock.decision.component": "budget", "interlock.decision.verdict": "_OTHER", "interlock.decision.action": "_OTHER",
		"interlock.decision.reason": "_OTHER",
	}, 1)
	if f.rejected(t)["enum"] != 1 {
		t.Errorf("rejected %v", f.rejected(t))
	}
}
