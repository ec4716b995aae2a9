package escalation

import (
	"bytes"
	"encoding/json"

	"github.com/interlock-go/interlock/ident"
)

// ReviewSchema is the schema version of the JSON form of a [Review].
const ReviewSchema = "interlock.handoff_review.v1"

// reviewJSON is the wire form. Its fields stand in the order of their keys, so
// that encoding/json writes the canonical form.
type reviewJSON struct {
	DecidedAt     string `json:"decided_at"`
	Decision      string `json:"decision"`
	HandoffDigest string `json:"handoff_digest"`
	Reviewer      string `json:"reviewer"`
	SchemaVersion string `json:"schema_version"`
}

// MarshalJSON renders the canonical form: one object with the five fields
//
//	decided_at, decision, handoff_digest, reviewer, schema_version
//
// in this order, without spaces. The time is RFC 3339 in UTC with whole seconds
// and a Z; the digest is "sha256:" and 64 hex digits. The zero Review is
// invalid_handoff.
func (r Review) MarshalJSON() ([]byte, error) {
	if r.IsZero() {
		return nil, &HandoffError{defect: DefectInvalidValue}
	}

	return json.Marshal(reviewJSON{
		DecidedAt: r.decided.Format(timeLayout), Decision: r.decision.String(), HandoffDigest: r.handoff.String(),
		Reviewer: r.reviewer.String(), SchemaVersion: ReviewSchema,
	})
}

// UnmarshalJSON always fails: a review is read by [ParseReview], whose errors
// are codes.
func (r *Review) UnmarshalJSON([]byte) error {
	return &HandoffError{defect: DefectInvalidValue}
}

// ParseReview reads what [Review.MarshalJSON] wrote, and nothing else: the bytes
// have to be the canonical form of what they say. It fails with a [HandoffError]
// whose Defect says why. Whether the review counts depends on its handoff; a
// [Queue] knows.
func ParseReview(data []byte) (Review, error) {
	r, defect := decodeReview(data)
	if defect != 0 {
		return Review{}, &HandoffError{defect: defect}
	}

	return r, nil
}

func decodeReview(data []byte) (Review, Defect) {
	if len(data) > MaxHandoffBytes {
		return Review{}, DefectOversize
	}
	var w reviewJSON
	texts := map[string]*string{
		"decided_at": &w.DecidedAt, "decision": &w.Decision, "handoff_digest": &w.HandoffDigest,
		"reviewer": &w.Reviewer, "schema_version": &w.SchemaVersion,
	}
	fields, defect := readObject(data, func(name string) bool { return texts[name] != nil })
	if defect != 0 {
		return Review{}, defect
	}
	if len(fields) != len(texts) {
		return Review{}, DefectMissingField
	}
	for name, raw := range fields {
		if !readText(raw, texts[name]) {
			return Review{}, DefectInvalidValue
		}
	}
	r, ok := w.review()
	if !ok {
		return Review{}, DefectInvalidValue
	}
	if again, err := r.MarshalJSON(); err != nil || !bytes.Equal(again, data) {
		return Review{}, DefectNotCanonical
	}

	return r, 0
}

func (w reviewJSON) review() (r Review, ok bool) {
	var err error
	if r.handoff, err = ident.ParseDigest(w.HandoffDigest); err != nil || w.SchemaVersion != ReviewSchema {
		return Review{}, false
	}
	if r.decision, err = ParseReviewDecision(w.Decision); err != nil {
		return Review{}, false
	}
	if r.reviewer, err = ident.NewLabel(w.Reviewer); err != nil {
		return Review{}, false
	}
	r.decided, ok = readTime(w.DecidedAt)

	return r, ok
}
