package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/ident"
)

const (
	runSchema   = "interlock.run.v1"
	maxRunState = 1 << 20
)

// runState is the persisted form. Its fields stand in the order of their keys,
// so that encoding/json writes the canonical form.
type runState struct {
	Halted    *haltState                 `json:"halted"`
	Preview   *previewState              `json:"preview"`
	RunID     ident.RunID                `json:"run_id"`
	Schema    string                     `json:"schema_version"`
	Sections  map[string]json.RawMessage `json:"sections"`
	StartedAt int64                      `json:"started_at"` // Unix seconds
	Workflow  ident.WorkflowID           `json:"workflow_id"`
}

type haltState struct {
	Component string `json:"component"`
	Reason    string `json:"reason"`
}

type previewState struct {
	Digest     ident.Digest `json:"digest"`
	Generation uint64       `json:"generation"`
}

// Save renders the run's state as strict, versioned, canonical JSON: its
// identifiers, its preview, whether it is halted, and a section for every slot
// of [RunConfig]. It holds no content. An ended run is run_ended.
func (r *Run) Save() ([]byte, error) {
	if r == nil || r.Ended() {
		return nil, (&PerRun[int]{}).refuse(r)
	}
	st := runState{
		RunID: r.id, Schema: runSchema, StartedAt: r.started.Unix(), Workflow: r.workflow,
		Sections: make(map[string]json.RawMessage, len(r.saved)),
	}
	if c, reason, halted := r.Halted(); halted {
		st.Halted = &haltState{Component: c.String(), Reason: reason.String()}
	}
	if p := r.CurrentPreview(); !p.IsZero() {
		st.Preview = &previewState{Digest: p.digest, Generation: p.generation}
	}
	for _, s := range r.saved {
		if s == nil || !s.slotCheck() {
			return nil, invalidRunState(nil)
		}
		if _, twice := st.Sections[s.slotName()]; twice {
			return nil, invalidRunState(nil)
		}
		section, err := s.save(r)
		if err != nil {
			return nil, invalidRunState(err)
		}
		st.Sections[s.slotName()] = section
	}
	data, err := json.Marshal(st)
	if err != nil || len(data) > maxRunState {
		return nil, invalidRunState(err)
	}

	return data, nil
}

// RestoreRun continues a run that [Run.Save] rendered, with the slots of cfg; a
// halted run is halted again. The saved preview is kept, not renewed: the
// caller checks it before anything else happens, and every effect is checked
// against it.
//
// Anything that is not exactly what Save wrote (other spelling, unknown,
// missing or double fields, a section without a slot or a slot without a
// section, another run or workflow than cfg names) is invalid_run_state.
func RestoreRun(ctx context.Context, cfg RunConfig, data []byte) (context.Context, *Run, error) {
	st, err := parseRunState(data)
	if err != nil {
		return nil, nil, err
	}
	if (!cfg.Workflow.IsZero() && cfg.Workflow != st.Workflow) || (!cfg.ID.IsZero() && cfg.ID != st.RunID) {
		return nil, nil, invalidRunState(nil)
	}
	cfg.ID, cfg.Workflow = st.RunID, st.Workflow
	r, err := newRun(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	r.started = time.Unix(st.StartedAt, 0)
	if p := st.Preview; p != nil {
		preview := NewPreview(st.Workflow, p.Generation, p.Digest)
		r.preview.Store(&preview)
	}
	if err := restoreHalt(r, st.Halted); err != nil {
		return nil, nil, err
	}
	if err := restoreSections(r, st.Sections); err != nil {
		r.End()

		return nil, nil, err
	}

	return r.enter(ctx)
}

func parseRunState(data []byte) (runState, error) {
	var st runState
	if len(data) > maxRunState {
		return st, invalidRunState(nil)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&st); err != nil {
		return st, invalidRunState(err)
	}
	if st.Schema != runSchema || st.RunID.IsZero() || st.Workflow.IsZero() {
		return st, invalidRunState(nil)
	}
	// Rendering it again must give the same bytes: that settles order, spelling,
	// double keys, missing fields and what follows the document at once.
	again, err := json.Marshal(st)
	if err != nil || !bytes.Equal(again, data) {
		return st, invalidRunState(err)
	}

	return st, nil
}

func restoreHalt(r *Run, h *haltState) error {
	if h == nil {
		return nil
	}
	reason, ok := ParseReason(h.Reason)
	if !ok {
		return invalidRunState(nil)
	}
	for _, c := range Components() {
		if c.String() == h.Component {
			r.Halt(c, reason)

			return nil
		}
	}

	return invalidRunState(nil)
}

func restoreSections(r *Run, sections map[string]json.RawMessage) error {
	if len(sections) != len(r.saved) {
		return invalidRunState(nil)
	}
	for _, s := range r.saved {
		if s == nil || !s.slotCheck() {
			return invalidRunState(nil)
		}
		section, ok := sections[s.slotName()]
		if !ok {
			return invalidRunState(nil)
		}
		delete(sections, s.slotName()) // two slots of one name are not one section
		if err := s.load(r, section); err != nil {
			return invalidRunState(err)
		}
	}

	return nil
}

func invalidRunState(cause error) error {
	return NewFailure(ComponentRun, ReasonInvalidRunState, ident.Label{}, cause)
}
