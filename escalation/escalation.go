package escalation

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// SlotName is the name of the section in a persisted run.
	SlotName = "escalation"

	defaultFloor       = 0.60
	defaultSinkTimeout = 5 * time.Second
	maxSinkTimeout     = time.Minute
)

// Config of an [Escalation].
type Config struct {
	// Policy with the limits. Default, for the zero Policy: [DefaultPolicy]. A
	// Policy with some limits set needs all of them, 1…32.
	Policy Policy
	// ConfidenceFloor: a reported confidence below it counts as uncertainty.
	// Default 0.60; (0, 1].
	ConfidenceFloor float64
	// Sink takes the handoffs. Default nil: they are only on the error and on
	// the breaker.
	Sink Sink
	// SinkTimeout bounds a delivery by the context that the sink gets. Default
	// 5 s; at most 1 min.
	SinkTimeout time.Duration
	// Observer hears the decisions. Default nil: nobody.
	Observer middleware.Observer
	// Now is the wall clock of handoffs, truncated to seconds. Default nil:
	// time.Now.
	Now func() time.Time
}

// Escalation feeds one [Breaker] per run. It is safe for concurrent use by any
// number of runs. The zero value and nil make chains that refuse every call.
type Escalation struct {
	policy      Policy
	floor       float64
	sink        Sink
	sinkTimeout time.Duration
	observer    middleware.Observer
	now         func() time.Time

	seq     atomic.Uint64
	waiting atomic.Int64 // runs whose next action has a confidence counted already
	slot    middleware.PerRun[track]
}

var _ middleware.SignalReceiver = (*Escalation)(nil)

// New returns an Escalation. It fails with a [ConfigError] that names the first
// field out of bounds.
func New(cfg Config) (*Escalation, error) {
	if cfg.Policy == (Policy{}) {
		cfg.Policy = DefaultPolicy()
	}
	if err := cfg.Policy.Validate(); err != nil {
		return nil, err
	}
	if cfg.ConfidenceFloor == 0 {
		cfg.ConfidenceFloor = defaultFloor
	}
	if !(cfg.ConfidenceFloor > 0 && cfg.ConfidenceFloor <= 1) { // so that NaN is refused
		return nil, &ConfigError{reason: middleware.ReasonInvalidThreshold, field: "ConfidenceFloor", bound: "in (0, 1]"}
	}
	if cfg.SinkTimeout == 0 {
		cfg.SinkTimeout = defaultSinkTimeout
	}
	if cfg.SinkTimeout < 0 || cfg.SinkTimeout > maxSinkTimeout {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "SinkTimeout", bound: "in (0, 1 min]"}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	e := &Escalation{
		policy: cfg.Policy, floor: cfg.ConfidenceFloor, sink: cfg.Sink, sinkTimeout: cfg.SinkTimeout,
		observer: cfg.Observer, now: cfg.Now,
	}
	e.slot = middleware.PerRun[track]{Name: SlotName, New: e.newTrack, End: e.endTrack, Save: saveTrack, Load: e.loadTrack}

	return e, nil
}

// Tool returns the middleware for tool calls.
func (e *Escalation) Tool() middleware.ToolMiddleware {
	return middleware.At(middleware.StageEscalation, layer[*middleware.ToolCall, *middleware.ToolResult](e, toolPlace))
}

// Model returns the middleware for model calls.
func (e *Escalation) Model() middleware.ModelMiddleware {
	return middleware.At(middleware.StageEscalation, layer[*middleware.ModelCall, *middleware.ModelResult](e, modelPlace))
}

// Slot returns the per-run state, for [middleware.RunConfig]: with it, counts,
// digests and the handoff are persisted with the run.
func (e *Escalation) Slot() middleware.Slot {
	if e == nil {
		return &middleware.PerRun[track]{} // which no run accepts
	}

	return &e.slot
}

// Format prints the type for every verb and flag: the path of a sink may tell something.
func (*Escalation) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "escalation.Escalation") }

// Handoff returns the handoff of a run that was halted here. It is there until
// the run ends; the error that tripped keeps it longer ([HandoffOf]).
func (e *Escalation) Handoff(run *middleware.Run) (Handoff, bool) { return e.breaker(run).Handoff() }

// Counts returns what was counted in a run; nothing after its end.
func (e *Escalation) Counts(run *middleware.Run) Counts { return e.breaker(run).Counts() }

func (e *Escalation) breaker(run *middleware.Run) *Breaker {
	if e == nil {
		return nil
	}
	t, err := e.slot.Get(run)
	if err != nil {
		return nil
	}

	return t.breaker
}

// ReceiveSignal counts a confidence below the floor as uncertainty, at once:
// an agent that is unsure of its final answer makes no further call that it
// could be counted with. Other signals are ignored.
func (e *Escalation) ReceiveSignal(ctx context.Context, run *middleware.Run, s middleware.Signal) {
	if e == nil || e.slot.New == nil || s.Kind != middleware.SignalConfidence || !(s.Value < e.floor) || run.Check() != nil {
		return
	}
	f := finding{class: middleware.FailureUncertainty, component: middleware.ComponentRun, signal: true}
	p := place{label: run.Label(), turn: run.Turn()}
	if call, ok := middleware.ToolCallFrom(ctx); ok {
		f.component = middleware.ComponentTool
		p = toolPlace(run, call)
	}
	_, _ = e.count(ctx, run, p, f, nil) // nobody is there to return an error to; the next call is refused
}

// place says which call something happened in. action is zero outside of one.
type place struct {
	seam    middleware.Component
	label   ident.Label
	turn    int
	attempt int
	action  action
}

// action tells the tool calls of a run apart, over all attempts. The id is
// content and stays in memory.
type action struct {
	id   string
	turn int
}

func toolPlace(_ *middleware.Run, c *middleware.ToolCall) place {
	return place{
		seam: middleware.ComponentTool, label: c.Label(), turn: c.Turn(), attempt: c.Attempt(),
		action: action{id: c.ID(), turn: c.Turn()},
	}
}

func modelPlace(r *middleware.Run, c *middleware.ModelCall) place {
	return place{seam: middleware.ComponentModel, label: c.Candidate(), turn: r.Turn(), attempt: c.Attempt()}
}

// layer is the middleware of both seams. Nothing of the run's state is touched
// unless the call fails or a signal waits for it.
func layer[In, Out any](e *Escalation, at func(*middleware.Run, In) place) middleware.Middleware[In, Out] {
	return func(next middleware.Handler[In, Out]) middleware.Handler[In, Out] {
		if e == nil || e.slot.New == nil || next == nil {
			return nil // At makes a chain of it that refuses every call
		}

		return func(ctx context.Context, in In) (out Out, err error) {
			var none Out
			run := middleware.RunFrom(ctx)
			if err := run.Check(); err != nil {
				return none, err // hand-made chains may lack the run check
			}
			if e.waiting.Load() != 0 {
				e.begin(run, at(run, in).action)
			}
			returned := false
			defer func() {
				if returned {
					return
				}
				v := recover() // nil for Goexit, which goes on; it is counted all the same
				f := finding{class: middleware.FailureTool, component: at(run, in).seam}
				out = none
				_, err = e.count(ctx, run, at(run, in), f, middleware.NewPanicError(v, debug.Stack()))
			}()
			out, err = next(ctx, in)
			returned = true
			if err == nil {
				return out, nil
			}
			p := at(run, in)
			halted, refused := e.count(ctx, run, p, classify(ctx, run.ID(), p.seam, err), err)
			if halted {
				return none, refused
			}

			return out, err
		}
	}
}
