package fallback

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// maxAbandoned bounds how many attempts at one deaf client may be left behind; it is skipped while they run.
const maxAbandoned = 32

// Handle is a [middleware.ModelHandler]: the innermost end of a model chain. It never returns a nil result, a response
// without choices, or one with a nil choice, without an error.
func (m *Model) Handle(ctx context.Context, call *middleware.ModelCall) (res *middleware.ModelResult, err error) {
	if call == nil {
		return nil, middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonInvalidConfig, ident.Label{})
	}
	before, ok := call.Enter(middleware.StageFallback)
	if !ok {
		return nil, middleware.NewDenial(middleware.Refusal{
			Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentChain, Reason: middleware.ReasonUnsafeOrder,
		})
	}
	defer call.Leave(before)
	w := walk{m: m, call: call}
	if err := w.look(); err != nil {
		return nil, err
	}
	if len(m.candidates) == 1 {
		return w.run(ctx)
	}
	start := m.cfg.Now()
	inSpan, end := middleware.StartOp(ctx, m.cfg.Tracer, middleware.OpFallback, ident.Label{}, 0)
	reason := middleware.ReasonPanic // also Goexit: it did not return
	defer func() { end(m.callOutcome(&w, res, reason, m.cfg.Now().Sub(start))) }()
	res, err = w.run(inSpan)
	reason = middleware.FailureReason(err, middleware.ReasonUnknownError)

	return res, err
}

// walk is one call on its way down the list.
type walk struct {
	m    *Model
	call *middleware.ModelCall

	needs     Capabilities
	next      int // first candidate not yet considered
	number    int // attempts made
	minWindow int
	told      uint32 // candidates whose skip was reported
	in, out   int
	attempts  []Attempt
	causes    []error
	last      *CandidateError
}

// look applies the caller's options, once for the whole call; they are functions of the caller and may panic.
func (w *walk) look() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, debug.Stack())
		}
	}()
	w.needs = needsOf(w.call)

	return nil
}

func (w *walk) run(ctx context.Context) (*middleware.ModelResult, error) {
	for {
		if ctx.Err() != nil {
			return nil, middleware.NewCanceled(ctx, middleware.ComponentFallback, ident.Label{}, nil)
		}
		if w.number >= maxAttempts {
			return nil, w.nobody(ctx)
		}
		p := w.pick()
		switch {
		case p.ask:
			if res, done, err := w.ask(ctx, p); done {
				return res, err
			}
		case p.wait != nil:
			if err := w.wait(ctx, p); err != nil {
				return nil, err
			}
		default:
			w.m.reportSkips(ctx, p.skips)

			return nil, w.nobody(ctx)
		}
	}
}

// pick is who comes next: a candidate to ask, a probe to wait for, or nobody.
type pick struct {
	ask    bool
	ticket ticket
	change *change
	wait   *probe
	index  int
	skips  []skip
}

type skip struct {
	seq    uint64
	index  int
	reason middleware.Reason
}

func (w *walk) pick() (p pick) {
	m := w.m
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	soonest := -1
	for i := w.next; i < len(m.candidates); i++ {
		b := &m.benches[i]
		reason := w.unfit(m.candidates[i])
		if reason == 0 {
			state := b.circuit(now)
			if state == middleware.CircuitClosed || (state == middleware.CircuitHalfOpen && b.probe == nil) {
				return w.takeLocked(p, i)
			}
			if soonest < 0 || b.until.Before(m.benches[soonest].until) {
				soonest = i
			}
			reason = middleware.ReasonBenched
			if b.probe != nil {
				reason = middleware.ReasonProbe
			}
		}
		p.skips = w.skipLocked(p.skips, i, reason)
	}
	if soonest < 0 || w.number > 0 {
		return p
	}
	// Nobody was asked yet, and nobody is free: one call asks the candidate whose bench ends soonest, the others wait.
	p.skips = slices.DeleteFunc(p.skips, func(s skip) bool { return s.index == soonest })
	if b := &m.benches[soonest]; b.probe != nil {
		p.wait, p.index = b.probe, soonest

		return p
	}

	return w.takeLocked(p, soonest)
}

func (w *walk) takeLocked(p pick, index int) pick {
	p.ask, p.index = true, index
	p.ticket, p.change = w.m.takeLocked(index)
	w.next = index + 1

	return p
}

func (w *walk) skipLocked(to []skip, index int, r middleware.Reason) []skip {
	bit := uint32(1) << index
	if w.m.cfg.Observer == nil || w.told&bit != 0 {
		return to
	}
	w.told |= bit

	return append(to, skip{seq: w.m.seq.Add(1), index: index, reason: r})
}

// unfit returns why a candidate cannot take this call, or 0.
func (w *walk) unfit(c *candidate) middleware.Reason {
	switch {
	case !c.client.takes(w.needs), c.Window < w.minWindow:
		return middleware.ReasonIneligible
	case c.deaf && c.abandoned.Load() >= maxAbandoned:
		return middleware.ReasonAbandoned
	default:
		return 0
	}
}

