package escalation

import (
	"bytes"
	"encoding/json"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	stateSchema = "interlock.escalation.v1"
	maxState    = 32 << 10
)

// stateJSON is the persisted form of a breaker. Its fields stand in the order
// of their keys.
type stateJSON struct {
	Counts        Counts          `json:"counts"`
	Halted        bool            `json:"halted"`
	Handoff       json.RawMessage `json:"handoff"`
	RunID         ident.RunID     `json:"run_id"`
	SchemaVersion string          `json:"schema_version"`
	StepDigests   []string        `json:"step_digests"`
	WorkflowID    string          `json:"workflow_id"`
}

// MarshalJSON renders the state as strict, versioned, canonical JSON, for
// [ParseBreaker]. The policy is configuration and not part of it. A breaker that
// NewBreaker did not make is invalid_run_state.
func (b *Breaker) MarshalJSON() ([]byte, error) {
	if b == nil || b.run.IsZero() {
		return nil, failure(middleware.ReasonInvalidRunState)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	st := stateJSON{
		Counts: b.counts, RunID: b.run, SchemaVersion: stateSchema, WorkflowID: b.workflow.String(),
		StepDigests: make([]string, 0, len(b.digests)),
	}
	for _, d := range b.digests {
		st.StepDigests = append(st.StepDigests, d.Hex())
	}
	if b.handoff != nil {
		raw, err := b.handoff.MarshalJSON()
		if err != nil {
			return nil, failure(middleware.ReasonInvalidRunState, err)
		}
		st.Halted, st.Handoff = true, raw
	}

	return json.Marshal(st)
}

// ParseBreaker continues a breaker that MarshalJSON rendered, under the policy
// of cfg: counts never start again, and a halted breaker is halted, also after
// its handoff has expired. With a policy that is tighter than the counts, the
// next failure trips.
//
// It fails with a [ConfigError] as NewBreaker does, and with invalid_run_state
// for bytes that are not exactly what MarshalJSON writes, that contradict
// themselves, or that belong to another run or workflow than cfg.
func ParseBreaker(cfg BreakerConfig, data []byte) (*Breaker, error) {
	b, err := NewBreaker(cfg)
	if err != nil {
		return nil, err
	}
	if len(data) > maxState {
		return nil, failure(middleware.ReasonInvalidRunState)
	}
	var st stateJSON
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&st); err != nil {
		return nil, failure(middleware.ReasonInvalidRunState, err)
	}
	if !b.load(st) {
		return nil, failure(middleware.ReasonInvalidRunState)
	}
	// Rendering it again settles order, spelling, double, missing and trailing.
	if again, err := b.MarshalJSON(); err != nil || !bytes.Equal(again, data) {
		return nil, failure(middleware.ReasonInvalidRunState, err)
	}

	return b, nil
}

// load takes over a state that does not contradict itself.
func (b *Breaker) load(st stateJSON) bool {
	c := st.Counts
	if st.SchemaVersion != stateSchema || st.RunID != b.run || st.WorkflowID != b.workflow.String() {
		return false
	}
	for _, n := range []int{c.Uncertainty, c.PermissionDenial, c.ToolFailure} {
		if n < 0 || n > MaxThreshold {
			return false
		}
	}
	// One more failure has to fit, unless there will be none.
	if c.Total() != len(st.StepDigests) || c.Total() > MaxThreshold || (!st.Halted && c.Total() == MaxThreshold) {
		return false
	}
	for _, text := range st.StepDigests {
		d, err := ident.ParseHexDigest(text)
		if err != nil {
			return false
		}
		b.digests = append(b.digests, d)
	}
	b.counts = c
	if !st.Halted {
		return string(st.Handoff) == "null"
	}
	h, defect := decodeHandoff(st.Handoff)
	if defect != 0 || !b.tripped(h) {
		return false
	}
	b.handoff = &h

	return true
}

// tripped reports whether h can be the handoff of this state.
func (b *Breaker) tripped(h Handoff) bool {
	if h.run != b.run || h.workflow != b.workflow || b.counts.Of(h.class) == 0 || len(h.digests) != len(b.digests) {
		return false
	}
	for i, d := range b.digests {
		if h.digests[i] != d {
			return false
		}
	}

	return true
}
