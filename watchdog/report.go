package watchdog

import (
	"context"

	"github.com/interlock-go/interlock/middleware"
)

// reportFinding tells the observer of what one detector found before a call:
// with the verdict if it decided, else as an abstention.
func (w *Watchdog) reportFinding(
	ctx context.Context, run *middleware.Run, call *middleware.ToolCall, f finding, r ruling, decided bool,
) {
	d := w.decision(run, call, f.d)
	d.Seq, d.Verdict, d.Action = f.seq, middleware.VerdictAbstain, middleware.ActionProceed
	if r.blocks() {
		d.Action = middleware.ActionBlock
	}
	if decided {
		d.Verdict = r.action.verdict()
	}
	if f.failed {
		d.Reason, d.FailMode = middleware.ReasonDetectorFailed, w.cfg.FailMode
	}
	middleware.Notify(ctx, w.cfg.Observer, d)
	if decided && r.failed && !f.failed { // the policy
		w.reportPolicy(ctx, d)
	}
}

// reportPolicy tells the observer that the policy failed about a detection.
func (w *Watchdog) reportPolicy(ctx context.Context, d middleware.Decision) {
	d.Seq = w.seq.Add(1)
	d.Reason, d.FailMode = middleware.ReasonDetectorFailed, w.cfg.FailMode
	d.Count, d.Limit, d.Severity, d.Duration = 0, 0, 0, 0
	middleware.Notify(ctx, w.cfg.Observer, d)
}

// reportOwed tells the observer of the refusal that an earlier call is the
// reason of.
func (w *Watchdog) reportOwed(ctx context.Context, run *middleware.Run, call *middleware.ToolCall) {
	d := w.decision(run, call, Detection{Reason: middleware.ReasonStalled})
	d.Seq, d.Verdict, d.Action = w.seq.Add(1), middleware.VerdictEscalate, middleware.ActionBlock
	middleware.Notify(ctx, w.cfg.Observer, d)
}

func (w *Watchdog) decision(run *middleware.Run, call *middleware.ToolCall, d Detection) middleware.Decision {
	return middleware.Decision{
		Component: middleware.ComponentWatchdog, Reason: d.Reason,
		Run: run.ID(), Workflow: run.Workflow(), Label: call.Label(), Turn: call.Turn(), Attempt: call.Attempt(),
		Count: d.Count, Limit: d.Limit, Severity: d.Severity, Duration: d.Elapsed,
	}
}
