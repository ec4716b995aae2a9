package fallback

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// What ends an attempt from inside. They never reach a caller but by Unwrap.
var (
	errLate   = middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonTimeout, ident.Label{})
	errGoexit = middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonPanic, ident.Label{})
	errMisuse = middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonNilHandler, ident.Label{})
)

// attempt is the state of one attempt. It travels in the context to the model and to [Transport].
type attempt struct {
	model *Model
	c     *candidate
	gate  *gate
	seen  capture
	n     int // choices asked for

	// Around may leave the model behind on a goroutine of its own.
	invoked atomic.Bool  // next is called at most once
	in, out atomic.Int64 // tokens
	finish  atomic.Uint32
	left    atomic.Bool // a deaf client was left behind
}

type attemptKey struct{}

// attemptCtx answers for its key without a further allocation or comparison.
type attemptCtx struct {
	context.Context //nolint:containedctx // this is a context

	a *attempt
}

func (c *attemptCtx) Value(key any) any {
	if key == (attemptKey{}) {
		return c.a
	}

	return c.Context.Value(key)
}

func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)

	return a
}

// ended is how an attempt ended.
type ended struct {
	res        *middleware.ModelResult // of a success
	err        error                   // what the client or a check returned; nil also for failures that it hid
	class      Class                   // 0 for a success
	denied     bool                    // err is a refusal of the library: return it as it is
	status     int
	retryAfter time.Duration
	in, out    int
	finish     middleware.FinishReason
	chunks     int
	text       string
	left       bool
	duration   time.Duration
}

// try makes one attempt. It does not touch the state of the candidate.
func (m *Model) try(ctx context.Context, c *candidate, call *middleware.ModelCall, number int) (e ended) {
	start := m.cfg.Now()
	inSpan, end := middleware.StartOp(ctx, m.cfg.Tracer, middleware.OpAttempt, c.Label, number)
	e.class, e.err = ClassBadResponse, errGoexit // what remains if the model never returns
	var g *gate
	defer func() {
		g.close()
		e.chunks, e.text = g.delivered()
		e.duration = m.cfg.Now().Sub(start)
		end(m.attemptOutcome(c, number, e))
		m.reportAttempt(ctx, c, number, e)
	}()
	limited, cancel := context.WithTimeout(inSpan, m.cfg.AttemptTimeout)
	defer cancel()
	a := &attempt{model: m, c: c}
	own, err := a.prepare(call, number)
	g = a.gate
	var res *middleware.ModelResult
	if err == nil {
		res, err = contain(c.handler, &attemptCtx{Context: limited, a: a}, own) //nolint:contextcheck // made of limited
	}
	m.judge(ctx, limited, a, res, err, &e)
	if e.class == 0 && !e.denied {
		if stop := g.finish(limited); stop != nil {
			e.err, e.class = stop, ClassCanceled
		} else {
			e.res = res
		}
	}

	return e
}

