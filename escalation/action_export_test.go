package escalation

import (
	"context"

	"github.com/interlock-go/interlock/middleware"
)

// Note is what the budget and the context limiter call.
func (b *ActionBreaker) Note(ctx context.Context, run *middleware.Run, reason middleware.Reason) {
	b.note(ctx, run, reason)
}

// LooselyDiffer reports whether a quick look proves that two arguments are not equal.
func LooselyDiffer(a, b string) bool { return printLoosely(a).differs(printLoosely(b)) }
