package escalation

import (
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// ReviewDecision is what a reviewer decided about a handoff. None of them lets
// a run go on. The zero value is invalid.
type ReviewDecision uint8

// The decisions: one of the handoff's recovery actions, or that there is nothing
// to do.
const (
	_ ReviewDecision = iota
	ReviewEvidence
	ReviewPermissions
	ReviewToolFailure
	ReviewAbortRun
	ReviewDismissed
)

// String returns the code of the decision.
func (d ReviewDecision) String() string {
	if d == ReviewDismissed {
		return "dismissed"
	}

	return d.action().String()
}

// action returns the recovery action of the same name, 0 if there is none.
func (d ReviewDecision) action() RecoveryAction {
	switch d {
	case ReviewEvidence:
		return RecoverReviewEvidence
	case ReviewPermissions:
		return RecoverRecheckPermissions
	case ReviewToolFailure:
		return RecoverReviewToolFailure
	case ReviewAbortRun:
		return RecoverAbortRun
	default:
		return 0
	}
}

// Fits reports whether a handoff of class c offers the decision: its recovery
// actions and dismissed.
func (d ReviewDecision) Fits(c Class) bool {
	r, ok := routeOf(c)
	if !ok || d == ReviewDismissed {
		return ok
	}
	for _, a := range r.actions {
		if a == d.action() {
			return true
		}
	}

	return false
}

func (d ReviewDecision) valid() bool { return d >= ReviewEvidence && d <= ReviewDismissed }

// ReviewDecisions returns the closed set, for tables and tests.
func ReviewDecisions() []ReviewDecision {
	return []ReviewDecision{ReviewEvidence, ReviewPermissions, ReviewToolFailure, ReviewAbortRun, ReviewDismissed}
}

// ParseReviewDecision returns the decision with this code, else
// invalid_decision.
func ParseReviewDecision(code string) (ReviewDecision, error) {
	for _, d := range ReviewDecisions() {
		if d.String() == code {
			return d, nil
		}
	}

	return 0, failure(middleware.ReasonInvalidDecision)
}

// Review is the record that a handoff was decided: which, how, when and by whom.
// It permits nothing, and nothing reads it to permit anything. It is immutable;
// only [Queue.Decide] makes one. The zero value is none; it does not marshal.
type Review struct {
	handoff  ident.Digest
	decision ReviewDecision
	decided  time.Time // UTC, whole seconds, without a monotonic reading
	reviewer ident.Label
}

// IsZero reports whether r is none.
func (r Review) IsZero() bool { return r.decision == 0 }

// Handoff returns the digest of the handoff.
func (r Review) Handoff() ident.Digest { return r.handoff }

// Decision returns what was decided.
func (r Review) Decision() ReviewDecision { return r.decision }

// DecidedAt returns when, in UTC and whole seconds.
func (r Review) DecidedAt() time.Time { return r.decided }

// Reviewer returns who is on record. It was asserted, not verified.
func (r Review) Reviewer() ident.Label { return r.reviewer }

// Format prints the decision for every verb and flag. [Review.MarshalJSON] has
// it all.
func (r Review) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "escalation.Review("+r.decision.String()+")")
}

// against says why r does not count for a handoff, or 0.
func (r Review) against(c Class, issued time.Time, decided bool) Defect {
	switch {
	case decided:
		return DefectDecided
	case !r.decided.Before(issued.Add(HandoffTTL)):
		return DefectExpired
	case issued.Sub(r.decided) > HandoffSkew:
		return DefectFuture
	case !r.decision.Fits(c):
		return DefectWrongCombination
	default:
		return 0
	}
}

// validReviewer: a label of the narrow grammar, so that the record parses.
func validReviewer(l ident.Label) bool {
	_, err := ident.NewLabel(l.String())

	return err == nil
}
