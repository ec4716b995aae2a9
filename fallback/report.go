package fallback

import (
	"context"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// All reports are made outside of the lock, on the goroutine of the call.

func (m *Model) report(ctx context.Context, d middleware.Decision) {
	run := middleware.RunFrom(ctx)
	d.Component, d.Run, d.Workflow = middleware.ComponentFallback, run.ID(), run.Workflow()
	if d.Seq == 0 {
		d.Seq = m.seq.Add(1)
	}
	middleware.Notify(ctx, m.cfg.Observer, d)
}

func (m *Model) reportAttempt(ctx context.Context, c *candidate, number int, e *ended) {
	if m.cfg.Observer == nil {
		return
	}
	m.report(ctx, attemptDecision(c, number, e))
	if e.left {
		m.report(ctx, middleware.Decision{
			Verdict: middleware.VerdictDeny, Action: middleware.ActionCancel, Reason: middleware.ReasonAbandoned,
			Label: c.Label, Attempt: number, Count: int(c.abandoned.Load()), Limit: maxAbandoned,
		})
	}
}

func attemptDecision(c *candidate, number int, e *ended) middleware.Decision {
	d := middleware.Decision{
		Component: middleware.ComponentFallback, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Label: c.Label, Attempt: number, Duration: e.duration,
	}
	switch {
	case e.denied:
		d.Outcome, d.Reason = middleware.OutcomeError, middleware.FailureReason(e.err, middleware.ReasonUnknownError)
	case e.class == 0:
		d.Outcome, d.Reason = middleware.OutcomeSuccess, middleware.ReasonOK
	default:
		d.Outcome, d.Reason = e.class.outcome(), e.class.Reason()
	}

	return d
}

func (m *Model) attemptOutcome(c *candidate, number int, e *ended) middleware.Outcome {
	o := middleware.Outcome{
		Decision: attemptDecision(c, number, e), InputTokens: e.in, OutputTokens: e.out, Finish: e.finish,
	}
	if e.class == 0 && !e.denied {
		o.ResponseModel = c.Label
	}

	return o
}

// callOutcome is about the whole call: which candidate answered after how many attempts.
func (m *Model) callOutcome(
	w *walk, resp *llms.ContentResponse, r middleware.Reason, d time.Duration,
) middleware.Outcome {
	o := middleware.Outcome{InputTokens: w.in, OutputTokens: w.out, Decision: middleware.Decision{
		Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
		Reason: r, Attempt: w.number, Count: w.number, Limit: maxAttempts, Duration: d,
	}}
	if resp != nil {
		o.Decision.Verdict, o.Decision.Action = middleware.VerdictAllow, middleware.ActionProceed
		o.Decision.Label, o.ResponseModel = w.from.Label, w.from.Label
		o.Finish = finishOf(resp.Choices[0].StopReason)
	}

	return o
}

func (m *Model) reportSkips(ctx context.Context, skips []skip) {
	for _, s := range skips {
		m.report(ctx, middleware.Decision{
			Seq: s.seq, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed, Reason: s.reason,
			Label: m.candidates[s.index].Label, Outcome: middleware.OutcomeSkipped,
		})
	}
}

func (m *Model) reportMove(ctx context.Context, to *candidate, number int, why Class) {
	if m.cfg.Observer == nil {
		return
	}
	m.report(ctx, middleware.Decision{
		Verdict: middleware.VerdictModify, Action: middleware.ActionSubstitute, Reason: why.Reason(),
		Label: to.Label, Attempt: number,
	})
}

// reportRetry says that attempt number at c is followed by another one at c.
func (m *Model) reportRetry(ctx context.Context, c *candidate, number int, why Class, wait time.Duration) {
	if m.cfg.Observer == nil {
		return
	}
	m.report(ctx, middleware.Decision{
		Verdict: middleware.VerdictModify, Action: middleware.ActionWait, Reason: why.Reason(), Label: c.Label,
		Attempt: number + 1, Duration: wait,
	})
}

func (m *Model) reportChange(ctx context.Context, c *change) {
	if c == nil {
		return
	}
	d := middleware.Decision{
		Seq: c.seq, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed, Reason: c.reason,
		Label: m.candidates[c.index].Label, Circuit: c.state,
	}
	if c.state == middleware.CircuitOpen {
		d.Verdict, d.Action = middleware.VerdictDeny, middleware.ActionBlock
	}
	m.report(ctx, d)
}

func (m *Model) reportWait(ctx context.Context, c *candidate) {
	if m.cfg.Observer == nil {
		return
	}
	m.report(ctx, middleware.Decision{
		Verdict: middleware.VerdictAbstain, Action: middleware.ActionWait, Reason: middleware.ReasonProbe, Label: c.Label,
	})
}

func (m *Model) reportExhausted(ctx context.Context, attempts int, r middleware.Reason) {
	if m.cfg.Observer == nil {
		return
	}
	m.report(ctx, middleware.Decision{
		Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock, Reason: r, Label: ident.Label{},
		Count: attempts, Limit: maxAttempts,
	})
}
