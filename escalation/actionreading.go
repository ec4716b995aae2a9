package escalation

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/middleware"
)

// actionReading is what an action, or a signal of it, counts as. Of several the
// smallest is the outcome, except for readNothing, which is a success.
type actionReading uint8

const (
	readNothing actionReading = iota
	readGuardrail
	readPanic
	readUnknown
	readLost
	readBudget
	readDuplicate
	readFailed
	readConfidence
	readDrift
	readFull
	readExcluded
)

func (r actionReading) row() (hard bool, reason middleware.Reason, class Class) {
	switch r {
	case readGuardrail:
		return true, middleware.ReasonGuardrail, middleware.FailurePermissionDenial
	case readPanic:
		return true, middleware.ReasonPanic, middleware.FailureTool
	case readUnknown:
		return true, middleware.ReasonOutcomeUnknown, middleware.FailureTool
	case readLost:
		return true, middleware.ReasonAbandoned, middleware.FailureTool
	case readBudget:
		return false, middleware.ReasonBudgetExceeded, middleware.FailureTool
	case readDuplicate:
		return false, middleware.ReasonDuplicateAction, middleware.FailureTool
	case readFailed:
		return false, middleware.ReasonActionFailed, middleware.FailureTool
	case readConfidence:
		return false, middleware.ReasonLowConfidence, middleware.FailureUncertainty
	case readDrift:
		return false, middleware.ReasonContextDrift, middleware.FailureUncertainty
	case readFull:
		return false, middleware.ReasonContextFull, middleware.FailureTool
	default: // no failure
		return false, 0, 0
	}
}

func (r actionReading) hard() bool {
	hard, _, _ := r.row()

	return hard
}

func (r actionReading) reason() middleware.Reason {
	_, reason, _ := r.row()

	return reason
}

// class is what the handoff of a trip by r is of.
func (r actionReading) class() Class {
	_, _, class := r.row()

	return class
}

// readingOf returns what note is told of.
func readingOf(reason middleware.Reason) actionReading {
	switch reason {
	case middleware.ReasonBudgetExceeded:
		return readBudget
	case middleware.ReasonContextFull:
		return readFull
	case middleware.ReasonContextDrift:
		return readDrift
	default:
		return readNothing
	}
}

func worse(a, b actionReading) actionReading {
	if a == readNothing || (b != readNothing && b < a) {
		return b
	}

	return a
}

// judgeAction reads how an action ended. Errors may be a user's own types: one
// whose methods panic is the panic it is.
func judgeAction(
	ctx context.Context, run *middleware.Run, call *middleware.ToolCall, res *middleware.ToolResult, err error,
) (r actionReading) {
	defer func() {
		if recover() != nil {
			r = readPanic
		}
	}()
	switch {
	case err == nil && res != nil:
		return readNothing
	case err == nil && call.Effect().Repeatable():
		return readFailed
	case err == nil:
		return readUnknown
	}
	// The outermost error of the library decides, as for the escalation breaker.
	outer, _ := errors.AsType[middleware.Reasoned](err)
	if d, ok := outer.(*middleware.Denial); ok {
		return judgeRefusal(d, run)
	}
	left := ctx.Err() != nil && !errors.Is(context.Cause(ctx), middleware.ReasonStalled)
	switch {
	case outer != nil && outer.Reason() == middleware.ReasonPanic:
		return readPanic
	case errors.Is(err, middleware.ReasonOutcomeUnknown):
		return judgeUnknown(ctx, err, left)
	case left:
		return readExcluded
	}
	if f, ok := outer.(*middleware.Failure); ok && neutral(f.Component()) {
		return readExcluded
	}

	return readFailed
}

// judgeRefusal excludes what a layer inside refused, and what admission and
// approval refused anywhere. Any other refusal of a nested agent is a failure of
// the tool that it is, unless it comes of the end of the run around it.
func judgeRefusal(d *middleware.Denial, run *middleware.Run) actionReading {
	switch {
	case !foreign(d, run.ID()), d.Component() == middleware.ComponentAdmission, d.Component() == middleware.ComponentApproval:
		return readExcluded
	case run.Check() != nil:
		return readExcluded
	default:
		return readFailed
	}
}

func judgeUnknown(ctx context.Context, err error, left bool) actionReading {
	switch {
	case errors.Is(err, middleware.ReasonPanic):
		return readPanic
	case errors.Is(err, middleware.ReasonAdmissionStopped): // a stop that came in the middle
		return readExcluded
	case left && errors.Is(ctx.Err(), context.Canceled):
		return readExcluded
	default:
		return readUnknown
	}
}
