package admission

import (
	"context"
	"runtime/debug"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Checker answers whether an effect may happen under a preview: nil, or why
// not. [Controller] implements it.
type Checker interface {
	Check(ctx context.Context, p middleware.Preview) error
}

// CheckFunc makes a [Checker] of a function.
type CheckFunc func(ctx context.Context, p middleware.Preview) error

var _ Checker = CheckFunc(nil)

// Check calls f; a nil f is admission_disabled.
func (f CheckFunc) Check(ctx context.Context, p middleware.Preview) error {
	if f == nil {
		return deny(ctx, middleware.ReasonAdmissionDisabled, nil)
	}

	return f(ctx, p)
}

// Dispatch calls effect once, if check admits it immediately before, and
// returns what it returns. It is for effects that are not tool calls: one
// Dispatch per attempt. Its refusals are those of check; a nil check is
// admission_disabled, a nil effect nil_handler, a context that is done canceled.
//
// With a [Controller] the intent is in flight from before the check until it
// returns, panics or exits its goroutine, and the observer hears of it.
//
// A panic of check is a refusal ([middleware.PanicError]). A panic of effect is
// outcome_unknown: nobody can say whether the intent happened. An error of
// effect is returned as it is; its text is the caller's.
func Dispatch[T any](
	ctx context.Context, check Checker, p middleware.Preview, effect func(ctx context.Context) (T, error),
) (result T, err error) {
	if c, ok := check.(*Controller); ok && c != nil {
		epoch := c.flying.enter()
		defer c.flying.leave(epoch)
	}
	if err := dispatchCheck(ctx, check, p, effect == nil); err != nil {
		return result, err
	}
	defer func() {
		if v := recover(); v != nil {
			var none T
			result = none
			err = middleware.NewFailure(middleware.ComponentTool, middleware.ReasonOutcomeUnknown, ident.Label{},
				middleware.NewPanicError(v, debug.Stack()))
		}
	}()

	return effect(ctx)
}

func dispatchCheck(ctx context.Context, check Checker, p middleware.Preview, nilEffect bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, debug.Stack())
		}
	}()
	switch c, ok := check.(*Controller); {
	case nilEffect:
		return deny(ctx, middleware.ReasonNilHandler, nil)
	case check == nil, ok && c == nil:
		return deny(ctx, middleware.ReasonAdmissionDisabled, nil)
	case ok:
		return c.admit(ctx, intent{run: middleware.RunFrom(ctx), workflow: p.Workflow(), preview: p, attempt: 1})
	}
	if err := check.Check(ctx, p); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}

	return nil
}
