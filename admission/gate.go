package admission

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Gate is the last thing before an effect. It stands at
// [middleware.StageGate]: inside of every retry and every approval.
type Gate struct{ c *Controller }

// Gate returns the gate of c; that of a nil *Controller refuses every effect.
func (c *Controller) Gate() *Gate {
	if c == nil {
		c = &Controller{now: time.Now}
	}

	return &Gate{c: c}
}

// Tool returns the middleware. Calls of tools that change nothing pass. For
// every other call, at each attempt: the call is counted as in flight, the
// run's preview is checked against the store, and the tool is called, or the
// call is refused with a [middleware.Denial] of admission (of the run, if there
// is none or it has ended). With [Config].Approver a call that is admitted, and
// that was not approved exactly as it is now, is approval_required. The observer hears of either before the tool is
// called; after that the context is looked at once more.
func (g *Gate) Tool() middleware.ToolMiddleware {
	if g == nil {
		return (*Controller)(nil).Gate().Tool()
	}

	return middleware.At(middleware.StageGate, func(next middleware.ToolHandler) middleware.ToolHandler {
		if next == nil {
			return nil
		}

		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if !call.Effect().Changes() {
				return next(ctx, call)
			}
			epoch := g.c.flying.enter()
			defer g.c.flying.leave(epoch)
			run := middleware.RunFrom(ctx)
			err := g.c.admit(ctx, intent{
				run: run, workflow: run.Workflow(), preview: run.CurrentPreview(),
				label: call.Label(), turn: call.Turn(), attempt: call.Attempt(), needsRun: true, call: call,
			})
			if err != nil {
				return nil, err
			}

			return next(ctx, call)
		}
	})
}

// intent is what is about to happen.
type intent struct {
	run      *middleware.Run
	workflow ident.WorkflowID
	preview  middleware.Preview
	label    ident.Label
	turn     int
	attempt  int
	needsRun bool
	call     *middleware.ToolCall // nil: of no tool, so that nobody can have approved it
}

// admit checks and reports. Its caller has counted the intent before.
func (c *Controller) admit(ctx context.Context, e intent) error {
	var began time.Time
	if c.observer != nil {
		began = c.now()
	}
	unapproved := c.approvals.redeem(ctx, e.call, e.preview) // first: a refused call has spent its approval
	var generation uint64
	var err error
	if e.needsRun {
		err = e.run.Check()
	}
	if err == nil {
		generation, err = c.check(ctx, e.workflow, e.preview)
	}
	if err == nil {
		err = unapproved
	}
	if c.observer != nil {
		c.report(ctx, e, generation, err, c.now().Sub(began))
	}
	if err == nil && ctx.Err() != nil { // checking and reporting may have taken long
		err = canceled(ctx)
	}

	return err
}

func (c *Controller) report(ctx context.Context, e intent, generation uint64, err error, took time.Duration) {
	d := middleware.Decision{
		Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Reason: middleware.ReasonAdmissionEnabled, Run: e.run.ID(), Workflow: e.workflow, Label: e.label,
		Turn: e.turn, Attempt: e.attempt, Generation: generation, Duration: took,
	}
	if err != nil {
		d.Verdict, d.Action = middleware.VerdictDeny, middleware.ActionBlock
		d.Reason = middleware.FailureReason(err, middleware.ReasonUntrustedState)
	}
	c.notify(ctx, d)
}

func (c *Controller) notify(ctx context.Context, d middleware.Decision) {
	c.known.mu.Lock()
	c.known.seq++
	d.Seq = c.known.seq
	c.known.mu.Unlock()
	middleware.Notify(ctx, c.observer, d)
}
