package escalation

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Tool returns the middleware for tool calls.
func (b *Budget) Tool() middleware.ToolMiddleware {
	return middleware.At(middleware.StageBudget, b.tool)
}

func (b *Budget) tool(next middleware.ToolHandler) middleware.ToolHandler {
	if !b.usable() || next == nil {
		return nil // At makes a chain of it that refuses every call
	}

	return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		run := middleware.RunFrom(ctx)
		a, now, err := b.account(ctx, run)
		if err != nil {
			return nil, b.blind(ctx, run, call.Label(), call.Attempt(), err)
		}
		d := demand{tools: 1}
		if _, limited := b.limits.PerTool[call.Label()]; limited {
			d.tool = call.Label()
		}
		if g := b.reserve(a, d, now); !g.admitted {
			return nil, b.refuse(ctx, run, call.Label(), call.Attempt(), g)
		}

		return next(ctx, call)
	}
}

// Model returns the middleware for model calls.
func (b *Budget) Model() middleware.ModelMiddleware {
	return middleware.At(middleware.StageBudget, b.model)
}

func (b *Budget) model(next middleware.ModelHandler) middleware.ModelHandler {
	if !b.usable() || next == nil {
		return nil
	}

	return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		run := middleware.RunFrom(ctx)
		a, now, err := b.account(ctx, run)
		if err != nil {
			return nil, b.blind(ctx, run, call.Candidate(), call.Attempt(), err)
		}
		_, inner := middleware.ToolCallFrom(ctx)
		inner = inner || asking(ctx)
		request := requestTokens(call)
		d := demand{models: 1, steps: 1, tokens: request + answerLimit(call), inner: inner}
		if inner {
			d.steps = 0 // it opens no turn
		}
		g := b.reserve(a, d, now)
		if !g.admitted {
			return nil, b.refuse(ctx, run, call.Candidate(), call.Attempt(), g)
		}
		if g.final {
			b.report(ctx, run, call.Candidate(), call.Attempt(), g)
			call = withoutTools(call)
		}
		answered := false
		defer func() { // also after a panic or Goexit
			if !answered {
				a.settle(-d.tokens, -d.steps)
			}
		}()
		res, err := next(ctx, call)
		if err == nil {
			answered = true
			a.settle(usedTokens(res, request)-d.tokens, 0)
		}

		return res, err
	}
}

func (b *Budget) usable() bool { return b != nil && b.slot.New != nil }

// account finds the run's account, and the time. Hand-made chains may lack the
// run check.
func (b *Budget) account(ctx context.Context, run *middleware.Run) (a *account, now time.Time, err error) {
	if err := middleware.CheckRun(ctx); err != nil {
		return nil, now, err
	}
	if a, err = b.slot.Get(run); err != nil {
		return nil, now, err
	}
	now, err = b.clock()

	return a, now, err
}

// blind returns err, and reports it if it is the clock's: the call is not made,
// because nobody can say whether the time is up.
func (b *Budget) blind(ctx context.Context, run *middleware.Run, label ident.Label, attempt int, err error) error {
	if reason := middleware.ReasonOf(err); reason == middleware.ReasonPanic {
		middleware.Notify(ctx, b.observer, middleware.Decision{
			Seq: b.seq.Add(1), Component: middleware.ComponentBudget, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
			Reason: reason, Run: run.ID(), Workflow: run.Workflow(), Label: label, Turn: run.Turn(), Attempt: attempt,
		})
	}

	return err
}

// refuse reports a refusal and returns it.
func (b *Budget) refuse(ctx context.Context, run *middleware.Run, label ident.Label, attempt int, g grant) error {
	b.report(ctx, run, label, attempt, g)

	return middleware.NewDenial(middleware.Refusal{
		Run: run.ID(), Component: middleware.ComponentBudget, Reason: g.reason(), Verdict: g.verdict(),
		Action: middleware.ActionBlock, Cause: &LimitError{resource: g.resource, used: g.count, limit: g.limit},
	})
}

// report tells of a refusal, or of a final answer, outside of all locks.
func (b *Budget) report(ctx context.Context, run *middleware.Run, label ident.Label, attempt int, g grant) {
	action := middleware.ActionBlock
	if g.final {
		action = middleware.ActionSubstitute
	}
	middleware.Notify(ctx, b.observer, middleware.Decision{
		Seq: g.seq, Component: middleware.ComponentBudget, Verdict: g.verdict(), Action: action, Reason: g.reason(),
		Run: run.ID(), Workflow: run.Workflow(), Label: label, Turn: run.Turn(), Attempt: attempt,
		Count: int(g.count), Limit: int(g.limit),
	})
	if g.tripped {
		b.breaker.note(ctx, run, middleware.ReasonBudgetExceeded)
	}
}

func (g *grant) reason() middleware.Reason {
	if g.resource == ResourceTool {
		return middleware.ReasonToolLimit
	}

	return middleware.ReasonBudgetExceeded
}

func (g *grant) verdict() middleware.Verdict {
	if g.soft || g.final {
		return middleware.VerdictModify
	}

	return middleware.VerdictDeny
}

// LimitError is the cause inside of the budget's denials: it says which limit
// was reached.
type LimitError struct {
	resource    Resource
	used, limit int64
}

var _ middleware.Reasoned = (*LimitError)(nil)

// Reason returns budget_exceeded, also for the limit of one tool.
func (e *LimitError) Reason() middleware.Reason { return middleware.ReasonBudgetExceeded }

// Resource returns what was short.
func (e *LimitError) Resource() Resource { return e.resource }

// Used returns what was used when the call was refused, of the wall time in
// milliseconds.
func (e *LimitError) Used() int { return int(e.used) }

// Limit returns the limit, of the wall time in milliseconds.
func (e *LimitError) Limit() int { return int(e.limit) }

// Error returns the name of the resource.
func (e *LimitError) Error() string { return "interlock: budget: limit of " + e.resource.String() }

// Format prints Error for every verb and flag.
func (e *LimitError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Is reports whether target is budget_exceeded.
func (e *LimitError) Is(target error) bool { return isReason(target, e.Reason()) }
