package escalation

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// HandoffSchema is the schema version of the JSON form.
	HandoffSchema = "interlock.handoff.v1"
	// MaxHandoffBytes bounds the JSON form; the longest possible one is about a
	// quarter of it.
	MaxHandoffBytes = 16 << 10

	timeLayout = "2006-01-02T15:04:05Z"
)

// handoffJSON is the wire form. Its fields stand in the order of their keys, so
// that encoding/json writes the canonical form.
type handoffJSON struct {
	Evidence          []string `json:"evidence"` // always empty: content stays with the caller
	ExpiresAt         string   `json:"expires_at"`
	FailureClass      string   `json:"failure_class"`
	IssuedAt          string   `json:"issued_at"`
	ReasonCode        string   `json:"reason_code"`
	RecoveryActions   []string `json:"recovery_actions"`
	RequestedDecision string   `json:"requested_decision"`
	RunID             string   `json:"run_id"`
	SchemaVersion     string   `json:"schema_version"`
	StepDigests       []string `json:"step_digests"`
	WorkflowID        string   `json:"workflow_id"`
}

// MarshalJSON renders the canonical form: one object with the eleven fields
//
//	evidence, expires_at, failure_class, issued_at, reason_code, recovery_actions,
//	requested_decision, run_id, schema_version, step_digests, workflow_id
//
// in this order, without spaces. Times are RFC 3339 in UTC with whole seconds
// and a Z; step digests are 64 hex digits each, 1…32 of them; evidence is an
// empty list. The zero Handoff is invalid_handoff.
func (h Handoff) MarshalJSON() ([]byte, error) {
	if h.IsZero() {
		return nil, &HandoffError{defect: DefectInvalidValue}
	}

	return json.Marshal(h.wire())
}

func (h Handoff) wire() handoffJSON {
	r := h.route()
	w := handoffJSON{
		Evidence:          []string{},
		ExpiresAt:         h.ExpiresAt().Format(timeLayout),
		FailureClass:      h.class.String(),
		IssuedAt:          h.issued.Format(timeLayout),
		ReasonCode:        r.reason.String(),
		RecoveryActions:   make([]string, 0, len(r.actions)),
		RequestedDecision: r.decision.String(),
		RunID:             h.run.String(),
		SchemaVersion:     HandoffSchema,
		StepDigests:       make([]string, 0, len(h.digests)),
		WorkflowID:        h.workflow.String(),
	}
	for _, a := range r.actions {
		w.RecoveryActions = append(w.RecoveryActions, a.String())
	}
	for _, d := range h.digests {
		w.StepDigests = append(w.StepDigests, d.Hex())
	}

	return w
}

// UnmarshalJSON always fails: a handoff is read by [ParseHandoff], which knows
// the time.
func (h *Handoff) UnmarshalJSON([]byte) error {
	return &HandoffError{defect: DefectInvalidValue}
}

// ParseHandoff reads what [Handoff.MarshalJSON] wrote, and nothing else: the
// bytes have to be the canonical form of what they say. It fails with a
// [HandoffError] whose Defect says why. A handoff that is valid in itself fails
// with handoff_expired at or after its expiry, and with handoff_not_yet_valid if
// it was issued more than 5 minutes after now.
func ParseHandoff(data []byte, now time.Time) (Handoff, error) {
	h, defect := decodeHandoff(data)
	switch {
	case defect != 0:
	case !now.Before(h.ExpiresAt()):
		defect = DefectExpired
	case h.issued.Sub(now) > HandoffSkew:
		defect = DefectFuture
	default:
		return h, nil
	}

	return Handoff{}, &HandoffError{defect: defect}
}

