package watchdog

import (
	"context"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// where is what a detection is about: a call of a tool, or with a zero label
// what is between calls.
type where struct {
	label   ident.Label
	turn    int
	attempt int
}

func whereOf(call *middleware.ToolCall) where {
	return where{label: call.Label(), turn: call.Turn(), attempt: call.Attempt()}
}

// reportFinding tells the observer of what one detector found before a call:
// with the verdict if it decided, else as an abstention.
func (w *Watchdog) reportFinding(
	ctx context.Context, run *middleware.Run, at where, f finding, r ruling, decided bool,
) {
	d := w.decision(run, at, f.d)
	d.Seq, d.Verdict, d.Action = f.seq, middleware.VerdictAbstain, middleware.ActionProceed
	if r.blocks() && (r.action != Nudge || !at.label.IsZero()) { // between calls a nudge blocks nothing
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
func (w *Watchdog) reportOwed(ctx context.Context, run *middleware.Run, at where, reason middleware.Reason) {
	d := w.decision(run, at, Detection{Reason: reason})
	d.Seq, d.Verdict, d.Action = w.seq.Add(1), owedRuling(reason).action.verdict(), middleware.ActionBlock
	middleware.Notify(ctx, w.cfg.Observer, d)
}

// reportInvention tells the observer of calls of tools that do not exist and
// that nothing follows from yet.
func (w *Watchdog) reportInvention(ctx context.Context, run *middleware.Run, at where, unknown int) {
	d := w.decision(run, at, Detection{Reason: middleware.ReasonUnknownTool, Count: unknown})
	d.Seq, d.Verdict, d.Action = w.seq.Add(1), middleware.VerdictAbstain, middleware.ActionProceed
	middleware.Notify(ctx, w.cfg.Observer, d)
}

func (w *Watchdog) decision(run *middleware.Run, at where, d Detection) middleware.Decision {
	return middleware.Decision{
		Component: middleware.ComponentWatchdog, Reason: d.Reason,
		Run: run.ID(), Workflow: run.Workflow(), Label: at.label, Turn: at.turn, Attempt: at.attempt,
		Count: d.Count, Limit: d.Limit, Severity: d.Severity, Duration: d.Elapsed,
	}
}
