package escalation

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// HandoffTTL is how long a handoff is valid.
	HandoffTTL = 30 * time.Minute
	// HandoffSkew is how far ahead of the reader's clock a handoff may be issued.
	HandoffSkew = 5 * time.Minute
)

// Handoff asks a human to decide about a halted run. It holds identifiers,
// codes, digests and times, no content, and it grants nothing: no execution, no
// approval, no retry. It is immutable. Only a [Breaker] makes one, so that
// reason, decision and recovery actions always are those of its class:
//
//	class              reason code     requested decision  recovery actions
//	uncertainty        low_confidence  review_evidence     review_evidence, abort_run
//	permission_denial  human_gate      decide_next_step    recheck_permissions, abort_run
//	tool_failure       safety_review   assess_safety       review_tool_failure, abort_run
//
// The zero value is none; it does not marshal.
type Handoff struct {
	run      ident.RunID
	workflow ident.WorkflowID
	class    Class
	issued   time.Time // UTC, whole seconds, without a monotonic reading
	digests  []ident.Digest
}

// IsZero reports whether h is none.
func (h Handoff) IsZero() bool { return h.run.IsZero() }

// RunID returns the run that was halted.
func (h Handoff) RunID() ident.RunID { return h.run }

// WorkflowID returns the workflow of the run.
func (h Handoff) WorkflowID() ident.WorkflowID { return h.workflow }

// Class returns the class of the failure that tripped.
func (h Handoff) Class() Class { return h.class }

// ReasonCode returns low_confidence, human_gate or safety_review.
func (h Handoff) ReasonCode() middleware.Reason { return h.route().reason }

// RequestedDecision returns what the reviewer is asked for.
func (h Handoff) RequestedDecision() RequestedDecision { return h.route().decision }

// RecoveryActions returns what the reviewer may do, in order.
func (h Handoff) RecoveryActions() []RecoveryAction { return slices.Clone(h.route().actions) }

// StepDigests returns the digests of the counted steps, in order; the last one
// tripped. [StepDigest] says what they are made of.
func (h Handoff) StepDigests() []ident.Digest { return slices.Clone(h.digests) }

// IssuedAt returns when the breaker tripped, in UTC and whole seconds.
func (h Handoff) IssuedAt() time.Time { return h.issued }

// ExpiresAt returns IssuedAt plus 30 minutes: from then on it is expired.
func (h Handoff) ExpiresAt() time.Time {
	if h.IsZero() {
		return time.Time{}
	}

	return h.issued.Add(HandoffTTL)
}

// Format prints the class for every verb and flag: a dump of a structure does
// not become an inventory of identifiers. [Handoff.MarshalJSON] has them all.
func (h Handoff) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "escalation.Handoff("+h.class.String()+")")
}

func (h Handoff) route() route {
	r, _ := routeOf(h.class)

	return r
}

// RequestedDecision is what a reviewer is asked for.
type RequestedDecision uint8

// The decisions. The zero value is invalid.
const (
	_ RequestedDecision = iota
	DecideReviewEvidence
	DecideNextStep
	DecideAssessSafety
)

// String returns the code of the decision.
func (d RequestedDecision) String() string {
	switch d {
	case DecideReviewEvidence:
		return "review_evidence"
	case DecideNextStep:
		return "decide_next_step"
	case DecideAssessSafety:
		return "assess_safety"
	default:
		return "invalid"
	}
}

// RecoveryAction is what a reviewer may do about a halted run. None of them
// lets the run go on.
type RecoveryAction uint8

// The actions. The zero value is invalid.
const (
	_ RecoveryAction = iota
	RecoverReviewEvidence
	RecoverRecheckPermissions
	RecoverReviewToolFailure
	RecoverAbortRun
)

// String returns the code of the action.
func (a RecoveryAction) String() string {
	switch a {
	case RecoverReviewEvidence:
		return "review_evidence"
	case RecoverRecheckPermissions:
		return "recheck_permissions"
	case RecoverReviewToolFailure:
		return "review_tool_failure"
	case RecoverAbortRun:
		return "abort_run"
	default:
		return "invalid"
	}
}

// route is one row of the table.
type route struct {
	reason   middleware.Reason
	decision RequestedDecision
	actions  []RecoveryAction
}

func routeOf(c Class) (route, bool) {
	switch c {
	case middleware.FailureUncertainty:
		return route{
			middleware.ReasonLowConfidence, DecideReviewEvidence, []RecoveryAction{RecoverReviewEvidence, RecoverAbortRun},
		}, true
	case middleware.FailurePermissionDenial:
		return route{
			middleware.ReasonHumanGate, DecideNextStep, []RecoveryAction{RecoverRecheckPermissions, RecoverAbortRun},
		}, true
	case middleware.FailureTool:
		return route{
			middleware.ReasonSafetyReview, DecideAssessSafety, []RecoveryAction{RecoverReviewToolFailure, RecoverAbortRun},
		}, true
	default:
		return route{}, false
	}
}

// The last second whose expiry still has four digits of year, and the first of
// the year 1.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
)

// issueTime returns now as a handoff keeps it, or false if it may not be one.
// The bounds are compared as Unix seconds, which no time.Time overflows.
func issueTime(now time.Time) (time.Time, bool) {
	s := now.Unix()
	if now.IsZero() || now.Location() != time.UTC || now.Nanosecond() != 0 ||
		s < firstSecond || s > lastSecond-int64(HandoffTTL/time.Second) {
		return time.Time{}, false
	}

	return time.Unix(s, 0).UTC(), true
}
