package escalation

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// count records a failure. It reports whether the run is halted for it, and
// returns what the call returns: err as it is, or the denial with err as its
// cause.
func (e *Escalation) count(ctx context.Context, run *middleware.Run, p place, f finding, err error) (halted bool, out error) {
	if f.class == 0 || run.Ended() {
		return false, err
	}
	t, stateErr := e.slot.Get(run)
	if stateErr != nil {
		return e.blind(ctx, run, p, f, stateErr, err)
	}
	if _, _, stopped := run.Halted(); stopped && !t.breaker.Halted() {
		return false, err // stopped by somebody else: what fails now is a consequence
	}
	r := e.record(t, run, p, f, e.clock())
	switch {
	case r.skipped:
		return false, err
	case errors.Is(r.err, middleware.ReasonCircuitOpen):
		e.notify(ctx, run, p, middleware.Decision{
			Seq: r.seq, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
			Reason: middleware.ReasonCircuitOpen, Class: f.class,
		})

		return true, refuse(run, middleware.ReasonCircuitOpen, err)
	case r.err != nil:
		return e.blind(ctx, run, p, f, r.err, err)
	case r.handoff != nil:
		return true, e.trip(ctx, run, p, r, err)
	default:
		e.notify(ctx, run, p, middleware.Decision{
			Seq: r.seq, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed,
			Reason: middleware.ReasonFailureCounted, Class: f.class,
			Count: r.counts.Of(f.class), Limit: e.policy.limit(f.class),
		})

		return false, err
	}
}

// trip halts the run first, then tells. The count is that of the limit which
// was reached; for a trip at once, that of the class.
func (e *Escalation) trip(ctx context.Context, run *middleware.Run, p place, r recorded, err error) error {
	run.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	h := *r.handoff
	count, limit := r.counts.Of(h.class), e.policy.limit(h.class)
	if total := r.counts.Total(); count < limit && total >= e.policy.Total {
		count, limit = total, e.policy.Total
	}
	defer e.deliver(ctx, run, p, h) // after the news, also if an observer ends the goroutine
	e.notify(ctx, run, p, middleware.Decision{
		Seq: r.seq, Verdict: middleware.VerdictEscalate, Action: middleware.ActionBlock,
		Reason: h.ReasonCode(), Class: h.class, Count: count, Limit: limit,
	})

	return refuse(run, middleware.ReasonCircuitOpen, &TripError{handoff: h, cause: err})
}

// blind halts a run whose failures cannot be counted.
func (e *Escalation) blind(
	ctx context.Context, run *middleware.Run, p place, f finding, why, err error,
) (halted bool, out error) {
	if run.Ended() {
		return false, err
	}
	reason := middleware.ReasonOf(why)
	if reason == 0 {
		reason = middleware.ReasonInvalidRunState
	}
	run.Halt(middleware.ComponentEscalation, reason)
	e.notify(ctx, run, p, middleware.Decision{
		Seq: e.seq.Add(1), Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock, Reason: reason, Class: f.class,
	})

	return true, refuse(run, reason, err)
}

// deliver queues the handoff of a halted run.
func (e *Escalation) deliver(ctx context.Context, run *middleware.Run, p place, h Handoff) {
	deliver(ctx, e.sink, e.sinkTimeout, h, func() {
		e.notify(ctx, run, p, middleware.Decision{
			Seq: e.seq.Add(1), Verdict: middleware.VerdictAbstain, Action: middleware.ActionBlock,
			Reason: middleware.ReasonSinkFailed, Class: h.class,
		})
	})
}

// deliver gives a sink time of its own: the handoff has to arrive also if the
// caller has hung up. A sink cannot change what happens to the caller; failed
// hears of its error, its panic, or that it ended the goroutine.
func deliver(ctx context.Context, sink Sink, timeout time.Duration, h Handoff, failed func()) {
	if sink == nil {
		return
	}
	delivered := false
	defer func() {
		_ = recover()
		if !delivered {
			failed()
		}
	}()
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	delivered = sink.Deliver(inner, h) == nil
}

func (e *Escalation) notify(ctx context.Context, run *middleware.Run, p place, d middleware.Decision) {
	d.Component = middleware.ComponentEscalation
	d.Run, d.Workflow = run.ID(), run.Workflow()
	d.Label, d.Turn, d.Attempt = p.label, p.turn, p.attempt
	middleware.Notify(ctx, e.observer, d)
}

// clock returns the time in the form that breakers take; the zero time, which
// they refuse, if the clock panics.
func (e *Escalation) clock() (now time.Time) {
	defer func() {
		if recover() != nil {
			now = time.Time{}
		}
	}()

	return e.now().UTC().Truncate(time.Second)
}

func refuse(run *middleware.Run, reason middleware.Reason, cause error) error {
	return middleware.NewDenial(middleware.Refusal{
		Run: run.ID(), Component: middleware.ComponentEscalation, Reason: reason, Cause: cause,
	})
}
