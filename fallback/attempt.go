package fallback

import (
	"context"
	"runtime/debug"
	"sync"
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

// roomForOptions is how many options of a call fit without a further allocation.
const roomForOptions = 6

// attempt is the state of one attempt, and the context that it travels in, to the model and to [Transport]. It is one
// allocation on the way of a healthy call, so what belongs to it lives in it.
type attempt struct {
	context.Context //nolint:containedctx // this is a context

	model    *Model
	c        *candidate
	gate     *gate // nil if the model does not stream
	seen     capture
	n        int // choices asked for
	messages []llms.MessageContent
	options  []llms.CallOption
	room     [roomForOptions]llms.CallOption

	// Around may leave the model behind on a goroutine of its own.
	invoked atomic.Bool  // next is called at most once
	in, out atomic.Int64 // tokens
	finish  atomic.Uint32
	left    atomic.Bool // a deaf client was left behind

	// The clock. See startClock.
	started    time.Duration // 0: it does not run
	blind      bool          // tokens are seen by a Transport only
	token      atomic.Int64  // when the last one came
	delivering atomic.Int32  // calls of the caller's functions that have not returned
	limit      atomic.Uint32 // the Limit that ended it

	clock    sync.Mutex
	timer    *time.Timer
	stopped  bool
	released bool
	inner    context.Context         //nolint:containedctx // made when somebody asks
	cancel   context.CancelCauseFunc // of inner
}

// ended is how an attempt ended.
type ended struct {
	resp       *llms.ContentResponse // of a success
	err        error                 // what the client or a check returned; nil also for failures that it hid
	class      Class                 // 0 for a success
	denied     bool                  // err is a refusal of the library: return it as it is
	status     int
	retryAfter time.Duration
	limit      Limit
	in, out    int
	finish     middleware.FinishReason
	chunks     int
	text       string
	left       bool
	duration   time.Duration
}

// try makes one attempt. It does not touch the state of the candidate.
func (m *Model) try(ctx context.Context, c *candidate, w *walk) (e ended) {
	start := w.now // of the pick, for the first attempt
	if w.number > 1 {
		start = m.cfg.Now()
	}
	inSpan, end := middleware.StartOp(ctx, m.cfg.Tracer, middleware.OpAttempt, c.Label, w.number)
	a := &attempt{Context: inSpan, model: m, c: c}
	e.class, e.err = ClassBadResponse, errGoexit // what remains if the model never returns
	defer func() {
		a.release()
		if a.gate != nil {
			a.gate.close()
			if e.class != 0 {
				e.chunks, e.text = a.gate.delivered()
			}
		}
		if e.class != 0 || w.report != nil || m.cfg.Observer != nil || m.cfg.Tracer != nil {
			e.duration = m.cfg.Now().Sub(start) // else nobody wants to know
		}
		if m.cfg.Tracer != nil {
			end(m.attemptOutcome(c, w.number, &e))
		}
		m.reportAttempt(ctx, c, w.number, &e)
	}()
	resp, err := a.run(w.call, w.number) //nolint:contextcheck // the attempt is the context
	m.judge(ctx, a, resp, err, &e)
	if e.class != 0 || e.denied {
		return e
	}
	e.resp = resp
	if a.gate != nil {
		a.replay(ctx, &e)
	}

	return e
}

// replay gives the caller what was held back, after the attempt has succeeded. The client's own contexts have ended.
func (a *attempt) replay(caller context.Context, e *ended) {
	a.stopClock()
	err := a.gate.finish(caller)
	if err == nil {
		err = caller.Err()
	}
	if err != nil {
		e.resp, e.err, e.class = nil, err, ClassCanceled
	}
}

// run asks the candidate and turns a panic into an error, also one of Around or of an option.
func (a *attempt) run(call *middleware.ModelCall, number int) (resp *llms.ContentResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()
	a.prepare(call)
	a.startClock()
	if a.c.around == nil {
		return a.invoke(a, a.messages, a.options)
	}
	own := middleware.NewModelCall(a.messages, a.options...).WithCandidate(a.c.Label, number)
	res, err := a.c.around(a, own)
	if err != nil {
		return nil, err
	}
	if res == nil {
		return nil, hollow(nil)
	}

	return res.Response, nil
}

// prepare makes the attempt's own messages and options of the caller's: the bridge, the gate, and the candidate's model
// as last option. It runs options of the caller and of the configuration, which may panic.
func (a *attempt) prepare(call *middleware.ModelCall) {
	if len(a.c.CallOptions) > 0 {
		call = call.Append(a.c.CallOptions...)
	}
	view := call.Options()
	a.n = view.N()
	a.gate = a.newGate(view)
	a.seen.stream = a.c.sse && a.gate != nil
	options := call.AppendCallOptions(a.room[:0])
	var bridged []llms.CallOption
	a.messages, bridged = a.c.bridge(call.Messages(), view)
	options = append(options, bridged...)
	if a.gate != nil {
		options = a.gate.options(options)
	}
	options = append(options, a.c.model)
	a.options = options
}

// within is the innermost handler, inside of Around.
func (m *Model) within(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
	a := attemptFrom(ctx)
	if a == nil || a.model != m || call == nil || !a.invoked.CompareAndSwap(false, true) {
		return nil, errMisuse
	}
	resp, err := a.invoke(ctx, call.Messages(), call.CallOptions())
	if err != nil {
		return nil, err
	}

	return &middleware.ModelResult{
		Response: resp, Candidate: a.c.Label, InputTokens: int(a.in.Load()), OutputTokens: int(a.out.Load()),
	}, nil
}

// invoke asks the model and checks what it gave.
func (a *attempt) invoke(
	ctx context.Context, messages []llms.MessageContent, options []llms.CallOption,
) (*llms.ContentResponse, error) {
	resp, err := a.generate(ctx, messages, options)
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
	s := suspicion{traits: &a.c.traits, streaming: a.gate != nil, whole: a.seen.whole()}
	if err := s.check(resp); err != nil {
		return nil, err
	}

	return resp, nil
}

// ask calls the client and turns its panic into an error.
func (c *candidate) ask(
	ctx context.Context, messages []llms.MessageContent, options []llms.CallOption,
) (resp *llms.ContentResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			resp, err = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()

	return c.Model.GenerateContent(ctx, messages, options...)
}
