package admission

import (
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const invalid = "invalid"

// State is what a scope is in. The zero value is invalid and admits nothing.
type State uint8

// The states.
const (
	_ State = iota
	// Disabled: nobody has enabled it yet.
	Disabled
	// Enabled: effects are admitted.
	Enabled
	// Stopped: somebody stopped it.
	Stopped
)

var stateNames = [...]string{"", "disabled", "enabled", "stopped"} //nolint:gochecknoglobals // compiled table

// String returns the name as receipts spell it.
func (s State) String() string { return name(stateNames[:], s) }

// reason returns the code that a check or a status gives for s.
func (s State) reason() middleware.Reason {
	switch s {
	case Enabled:
		return middleware.ReasonAdmissionEnabled
	case Disabled:
		return middleware.ReasonAdmissionDisabled
	case Stopped:
		return middleware.ReasonAdmissionStopped
	default:
		return middleware.ReasonUntrustedState
	}
}

// Role is on whose behalf a transition is made, as the caller asserts it: it is
// recorded, not authenticated, and both may do both. The zero value is invalid.
type Role uint8

// The roles.
const (
	_ Role = iota
	Operator
	IncidentCommander
)

var roleNames = [...]string{"", "operator", "incident_commander"} //nolint:gochecknoglobals // compiled table

// String returns the name as receipts spell it.
func (r Role) String() string { return name(roleNames[:], r) }

// ParseRole returns the role with this name, or invalid_control_metadata.
func ParseRole(s string) (Role, error) { return parseName[Role](roleNames[:], s) }

// TransitionReason is why a transition was made. The zero value is invalid.
type TransitionReason uint8

// The reasons.
const (
	_ TransitionReason = iota
	// Initialized is the reason of the first receipt alone.
	Initialized
	// ExplicitEnable is the reason of every enable.
	ExplicitEnable
	// EmergencyStop and Maintenance are the reasons of stops.
	EmergencyStop
	Maintenance
)

//nolint:gochecknoglobals // compiled table
var transitionReasonNames = [...]string{"", "initialized", "explicit_enable", "emergency_stop", "maintenance"}

// String returns the name as receipts spell it.
func (r TransitionReason) String() string { return name(transitionReasonNames[:], r) }

// ParseTransitionReason returns the reason with this name, or
// invalid_control_metadata.
func ParseTransitionReason(s string) (TransitionReason, error) {
	return parseName[TransitionReason](transitionReasonNames[:], s)
}

func name[E ~uint8](names []string, e E) string {
	if e == 0 || int(e) >= len(names) {
		return invalid
	}

	return names[e]
}

func parseName[E ~uint8](names []string, s string) (E, error) {
	for i, n := range names {
		if n == s && i > 0 {
			return E(i), nil
		}
	}

	return 0, fail(middleware.ReasonInvalidControlMetadata, nil)
}

const globalName = "global"

// Scope is what a transition or a status is about: all workflows, or one. Its
// zero value is invalid; it is comparable.
type Scope struct {
	global   bool
	workflow ident.WorkflowID
}

// Global is the scope of all workflows.
func Global() Scope { return Scope{global: true} }

// Workflow is the scope of one workflow; of the zero WorkflowID it is invalid.
func Workflow(id ident.WorkflowID) Scope { return Scope{workflow: id} }

// ParseScope reads "global" or a workflow identifier, else invalid_scope.
func ParseScope(s string) (Scope, error) {
	if s == globalName {
		return Global(), nil
	}
	id, err := ident.ParseWorkflowID(s)
	if err != nil {
		return Scope{}, fail(middleware.ReasonInvalidScope, err)
	}

	return Workflow(id), nil
}

// IsZero reports whether s is invalid.
func (s Scope) IsZero() bool { return s == Scope{} }

// IsGlobal reports whether s is the scope of all workflows.
func (s Scope) IsGlobal() bool { return s.global }

// WorkflowID returns the workflow of s, zero for the global scope.
func (s Scope) WorkflowID() ident.WorkflowID { return s.workflow }

// String returns the form that [ParseScope] reads, "invalid" for the zero value.
func (s Scope) String() string {
	switch {
	case s.global:
		return globalName
	case s.workflow.IsZero():
		return invalid
	default:
		return s.workflow.String()
	}
}
