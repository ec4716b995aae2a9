package admission

import (
	"maps"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// view is what a chain of receipts amounts to: the state of each scope. It is
// changed by permit and apply alone, which go by this table. A state is written
// as that of all, and what is recorded for a workflow itself: "-" is nothing,
// "*" is anything, "=" is unchanged.
//
//	act     scope     before       after
//	------  --------  -----------  ---------------
//	stop    global    *,-          stopped,-
//	stop    global    *,enabled    stopped,-
//	stop    global    *,stopped    stopped,stopped
//	stop    workflow  *,*          =,stopped
//	enable  global    *,-          enabled,-
//	enable  global    *,enabled    enabled,enabled
//	enable  global    *,stopped    enabled,stopped
//	enable  workflow  disabled,*   =,enabled
//	enable  workflow  enabled,*    =,enabled
//	enable  workflow  stopped,*    admission_stopped
//
// The first receipt is (global, disabled, initialized), and none but the first
// is disabled or initialized.
type view struct {
	head      Head
	first     ident.Digest // of receipt 1
	global    State
	workflows map[ident.WorkflowID]State // own states: Enabled or Stopped
}

// state returns what checks of s go by: a global stop overrides everything;
// else a workflow's own state if it has one, else the global one.
func (v *view) state(s Scope) State {
	if s.IsGlobal() || v.global == Stopped {
		return v.global
	}
	if own, ok := v.workflows[s.workflow]; ok {
		return own
	}

	return v.global
}

// permit returns why a transition may not follow v, or 0.
func (v *view) permit(scope Scope, to State, why TransitionReason) middleware.Reason {
	switch {
	case scope.IsZero():
		return middleware.ReasonInvalidScope
	case v.head.Generation == 0:
		if scope.IsGlobal() && to == Disabled && why == Initialized {
			return 0
		}
	case v.head.Generation >= maxGeneration:
	case to == Stopped && (why == EmergencyStop || why == Maintenance):
		return 0
	case to == Enabled && why == ExplicitEnable:
		if !scope.IsGlobal() && v.global == Stopped {
			return middleware.ReasonAdmissionStopped
		}

		return 0
	}

	return middleware.ReasonInvalidTransition
}

// apply folds r into v and reports whether r is the receipt that may follow:
// the next generation, linked to the head, a transition that is allowed here.
// The signature is the caller's business. On false v is unchanged.
func (v *view) apply(r Receipt) bool { return v.fold(r, r.Digest()) }

// fold is apply for a caller that has the digest of r already.
func (v *view) fold(r Receipt, digest ident.Digest) bool {
	if r.Generation != v.head.Generation+1 || r.Previous != v.head.Digest || v.permit(r.Scope, r.State, r.Reason) != 0 {
		return false
	}
	v.head = Head{Generation: r.Generation, Digest: digest}
	if r.Generation == 1 {
		v.first = v.head.Digest
	}
	if !r.Scope.IsGlobal() {
		if v.workflows == nil {
			v.workflows = make(map[ident.WorkflowID]State)
		}
		v.workflows[r.Scope.workflow] = r.State

		return true
	}
	v.global = r.State
	if r.State == Stopped {
		maps.DeleteFunc(v.workflows, func(_ ident.WorkflowID, own State) bool { return own == Enabled })
	}

	return true
}

func (v *view) clone() *view {
	return &view{head: v.head, first: v.first, global: v.global, workflows: maps.Clone(v.workflows)}
}
