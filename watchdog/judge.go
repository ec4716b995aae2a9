package watchdog

import (
	"context"

	"github.com/interlock-go/interlock/middleware"
)

// finding is what one detector answered about a call, if it was anything.
type finding struct {
	detector int
	seq      uint64
	d        Detection
	failed   bool
	cause    error
}

// ruling is what follows for the call.
type ruling struct {
	action Action
	failed bool // the action follows from FailMode
	cause  error
}

// blocks reports whether the call is not made, or is cancelled.
func (r ruling) blocks() bool { return r.action != Observe }

// judge asks every detector about the call, and the policy about the first
// detection. It returns the refusal, or nil if the call may be made.
func (w *Watchdog) judge(
	ctx context.Context, run *middleware.Run, state *runState, call *middleware.ToolCall, v *visit,
) error {
	at := whereOf(call)
	var found []finding // stays nil in the ordinary case
	for i, det := range w.detectors {
		f, ok := ask(ctx, det, run, call, v)
		if !ok {
			continue
		}
		f.detector = i
		if f.failed {
			f.seq = w.seq.Add(1)
		} else {
			f.d = w.complete(f.d, run, at)
			f.d.Strike, f.d.Again, f.seq = w.strike(state, i, f.d.Reason)
		}
		found = append(found, f)
	}
	owed := state.takeOwed()
	if found == nil && owed == 0 {
		return nil
	}
	decider, reason, r := -1, owed, owedRuling(owed)
	if owed == 0 {
		decider, reason, r = w.rule(found)
	}
	for _, f := range found {
		if a, ok := w.detectors[f.detector].(actor); ok && !f.failed {
			a.acted(ctx, call, r.blocks())
		}
	}
	var err error
	if r.blocks() {
		err = w.refuse(run, reason, r)
	}
	for i, f := range found {
		w.reportFinding(ctx, run, at, f, r, i == decider)
	}
	if owed != 0 {
		w.reportOwed(ctx, run, at, owed)
	}

	return err
}

// ask asks one detector and contains it. Nothing is held while it runs, so a
// detector that calls runtime.Goexit ends its caller, and the call is not made.
func ask(
	ctx context.Context, det Detector, run *middleware.Run, call *middleware.ToolCall, v *visit,
) (f finding, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			f, ok = finding{failed: true, cause: middleware.NewPanicError(v, nil)}, true
		}
	}()
	var (
		d     Detection
		fired bool
		err   error
	)
	if p, is := det.(*progress); is {
		d, fired, err = p.enter(run, call, v)
	} else {
		d, fired, err = det.Check(ctx, call)
	}
	if err != nil {
		return finding{failed: true, cause: err}, true
	}

	return finding{d: d}, fired //nolint:exhaustruct // the hook fills in the rest
}

// complete makes a detection whole, and keeps a detector of the user from
// saying what it cannot know.
func (w *Watchdog) complete(d Detection, run *middleware.Run, at where) Detection {
	if !isLoop(d.Reason) && d.Reason != middleware.ReasonRegression {
		d.Reason = middleware.ReasonCustomDetector
	}
	if !(d.Severity > 0 && d.Severity <= 1) { // also for NaN
		d.Severity = 0.5
	}
	d.Elapsed = 0
	d.Run, d.Label, d.Turn, d.At = run.ID(), at.label, at.turn, w.cfg.Now()

	return d
}

// rule decides about a call. It returns the finding that decided, and the
// reason of a refusal.
func (w *Watchdog) rule(found []finding) (decider int, reason middleware.Reason, r ruling) {
	reason, r.action = middleware.ReasonDetectorFailed, Observe
	first := -1
	for i, f := range found {
		if !f.failed {
			first = i

			break
		}
	}
	if first >= 0 {
		r = w.decide(found[first].d)
		if !r.failed {
			reason = found[first].d.Reason
		}
	}
	// What failed could have been the one that stops: closed, it refuses what
	// the others would let pass or only nudge.
	if w.cfg.FailMode == middleware.FailClosed && (r.action == Observe || r.action == Nudge) {
		for i, f := range found {
			if f.failed {
				return i, middleware.ReasonDetectorFailed, ruling{action: Abort, failed: true, cause: f.cause}
			}
		}
	}

	return max(first, 0), reason, r
}

// decide asks the policy and contains it. What it does not know is Abort.
func (w *Watchdog) decide(d Detection) (r ruling) {
	defer func() {
		if v := recover(); v != nil {
			r = w.failed(middleware.NewPanicError(v, nil))
		}
	}()
	a := w.cfg.Policy(d)
	if a == 0 || a >= actionEnd {
		a = Abort
	}

	return ruling{action: a}
}

func (w *Watchdog) failed(cause error) ruling {
	if w.cfg.FailMode == middleware.FailOpen {
		return ruling{action: Observe, failed: true, cause: cause}
	}

	return ruling{action: Abort, failed: true, cause: cause}
}

// refuse returns the denial of a call that is not made. It halts the run where
// the policy said so; what failed refuses one call.
func (w *Watchdog) refuse(run *middleware.Run, reason middleware.Reason, r ruling) error {
	if r.action == Abort && !r.failed {
		run.Halt(middleware.ComponentWatchdog, reason)
	}

	return middleware.NewDenial(middleware.Refusal{
		Run: run.ID(), Component: middleware.ComponentWatchdog, Reason: reason,
		Verdict: r.action.verdict(), Action: middleware.ActionBlock, Cause: r.cause,
	})
}

// verdict is how an action is reported, and the kind of its denial.
func (a Action) verdict() middleware.Verdict {
	switch a {
	case Nudge:
		return middleware.VerdictModify
	case Escalate:
		return middleware.VerdictEscalate
	case Observe:
		return middleware.VerdictAbstain
	case Abort:
		return middleware.VerdictDeny
	default:
		return middleware.VerdictDeny
	}
}