// decodeHandoff reads a handoff without a look at the clock.
func decodeHandoff(data []byte) (Handoff, Defect) {
	var w handoffJSON
	if len(data) > MaxHandoffBytes {
		return Handoff{}, DefectOversize
	}
	texts := map[string]*string{
		"expires_at": &w.ExpiresAt, "failure_class": &w.FailureClass, "issued_at": &w.IssuedAt,
		"reason_code": &w.ReasonCode, "requested_decision": &w.RequestedDecision, "run_id": &w.RunID,
		"schema_version": &w.SchemaVersion, "workflow_id": &w.WorkflowID,
	}
	lists := map[string]*[]string{
		"evidence": &w.Evidence, "recovery_actions": &w.RecoveryActions, "step_digests": &w.StepDigests,
	}
	fields, defect := readObject(data, func(name string) bool { return texts[name] != nil || lists[name] != nil })
	if defect != 0 {
		return Handoff{}, defect
	}
	if len(fields) != len(texts)+len(lists) {
		return Handoff{}, DefectMissingField
	}
	for name, raw := range fields {
		if t := texts[name]; t != nil && !readText(raw, t) {
			return Handoff{}, DefectInvalidValue
		}
		if l := lists[name]; l != nil && !readList(raw, l) {
			return Handoff{}, DefectInvalidValue
		}
	}
	h, defect := w.handoff()
	if defect != 0 {
		return Handoff{}, defect
	}
	// Rendering it again settles order, spaces, escapes and spelling at once.
	if again, err := h.MarshalJSON(); err != nil || !bytes.Equal(again, data) {
		return Handoff{}, DefectNotCanonical
	}

	return h, 0
}

// handoff checks the values against the types and the table.
func (w handoffJSON) handoff() (Handoff, Defect) {
	if w.SchemaVersion != HandoffSchema || len(w.Evidence) != 0 {
		return Handoff{}, DefectInvalidValue
	}
	h := Handoff{}
	var err error
	if h.run, err = ident.ParseRunID(w.RunID); err != nil {
		return Handoff{}, DefectInvalidValue
	}
	if h.workflow, err = ident.ParseWorkflowID(w.WorkflowID); err != nil {
		return Handoff{}, DefectInvalidValue
	}
	issued, ok := readTime(w.IssuedAt)
	if !ok {
		return Handoff{}, DefectInvalidValue
	}
	h.issued = issued
	if expires, ok := readTime(w.ExpiresAt); !ok || !expires.Equal(h.ExpiresAt()) {
		return Handoff{}, DefectInvalidValue
	}
	if h.class = classOf(w.FailureClass); h.class == 0 {
		return Handoff{}, DefectInvalidValue
	}
	if len(w.StepDigests) == 0 || len(w.StepDigests) > MaxThreshold {
		return Handoff{}, DefectInvalidValue
	}
	for _, text := range w.StepDigests {
		d, err := ident.ParseHexDigest(text)
		if err != nil {
			return Handoff{}, DefectInvalidValue
		}
		h.digests = append(h.digests, d)
	}
	if !w.combines(h.wire()) {
		return Handoff{}, DefectWrongCombination
	}

	return h, 0
}

// combines reports whether what derives from the class is what it has to be.
func (w handoffJSON) combines(want handoffJSON) bool {
	if w.ReasonCode != want.ReasonCode || w.RequestedDecision != want.RequestedDecision ||
		len(w.RecoveryActions) != len(want.RecoveryActions) {
		return false
	}
	for i, a := range want.RecoveryActions {
		if w.RecoveryActions[i] != a {
			return false
		}
	}

	return true
}

func classOf(name string) Class {
	for _, c := range middleware.FailureClasses() {
		if c.String() == name {
			return c
		}
	}

	return 0
}

// readTime does without time.Parse's leniency about fractions by way of
// issueTime; other spellings end at the comparison with the canonical form.
// The expiry may lie within the last half hour that an issue time may not.
func readTime(s string) (time.Time, bool) {
	t, err := time.Parse(timeLayout, s)
	if err != nil || t.Nanosecond() != 0 || t.Year() < 1 || t.IsZero() {
		return time.Time{}, false
	}

	return t, true
}
