package escalation

import (
	"encoding/json"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// stepJSON has its fields in the order of their keys.
type stepJSON struct {
	Component string `json:"component"`
	Label     string `json:"label"`
	RunID     string `json:"run_id"`
	Step      int    `json:"step"`
}

// StepDigest returns what a handoff calls a step: the SHA-256 of the canonical
// JSON
//
//	{"component":"tool","label":"issue_refund","run_id":"run_…","step":3}
//
// step is the number of the counted failure within its run, from 1; component
// is the part whose failure it was; label is the registered name of the tool,
// of the agent for a confidence outside of a call, or "". Arguments are never
// part of it, and the 128 random bits of the run keep it from being guessed. A
// reviewer who has the decisions of the run can match them with the digests.
func StepDigest(run ident.RunID, step int, component middleware.Component, label ident.Label) ident.Digest {
	data, err := json.Marshal(stepJSON{
		Component: component.String(), Label: label.String(), RunID: run.String(), Step: step,
	})
	if err != nil {
		return ident.Digest{} // cannot happen: three strings of ASCII and a number
	}

	return ident.DigestOf(data)
}
