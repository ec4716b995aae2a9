package middleware

import (
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// turns remembers which calls the model asked for, because the tool seam of
// langchaingo has no identifier: a tool is called with a string.
type turns struct {
	turn    int32
	made    int32 // identifiers given out
	pending []pendingCall
}

type pendingCall struct{ id, name string }

// openTurn is called by the outermost model adapter with a valid response.
func (r *Run) openTurn(resp *llms.ContentResponse) {
	var calls []pendingCall
	for _, c := range resp.Choices {
		for i := range c.ToolCalls {
			if f := c.ToolCalls[i].FunctionCall; f != nil {
				calls = append(calls, pendingCall{id: c.ToolCalls[i].ID, name: f.Name})
			}
		}
		if len(c.ToolCalls) == 0 && c.FuncCall != nil {
			calls = append(calls, pendingCall{name: c.FuncCall.Name})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.Load() {
		return // a late answer: nothing is kept any more
	}
	r.turns.turn++
	r.turns.pending = calls
}

// claim fills in the identifier and turn of a call: id where the executor knows
// it; of the next call of that name that the model asked for, without regard to
// case as langchaingo looks tools up; else a number, of which ID makes a new one.
func (r *Run) claim(c *ToolCall, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.turns
	for i, p := range t.pending {
		if (id != "" && p.id == id) || (id == "" && strings.EqualFold(p.name, c.tool.Name)) {
			t.pending = slices.Delete(t.pending, i, i+1)
			id = p.id

			break
		}
	}
	if id == "" {
		t.made++
		c.made = t.made
	}
	c.id, c.turn = id, t.turn
}

// Turn returns the number of the current model turn, 0 before the first.
func (r *Run) Turn() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	return int(r.turns.turn)
}
