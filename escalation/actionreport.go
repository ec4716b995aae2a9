package escalation

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// publish tells what a step of the machine did, asks for a human if it tripped,
// and evaluates the profile. It runs outside of all locks.
func (b *ActionBreaker) publish(ctx context.Context, c *actionCircuit, p actionPlace, rep *actionReport) {
	if rep.told == 0 && !rep.evaluate {
		return
	}
	at := p
	if rep.lost != nil {
		at = *rep.lost
	}
	// Deferred, the last one first: an observer that ends the goroutine takes
	// neither with it.
	if rep.evaluate {
		defer b.evaluate(ctx, c, p)
	}
	if last := rep.events[1]; last.state == middleware.CircuitOpen {
		defer b.handOff(ctx, c, at, last)
	}
	for _, e := range rep.events[:rep.told] {
		b.event(ctx, c, at, e, rep.risk)
	}
}

func (b *ActionBreaker) event(ctx context.Context, c *actionCircuit, p actionPlace, e actionEvent, risk float64) {
	d := middleware.Decision{
		Seq: e.seq, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed, Reason: e.reason,
		Class: e.reading.class(), Circuit: e.state, Count: e.count, Limit: e.limit,
	}
	if e.reading == readGuardrail {
		d.Severity = risk
	}
	if e.state != 0 {
		p.label = c.label // of the breaker: a transition is not of one tool
	}
	if e.state == middleware.CircuitOpen {
		d.Verdict, d.Action = middleware.VerdictEscalate, middleware.ActionBlock
	}
	b.notify(ctx, p, d)
}

func (b *ActionBreaker) notify(ctx context.Context, p actionPlace, d middleware.Decision) {
	d.Component = middleware.ComponentBreaker
	d.Run, d.Workflow, d.Label, d.Turn, d.Attempt = p.run, p.workflow, p.label, p.turn, p.attempt
	middleware.Notify(ctx, b.cfg.Observer, d)
}

// handOff queues the handoff of a trip.
func (b *ActionBreaker) handOff(ctx context.Context, c *actionCircuit, p actionPlace, e actionEvent) {
	h, err := tripHandoff(p, e, b.clock().UTC().Truncate(time.Second))
	if err != nil {
		b.notify(ctx, p, middleware.Decision{
			Seq: b.seq.Add(1), Verdict: middleware.VerdictAbstain, Action: middleware.ActionBlock,
			Reason: middleware.ReasonOf(err), Class: e.reading.class(),
		})

		return
	}
	c.mu.Lock()
	if e.seq > c.handedOff { // not if another trip was faster
		c.handoff, c.handedOff = h, e.seq
	}
	c.mu.Unlock()
	deliver(ctx, b.cfg.Sink, b.cfg.SinkTimeout, h, func() {
		b.notify(ctx, p, middleware.Decision{
			Seq: b.seq.Add(1), Verdict: middleware.VerdictAbstain, Action: middleware.ActionBlock,
			Reason: middleware.ReasonSinkFailed, Class: h.class,
		})
	})
}

// tripHandoff makes the handoff by way of a [Breaker], which alone can: its
// class decides all the rest.
func tripHandoff(p actionPlace, e actionEvent, now time.Time) (Handoff, error) {
	breaker, err := NewBreaker(BreakerConfig{Run: p.run, Workflow: p.workflow, Policy: DefaultPolicy()})
	if err != nil {
		return Handoff{}, err
	}
	step := StepDigest(p.run, e.count, middleware.ComponentBreaker, p.label)
	h, err := breaker.Trip(e.reading.class(), step.Hex(), now)
	if err != nil {
		return Handoff{}, err
	}

	return *h, nil
}
