package escalation

import (
	"time"

	"github.com/interlock-go/interlock/ident"
)

// maxQueueDamage bounds how many damaged lines a report tells apart.
const maxQueueDamage = 100

// Digest returns the SHA-256 of the canonical form, which names the handoff in a
// [Queue]. It tells nothing: a run identifier of 128 random bits goes in. The
// zero handoff has the zero digest.
func (h Handoff) Digest() ident.Digest {
	data, err := h.MarshalJSON()
	if err != nil {
		return ident.Digest{}
	}

	return ident.DigestOf(data)
}

// QueueState is what became of a handoff. The zero value is invalid.
type QueueState uint8

// The states.
const (
	_ QueueState = iota
	// QueueWaiting: nobody has decided, and there is still time. A handoff that
	// was issued more than 5 minutes ahead waits too, but cannot be decided yet.
	QueueWaiting
	// QueueDecided: a reviewer has decided in time.
	QueueDecided
	// QueueExpired: nobody has decided in time.
	QueueExpired
)

// String returns the code of the state.
func (s QueueState) String() string {
	switch s {
	case QueueWaiting:
		return "waiting"
	case QueueDecided:
		return "decided"
	case QueueExpired:
		return "expired"
	default:
		return "invalid"
	}
}

// MarshalText gives the code; a value outside of the set is invalid_handoff.
func (s QueueState) MarshalText() ([]byte, error) {
	if s < QueueWaiting || s > QueueExpired {
		return nil, &HandoffError{defect: DefectInvalidValue}
	}

	return []byte(s.String()), nil
}

// QueueStates returns the closed set, for tables and tests.
func QueueStates() []QueueState { return []QueueState{QueueWaiting, QueueDecided, QueueExpired} }

func queueStateOf(decided bool, expires int64, now time.Time) QueueState {
	switch {
	case decided:
		return QueueDecided
	case now.Unix() >= expires:
		return QueueExpired
	default:
		return QueueWaiting
	}
}

// QueueEntry is one handoff of a [Queue]. Its JSON form holds the canonical forms
// of handoff and review.
type QueueEntry struct {
	Digest  ident.Digest `json:"handoff_digest"`
	State   QueueState   `json:"state"`
	Handoff Handoff      `json:"handoff"`
	Review  Review       `json:"review,omitzero"` // zero unless decided
}

func newQueueEntry(id ident.Digest, h Handoff, r Review, now time.Time) QueueEntry {
	return QueueEntry{Digest: id, Handoff: h, Review: r, State: queueStateOf(!r.IsZero(), h.ExpiresAt().Unix(), now)}
}

// QueueReport is what a file holds.
type QueueReport struct {
	// Handoffs by state.
	Waiting, Decided, Expired int
	// Repeated counts handoffs that were delivered again.
	Repeated int
	// Lines counts all lines, the damaged ones too.
	Lines int
	// Damaged counts the lines that are no record, and reviews that do not count.
	Damaged int
	// Damage names them, the first 100.
	Damage []LineDamage
	// Cut reports that the file does not end in a newline. If the line is whole
	// all the same, it counts: the next append ends it.
	Cut bool
}

// LineDamage says what is wrong with a line. It holds no part of it.
type LineDamage struct {
	Line   int // from 1
	Defect Defect
}

func (r *QueueReport) damage(line int, d Defect) {
	r.Damaged++
	if len(r.Damage) < maxQueueDamage {
		r.Damage = append(r.Damage, LineDamage{Line: line, Defect: d})
	}
}
