package escalation

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const budgetSchema = "interlock.budget.v1"

// budgetState is the persisted form of an account. Its fields stand in the
// order of their keys.
type budgetState struct {
	FinalAnswer   string                `json:"final_answer"`
	ModelCalls    int64                 `json:"model_calls"`
	PerTool       map[ident.Label]int64 `json:"per_tool"`
	RunID         ident.RunID           `json:"run_id"`
	SchemaVersion string                `json:"schema_version"`
	Steps         int64                 `json:"steps"`
	Stopped       string                `json:"stopped"`
	Tokens        int64                 `json:"tokens"`
	ToolCalls     int64                 `json:"tool_calls"`
	WallTimeNS    int64                 `json:"wall_time_ns"`
}

var answerNames = [...]string{ //nolint:gochecknoglobals // compiled table
	answerOpen: "open", answerPending: "pending", answerSpent: "spent",
}

// saveAccount renders what was used as strict, versioned, canonical JSON. Calls
// under way are counted with what is reserved for them: whoever restores the
// run never hears how they ended.
func (b *Budget) saveAccount(a *account) ([]byte, error) {
	now, err := b.clock()
	if err != nil {
		return nil, err
	}
	a.tree.Lock()
	defer a.tree.Unlock()
	a.tick(now)
	_, why := a.isStopped()
	st := budgetState{
		FinalAnswer: answerNames[a.answer], ModelCalls: a.models, PerTool: a.perTool, RunID: a.run, SchemaVersion: budgetSchema,
		Steps: a.steps, Tokens: a.tokens, ToolCalls: a.tools, WallTimeNS: int64(a.elapsed),
	}
	if why != 0 {
		st.Stopped = why.String()
	}
	if why != a.stopped { // of a run around this one, which may not be there when this one is restored
		st.FinalAnswer = answerNames[b.onStop()]
	}

	return json.Marshal(st)
}

// loadAccount continues an account that saveAccount rendered, under the limits
// of b. Anything else is invalid_run_state.
func (b *Budget) loadAccount(r *middleware.Run, section []byte) (*account, error) {
	st, ok := parseBudgetState(section)
	if !ok || st.RunID != r.ID() {
		return nil, failure(middleware.ReasonInvalidRunState)
	}
	a, err := b.newAccount(r)
	if err != nil {
		return nil, err
	}
	a.tree.Lock()
	defer a.tree.Unlock()
	a.models, a.tools, a.tokens, a.steps = st.ModelCalls, st.ToolCalls, st.Tokens, st.Steps
	maps.Copy(a.perTool, st.PerTool) // of tools without a limit now, too: they may have one again
	a.before = time.Duration(st.WallTimeNS)
	a.elapsed = a.before
	if st.Stopped != "" {
		a.stop(parseResource(st.Stopped), st.FinalAnswer == answerNames[answerPending])
	}

	return a, nil
}

// parseBudgetState reports false for what is not exactly what saveAccount
// writes, or contradicts itself.
func parseBudgetState(data []byte) (budgetState, bool) {
	var st budgetState
	if len(data) > maxState {
		return st, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode(&st) != nil || !st.consistent() {
		return st, false
	}
	// Rendering it again settles order, spelling, double, missing and trailing.
	again, err := json.Marshal(st)

	return st, err == nil && bytes.Equal(again, data)
}

func (st *budgetState) consistent() bool {
	if st.SchemaVersion != budgetSchema || st.RunID.IsZero() || st.PerTool == nil || len(st.PerTool) > 2*MaxToolLimits {
		return false
	}
	for _, n := range []int64{st.ModelCalls, st.Steps, st.Tokens, st.ToolCalls} {
		if n < 0 || n > maxAmount {
			return false
		}
	}
	if st.Steps > st.ModelCalls || st.WallTimeNS < 0 {
		return false
	}
	calls := int64(0)
	for label, n := range st.PerTool {
		if calls += n; label.IsZero() || n < 0 || n > maxAmount || calls > st.ToolCalls {
			return false
		}
	}
	if st.Stopped == "" {
		return st.FinalAnswer == answerNames[answerOpen]
	}
	final := st.FinalAnswer == answerNames[answerPending] || st.FinalAnswer == answerNames[answerSpent]
	r := parseResource(st.Stopped)

	return final && r != 0 && r != ResourceTool
}