// ask makes one attempt and says whether the call is done.
func (w *walk) ask(ctx context.Context, p pick) (res *middleware.ModelResult, done bool, err error) {
	m, c := w.m, w.m.candidates[p.index]
	v := m.verdictOf(p.index, ended{class: ClassBadResponse}) // what remains if the model never returns
	defer func() { m.reportChange(ctx, m.settle(p.ticket, v)) }()
	m.reportSkips(ctx, p.skips)
	m.reportChange(ctx, p.change)
	w.number++
	if w.last != nil {
		m.reportMove(ctx, c, w.number, w.last.Class())
	}
	e := m.try(ctx, c, w.call, w.number)
	v = m.verdictOf(p.index, e)
	w.in, w.out = w.in+e.in, w.out+e.out

	switch {
	case e.denied:
		return nil, true, e.err
	case e.class == 0:
		return w.result(c, e.res), true, nil
	case e.class == ClassCanceled:
		return nil, true, canceled(ctx, c, e)
	}
	a := Attempt{Candidate: c.Label, Class: e.class, Status: e.status, Duration: e.duration}
	if e.chunks > 0 {
		return nil, true, &InterruptedError{attempt: a, chunks: e.chunks, text: e.text, causes: causesOf(e.err)}
	}
	w.fail(a, e.err)

	return nil, !w.moves(c, e.class), w.last
}

// result accounts for all attempts. Around may have given a result that it still holds, so that is not written into.
func (w *walk) result(c *candidate, res *middleware.ModelResult) *middleware.ModelResult {
	if res.Candidate == c.Label && res.InputTokens == w.in && res.OutputTokens == w.out {
		return res
	}

	return &middleware.ModelResult{Response: res.Response, Candidate: c.Label, InputTokens: w.in, OutputTokens: w.out}
}

func (w *walk) fail(a Attempt, cause error) {
	w.last = &CandidateError{attempt: a, causes: causesOf(cause)}
	w.attempts = append(w.attempts, a)
	w.causes = append(w.causes, w.last)
}

// moves reports whether the next candidate may be asked after a failure of c.
func (w *walk) moves(c *candidate, class Class) bool {
	if len(w.m.candidates) == 1 {
		return false
	}
	switch classTable[class].move {
	case moveNext:
		return true
	case moveAuth:
		return w.m.cfg.OnAuth == AuthNext
	case moveLarger:
		w.minWindow = max(w.minWindow, c.Window+1)

		return c.Window > 0
	default:
		return false
	}
}

// wait shares the outcome of a probe that another call makes.
func (w *walk) wait(ctx context.Context, p pick) error {
	m, c := w.m, w.m.candidates[p.index]
	start := m.cfg.Now()
	m.reportSkips(ctx, p.skips)
	m.reportWait(ctx, c)
	select {
	case <-ctx.Done():
		return middleware.NewCanceled(ctx, middleware.ComponentFallback, c.Label, nil)
	case <-p.wait.done:
	}
	if p.wait.result != probeFailed {
		return nil // look again
	}
	// The cause belongs to another caller and is not shared.
	w.fail(Attempt{
		Candidate: c.Label, Class: p.wait.class, Status: p.wait.status, Duration: m.cfg.Now().Sub(start), Shared: true,
	}, nil)

	return w.nobody(ctx)
}

// nobody ends a call that has no one left to ask.
func (w *walk) nobody(ctx context.Context) error {
	if len(w.attempts) == 0 {
		w.m.reportExhausted(ctx, 0, middleware.ReasonNoCandidate)

		return middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonNoCandidate, ident.Label{})
	}
	if w.last.Class() == ClassContextLength {
		return w.last // nobody has a larger window
	}
	w.m.reportExhausted(ctx, len(w.attempts), middleware.ReasonExhausted)

	return &ExhaustedError{attempts: w.attempts, causes: w.causes}
}

// verdictOf says what an attempt means for its candidate.
func (m *Model) verdictOf(index int, e ended) verdict {
	v := verdict{class: e.class, status: e.status}
	switch {
	case e.denied:
	case e.class == 0:
		v.result = probeSucceeded
	default:
		if v.bench = m.benchFor(index, e.class, e.retryAfter); v.bench > 0 {
			v.result = probeFailed
		}
	}

	return v
}

func canceled(ctx context.Context, c *candidate, e ended) error {
	causes := causesOf(ctx.Err())
	if len(causes) == 0 && over(ctx) {
		causes = causesOf(context.DeadlineExceeded) // its timer has only not fired yet
	}
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() { //nolint:errorlint // the very same error
		causes = append(causes, cause)
	}
	causes = append(causes, causesOf(e.err)...)

	return &CandidateError{
		attempt: Attempt{Candidate: c.Label, Class: ClassCanceled, Status: e.status, Duration: e.duration}, causes: causes,
	}
}

func causesOf(err error) []error {
	if err == nil {
		return nil
	}

	return []error{err}
}
