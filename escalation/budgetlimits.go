package escalation

import (
	"maps"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// NoLimit is the value of a limit that is none.
	NoLimit = -1
	// MaxLimit bounds every limit but the wall time.
	MaxLimit = 1_000_000_000
	// MaxToolLimits bounds the number of tools with a limit of their own.
	MaxToolLimits = 256
)

// Limits bound the work of one run, its children included. Zero is no limit
// that could be meant and is refused; [NoLimit] says that there is none.
type Limits struct {
	// ModelCalls of the run, 1…MaxLimit. A call counts once, whatever a fallback
	// chain does for it.
	ModelCalls int
	// ToolCalls of all tools together, 1…MaxLimit.
	ToolCalls int
	// PerTool limits the calls of single tools by their registered label, each
	// 1…MaxLimit, at most 256 tools. A refusal refuses that tool only. Default
	// nil: none.
	PerTool map[ident.Label]int
	// Tokens of all model calls, in and out, 1…MaxLimit. A call reserves what
	// its request is estimated at, and the MaxTokens that it asks for.
	Tokens int
	// WallTime since the first guarded call of the run, over all processes that
	// it was persisted in. It is looked at before each call and interrupts none.
	WallTime time.Duration
	// Steps are model turns: answers of the model to the agent, 1…MaxLimit.
	Steps int
}

// DefaultBudget returns 50 model calls, 100 tool calls, no limit per tool,
// 10,000 tokens, 10 minutes and 50 steps.
func DefaultBudget() Limits {
	return Limits{ModelCalls: 50, ToolCalls: 100, Tokens: 10_000, WallTime: 10 * time.Minute, Steps: 50}
}

// Validate returns a [ConfigError] of invalid_limit that names the first field
// out of bounds.
func (l Limits) Validate() error {
	const bound = "1…1,000,000,000, or NoLimit"
	for _, f := range []struct {
		name  string
		value int
	}{{"ModelCalls", l.ModelCalls}, {"ToolCalls", l.ToolCalls}, {"Tokens", l.Tokens}, {"Steps", l.Steps}} {
		if !validLimit(f.value) {
			return badLimit("Limits."+f.name, bound)
		}
	}
	if l.WallTime != NoLimit && l.WallTime <= 0 {
		return badLimit("Limits.WallTime", "positive, or NoLimit")
	}
	if len(l.PerTool) > MaxToolLimits {
		return badLimit("Limits.PerTool", "at most 256 tools")
	}
	for label, n := range l.PerTool {
		if label.IsZero() {
			return badLimit("Limits.PerTool", "keyed by labels that are not zero")
		}
		if !validLimit(n) {
			return badLimit("Limits.PerTool["+label.String()+"]", bound)
		}
	}

	return nil
}

func validLimit(n int) bool { return n == NoLimit || (n >= 1 && n <= MaxLimit) }

func badLimit(field, bound string) error {
	return &ConfigError{reason: middleware.ReasonInvalidLimit, field: field, bound: bound}
}

// isZero reports whether nothing is set at all.
func (l Limits) isZero() bool {
	return l.ModelCalls == 0 && l.ToolCalls == 0 && l.PerTool == nil && l.Tokens == 0 && l.WallTime == 0 && l.Steps == 0
}

func (l Limits) clone() Limits {
	l.PerTool = maps.Clone(l.PerTool)

	return l
}

// Resource is what a budget limits. The zero value is none.
type Resource uint8

// The resources.
const (
	_ Resource = iota
	ResourceModelCalls
	ResourceToolCalls
	ResourceTool // calls of one tool
	ResourceTokens
	ResourceWallTime
	ResourceSteps

	resourceEnd
)

var resourceNames = [...]string{ //nolint:gochecknoglobals // compiled table
	ResourceModelCalls: "model_calls", ResourceToolCalls: "tool_calls", ResourceTool: "tool",
	ResourceTokens: "tokens", ResourceWallTime: "wall_time", ResourceSteps: "steps",
}

// String returns the resource's name.
func (r Resource) String() string {
	if r == 0 || r >= resourceEnd {
		return "invalid"
	}

	return resourceNames[r]
}

// Resources returns the closed set, for tables and tests.
func Resources() []Resource {
	return []Resource{
		ResourceModelCalls, ResourceToolCalls, ResourceTool, ResourceTokens, ResourceWallTime, ResourceSteps,
	}
}

// parseResource returns 0 for a name that is none.
func parseResource(name string) Resource {
	for _, r := range Resources() {
		if r.String() == name {
			return r
		}
	}

	return 0
}
