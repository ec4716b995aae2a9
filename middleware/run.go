package middleware

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
)

// RunConfig says what a run is.
type RunConfig struct {
	// ID of the run. Zero: 128 random bits are drawn.
	ID ident.RunID
	// Workflow that the run belongs to. Required.
	Workflow ident.WorkflowID
	// Label is the registered name of the agent, for telemetry. May be zero.
	Label ident.Label
	// Previewer takes the admission preview at the start. nil: none is taken,
	// and the run may do read-only work only.
	Previewer Previewer
	// Receivers hear the signals of the run.
	Receivers []SignalReceiver
	// Slots are the per-run states that are persisted with the run.
	Slots []Slot
	// Now is the wall clock. nil: time.Now.
	Now func() time.Time
	// Random is the source of the ID. nil: crypto/rand.
	Random io.Reader
}

// Run is one run of an agent: the identity that its calls share, the admission
// preview that its effects are checked against, and the state that components
// keep for it. It travels in the context. All methods are safe for concurrent
// use and on a nil *Run.
type Run struct {
	id        ident.RunID
	workflow  ident.WorkflowID
	label     ident.Label
	started   time.Time
	parent    *Run
	previewer Previewer
	receivers []SignalReceiver
	saved     []Slot

	ended   atomic.Bool
	halted  atomic.Uint32 // component<<8 | reason, 0 if not halted
	ignored atomic.Uint64
	preview atomic.Pointer[Preview]
	slots   atomic.Pointer[[]*slot] // copy on write under mu

	mu       sync.Mutex
	children map[*Run]struct{}
	turns    turns
}

// StartRun begins a run and returns the context that carries it. A run in ctx
// becomes its parent: ending and halting flow down from it. The preview is
// taken here; if the workflow may not act now, the run starts without one and
// its effects are refused with that code.
//
// It fails with unknown_workflow for a zero Workflow, with the parent's denial
// if that has ended or is halted, and with an ident.Error if no ID can be drawn.
func StartRun(ctx context.Context, cfg RunConfig) (context.Context, *Run, error) {
	r, err := newRun(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	_, _ = r.Preview(ctx) // a refusal is found again, with its code, at each effect

	return r.enter(ctx)
}

func newRun(ctx context.Context, cfg RunConfig) (*Run, error) {
	if cfg.Workflow.IsZero() {
		return nil, NewDenial(Refusal{Component: ComponentRun, Reason: ReasonUnknownWorkflow})
	}
	parent := RunFrom(ctx)
	if parent != nil {
		if err := parent.Check(); err != nil {
			return nil, err
		}
	}
	id := cfg.ID
	if id.IsZero() {
		var err error
		if cfg.Random != nil {
			id, err = ident.GenerateRunID(cfg.Random)
		} else {
			id, err = ident.NewRunID()
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // an ident.Error is content-free
		}
	}
	now := cfg.Now
	if now == nil {
		now = time.Now
	}

	return &Run{
		id: id, workflow: cfg.Workflow, label: cfg.Label, started: now(), parent: parent,
		previewer: cfg.Previewer, receivers: slices.Clone(cfg.Receivers), saved: slices.Clone(cfg.Slots),
	}, nil
}

func (r *Run) enter(ctx context.Context) (context.Context, *Run, error) {
	if p := r.parent; p != nil && !p.adopt(r) {
		r.End() // what was restored may hold timers

		return nil, nil, p.Check()
	}

	return ContextWithRun(ctx, r), r, nil
}

// ID returns the run's identifier.
func (r *Run) ID() ident.RunID {
	if r == nil {
		return ident.RunID{}
	}

	return r.id
}

// Workflow returns the workflow that the run belongs to.
func (r *Run) Workflow() ident.WorkflowID {
	if r == nil {
		return ident.WorkflowID{}
	}

	return r.workflow
}

// Label returns the registered name of the agent, zero if it has none.
func (r *Run) Label() ident.Label {
	if r == nil {
		return ident.Label{}
	}

	return r.label
}

// Parent returns the run that this one is nested in, or nil.
func (r *Run) Parent() *Run {
	if r == nil {
		return nil
	}

	return r.parent
}

// Started returns the wall-clock time of the start.
func (r *Run) Started() time.Time {
	if r == nil {
		return time.Time{}
	}

	return r.started
}

// IgnoredSignals returns how many signals were out of range.
func (r *Run) IgnoredSignals() uint64 {
	if r == nil {
		return 0
	}

	return r.ignored.Load()
}

// Preview takes a fresh admission preview and keeps it for the effects that
// follow. On error the run keeps what it had: an effect is then refused as
// stale, or with the state's code; a preview of another workflow, or a zero one,
// is untrusted_state. Approvals given under an older preview are
// not valid for the new one.
func (r *Run) Preview(ctx context.Context) (Preview, error) {
	if r == nil || r.previewer == nil {
		return Preview{}, NewDenial(Refusal{Run: r.ID(), Component: ComponentAdmission, Reason: ReasonAdmissionDisabled})
	}
	p, err := takePreview(ctx, r.previewer, r.workflow)
	if err != nil {
		return Preview{}, err
	}
	r.preview.Store(&p)

	return p, nil
}

func takePreview(ctx context.Context, pv Previewer, w ident.WorkflowID) (p Preview, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = Preview{}, NewPanicError(v, nil)
		}
	}()

	p, err = pv.Preview(ctx, w)
	if err == nil && p.workflow != w {
		err = NewDenial(Refusal{Component: ComponentAdmission, Reason: ReasonUntrustedState})
	}
	if err != nil {
		return Preview{}, err
	}

	return p, nil
}

