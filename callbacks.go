package interlock

import (
	"context"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"

	"github.com/interlock-go/interlock/middleware"
)

// Callbacks returns a callbacks handler for langchaingo's executors and agents.
// The tools that a textual agent (MRKL, conversational) asks for are visible
// nowhere else: those that the guard does not know are counted by its watchdog.
// Give it to the executor (agents.WithCallbacksHandler), beside your own with
// callbacks.CombiningHandler.
func (g *Guard) Callbacks() callbacks.Handler { //nolint:ireturn // langchaingo's interface
	return &actionWatch{guard: g}
}

type actionWatch struct {
	callbacks.SimpleHandler

	guard *Guard
}

// HandleAgentAction hears of each tool that the agent is about to call. Calls
// that the model's response named by identifier were looked at there.
func (w *actionWatch) HandleAgentAction(ctx context.Context, action schema.AgentAction) {
	if action.ToolID != "" || middleware.RunFrom(ctx) == nil || w.guard.names.has(action.Tool) {
		return
	}
	w.guard.watchdog.UnknownTool(ctx)
}

// toolNames are the names of all tools that the guard has wrapped, as the
// executor compares them: without case.
type toolNames struct {
	mu    sync.RWMutex
	names map[string]struct{}
}

func (n *toolNames) add(regs []middleware.Registration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil {
		n.names = make(map[string]struct{}, len(regs))
	}
	for _, reg := range regs {
		n.names[strings.ToUpper(reg.Tool.Name())] = struct{}{}
	}
}

func (n *toolNames) has(name string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, ok := n.names[strings.ToUpper(name)]

	return ok
}