// prepare makes the attempt's own call of the caller's: the bridge, the gate, and the candidate's model as last option.
// It runs options of the caller and of the configuration, which may panic.
func (a *attempt) prepare(call *middleware.ModelCall, number int) (own *middleware.ModelCall, err error) {
	defer func() {
		if v := recover(); v != nil {
			own, err = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()
	own = call
	if len(a.c.CallOptions) > 0 {
		own = own.Append(a.c.CallOptions...)
	}
	view := own.Options()
	a.n = view.N()
	a.gate = newGate(view)
	a.seen.expect(a.c.sse && a.gate != nil)
	messages, options := a.c.bridge(own.Messages(), view)
	options = a.gate.options(options)
	if messages != nil {
		own = own.WithMessages(messages)
	}

	if len(options) == 0 {
		options = a.c.last
	} else {
		options = append(options, a.c.last...)
	}

	return own.Append(options...).WithCandidate(a.c.Label, number), nil
}

// contain calls a handler and turns a panic into an error. It is outside of Around.
func contain(
	h middleware.ModelHandler, ctx context.Context, call *middleware.ModelCall, //nolint:revive // the handler comes first
) (res *middleware.ModelResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()

	return h(ctx, call)
}

// invoke is the innermost handler, inside of Around: it asks the model and checks what it gave.
func (m *Model) invoke(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
	a := attemptFrom(ctx)
	if a == nil || a.model != m || call == nil || !a.invoked.CompareAndSwap(false, true) {
		return nil, errMisuse
	}
	resp, err := a.generate(ctx, call)
	in, out := tokensOf(resp)
	a.in.Store(int64(in))
	a.out.Store(int64(out))
	if err != nil {
		return nil, err
	}
	if err := hollow(resp); err != nil {
		return nil, err
	}
	resp = a.c.bridgeResponse(resp, a.n)
	a.finish.Store(uint32(finishOf(resp.Choices[0].StopReason)))
	s := suspicion{traits: a.c.traits, streaming: a.gate != nil, whole: a.seen.whole()}
	if err := s.check(resp); err != nil {
		return nil, err
	}

	return &middleware.ModelResult{Response: resp, Candidate: a.c.Label, InputTokens: in, OutputTokens: out}, nil
}

// generate asks the client, on a goroutine of its own if it is deaf.
func (a *attempt) generate(ctx context.Context, call *middleware.ModelCall) (*llms.ContentResponse, error) {
	c := a.c
	if !c.deaf {
		return c.ask(ctx, call)
	}
	type answer struct {
		resp *llms.ContentResponse
		err  error
	}
	answers := make(chan answer, 1)
	var settled atomic.Bool
	go func() { // ends with the client's call; c.abandoned counts those that nobody waits for
		got := answer{err: errGoexit}
		defer func() {
			answers <- got
			if !settled.CompareAndSwap(false, true) {
				c.abandoned.Add(-1)
			}
		}()
		got.resp, got.err = c.ask(ctx, call)
	}()
	select {
	case got := <-answers:
		return got.resp, got.err
	case <-ctx.Done():
	}
	c.abandoned.Add(1)
	if settled.CompareAndSwap(false, true) {
		a.left.Store(true)

		return nil, ctx.Err()
	}
	c.abandoned.Add(-1) // it answered in the same moment
	got := <-answers

	return got.resp, got.err
}

// ask calls the client and turns its panic into an error.
func (c *candidate) ask(ctx context.Context, call *middleware.ModelCall) (resp *llms.ContentResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()

	return c.Model.GenerateContent(ctx, call.Messages(), call.CallOptions()...)
}

// judge decides what an attempt was, in this order: the caller left; the caller's function wants no more; a refusal of
// the library; the attempt's own limit; an error, or a failure that only Transport saw; success. It asks errors of
// clients, whose methods may panic.
func (m *Model) judge(caller, limited context.Context, a *attempt, res *middleware.ModelResult, err error, e *ended) {
	defer func() {
		if v := recover(); v != nil {
			e.class, e.err, e.denied = ClassUnknown, middleware.NewPanicError(v, debug.Stack()), false
		}
	}()
	e.in, e.out = int(a.in.Load()), int(a.out.Load())
	e.finish, e.left = middleware.FinishReason(a.finish.Load()), a.left.Load() //nolint:gosec // only finish reasons are stored
	e.class, e.err = ClassCanceled, err
	if caller.Err() != nil {
		return
	}
	if stop := a.gate.stopped(); stop != nil {
		e.err = stop

		return
	}
	if d, ok := errors.AsType[*middleware.Denial](err); ok {
		e.class, e.err, e.denied = 0, d, true // itself: what wraps it may hold content

		return
	}
	e.status, e.retryAfter = a.seen.answer(a.c.Provider, err)
	if err == nil {
		e.err = a.check(res)
	}
	switch {
	case limited.Err() != nil:
		if over(caller) {
			return
		}
		e.class = ClassTimeout
	case e.err != nil:
		e.class = classify(a.c.Provider, &a.seen, e.err)
	default:
		e.class = 0

		return
	}
	e.class = m.override(a, e)
}

// over reports whether the deadline of ctx has come: of two timers for one instant, ours may be the first.
func over(ctx context.Context) bool {
	at, ok := ctx.Deadline()

	return ok && !time.Now().Before(at)
}

// check looks at what Around returned, and at what only Transport saw.
func (a *attempt) check(res *middleware.ModelResult) error {
	if res == nil {
		return hollow(nil)
	}
	if err := hollow(res.Response); err != nil {
		return err
	}

	return a.seen.hidden()
}

func (m *Model) override(a *attempt, e *ended) (c Class) {
	if m.cfg.Classify == nil {
		return e.class
	}
	defer func() {
		if recover() != nil || !c.valid() {
			c = e.class
		}
	}()

	return m.cfg.Classify(AttemptFailure{
		Candidate: a.c.Label, Provider: a.c.Provider,
		Class: e.class, Status: e.status, RetryAfter: e.retryAfter, Err: e.err,
	})
}