// CurrentPreview returns the preview that the run's effects are checked
// against; zero if it has none.
func (r *Run) CurrentPreview() Preview {
	if r == nil {
		return Preview{}
	}
	if p := r.preview.Load(); p != nil {
		return *p
	}

	return Preview{}
}

// Halt stops the run for good and reports whether this call did it: every later
// call of it and of its children is refused with this component and reason.
// Halting is kept when the run is persisted.
func (r *Run) Halt(c Component, reason Reason) bool {
	if r == nil || c == 0 || reason == 0 {
		return false
	}

	return r.halted.CompareAndSwap(0, uint32(c)<<8|uint32(reason))
}

// Halted returns why the run, or the nearest run around it, was halted.
func (r *Run) Halted() (Component, Reason, bool) {
	for ; r != nil; r = r.parent {
		if h := r.halted.Load(); h != 0 {
			return Component(h >> 8), Reason(h & 0xff), true //nolint:gosec,mnd // packed by Halt
		}
	}

	return 0, 0, false
}

// Ended reports whether the run or one around it has ended. A nil run has.
func (r *Run) Ended() bool {
	if r == nil {
		return true
	}
	for ; r != nil; r = r.parent {
		if r.ended.Load() {
			return true
		}
	}

	return false
}

// Check returns the denial for a call of this run, or nil: no_run for a nil
// run, run_ended, or the reason the run was halted for.
func (r *Run) Check() error {
	if r == nil {
		return NewDenial(Refusal{Component: ComponentRun, Reason: ReasonNoRun})
	}
	if c, reason, halted := r.Halted(); halted {
		return NewDenial(Refusal{Run: r.id, Component: c, Reason: reason})
	}
	if r.Ended() {
		return NewDenial(Refusal{Run: r.id, Component: ComponentRun, Reason: ReasonRunEnded})
	}

	return nil
}

// End ends the run and its children, runs the End functions of their per-run
// states and lets go of those, so that a context that is still held does not
// hold them. It reports whether this call did it; ending twice is harmless.
func (r *Run) End() bool {
	if r == nil || !r.ended.CompareAndSwap(false, true) {
		return false
	}
	r.mu.Lock()
	children := r.children
	r.children = nil
	r.turns = turns{}
	r.mu.Unlock()
	for c := range children {
		c.End()
	}
	if slots := r.slots.Swap(nil); slots != nil {
		for _, s := range slices.Backward(*slots) {
			s.close()
		}
	}
	if p := r.parent; p != nil {
		p.mu.Lock()
		delete(p.children, r)
		p.mu.Unlock()
	}

	return true
}

func (r *Run) adopt(child *Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.Load() {
		return false
	}
	if r.children == nil {
		r.children = make(map[*Run]struct{})
	}
	r.children[child] = struct{}{}

	return true
}
