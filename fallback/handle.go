package fallback

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Handle is a [middleware.ModelHandler]: the innermost end of a model chain. It never returns a nil result, a response
// without choices, or one with a nil choice, without an error.
func (m *Model) Handle(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
	w := walk{m: m, call: call}
	resp, err := w.handle(ctx)
	if err != nil {
		return nil, err
	}

	return &middleware.ModelResult{
		Response: resp, Candidate: w.from.Label, InputTokens: w.in, OutputTokens: w.out,
	}, nil
}

// GenerateContent implements [llms.Model].
func (m *Model) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	w := walk{m: m, call: middleware.NewModelCall(messages, options...)}

	return w.handle(ctx)
}

// walk is one call on its way down the list.
type walk struct {
	m      *Model
	call   *middleware.ModelCall
	report *Report // nil: nobody asked for one
	made   []Attempt

	needs     Capabilities // what the call needs of a candidate
	next      int          // first candidate not yet considered
	number    int          // attempts made
	minWindow int
	told      uint32    // candidates whose skip was reported
	counted   bool      // in the share
	now       time.Time // of the last pick
	in, out   int
	attempts  []Attempt
	causes    []error
	last      *CandidateError
	from      *candidate // who answered

	// The candidate that is asked.
	again   int // how often it was asked again
	backoff *backoff.ExponentialBackOff
}

func (w *walk) handle(ctx context.Context) (resp *llms.ContentResponse, err error) {
	m := w.m
	if w.call == nil {
		return nil, middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonInvalidConfig, ident.Label{})
	}
	before, ok := w.call.Enter(middleware.StageFallback)
	if !ok {
		return nil, middleware.NewDenial(middleware.Refusal{
			Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentChain, Reason: middleware.ReasonUnsafeOrder,
		})
	}
	defer w.call.Leave(before)
	if err := w.look(); err != nil {
		return nil, err
	}
	if w.report = reportFrom(ctx); w.report != nil {
		defer w.deliver()
	}
	if len(m.candidates) == 1 || m.cfg.Tracer == nil {
		return w.run(ctx)
	}
	start := m.cfg.Now()
	inSpan, end := middleware.StartOp(ctx, m.cfg.Tracer, middleware.OpFallback, ident.Label{}, 0)
	reason := middleware.ReasonPanic // also Goexit: it did not return
	defer func() { end(m.callOutcome(w, resp, reason, m.cfg.Now().Sub(start))) }()
	resp, err = w.run(inSpan)
	reason = middleware.FailureReason(err, middleware.ReasonUnknownError)

	return resp, err
}

// look applies the caller's options, once for the whole call; they are functions of the caller and may panic.
func (w *walk) look() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, debug.Stack())
		}
	}()
	w.needs = needsOf(w.call)
	if w.m.cfg.RouteByWindow {
		w.minWindow = min(leastTokens(w.call), w.m.largest)
	}

	return nil
}

func (w *walk) run(ctx context.Context) (*llms.ContentResponse, error) {
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
			if resp, done, err := w.ask(ctx, p); done {
				return resp, err
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

// ask asks one candidate, again if that is permitted, and says whether the call is done.
func (w *walk) ask(ctx context.Context, p pick) (resp *llms.ContentResponse, done bool, err error) {
	m, c := w.m, w.m.candidates[p.index]
	m.reportSkips(ctx, p.skips)
	m.reportChange(ctx, p.change)
	w.again, w.backoff = 0, nil
	if w.last != nil {
		m.reportMove(ctx, c, w.number+1, w.last.Class())
	}
	for {
		e, once := w.attempt(ctx, p.ticket, c)
		w.in, w.out = w.in+e.in, w.out+e.out
		w.note(e.account(c))
		switch {
		case e.denied:
			return nil, true, e.err
		case e.class == 0:
			w.from = c

			return e.resp, true, nil
		case e.class == ClassCanceled:
			return nil, true, canceled(ctx, c, e)
		case e.chunks > 0:
			return nil, true, &InterruptedError{attempt: e.account(c), chunks: e.chunks, hidden: hide(e.text, e.err)}
		}
		w.fail(e.account(c), e.err)
		if !once.wanted {
			return w.leave(ctx, c, e.class)
		}
		if err := w.pause(ctx, c, once.wait); err != nil {
			return nil, true, err
		}
		var free bool
		if p.ticket, free = m.retake(p.index); !free { // others have found out meanwhile
			return w.leave(ctx, c, e.class)
		}
		w.again++
	}
}

// attempt makes one attempt and settles it, whatever becomes of it.
func (w *walk) attempt(ctx context.Context, t ticket, c *candidate) (e ended, once again) {
	m := w.m
	e = ended{class: ClassBadResponse} // what remains if the model never returns
	defer func() {
		change, allowed := m.settle(t, m.verdictOf(t.index, &e, once.wanted))
		once.wanted = allowed
		m.reportChange(ctx, change)
	}()
	w.number++
	e = m.try(ctx, c, w)
	if e.class != 0 {
		once = w.wish(ctx, &e)
	}

	return e, once
}

func (w *walk) fail(a Attempt, cause error) {
	w.last = &CandidateError{attempt: a, hidden: hide("", cause)}
	w.attempts = append(w.attempts, a)
	w.causes = append(w.causes, w.last)
}

// leave ends the attempts at c: the call moves on, or it is done.
func (w *walk) leave(ctx context.Context, c *candidate, class Class) (resp *llms.ContentResponse, done bool, err error) {
	switch {
	case w.moves(c, class):
		return nil, false, nil
	case len(w.m.candidates) == 1 && len(w.attempts) > 1:
		return nil, true, w.nobody(ctx)
	default:
		return nil, true, w.last
	}
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
		Candidate: c.Label, Provider: c.Provider, Class: p.wait.class, Status: p.wait.status,
		Duration: m.cfg.Now().Sub(start), Shared: true,
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
func (m *Model) verdictOf(index int, e *ended, again bool) verdict {
	v := verdict{class: e.class, status: e.status, again: again}
	switch {
	case e.denied:
	case e.class == 0:
		v.result = probeSucceeded
	case m.blames(e.class):
		v.result = probeFailed
		v.bench = m.benchFor(index, e.class, e.retryAfter)
	}

	return v
}

func canceled(ctx context.Context, c *candidate, e ended) error {
	var causes []error
	switch {
	case ctx.Err() != nil:
		causes = append(causes, ctx.Err())
	case over(ctx):
		causes = append(causes, context.DeadlineExceeded) // its timer has only not fired yet
	}
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() { //nolint:errorlint // the very same error
		causes = append(causes, cause)
	}
	if e.err != nil {
		causes = append(causes, e.err)
	}
	a := e.account(c)
	a.Class = ClassCanceled

	return &CandidateError{attempt: a, hidden: hide("", causes...)}
}

// leastTokens is what a call needs at least: tokenizers make no more than eight bytes of a text one token, but for
// white space, and the limit of the answer counts too.
func leastTokens(call *middleware.ModelCall) int {
	const bytesPerToken = 8
	size := 0
	for _, message := range call.Messages() {
		for _, part := range message.Parts {
			switch p := part.(type) {
			case llms.TextContent:
				size += len(p.Text)
			case llms.ToolCallResponse:
				size += len(p.Content)
			}
		}
	}

	return size/bytesPerToken + call.Options().MaxTokens()
}
