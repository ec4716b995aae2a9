package escalation

import "github.com/interlock-go/interlock/middleware"

// Defect says what is wrong with the bytes given to [ParseHandoff] or
// [ParseReview], or with a line of a [Queue]. The zero value is none.
type Defect uint8

// The defects, in the order in which the parser looks for them; the last three
// are those of a line among others.
const (
	_ Defect = iota
	// DefectOversize: longer than [MaxHandoffBytes].
	DefectOversize
	// DefectMalformed: not one JSON object, or cut.
	DefectMalformed
	// DefectUnknownField: a field that is none of the form's, in this spelling.
	DefectUnknownField
	// DefectDuplicateField: the same field twice.
	DefectDuplicateField
	// DefectTrailingData: bytes after the object, a newline too.
	DefectTrailingData
	// DefectMissingField: fewer than the form's fields.
	DefectMissingField
	// DefectInvalidValue: a value of the wrong type, grammar or range.
	DefectInvalidValue
	// DefectWrongCombination: reason, decision or actions of another class;
	// of a review, a decision that its handoff does not offer.
	DefectWrongCombination
	// DefectNotCanonical: another order, spaces, escapes or spelling.
	DefectNotCanonical
	// DefectExpired: at or after its expiry; of a review, decided then.
	DefectExpired
	// DefectFuture: issued more than 5 minutes ahead; of a review, decided more
	// than 5 minutes before its handoff was issued.
	DefectFuture
	// DefectCut: the end of the file, without a newline, and no whole record.
	DefectCut
	// DefectUnknownHandoff: a review of a handoff that does not stand before it.
	DefectUnknownHandoff
	// DefectDecided: a review of a handoff that one before it decided.
	DefectDecided
)

// String returns the code of the defect.
func (d Defect) String() string {
	names := [...]string{
		DefectOversize: "oversize", DefectMalformed: "malformed", DefectUnknownField: "unknown_field",
		DefectDuplicateField: "duplicate_field", DefectTrailingData: "trailing_data",
		DefectMissingField: "missing_field", DefectInvalidValue: "invalid_value",
		DefectWrongCombination: "wrong_combination", DefectNotCanonical: "not_canonical",
		DefectExpired: "expired", DefectFuture: "not_yet_valid",
		DefectCut: "cut", DefectUnknownHandoff: "unknown_handoff", DefectDecided: "already_decided",
	}
	if d == 0 || int(d) >= len(names) {
		return "invalid"
	}

	return names[d]
}

// HandoffError says why bytes are not a handoff that may be used now, or not a
// review, or why a Handoff or a Review has no bytes. It holds no part of them.
type HandoffError struct{ defect Defect }

var _ middleware.Reasoned = (*HandoffError)(nil)

// Defect returns what is wrong.
func (e *HandoffError) Defect() Defect { return e.defect }

// Reason returns handoff_expired, handoff_not_yet_valid or invalid_handoff.
func (e *HandoffError) Reason() middleware.Reason {
	switch e.defect {
	case DefectExpired:
		return middleware.ReasonHandoffExpired
	case DefectFuture:
		return middleware.ReasonHandoffFuture
	default:
		return middleware.ReasonInvalidHandoff
	}
}

// Error returns reason and defect.
func (e *HandoffError) Error() string {
	return "interlock: escalation: " + e.Reason().String() + ": " + e.defect.String()
}

// Is reports whether target is the reason of e.
func (e *HandoffError) Is(target error) bool { return isReason(target, e.Reason()) }
