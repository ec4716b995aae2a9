package middleware

import (
	"fmt"

	"github.com/interlock-go/interlock/ident"
)

// Refusal is what a [Denial] is made of.
type Refusal struct {
	Run       ident.RunID
	Component Component
	Reason    Reason
	// Verdict is VerdictDeny (the zero value means it), VerdictModify for a soft
	// denial that the model is told of, or VerdictEscalate for a hard one that
	// asks the escalation layer outside for a handoff at once.
	Verdict Verdict
	// Action is what was done; the zero value means ActionBlock.
	Action Action
	// Cause is kept for Unwrap only; its text is never rendered.
	Cause error
}

// Denial is the only refusal of the library: a component decided that a call is
// not made. It is immutable. errors.Is finds its [Reason], through every layer
// and through langchaingo's executor and chains.
type Denial struct {
	r     Refusal // without its cause
	cause *error  // behind a pointer: a dump of the structure does not show it
}

var _ error = (*Denial)(nil)

// NewDenial returns a denial. Anything that is unknown about it makes it a hard
// one: only VerdictModify is soft.
func NewDenial(r Refusal) *Denial {
	switch r.Verdict {
	case VerdictModify, VerdictEscalate, VerdictDeny:
	default:
		r.Verdict = VerdictDeny
	}
	if r.Reason == 0 || r.Reason >= reasonEnd {
		r.Verdict = VerdictDeny
	}
	if r.Action == 0 {
		r.Action = ActionBlock
	}

	d := &Denial{r: r}
	if d.r.Cause = nil; r.Cause != nil {
		d.cause = &r.Cause
	}

	return d
}

// Component returns the component that refused.
func (d *Denial) Component() Component { return d.r.Component }

// Reason returns why.
func (d *Denial) Reason() Reason { return d.r.Reason }

// Action returns what was done with the call.
func (d *Denial) Action() Action { return d.r.Action }

// Verdict returns the verdict behind the refusal.
func (d *Denial) Verdict() Verdict { return d.r.Verdict }

// Run returns the run whose call was refused; zero where there was none.
func (d *Denial) Run() ident.RunID { return d.r.Run }

// Soft reports whether the run goes on and the model is told, by
// [Denial.Observation], that its call was not made.
func (d *Denial) Soft() bool { return d.r.Verdict == VerdictModify }

// Observation returns the fixed sentence that the model gets for this reason.
func (d *Denial) Observation() string { return observationFor(d.r.Reason) }

// Error returns component and reason, nothing else.
func (d *Denial) Error() string {
	return "interlock: " + d.r.Component.String() + ": " + d.r.Reason.String()
}

// Format prints Error for every verb and flag, so that none shows the cause.
func (d *Denial) Format(s fmt.State, _ rune) { printError(s, d) }

// Unwrap returns the cause, or nil.
func (d *Denial) Unwrap() error {
	if d.cause == nil {
		return nil
	}

	return *d.cause
}

// Is reports whether target is the reason of d.
func (d *Denial) Is(target error) bool { return isReason(target, d.r.Reason) }

func isReason(target error, r Reason) bool {
	t, ok := target.(Reason) //nolint:errorlint // Is is asked per link of the chain

	return ok && t == r && r != 0
}

// observationFor gives the sentences that may reach a model: fixed text of this
// source, so that a refusal never carries content to a provider.
func observationFor(r Reason) string {
	switch r {
	case ReasonLoop, ReasonCycle, ReasonDrift, ReasonStagnation, ReasonFuse, ReasonWaiting, ReasonAnswerLoop:
		return "This call was not made: it repeats earlier calls without anything new. " +
			"Use what you already know, try something different, or give your final answer."
	case ReasonBudgetExceeded:
		return "This call was not made: the limit for this run is reached. Give your final answer now with what you know."
	case ReasonToolLimit:
		return "This call was not made: the limit for this tool is reached. Go on without it."
	case ReasonStalled:
		return "This call took too long and was cancelled; there is no result. Do not repeat it unchanged."
	case ReasonUnknownTool:
		return "This call was not made: there is no such tool. Use one of the tools that were offered."
	default:
		return "This call was not made: it was refused (" + r.String() + "). Do not repeat it."
	}
}
