package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// loud is an error whose every method shows content.
type loud struct{ Text string }

func (l loud) Error() string              { return l.Text }
func (l loud) String() string             { return l.Text }
func (l loud) GoString() string           { return l.Text }
func (l loud) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(l.Text)) }

func TestErrorsAreContentFree(t *testing.T) {
	t.Parallel()
	cause := loud{secret}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for text, err := range map[string]error{
		"interlock: watchdog: loop": middleware.NewDenial(middleware.Refusal{
			Component: middleware.ComponentWatchdog, Reason: middleware.ReasonLoop, Cause: cause,
		}),
		"interlock: fallback primary: exhausted": middleware.NewFailure(
			middleware.ComponentFallback, middleware.ReasonExhausted, ident.MustLabel("primary"), cause, nil, errSecret),
		"interlock: run: invalid_run_state": middleware.NewFailure(middleware.ComponentRun, middleware.ReasonInvalidRunState, ident.Label{}, cause),
		"interlock: panic":                  middleware.NewPanicError(cause, []byte(secret)),
		"interlock: tool: canceled":         middleware.NewCanceled(ctx, middleware.ComponentTool, ident.Label{}, cause),
		"interlock: tool: tool_failed":      middleware.ToolError(ident.Label{}, cause),
	} {
		if err.Error() != text {
			t.Errorf("got %q, want %q", err.Error(), text)
		}
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%-40v", "% x", "%w"} {
			fmt.Fprintf(&out, verb+"\n", err)
			fmt.Fprintf(&out, verb+"\n", struct{ Err error }{err})
			fmt.Fprintf(&out, verb+"\n", []error{err})
		}
		fmt.Fprintln(&out, err, fmt.Errorf("outside: %w", err))
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Error("failed", "err", err, "group", slog.GroupValue(slog.Any("err", err)), "struct", struct{ Err error }{err})
		}
		if strings.Contains(out.String(), "SECRET") {
			t.Errorf("content in\n%s", out.String())
		}
		if strings.Count(out.String(), text) < 10 {
			t.Errorf("the text is missing in\n%s", out.String())
		}
		if l, ok := errors.AsType[loud](err); !ok || l != cause {
			t.Errorf("%s: the cause is not in the chain", text)
		}
	}
}

func TestDenial(t *testing.T) {
	t.Parallel()
	_, r := start(t, middleware.RunConfig{})
	full := middleware.NewDenial(middleware.Refusal{
		Run: r.ID(), Component: middleware.ComponentBudget, Reason: middleware.ReasonBudgetExceeded,
		Verdict: middleware.VerdictModify, Action: middleware.ActionSubstitute, Cause: errSecret,
	})
	if full.Run() != r.ID() || full.Component() != middleware.ComponentBudget || full.Reason() != middleware.ReasonBudgetExceeded ||
		full.Verdict() != middleware.VerdictModify || full.Action() != middleware.ActionSubstitute || !full.Soft() || full.Unwrap() != errSecret {
		t.Errorf("got %+v", full)
	}
	for _, reason := range middleware.Reasons() {
		d := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentRun, Reason: reason})
		wrapped := fmt.Errorf("a: %w", errors.Join(errSecret, d))
		for _, other := range middleware.Reasons() {
			if errors.Is(wrapped, other) != (other == reason) {
				t.Errorf("errors.Is(%v, %v)", reason, other)
			}
		}
		if d.Observation() == "" || strings.ContainsAny(d.Observation(), "\n\r\t") {
			t.Errorf("%v: observation %q", reason, d.Observation())
		}
	}
	for v := range 256 {
		verdict := middleware.Verdict(v)
		d := middleware.NewDenial(middleware.Refusal{Reason: middleware.ReasonLoop, Verdict: verdict})
		want := middleware.VerdictDeny
		if verdict == middleware.VerdictModify || verdict == middleware.VerdictEscalate {
			want = verdict
		}
		if d.Verdict() != want || d.Soft() != (verdict == middleware.VerdictModify) || d.Action() != middleware.ActionBlock {
			t.Errorf("%d became %v", v, d.Verdict())
		}
	}
	for _, unknown := range []middleware.Reason{0, 255} {
		d := middleware.NewDenial(middleware.Refusal{Verdict: middleware.VerdictModify, Reason: unknown})
		if d.Soft() || errors.Is(d, middleware.Reason(0)) {
			t.Errorf("a soft denial for an unknown reason %d", unknown)
		}
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	label := ident.MustLabel("probe")
	f := middleware.NewFailure(middleware.ComponentTool, middleware.ReasonToolFailed, label, nil, errSecret, nil, context.Canceled)
	if f.Component() != middleware.ComponentTool || f.Reason() != middleware.ReasonToolFailed || f.Label() != label || len(f.Unwrap()) != 2 {
		t.Errorf("got %+v", f.Unwrap())
	}
	if !errors.Is(f, errSecret) || !errors.Is(f, context.Canceled) || !errors.Is(f, middleware.ReasonToolFailed) || errors.Is(f, middleware.ReasonPanic) {
		t.Error("errors.Is")
	}
}

func TestPanicError(t *testing.T) {
	t.Parallel()
	p := middleware.NewPanicError(errSecret, []byte("stack"))
	if p.Value() != errSecret || string(p.Stack()) != "stack" || !errors.Is(p, errSecret) || !errors.Is(p, middleware.ReasonPanic) {
		t.Error("an error as value")
	}
	if p := middleware.NewPanicError(secret, nil); p.Unwrap() != nil || p.Value() != secret || p.Stack() != nil {
		t.Error("another value")
	}
	if p := (&middleware.PanicError{}); p.Value() != nil || p.Stack() != nil || p.Unwrap() != nil || !errors.Is(p, middleware.ReasonPanic) {
		t.Error("the zero value")
	}
}

// wraps is a cause that says of itself that it is a cancellation.
type wraps struct{ error }

func (w wraps) Unwrap() error { return w.error }

func TestNewCanceled(t *testing.T) {
	t.Parallel()
	client := errors.New("network error")
	for name, cause := range map[string]error{
		"none": nil, "own": errSecret, "wrapping": wraps{context.Canceled}, "the same": context.Canceled,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := middleware.NewCanceled(ctx, middleware.ComponentModel, ident.Label{}, client)
		wantReason(t, err, middleware.ReasonCanceled)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, client) || (cause != nil && !errors.Is(err, cause)) {
			t.Errorf("%s: something is missing in %v", name, err.Unwrap())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	err := middleware.NewCanceled(ctx, middleware.ComponentModel, ident.Label{}, nil)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || len(err.Unwrap()) != 1 {
		t.Errorf("got %v", err.Unwrap())
	}
}

func TestReasonOf(t *testing.T) {
	t.Parallel()
	inner := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped})
	for _, tc := range []struct {
		err  error
		want middleware.Reason
	}{
		{nil, 0},
		{errSecret, 0},
		{inner, middleware.ReasonAdmissionStopped},
		{fmt.Errorf("x: %w", inner), middleware.ReasonAdmissionStopped},
		{middleware.NewFailure(middleware.ComponentTool, middleware.ReasonToolFailed, ident.Label{}, inner), middleware.ReasonToolFailed},
		{fmt.Errorf("x: %w", middleware.ReasonQuota), middleware.ReasonQuota},
	} {
		if got := middleware.ReasonOf(tc.err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
	if middleware.ToolError(ident.Label{}, nil) != nil {
		t.Error("an error out of nothing")
	}
	if got := middleware.ToolError(ident.Label{}, inner); got != error(inner) {
		t.Errorf("an error of the library was wrapped: %v", got)
	}
}
