package interlock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// Run is a run that the caller ends itself. See [Guard.StartRun].
type Run struct {
	guard *Guard
	run   *middleware.Run
	once  sync.Once
	close middleware.End
	last  atomic.Pointer[escalation.Handoff] // kept beyond the end
}

// StartRun begins a run of a registered workflow and returns the context that
// its calls are made under. It is for servers that serve a run over several
// requests: [Run.Context] puts it into another context. A run in ctx becomes
// the parent. The admission preview is taken here.
//
// It fails with unknown_workflow, or with the denial of a parent that has ended
// or is halted.
func (g *Guard) StartRun(ctx context.Context, workflow ident.WorkflowID) (context.Context, *Run, error) {
	cfg, err := g.runConfig(ctx, workflow)
	if err != nil {
		return nil, nil, err
	}
	ctx, run, err := middleware.StartRun(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}

	ctx, r := g.open(ctx, run)

	return ctx, r, nil
}

// RestoreRun continues a run that [Run.Save] rendered, perhaps in another
// process. Its saved preview is checked first: if admission has changed since,
// the denial is returned and nothing runs. A halted run is halted again, and
// its calls are refused.
func (g *Guard) RestoreRun(ctx context.Context, data []byte) (context.Context, *Run, error) {
	inner, run, err := middleware.RestoreRun(ctx, g.baseRun(), data)
	if err != nil {
		return nil, nil, err
	}
	if _, known := g.labels[run.Workflow()]; !known {
		run.End()

		return nil, nil, g.refuseWorkflow(ctx)
	}
	if p := run.CurrentPreview(); !p.IsZero() {
		if err := g.admission.Check(ctx, p); err != nil {
			run.End()

			return nil, nil, err
		}
	}
	inner, r := g.open(inner, run)

	return inner, r, nil
}

// open starts the run's span. A restored run has no label of its own.
func (g *Guard) open(ctx context.Context, run *middleware.Run) (context.Context, *Run) {
	ctx, end := middleware.StartOp(ctx, g.cfg.Tracer, middleware.OpRun, g.labels[run.Workflow()], 0)

	return ctx, &Run{guard: g, run: run, close: end}
}

// traceSlot is what keeps, with a saved run, where its trace is: the tracer's
// own slot, if it has one, or one that passes on what was saved. So every run
// has the section, and none is refused because telemetry was switched on or off.
func traceSlot(t middleware.Tracer) middleware.Slot {
	if s, ok := t.(interface{ Slot() middleware.Slot }); ok {
		return s.Slot()
	}

	return (*otelx.Telemetry)(nil).Slot()
}

func (g *Guard) baseRun() middleware.RunConfig {
	return middleware.RunConfig{
		Previewer: g.admission, Slots: g.slots, Receivers: g.receivers, Now: g.cfg.Now,
	}
}

func (g *Guard) runConfig(ctx context.Context, workflow ident.WorkflowID) (middleware.RunConfig, error) {
	label, known := g.labels[workflow]
	if !known {
		return middleware.RunConfig{}, g.refuseWorkflow(ctx)
	}
	cfg := g.baseRun()
	cfg.Workflow, cfg.Label = workflow, label

	return cfg, nil
}

// refuseWorkflow reports the refusal without the identifier: one that was not
// registered may be anything.
func (g *Guard) refuseWorkflow(ctx context.Context) error {
	d := middleware.NewDenial(middleware.Refusal{
		Component: middleware.ComponentRun, Reason: middleware.ReasonUnknownWorkflow,
	})
	middleware.Notify(ctx, g.cfg.Observer, middleware.Decision{
		Component: d.Component(), Verdict: d.Verdict(), Action: d.Action(), Reason: d.Reason(),
	})

	return d
}

// ID returns the run's identifier.
func (r *Run) ID() ident.RunID { return r.run.ID() }

// Context returns ctx as a part of the run.
func (r *Run) Context(ctx context.Context) context.Context {
	return middleware.ContextWithRun(ctx, r.run)
}

// Preview takes a fresh admission preview for the effects that follow: after a
// stop and a new enable, the old one stays stale. Approvals are needed anew.
func (r *Run) Preview(ctx context.Context) (middleware.Preview, error) { return r.run.Preview(ctx) }

// Halted returns why the run was halted, if it was.
func (r *Run) Halted() (middleware.Component, middleware.Reason, bool) { return r.run.Halted() }

// Handoff returns the handoff of the run's escalation breaker, once it has
// tripped, also after the end of the run.
func (r *Run) Handoff() (escalation.Handoff, bool) {
	if h := r.last.Load(); h != nil {
		return *h, true
	}

	return r.guard.escalation.Handoff(r.run)
}

// Save renders the run's state as canonical JSON, for [Guard.RestoreRun].
func (r *Run) Save() ([]byte, error) { return r.run.Save() }

// End ends the run and its children. err says how it went: its class goes to
// telemetry, its text nowhere. It reports whether this call ended it; ending
// twice is harmless.
func (r *Run) End(err error) bool {
	if h, tripped := r.Handoff(); tripped {
		r.last.CompareAndSwap(nil, &h)
	}
	ended := r.run.End()
	r.once.Do(func() {
		r.close(middleware.Outcome{Decision: middleware.Decision{
			Component: middleware.ComponentRun, Run: r.run.ID(), Label: r.guard.labels[r.run.Workflow()],
			Reason: middleware.FailureReason(err, middleware.ReasonAgentFailed),
		}})
	})

	return ended
}

// Do runs fn as one run of workflow and ends it when fn returns, panics or
// calls runtime.Goexit. It returns fn's error as it is, or why no run could be
// started.
func (g *Guard) Do(ctx context.Context, workflow ident.WorkflowID, fn func(ctx context.Context) error) error {
	resume := middleware.Pause(ctx) // the stall clock of an enclosing call, if this is a nested run
	defer resume()
	ctx, run, err := g.StartRun(ctx, workflow)
	if err != nil {
		return err
	}
	err = errNotReturned
	defer func() { run.End(err) }()
	err = fn(ctx)

	return err
}

// errNotReturned is how a run ends whose function panicked or exited.
var errNotReturned error = middleware.ReasonPanic
