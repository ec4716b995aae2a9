package middleware

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/interlock-go/interlock/ident"
)

// Settle is the innermost layer around a tool: it runs on the goroutine that
// runs the tool, turns a panic into an error, and decides what an error means
// for the world. It refuses to call a tool under a context that is done.
//
//   - An error beside a done context is canceled; of a tool that is not
//     repeatable it is outcome_unknown.
//   - A panic, an error that says that time ran out or something was canceled
//     inside the tool, or neither error nor result, of a tool that is not
//     repeatable is outcome_unknown: nobody can say whether the payment was
//     made. An [Observable] error is taken at its word.
//   - A result without error stands, also beside a done context: the effect
//     happened.
func Settle(next ToolHandler) ToolHandler {
	if next == nil {
		return refuseAll[*ToolCall, *ToolResult]
	}

	return func(ctx context.Context, call *ToolCall) (res *ToolResult, err error) {
		if ctx.Err() != nil {
			return nil, NewCanceled(ctx, ComponentTool, call.Label(), nil)
		}
		defer func() {
			if v := recover(); v != nil {
				res, err = nil, settlePanic(call, NewPanicError(v, debug.Stack()))
			}
		}()
		res, err = next(ctx, call)
		if err != nil {
			return nil, settleError(ctx, call, err)
		}
		if res == nil {
			return nil, noResult(call)
		}

		return res, nil
	}
}

// noResult is for a call that came back without error and without result: the
// effect may have happened.
func noResult(call *ToolCall) error {
	if call.Effect().Repeatable() {
		return NewFailure(ComponentTool, ReasonToolFailed, call.Label())
	}

	return UnknownOutcome(call, nil)
}

func settlePanic(call *ToolCall, p *PanicError) error {
	if call.Effect().Repeatable() {
		return p
	}

	return UnknownOutcome(call, p)
}

func settleError(ctx context.Context, call *ToolCall, err error) error {
	if _, ok := errors.AsType[*Denial](err); ok {
		return err // a nested run, or a gate that the tool asked itself
	}
	if ctx.Err() != nil {
		canceled := NewCanceled(ctx, ComponentTool, call.Label(), err)
		if call.Effect().Repeatable() {
			return canceled
		}

		return UnknownOutcome(call, canceled)
	}
	if _, ok := errors.AsType[Observable](err); ok {
		return err
	}
	late := timedOut(err)
	if !call.Effect().Repeatable() && (late || errors.Is(err, context.Canceled)) {
		return UnknownOutcome(call, err)
	}
	if late {
		return NewFailure(ComponentTool, ReasonToolTimeout, call.Label(), err)
	}

	return err
}

// timeouter is what network errors have in common.
type timeouter interface {
	error
	Timeout() bool
}

// timedOut looks at the tool's own clock: the call's context is alive.
func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[timeouter](err)

	return ok && t.Timeout()
}

// UnknownOutcome returns the failure of a call of an effectful tool of which
// nobody can say whether the effect happened.
func UnknownOutcome(call *ToolCall, cause error) *Failure {
	return NewFailure(ComponentTool, ReasonOutcomeUnknown, call.Label(), cause)
}

// TraceTool opens the span of a tool that really runs: it stands inside of
// every layer that can refuse. A nil tracer costs nothing.
func TraceTool(t Tracer) ToolMiddleware {
	if t == nil {
		return func(next ToolHandler) ToolHandler {
			if next == nil {
				return refuseAll[*ToolCall, *ToolResult]
			}

			return next
		}
	}

	return At(StageSpan, func(next ToolHandler) ToolHandler {
		return func(ctx context.Context, call *ToolCall) (res *ToolResult, err error) {
			ctx, end := StartOp(ctx, t, OpTool, call.Label(), call.Attempt())
			returned := false
			defer func() {
				reason := ReasonPanic // also Goexit: the tool did not return
				if returned {
					reason = FailureReason(err, ReasonToolFailed)
				}
				end(Outcome{Decision: Decision{
					Component: ComponentTool, Label: call.Label(), Attempt: call.Attempt(), Reason: reason,
				}})
			}()
			res, err = next(ctx, call)
			returned = true

			return res, err
		}
	})
}

// FailureReason returns ReasonOK for a nil error, the reason that err carries,
// or other for an error that is not of the library.
func FailureReason(err error, other Reason) Reason {
	if err == nil {
		return ReasonOK
	}
	if r := ReasonOf(err); r != 0 {
		return r
	}

	return other
}

// ToolError wraps an error of a tool so that its text does not travel with it;
// an error of the library is returned as it is.
func ToolError(label ident.Label, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(Reasoned); ok { //nolint:errorlint // only the outermost error's text is printed
		return err
	}

	return NewFailure(ComponentTool, ReasonToolFailed, label, err)
}
