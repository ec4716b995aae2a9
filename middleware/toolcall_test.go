package middleware_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func approval() middleware.Approval {
	return middleware.NewApproval(middleware.NewPreview(workflow(), 7, ident.DigestOf([]byte("receipt"))), [32]byte{1, 2, 3})
}

type callValues struct {
	id, name, input, label string
	turn, attempt          int
	effect                 middleware.Effect
	approval               middleware.Approval
}

func valuesOf(c *toolCall) callValues {
	return callValues{c.ID(), c.Name(), c.Input(), c.Label().String(), c.Turn(), c.Attempt(), c.Effect(), c.Approval()}
}

func TestToolCallIsImmutable(t *testing.T) {
	t.Parallel()
	base := capture(t, middleware.ToolConfig{Name: "Pay Out", Effect: middleware.Idempotent}, "in").WithApproval(approval())
	want := callValues{"id", "Pay Out", "in", "pay_out", 0, 1, middleware.Idempotent, approval()}
	if got := valuesOf(base); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for _, tc := range []struct {
		name   string
		derive func(*toolCall) *toolCall
		change func(*callValues)
	}{
		{"WithInput", func(c *toolCall) *toolCall { return c.WithInput("other") }, func(v *callValues) { v.input, v.approval = "other", middleware.Approval{} }},
		{"WithInput, same", func(c *toolCall) *toolCall { return c.WithInput("in") }, func(v *callValues) { v.approval = middleware.Approval{} }},
		{"NextAttempt", (*toolCall).NextAttempt, func(v *callValues) { v.attempt, v.approval = 2, middleware.Approval{} }},
		{"WithApproval", func(c *toolCall) *toolCall { return c.WithApproval(middleware.Approval{}) }, func(v *callValues) { v.approval = middleware.Approval{} }},
		{"Clone", (*toolCall).Clone, func(*callValues) {}},
	} {
		derived := tc.derive(base)
		changed := want
		tc.change(&changed)
		if got := valuesOf(derived); got != changed || derived == base {
			t.Errorf("%s: got %+v, want %+v in another call", tc.name, got, changed)
		}
		if got := valuesOf(base); got != want {
			t.Errorf("%s changed the call it was asked of: %+v", tc.name, got)
		}
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	a := approval()
	if a.IsZero() || !(middleware.Approval{}).IsZero() || a.Preview().Generation() != 7 || a.Binding() != [32]byte{1, 2, 3} {
		t.Errorf("got %v, %v", a.Preview(), a.Binding())
	}
	if s := fmt.Sprintf("%#v", a); s != "middleware.Approval(redacted)" {
		t.Error(s)
	}
	p := a.Preview()
	if p.IsZero() || !(middleware.Preview{}).IsZero() || p.Workflow() != workflow() || p.Digest() != ident.DigestOf([]byte("receipt")) {
		t.Errorf("got %v", p)
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		effect              middleware.Effect
		changes, repeatable bool
	}{
		{middleware.Effectful, true, false},
		{middleware.Idempotent, true, true},
		{middleware.ReadOnly, false, true},
		{middleware.Polling, false, true},
		{middleware.Effect(4), true, false},
		{middleware.Effect(255), true, false},
	} {
		if tc.effect.Changes() != tc.changes || tc.effect.Repeatable() != tc.repeatable {
			t.Errorf("%d: changes %v, repeatable %v", tc.effect, tc.effect.Changes(), tc.effect.Repeatable())
		}
	}
	if got := capture(t, middleware.ToolConfig{}, "read_only").Effect(); got != middleware.Effectful {
		t.Errorf("an unset class is %v", got)
	}
}

func TestToolCallInContext(t *testing.T) {
	t.Parallel()
	ctx, r := start(t, middleware.RunConfig{})
	if c, ok := middleware.ToolCallFrom(ctx); ok || c != nil {
		t.Errorf("a call outside of every tool: %v", c)
	}
	_, err := newTool(t, middleware.ToolConfig{}, func(ctx context.Context, call *toolCall) (*toolResult, error) {
		if c, ok := middleware.ToolCallFrom(ctx); !ok || c != call {
			t.Errorf("the context carries %v, not its call", c)
		}
		next := call.NextAttempt()
		inner, cancel := context.WithCancel(middleware.ContextWithToolCall(ctx, next))
		defer cancel()
		if c, _ := middleware.ToolCallFrom(inner); c != next || middleware.RunFrom(inner) != r {
			t.Error("the attempt, or the run, is not in the derived context")
		}
		if _, ok := middleware.ToolCallFrom(middleware.ContextWithRun(inner, r)); ok {
			t.Error("ContextWithRun kept the tool call")
		}

		return &toolResult{}, nil
	}).Do(ctx, "", "")
	if err != nil || middleware.RunFrom(t.Context()) != nil {
		t.Errorf("%v", err)
	}
	if got := middleware.RunFrom(middleware.ContextWithRun(context.Background(), r)); got != r {
		t.Errorf("got run %v", got)
	}
	if strings.Contains(fmt.Sprint(ctx), secret) {
		t.Error("a context shows content")
	}
}
