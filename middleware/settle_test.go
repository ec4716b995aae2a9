package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

type timeoutOnly struct{ error }

func (timeoutOnly) Timeout() bool { return true }

type observable struct{ text string }

func (o observable) Error() string       { return "an error with " + secret }
func (o observable) Observation() string { return o.text }

// What an error of a tool means for the world, by effect class.
func TestSettle(t *testing.T) {
	t.Parallel()
	denial := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped})
	for _, tc := range []struct {
		name       string
		fn         func(cancel func()) (*toolResult, error)
		repeatable middleware.Reason // of read-only, idempotent and polling tools
		effectful  middleware.Reason
		is         error
	}{
		{"error", func(func()) (*toolResult, error) { return nil, errSecret }, 0, 0, errSecret},
		{"error beside a result", func(func()) (*toolResult, error) { return &toolResult{}, errSecret }, 0, 0, errSecret},
		{"no result", func(func()) (*toolResult, error) { return nil, nil }, middleware.ReasonToolFailed, middleware.ReasonOutcomeUnknown, nil},
		{"own deadline", func(func()) (*toolResult, error) { return nil, fmt.Errorf("x: %w", context.DeadlineExceeded) },
			middleware.ReasonToolTimeout, middleware.ReasonOutcomeUnknown, context.DeadlineExceeded},
		{"net timeout", func(func()) (*toolResult, error) {
			return nil, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
		}, middleware.ReasonToolTimeout, middleware.ReasonOutcomeUnknown, os.ErrDeadlineExceeded},
		{"a client's timeout", func(func()) (*toolResult, error) { return nil, timeoutOnly{errSecret} },
			middleware.ReasonToolTimeout, middleware.ReasonOutcomeUnknown, nil},
		{"net, no timeout", func(func()) (*toolResult, error) { return nil, &net.OpError{Op: "dial", Err: errSecret} }, 0, 0, errSecret},
		{"own cancel", func(func()) (*toolResult, error) { return nil, context.Canceled }, 0, middleware.ReasonOutcomeUnknown, context.Canceled},
		{"panic", func(func()) (*toolResult, error) { panic(errSecret) }, middleware.ReasonPanic, middleware.ReasonOutcomeUnknown, errSecret},
		{"error, context done", func(cancel func()) (*toolResult, error) { cancel(); return nil, errSecret },
			middleware.ReasonCanceled, middleware.ReasonOutcomeUnknown, errSecret},
		{"observable, context done", func(cancel func()) (*toolResult, error) { cancel(); return nil, observable{} },
			middleware.ReasonCanceled, middleware.ReasonOutcomeUnknown, nil},
		{"observable", func(func()) (*toolResult, error) { return nil, observable{} }, 0, 0, observable{}},
		{"observable timeout", func(func()) (*toolResult, error) {
			return nil, errors.Join(observable{}, context.DeadlineExceeded)
		}, 0, 0, context.DeadlineExceeded},
		{"denial", func(func()) (*toolResult, error) { return nil, fmt.Errorf("x: %w", denial) },
			middleware.ReasonAdmissionStopped, middleware.ReasonAdmissionStopped, denial},
	} {
		for _, effect := range append(middleware.Effects(), 200) {
			t.Run(tc.name+"/"+effect.String(), func(t *testing.T) {
				t.Parallel()
				if effect == 200 {
					effect = middleware.Effectful // an unknown class cannot be registered
				}
				call := capture(t, middleware.ToolConfig{Effect: effect}, "")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				res, err := middleware.Settle(func(context.Context, *toolCall) (*toolResult, error) { return tc.fn(cancel) })(ctx, call)
				want := tc.repeatable
				if effect == middleware.Effectful {
					want = tc.effectful
				}
				if res != nil || err == nil || middleware.ReasonOf(err) != want {
					t.Errorf("got %v, %v (%v), want %v", res, err, middleware.ReasonOf(err), want)
				}
				if tc.is != nil && !errors.Is(err, tc.is) {
					t.Errorf("%v is not in the chain of %v", tc.is, err)
				}
				if want == middleware.ReasonCanceled && !errors.Is(err, context.Canceled) {
					t.Errorf("not a cancellation: %v", err)
				}
			})
		}
	}
}

func TestSettleUnderADeadContext(t *testing.T) {
	t.Parallel()
	call := capture(t, middleware.ToolConfig{}, "")
	ctx, cancel := context.WithCancelCause(t.Context())
	res, err := middleware.Settle(func(context.Context, *toolCall) (*toolResult, error) {
		cancel(errSecret)

		return &toolResult{Output: "paid"}, nil
	})(ctx, call)
	if err != nil || res.Output != "paid" {
		t.Errorf("an effect that happened was lost: %v, %v", res, err)
	}
	res, err = middleware.Settle(func(context.Context, *toolCall) (*toolResult, error) {
		t.Error("the tool was called")

		return nil, nil
	})(ctx, call)
	wantReason(t, err, middleware.ReasonCanceled)
	if res != nil || !errors.Is(err, errSecret) || errors.Is(err, middleware.ReasonOutcomeUnknown) {
		t.Errorf("got %v, %v", res, err)
	}
}
