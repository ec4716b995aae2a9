package watchdog

import (
	"context"
	"maps"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Detection is what a detector found. It holds numbers and registered names
// only: no argument, result or text of an error.
type Detection struct {
	// Reason says what was found: loop, stalled, or custom for the detectors of
	// Config.Detectors that do not name one of the watchdog's reasons.
	Reason middleware.Reason
	// Severity, 0…1: of a loop min(1, Count/2·Limit), of a stall
	// min(1, Elapsed/2·timeout), else 0.5.
	Severity float64
	// Count is what was counted against Limit; of a loop, how often the pair was
	// seen in the window.
	Count, Limit int
	// Elapsed is how long a stalled call has been open, without pauses.
	Elapsed time.Duration

	// Strike is which detection of this detector in this run it is, from 1. The
	// hook fills it in, and the fields below.
	Strike int
	// Again is how often this detector found the same Reason in this run before.
	Again int
	Run   ident.RunID
	Label ident.Label // of the tool; zero for what is between calls
	Turn  int
	At    time.Time
}

// Detector looks at the tool calls of an agent.
type Detector interface {
	// Check is called before each tool call, whatever other detectors say of
	// it, and reports whether there is a detection. It is called concurrently;
	// state of a run belongs in a [middleware.PerRun]. It must not keep or
	// report what the call says. A panic or an error follows Config.FailMode.
	Check(ctx context.Context, call *middleware.ToolCall) (d Detection, found bool, err error)
}

// DetectorFunc makes a [Detector] of a function.
type DetectorFunc func(ctx context.Context, call *middleware.ToolCall) (Detection, bool, error)

var _ Detector = DetectorFunc(nil)

// Check calls f.
func (f DetectorFunc) Check(ctx context.Context, call *middleware.ToolCall) (Detection, bool, error) {
	return f(ctx, call)
}

// Action is what should happen after a detection. The zero value is invalid and
// means Abort.
type Action uint8

// The actions.
const (
	_ Action = iota
	// Nudge refuses the call and tells the model.
	Nudge
	// Abort ends the run.
	Abort
	// Escalate refuses the call and asks for a handoff to a human.
	Escalate
	// Observe only reports.
	Observe

	actionEnd
)

var actionNames = [actionEnd]string{ //nolint:gochecknoglobals // compiled table
	"invalid", Nudge: "nudge", Abort: "abort", Escalate: "escalate", Observe: "observe",
}

// String returns the action's name, or "invalid".
func (a Action) String() string {
	if a >= actionEnd {
		return actionNames[0]
	}

	return actionNames[a]
}

// Actions returns the closed set, for tables and tests.
func Actions() []Action { return []Action{Nudge, Abort, Escalate, Observe} }

// Policy says what should happen after a detection. It is a pure function: what
// it needs of the past is in the Detection.
type Policy func(d Detection) Action

// DefaultPolicy aborts on every detection.
func DefaultPolicy(Detection) Action { return Abort }

// TwoStrikes returns the policy that nudges at the first loop that a detector
// finds in a run and aborts at its second: a nudge blocks the call as safely,
// and a false stop costs less. The first stagnation is nudged in any case:
// work that does not get on is not yet senseless. Every other detection aborts.
func TwoStrikes() Policy {
	return func(d Detection) Action {
		if isLoop(d.Reason) && (d.Strike == 1 || d.Reason == middleware.ReasonStagnation && d.Again == 0) {
			return Nudge
		}

		return Abort
	}
}

// PerReason returns the policy that asks, for each kind of detection, the policy
// that is named for it, and other for the rest. A nil policy means
// [DefaultPolicy]. The map is copied.
func PerReason(other Policy, policies map[middleware.Reason]Policy) Policy {
	own := maps.Clone(policies)

	return func(d Detection) Action {
		p, ok := own[d.Reason]
		if !ok {
			p = other
		}
		if p == nil {
			p = DefaultPolicy
		}

		return p(d)
	}
}

// isLoop reports whether r is one of the ways in which an agent makes no
// progress.
func isLoop(r middleware.Reason) bool {
	switch r {
	case middleware.ReasonLoop, middleware.ReasonCycle, middleware.ReasonDrift, middleware.ReasonStagnation,
		middleware.ReasonFuse, middleware.ReasonWaiting, middleware.ReasonAnswerLoop, middleware.ReasonUnknownTool:
		return true
	default:
		return false
	}
}

// Poller is a [Detector] that computes on demand: a [Runner] asks it at each
// interval about the run that it was started for, whether there are calls or
// not. What follows from its detections happens at the run's next call.
type Poller interface {
	Detector
	// Poll reports whether there is a detection. It is bound by what Check is.
	Poll(ctx context.Context, run *middleware.Run) (d Detection, found bool, err error)
}
