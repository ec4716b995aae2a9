package middleware

import (
	"crypto/sha256"
	"strconv"

	"github.com/interlock-go/interlock/ident"
)

// Effect says what calling a tool does to the world. It is declared where the
// tool is registered, never by the model or the call. The zero value is the
// most careful one.
type Effect uint8

// The effect classes.
const (
	// Effectful tools change something and may not simply be called again.
	Effectful Effect = iota
	// Idempotent tools change something, and calling one twice with the same
	// input changes it once. They still need admission.
	Idempotent
	// ReadOnly tools change nothing.
	ReadOnly
	// Polling tools are read-only and are called again and again while waiting.
	Polling

	effectEnd
)

var effectNames = []string{ //nolint:gochecknoglobals // compiled table
	Effectful: "effectful", Idempotent: "idempotent", ReadOnly: "read_only", Polling: "polling",
}

// String returns the class's name.
func (e Effect) String() string { return enumName(effectNames, e) }

// Effects returns the closed set, for tables and tests.
func Effects() []Effect { return enumAll(Effectful, effectEnd) }

// Changes reports whether a call changes the world and so needs admission. An
// unknown class does.
func (e Effect) Changes() bool { return e != ReadOnly && e != Polling }

// Repeatable reports whether a call whose outcome is unknown may be made again.
func (e Effect) Repeatable() bool { return e == Idempotent || !e.Changes() }

// ToolCall is one call of a registered tool. It is immutable: the With methods
// return another call. Only a registered tool makes one.
type ToolCall struct {
	mark

	tool     *ToolConfig // the registration
	id       string      // "" if nobody gave one: then made
	input    string
	approval *Approval // nil: none
	made     int32
	turn     int32
	attempt  int32
}

// ID returns the identifier of the call: the provider's, where the agent's
// model gave one, else one that is unique in the run. It is content: it never
// leaves the process through the library.
func (c *ToolCall) ID() string {
	if c.id != "" {
		return c.id
	}

	return "interlock_" + strconv.Itoa(int(c.made)) // a form that no provider uses
}

// Turn returns the model turn that asked for the call, from 1; 0 if the run's
// model is not guarded.
func (c *ToolCall) Turn() int { return int(c.turn) }

// Attempt returns the number of the attempt, from 1.
func (c *ToolCall) Attempt() int { return int(c.attempt) }

// Name returns the tool's name as the agent knows it.
func (c *ToolCall) Name() string { return c.registration().Name }

// Label returns the registered, content-free name.
func (c *ToolCall) Label() ident.Label { return c.registration().Label }

// Input returns the argument. It is content.
func (c *ToolCall) Input() string { return c.input }

// Effect returns the class from the registration of the tool.
func (c *ToolCall) Effect() Effect { return c.registration().Effect }

// Approval returns the approval that the call carries; zero if none.
func (c *ToolCall) Approval() Approval {
	if c.approval == nil {
		return Approval{}
	}

	return *c.approval
}

// WithInput returns the call with another input. An approval was given for the
// old input and is dropped.
func (c *ToolCall) WithInput(input string) *ToolCall {
	d := c.copy()
	d.input, d.approval = input, nil

	return d
}

// WithApproval returns the call carrying a.
func (c *ToolCall) WithApproval(a Approval) *ToolCall {
	d := c.copy()
	d.approval = &a

	return d
}

// NextAttempt returns the call as a further attempt. A retry calls it before
// each attempt but the first; approvals are single-use and are dropped.
func (c *ToolCall) NextAttempt() *ToolCall {
	d := c.copy()
	d.attempt++
	d.approval = nil

	return d
}

// noTool is what a call without a registration (a zero ToolCall) is of: nothing
// is known of it, so it is effectful.
var noTool ToolConfig //nolint:gochecknoglobals // never written

func (c *ToolCall) registration() *ToolConfig {
	if c.tool == nil {
		return &noTool
	}

	return c.tool
}

// Clone returns a copy of its own, for a goroutine that may outlive the call.
func (c *ToolCall) Clone() *ToolCall { return c.copy() }

func (c *ToolCall) copy() *ToolCall {
	d := &ToolCall{
		tool: c.tool, id: c.id, input: c.input, approval: c.approval, made: c.made, turn: c.turn, attempt: c.attempt,
	}
	d.stage.Store(c.stage.Load())

	return d
}

// Approval is proof that a human or a policy approved exactly one call. It is
// made and checked by admission: a keyed digest over tool label, input and
// preview, and the preview it was given under. The zero value is none.
type Approval struct {
	preview Preview
	binding [sha256.Size]byte
}

// NewApproval returns an approval with this binding.
func NewApproval(p Preview, binding [sha256.Size]byte) Approval {
	return Approval{preview: p, binding: binding}
}

// IsZero reports whether a is none.
func (a Approval) IsZero() bool { return a == Approval{} }

// Preview returns the preview that the approval was given under.
func (a Approval) Preview() Preview { return a.preview }

// Binding returns the keyed digest.
func (a Approval) Binding() [sha256.Size]byte { return a.binding }

// GoString redacts.
func (a Approval) GoString() string { return "middleware.Approval(redacted)" }

// ToolResult is what a tool gave.
type ToolResult struct {
	// Output is what the agent's model sees. It is content.
	Output string
	// Final says that what was waited for has come to its end (a job is done or
	// has failed), so that asking once more is not waiting.
	Final bool
}
