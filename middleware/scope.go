package middleware

import (
	"context"
	"sync"
)

// scope is all that the library keeps in a context, behind one key: which run
// this is, and which of its calls.
type scope struct {
	run   *Run
	tool  *ToolCall
	model bool   // inside a guarded model call of run
	clock Pauser // the stall clock of the enclosing call
}

type scopeKey struct{}

// scopeCtx answers for its key without a further allocation or comparison.
type scopeCtx struct {
	context.Context //nolint:containedctx // this is a context
	scope
}

func (c *scopeCtx) Value(key any) any {
	if key == (scopeKey{}) {
		return &c.scope
	}

	return c.Context.Value(key)
}

func scopeFrom(ctx context.Context) (scope, bool) {
	if c, ok := ctx.(*scopeCtx); ok {
		return c.scope, true
	}
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		return *s, true
	}

	return scope{}, false
}

func withScope(ctx context.Context, s scope) context.Context {
	return &scopeCtx{Context: ctx, scope: s}
}

// RunFrom returns the run that ctx belongs to, nil if none. A nil *Run is
// usable: it has zero values and Check refuses.
func RunFrom(ctx context.Context) *Run {
	s, _ := scopeFrom(ctx)

	return s.run
}

// ContextWithRun returns ctx as a part of run r: for servers that keep a run
// over several requests. Tool call and stall clock of ctx are left behind.
func ContextWithRun(ctx context.Context, r *Run) context.Context {
	return withScope(ctx, scope{run: r})
}

// ToolCallFrom returns the tool call that ctx is inside of.
func ToolCallFrom(ctx context.Context) (*ToolCall, bool) {
	s, _ := scopeFrom(ctx)

	return s.tool, s.tool != nil
}

// ContextWithToolCall returns ctx as inside of call c, for an attempt that
// differs from the one that ctx already carries.
func ContextWithToolCall(ctx context.Context, c *ToolCall) context.Context {
	s, _ := scopeFrom(ctx)
	s.tool = c

	return withScope(ctx, s)
}

// Pauser is a clock that can be stopped: the watchdog's, for one call.
type Pauser interface {
	// Pause stops the clock until resume is called. Pauses nest.
	Pause() (resume func())
}

// ContextWithPauser returns ctx with p as the enclosing stall clock.
func ContextWithPauser(ctx context.Context, p Pauser) context.Context {
	s, _ := scopeFrom(ctx)
	s.clock = p

	return withScope(ctx, s)
}

// Pause stops the stall clock of the enclosing call, while a human is asked or
// a nested run works, and returns the function that starts it again. resume is
// never nil; calling it twice is harmless.
func Pause(ctx context.Context) (resume func()) {
	if s, ok := scopeFrom(ctx); ok && s.clock != nil {
		if resume := s.clock.Pause(); resume != nil {
			return sync.OnceFunc(resume)
		}
	}

	return func() {}
}
