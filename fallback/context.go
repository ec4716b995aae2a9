package fallback

import (
	"context"
	"time"
)

// An attempt is a context of its own. What cancels is made when somebody asks for it: a client that talks to a network
// does, and does not feel it.

var _ context.Context = (*attempt)(nil)

type attemptKey struct{}

func attemptFrom(ctx context.Context) *attempt {
	if a, ok := ctx.(*attempt); ok {
		return a
	}
	a, _ := ctx.Value(attemptKey{}).(*attempt)

	return a
}

// Done implements [context.Context].
func (a *attempt) Done() <-chan struct{} { return a.inside().Done() }

// inside returns the context that cancels.
func (a *attempt) inside() context.Context {
	a.clock.Lock()
	defer a.clock.Unlock()
	if a.inner == nil {
		a.inner, a.cancel = context.WithCancelCause(a.Context)
		switch {
		case a.limit.Load() != 0:
			a.cancel(context.DeadlineExceeded)
		case a.released:
			a.cancel(nil)
		}
	}

	return a.inner
}

// Err implements [context.Context]: a limit looks like a deadline, not like a caller who left.
func (a *attempt) Err() error {
	a.clock.Lock()
	defer a.clock.Unlock()
	err := a.Context.Err()
	switch {
	case a.inner != nil:
		if err = a.inner.Err(); err != nil && a.limit.Load() != 0 {
			return context.DeadlineExceeded
		}
	case err != nil:
	case a.limit.Load() != 0:
		return context.DeadlineExceeded
	case a.released:
		return context.Canceled
	}

	return err
}

// Deadline implements [context.Context].
func (a *attempt) Deadline() (time.Time, bool) {
	at, ok := a.Context.Deadline()
	if whole := a.model.limits.whole; whole != NoLimit && a.started > 0 {
		if own := a.model.epoch.Add(a.started - 1 + whole); !ok || own.Before(at) {
			return own, true
		}
	}

	return at, ok
}

// Value implements [context.Context].
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	a.clock.Lock()
	inner := a.inner
	a.clock.Unlock()
	if inner != nil {
		return inner.Value(key)
	}

	return a.Context.Value(key)
}
