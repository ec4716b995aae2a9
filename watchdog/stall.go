package watchdog

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// phase is where a stall clock stands, see [alarm].
type phase uint8

const (
	done phase = iota
	running
	paused
	firing
	fired
)

// clock is the stall clock of one call. The alarm's lock guards what is below
// the line.
type clock struct {
	dog    *Watchdog
	run    *middleware.Run
	state  *runState
	call   *middleware.ToolCall
	outer  context.Context //nolint:containedctx // of the call: its clock is paused too, and the observer gets it
	cancel context.CancelCauseFunc
	gone   chan struct{} // closed when the call is cancelled; nil without Detach

	phase      phase
	ruling     ruling // once fired
	deadline   time.Time
	left       time.Duration // while paused
	pauses     int
	prev, next *clock
}

var _ middleware.Pauser = (*clock)(nil)

// timed makes the call under a stall clock.
func (w *Watchdog) timed(
	ctx context.Context, run *middleware.Run, state *runState, call *middleware.ToolCall, next middleware.ToolHandler,
) (*middleware.ToolResult, error) {
	inner, cancel := context.WithCancelCause(ctx)
	c := &clock{dog: w, run: run, state: state, call: call, outer: ctx, cancel: cancel}
	inner = middleware.ContextWithPauser(inner, c)
	if w.cfg.Detach > 0 {
		c.gone = make(chan struct{})
	}
	state.alarm.start(c)
	returned := false
	defer func() {
		if !returned { // a panic or runtime.Goexit in the tool
			c.stop()
		}
	}()
	var (
		res *middleware.ToolResult
		err error
	)
	if c.gone == nil {
		res, err = next(inner, call)
	} else {
		res, err = w.apart(inner, c, next)
	}
	returned = true
	r, stalled := c.stop()
	switch {
	case !stalled || r.action == Observe:
		return res, err
	case err == nil:
		if r.action == Escalate {
			state.owed.Store(uint32(middleware.ReasonStalled))
		}

		return res, nil
	default:
		return nil, c.stalled(r, err)
	}
}

// stop ends the clock and reports what was decided, if it fired.
func (c *clock) stop() (r ruling, stalled bool) {
	a := &c.state.alarm
	a.mu.Lock()
	switch c.phase {
	case running:
		a.take(c)
		c.phase = done
	case paused, firing:
		c.phase = done
	case done, fired:
	}
	r, stalled = c.ruling, c.phase == fired
	a.mu.Unlock()
	c.cancel(nil)

	return r, stalled
}

// Pause stops the clock, and the clock of the call around this one.
func (c *clock) Pause() (resume func()) {
	outer := middleware.Pause(c.outer)
	a := &c.state.alarm
	a.mu.Lock()
	c.pauses++
	if c.phase == running {
		a.take(c)
		c.phase, c.left = paused, time.Until(c.deadline)
	}
	a.mu.Unlock()
	resumed := false

	return func() {
		a.mu.Lock()
		if !resumed {
			resumed = true
			c.pauses--
			if c.pauses == 0 && c.phase == paused {
				a.run(c, c.left)
			}
		}
		a.mu.Unlock()
		outer()
	}
}

// fire runs on the timer's goroutine when the call has been open for too long.
// Whatever happens here, something is decided: nobody else would.
func (c *clock) fire() {
	w := c.dog
	strikes, again, seq := w.strike(c.state, stall, middleware.ReasonStalled)
	elapsed := w.cfg.StallTimeout + time.Since(c.deadline)
	d := Detection{
		Reason: middleware.ReasonStalled, Elapsed: elapsed,
		Severity: min(1, float64(elapsed)/(2*float64(w.cfg.StallTimeout))),
		Strike:   strikes, Again: again, Run: c.run.ID(), Label: c.call.Label(), Turn: c.call.Turn(),
	}
	r := w.failed(nil) // for a policy that ends the goroutine
	defer func() {
		if v := recover(); v != nil { // Config.Now
			r = w.failed(middleware.NewPanicError(v, nil))
		}
		c.apply(d, seq, r)
	}()
	d.At = w.cfg.Now()
	r = w.decide(d)
}

// apply makes happen what was decided, unless the call came back meanwhile.
func (c *clock) apply(d Detection, seq uint64, r ruling) {
	a := &c.state.alarm
	a.mu.Lock()
	if c.phase != firing {
		a.mu.Unlock()

		return
	}
	c.phase, c.ruling = fired, r
	a.mu.Unlock()
	if r.blocks() {
		if r.action == Abort {
			c.run.Halt(middleware.ComponentWatchdog, middleware.ReasonStalled)
		}
		c.cancel(middleware.ReasonStalled)
		if c.gone != nil {
			close(c.gone)
		}
	}
	dec := c.dog.decision(c.run, whereOf(c.call), d)
	dec.Seq, dec.Verdict, dec.Action = seq, r.action.verdict(), middleware.ActionProceed
	if r.blocks() {
		dec.Action = middleware.ActionCancel
	}
	middleware.Notify(c.outer, c.dog.cfg.Observer, dec)
	if r.failed {
		c.dog.reportPolicy(c.outer, dec)
	}
}

// stalled returns what the agent gets for a call that was cancelled and then
// failed.
func (c *clock) stalled(r ruling, err error) error {
	verdict := r.action.verdict()
	unknown := errors.Is(err, middleware.ReasonOutcomeUnknown)
	if d, ok := errors.AsType[*middleware.Denial](err); ok && d.Run() == c.run.ID() && !unknown {
		if verdict == middleware.VerdictModify {
			return err // refused inside, before the tool: that one knows why
		}

		return c.denial(verdict, err)
	}
	if unknown || !c.call.Effect().Repeatable() {
		if verdict == middleware.VerdictModify {
			verdict = middleware.VerdictDeny // nobody may be invited to pay twice
		}

		return middleware.UnknownOutcome(c.call, c.denial(verdict, err))
	}
	if verdict == middleware.VerdictModify && errors.Is(err, middleware.ReasonPanic) {
		return err
	}

	return c.denial(verdict, err)
}

func (c *clock) denial(v middleware.Verdict, cause error) error {
	return middleware.NewDenial(middleware.Refusal{
		Run: c.run.ID(), Component: middleware.ComponentWatchdog, Reason: middleware.ReasonStalled,
		Verdict: v, Action: middleware.ActionCancel, Cause: cause,
	})
}
