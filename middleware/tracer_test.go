package middleware_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

type tracerFunc func(ctx context.Context, op middleware.Op, label ident.Label, attempt int) (context.Context, middleware.End)

func (f tracerFunc) Start(ctx context.Context, op middleware.Op, label ident.Label, attempt int) (context.Context, middleware.End) {
	return f(ctx, op, label, attempt)
}

type traceKey struct{}

func TestStartOp(t *testing.T) {
	t.Parallel()
	label := ident.MustLabel("probe")
	ends := 0
	for _, tc := range []struct {
		name        string
		tracer      middleware.Tracer
		ends        int
		keepContext bool
	}{
		{"nil tracer", nil, 0, true},
		{"panicking tracer", tracerFunc(func(context.Context, middleware.Op, ident.Label, int) (context.Context, middleware.End) {
			panic(secret)
		}), 0, true},
		{"nothing given", tracerFunc(func(context.Context, middleware.Op, ident.Label, int) (context.Context, middleware.End) {
			return nil, nil
		}), 0, true},
		{"nil context", tracerFunc(func(context.Context, middleware.Op, ident.Label, int) (context.Context, middleware.End) {
			return nil, func(middleware.Outcome) { ends++ }
		}), 1, true},
		{"nil end", tracerFunc(func(ctx context.Context, _ middleware.Op, _ ident.Label, _ int) (context.Context, middleware.End) {
			return context.WithValue(ctx, traceKey{}, 1), nil
		}), 0, false},
		{"panicking end", tracerFunc(func(ctx context.Context, _ middleware.Op, _ ident.Label, _ int) (context.Context, middleware.End) {
			return ctx, func(middleware.Outcome) { ends++; panic(secret) }
		}), 1, true},
		{"a tracer", tracerFunc(func(ctx context.Context, op middleware.Op, l ident.Label, attempt int) (context.Context, middleware.End) {
			if op != middleware.OpAttempt || l != label || attempt != 2 {
				t.Errorf("got %v %v %d", op, l, attempt)
			}

			return context.WithValue(ctx, traceKey{}, 1), func(o middleware.Outcome) {
				if ends++; o.InputTokens != 5 {
					t.Errorf("got %+v", o)
				}
			}
		}), 1, false},
	} {
		ends = 0
		ctx, end := middleware.StartOp(t.Context(), tc.tracer, middleware.OpAttempt, label, 2)
		if ctx == nil || end == nil || (ctx == t.Context()) != tc.keepContext {
			t.Fatalf("%s: got %v", tc.name, ctx)
		}
		end(middleware.Outcome{InputTokens: 5})
		end(middleware.Outcome{})
		if ends != tc.ends {
			t.Errorf("%s: ended %d times", tc.name, ends)
		}
	}
}

func TestTraceTool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		fn   toolHandler
		want middleware.Reason
	}{
		{"success", echo, middleware.ReasonOK},
		{"error", failing(errSecret), middleware.ReasonToolFailed},
		{"timeout", failing(context.DeadlineExceeded), middleware.ReasonToolTimeout},
		{"panic", func(context.Context, *toolCall) (*toolResult, error) { panic(secret) }, middleware.ReasonPanic},
		{"goexit", func(context.Context, *toolCall) (*toolResult, error) { runtime.Goexit(); return nil, nil }, middleware.ReasonPanic},
	} {
		var outcomes []middleware.Outcome
		tracer := tracerFunc(func(ctx context.Context, op middleware.Op, l ident.Label, attempt int) (context.Context, middleware.End) {
			if op != middleware.OpTool || l.String() != "probe" || attempt != 1 {
				t.Errorf("%s: %v %v %d", tc.name, op, l, attempt)
			}

			return context.WithValue(ctx, traceKey{}, 1), func(o middleware.Outcome) { outcomes = append(outcomes, o) }
		})
		tool := newTool(t, middleware.ToolConfig{Effect: middleware.ReadOnly, Chain: middleware.TraceTool(tracer)},
			func(ctx context.Context, call *toolCall) (*toolResult, error) {
				if ctx.Value(traceKey{}) == nil || middleware.RunFrom(ctx) == nil {
					t.Errorf("%s: span or run is not in the tool's context", tc.name)
				}

				return tc.fn(ctx, call)
			})
		ctx, _ := start(t, middleware.RunConfig{})
		apart(func() { _, _ = tool.Do(ctx, "", "") })
		want := middleware.Outcome{Decision: middleware.Decision{
			Component: middleware.ComponentTool, Label: ident.MustLabel("probe"), Attempt: 1, Reason: tc.want,
		}}
		if len(outcomes) != 1 || outcomes[0] != want {
			t.Errorf("%s: got %+v, want %+v", tc.name, outcomes, want)
		}
	}
}

// No span for a tool that did not run.
func TestTraceToolInsideOfRefusals(t *testing.T) {
	t.Parallel()
	started := 0
	tracer := tracerFunc(func(ctx context.Context, _ middleware.Op, _ ident.Label, _ int) (context.Context, middleware.End) {
		started++

		return ctx, nil
	})
	refuse := func(toolHandler) toolHandler {
		return failing(middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped}))
	}
	tool := newTool(t, middleware.ToolConfig{Chain: middleware.Chain(refuse, middleware.TraceTool(tracer))}, echo)
	ctx, _ := start(t, middleware.RunConfig{})
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, middleware.ReasonAdmissionStopped) || started != 0 {
		t.Errorf("%v, %d spans", err, started)
	}
	if _, err := newTool(t, middleware.ToolConfig{Chain: middleware.TraceTool(nil)}, echo).Do(ctx, "", ""); err != nil {
		t.Error(err)
	}
}

func TestFailureReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want middleware.Reason
	}{
		{nil, middleware.ReasonOK},
		{errSecret, middleware.ReasonModelFailed},
		{middleware.NewPanicError(1, nil), middleware.ReasonPanic},
		{middleware.ReasonQuota, middleware.ReasonQuota},
		{middleware.Reason(0), middleware.ReasonModelFailed},
	} {
		if got := middleware.FailureReason(tc.err, middleware.ReasonModelFailed); got != tc.want {
			t.Errorf("%v: %v", tc.err, got)
		}
	}
}
