package escalation

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// finding is what a failure counts as. The zero class counts nothing.
type finding struct {
	class     Class
	component middleware.Component // whose failure it was
	trip      bool                 // halt at once
	signal    bool                 // reported, not returned
}

// classify judges an error that came from the layers inside. The errors may be
// a user's own types: one whose methods panic counts as the panic it is.
func classify(ctx context.Context, run ident.RunID, seam middleware.Component, err error) (f finding) {
	failed := finding{class: middleware.FailureTool, component: seam}
	defer func() {
		if recover() != nil {
			f = failed
		}
	}()
	if d := escalating(err, run); d != nil {
		return finding{class: middleware.FailureUncertainty, component: d.Component(), trip: true}
	}
	// The outermost error of the library decides: a refusal further down may be
	// the cause of an unknown outcome (a stalled payment, say).
	outer, _ := errors.AsType[middleware.Reasoned](err)
	denial, denied := outer.(*middleware.Denial)
	if errors.Is(err, middleware.ReasonOutcomeUnknown) || outer != nil && outer.Reason() == middleware.ReasonPanic {
		return failed
	}
	if ctx.Err() != nil {
		return finding{}
	}
	if denied {
		return classifyDenial(denial, run)
	}
	if seam == middleware.ComponentModel {
		if errors.Is(err, middleware.ReasonExhausted) {
			failed.component = middleware.ComponentFallback

			return failed
		}

		return finding{}
	}
	if f, ok := outer.(*middleware.Failure); ok && neutral(f.Component()) {
		return finding{}
	}

	return failed
}

func classifyDenial(d *middleware.Denial, run ident.RunID) finding {
	f := finding{component: d.Component()}
	switch {
	case d.Component() == middleware.ComponentAdmission: // of any run: a stop is a stop
		f.class = middleware.FailurePermissionDenial
	case foreign(d, run): // what a nested agent was refused is a failure of the tool that it is
		f.class, f.component = middleware.FailureTool, middleware.ComponentTool
	case d.Component() == middleware.ComponentApproval:
		f.class = middleware.FailurePermissionDenial
	case d.Component() == middleware.ComponentWatchdog && d.Soft():
		f.class = middleware.FailureUncertainty
	}

	return f
}

func foreign(d *middleware.Denial, run ident.RunID) bool { return !d.Run().IsZero() && d.Run() != run }

// neutral reports whether failures of c say nothing about the agent.
func neutral(c middleware.Component) bool {
	switch c {
	case middleware.ComponentChain, middleware.ComponentRun, middleware.ComponentBudget, middleware.ComponentBreaker:
		return true
	default:
		return false
	}
}

// escalating returns the denial of this run in the tree of err that asks for a
// handoff at once, or nil.
func escalating(err error, run ident.RunID) *middleware.Denial {
	d, ok := err.(*middleware.Denial) //nolint:errorlint // the walk itself
	if ok && d.Verdict() == middleware.VerdictEscalate && !foreign(d, run) {
		return d
	}
	switch u := err.(type) { //nolint:errorlint // the walk itself
	case interface{ Unwrap() error }:
		return escalating(u.Unwrap(), run)
	case interface{ Unwrap() []error }:
		for _, cause := range u.Unwrap() {
			if d := escalating(cause, run); d != nil {
				return d
			}
		}
	}

	return nil
}
