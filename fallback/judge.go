package fallback

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// AttemptFailure is what [Config.Classify] judges. Err is content.
type AttemptFailure struct {
	Attempt

	// RetryAfter is what the provider asked for, 0 if nothing is known.
	RetryAfter time.Duration
	// Err is what the client returned; nil if it called the failure a success.
	Err error
}

// ResponseCheck looks at a response that is a success so far: whole, and with a reason for its end. An error rejects it,
// as a bad_response; so does a panic. It must not change the response.
type ResponseCheck func(ctx context.Context, resp *llms.ContentResponse) error

// judge decides what an attempt was, in this order: the caller left; the caller's function wants no more; a refusal of
// the library; a limit of the attempt's own; an error, or a failure that only Transport saw; a check; success. It asks
// errors of clients, whose methods may panic.
func (m *Model) judge(caller context.Context, a *attempt, resp *llms.ContentResponse, err error, e *ended) {
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
	if a.gate != nil {
		if stop := a.gate.stopped(); stop != nil {
			e.err = stop

			return
		}
	}
	if d, ok := denialOf(err); ok {
		e.class, e.err, e.denied = 0, d, true // itself: what wraps it may hold content

		return
	}
	e.limit = Limit(a.limit.Load()) //nolint:gosec // only limits are stored
	if err == nil {
		e.err = a.check(resp)
	}
	e.status, e.retryAfter = a.seen.answer(a.c.Provider, err)
	switch {
	case e.limit != 0:
		if over(caller) {
			return
		}
		e.class = ClassTimeout
	case e.err != nil:
		e.class = classify(a.c.Provider, &a.seen, e.err)
	default:
		if e.err = a.checkUser(resp); e.err == nil { //nolint:contextcheck // the attempt is the context
			e.class = 0

			return
		}
		if caller.Err() != nil { // a check may take its time
			return
		}
		e.class = ClassBadResponse
	}
	e.class = m.override(a, e)
}

func denialOf(err error) (*middleware.Denial, bool) {
	if err == nil {
		return nil, false
	}

	return errors.AsType[*middleware.Denial](err)
}

// over reports whether the deadline of ctx has come: of two timers for one instant, ours may be the first.
func over(ctx context.Context) bool {
	at, ok := ctx.Deadline()

	return ok && !time.Now().Before(at)
}

// check looks at what Around returned, and at what only Transport saw.
func (a *attempt) check(resp *llms.ContentResponse) error {
	if err := hollow(resp); err != nil {
		return err
	}

	return a.seen.hidden()
}

// checkUser asks the checks of the configuration.
func (a *attempt) checkUser(resp *llms.ContentResponse) error {
	for _, check := range a.model.cfg.Checks {
		if err := checkContained(a, check, resp); err != nil {
			return &rejectedError{hidden: hide("", err)}
		}
	}

	return nil
}

func checkContained(ctx context.Context, check ResponseCheck, resp *llms.ContentResponse) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, debug.Stack())
		}
	}()

	return check(ctx, resp)
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

	return m.cfg.Classify(AttemptFailure{Attempt: e.account(a.c), RetryAfter: e.retryAfter, Err: e.err})
}
