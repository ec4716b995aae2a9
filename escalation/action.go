package escalation

import (
	"context"

	"github.com/interlock-go/interlock/middleware"
)

// ActionBreaker governs the autonomy of workflows across runs.
type ActionBreaker struct{}

// note hears of what happened outside of an action: a budget that was exceeded
// (budget_exceeded), a context that was full or had drifted (context_full,
// context_drift). It is safe on a nil breaker.
func (b *ActionBreaker) note(context.Context, *middleware.Run, middleware.Reason) {}
