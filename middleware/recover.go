package middleware

import (
	"context"
	"runtime/debug"
)

// Recover turns a panic of what it wraps into a [PanicError]. It is a generic
// function, not a constructor, so that it stands in a chain as it is:
//
//	Chain(middleware.Recover, gate)
//
// runtime.Goexit cannot be stopped and is not a panic; deferred functions run.
func Recover[In, Out any](next Handler[In, Out]) Handler[In, Out] {
	if next == nil {
		return refuseAll[In, Out]
	}

	return func(ctx context.Context, in In) (out Out, err error) {
		defer func() {
			if v := recover(); v != nil {
				var none Out
				out, err = none, NewPanicError(v, debug.Stack())
			}
		}()

		return next(ctx, in)
	}
}

// RequireRun refuses calls outside of a run, after its end, in a halted run or
// under a context that is done. It belongs right inside of the outer [Recover].
func RequireRun[In Staged, Out any](next Handler[In, Out]) Handler[In, Out] {
	return At(StageRun, requireRun[In, Out])(next)
}

func requireRun[In Staged, Out any](next Handler[In, Out]) Handler[In, Out] {
	return func(ctx context.Context, in In) (Out, error) {
		if err := CheckRun(ctx); err != nil {
			var none Out

			return none, err
		}

		return next(ctx, in)
	}
}

// CheckRun returns the reason why nothing may happen under ctx: a [Denial]
// (no_run, run_ended, or the reason the run was halted for), a [Failure] of
// ReasonCanceled if ctx is done, or nil.
func CheckRun(ctx context.Context) error {
	r := RunFrom(ctx)
	if err := r.Check(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return NewCanceled(ctx, ComponentRun, r.Label(), nil)
	}

	return nil
}
