package looptrace

import "github.com/interlock-go/interlock/middleware"

// Version is the version of the schema.
const Version = 1

// Bounds of the schema.
const (
	MaxLine   = 1 << 20
	MaxTraces = 10_000
	MaxName   = 64
	MaxWhy    = 400
	MaxPrompt = 16 << 10
	MaxText   = 64 << 10
	MaxTools  = 64
	MaxSteps  = 400
)

// The labels.
const (
	LabelOK   = "ok"
	LabelLoop = "loop"
)

// The styles. An empty one is functions.
const (
	StyleFunctions = "functions"
	StyleText      = "text"
)

// The result classes.
const (
	ResultOK      = "ok"
	ResultError   = "error"
	ResultRefused = "refused"
)

// Trace is what one agent did, and the label.
type Trace struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Family string `json:"family"`
	Label  string `json:"label"`
	// Earliest and StopBy are numbers of steps, from 1; 0 in an honest trace.
	Earliest int    `json:"earliest,omitempty"`
	StopBy   int    `json:"stop_by,omitempty"`
	Why      string `json:"why,omitempty"`
	Style    string `json:"style,omitempty"`
	Prompt   string `json:"prompt,omitempty"`
	Tools    []Tool `json:"tools,omitempty"`
	Steps    []Step `json:"steps"`
}

// Loop reports whether the trace is labelled a loop.
func (t *Trace) Loop() bool { return t.Label == LabelLoop }

// Tool is a registered tool.
type Tool struct {
	Name   string `json:"name"`
	Effect string `json:"effect"`
}

// Step is a call of a tool, a response without calls, or a request to the model
// that failed. Pointers are nil where a field is absent.
type Step struct {
	Turn       int      `json:"turn"`
	Thought    string   `json:"thought,omitempty"`
	Tool       string   `json:"tool,omitempty"`
	Args       *string  `json:"args,omitempty"`
	Offered    *bool    `json:"offered,omitempty"`
	Result     string   `json:"result,omitempty"`
	Text       *string  `json:"text,omitempty"`
	Final      bool     `json:"final,omitempty"`
	Progress   *float64 `json:"progress,omitempty"`
	Infra      string   `json:"infra,omitempty"`
	Answer     *string  `json:"answer,omitempty"`
	Reply      *string  `json:"reply,omitempty"`
	Unparsable bool     `json:"unparsable,omitempty"`
}

// stepKind is what a step is.
type stepKind uint8

const (
	_ stepKind = iota
	stepCall
	stepInvention // a call of a tool that was not offered
	stepAnswer
	stepOutage
)

func (s *Step) kind() stepKind {
	switch {
	case s.Tool != "" && s.Offered != nil && !*s.Offered:
		return stepInvention
	case s.Tool != "":
		return stepCall
	case s.Answer != nil:
		return stepAnswer
	case s.Infra != "":
		return stepOutage
	default:
		return 0
	}
}

// text returns what p points to, "" for nil.
func text(p *string) string {
	if p == nil {
		return ""
	}

	return *p
}

// infraReason returns the reason that stands for a failure of the provider.
func infraReason(infra string) (middleware.Reason, bool) {
	switch infra {
	case "rate_limited":
		return middleware.ReasonRateLimited, true
	case "overloaded":
		return middleware.ReasonOverloaded, true
	case "timeout":
		return middleware.ReasonTimeout, true
	case "network":
		return middleware.ReasonNetwork, true
	default:
		return 0, false
	}
}

// effectOf returns the effect class with this name.
func effectOf(name string) (middleware.Effect, bool) {
	for _, e := range middleware.Effects() {
		if e.String() == name {
			return e, true
		}
	}

	return 0, false
}
