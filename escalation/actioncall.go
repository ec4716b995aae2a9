package escalation

import (
	"context"
	"runtime/debug"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// actionPlace says where something happened.
type actionPlace struct {
	run      ident.RunID
	workflow ident.WorkflowID
	label    ident.Label
	turn     int
	attempt  int
}

func placeOfAction(r *middleware.Run, c *middleware.ToolCall) actionPlace {
	return actionPlace{run: r.ID(), workflow: r.Workflow(), label: c.Label(), turn: c.Turn(), attempt: c.Attempt()}
}

// actionLayer is the breaker around one tool.
type actionLayer struct {
	*ActionBreaker

	next middleware.ToolHandler
}

func (b *ActionBreaker) layer(next middleware.ToolHandler) middleware.ToolHandler {
	if b == nil || b.shared == nil || next == nil {
		return nil // At makes a chain of it that refuses every call
	}

	return actionLayer{ActionBreaker: b, next: next}.serve
}

func (l actionLayer) serve(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
	run := middleware.RunFrom(ctx)
	if err := run.Check(); err != nil {
		return nil, err // hand-made chains may lack the run check
	}
	if ctx.Err() != nil {
		return nil, middleware.NewCanceled(ctx, middleware.ComponentBreaker, call.Label(), nil)
	}
	track, err := l.runs.Get(run)
	if err != nil {
		return nil, err // the run has ended
	}
	c := track.circuit
	if ticket, ok := c.quick(); ok {
		return l.act(ctx, run, track, &ticket, call)
	}
	p := placeOfAction(run, call)
	fit := l.cfg.Slice != nil || !call.Effect().Changes()
	ticket, rep, ok := c.enter(p, ctx.Done(), fit, l.clock())
	if ticket.trial != nil {
		defer c.release(ticket.trial)
	}
	l.publish(ctx, c, p, &rep)
	switch {
	case !ok:
		return nil, l.park(ctx, c, p, nil)
	case ticket.trial != nil && l.cfg.Slice != nil:
		return l.sliced(ctx, run, track, &ticket, call)
	default:
		return l.act(ctx, run, track, &ticket, call)
	}
}

// act makes one action and takes in its outcome, however it ends.
func (l actionLayer) act(
	ctx context.Context, run *middleware.Run, track *actionTrack, ticket *actionTicket, call *middleware.ToolCall,
) (res *middleware.ToolResult, err error) {
	flight, waiting := track.begin(call)
	outcome, returned, risk := readGuardrail, false, 0.0
	defer func() {
		if !returned {
			if v := recover(); v != nil { // nil for Goexit, which goes on; it is counted all the same
				outcome, res, err = readPanic, nil, middleware.NewPanicError(v, debug.Stack())
			}
		}
		outcome = track.end(flight, call, res, outcome)
		l.settle(ctx, run, track.circuit, ticket, call, outcome, risk)
	}()
	if waiting == readGuardrail || l.cfg.Risk != nil {
		risk, outcome, err = l.guard(ctx, run, track, flight, call)
		if outcome != readNothing {
			returned = true

			return nil, err
		}
	}
	outcome = readUnknown // until it returns
	res, err = l.next(ctx, call)
	returned = true
	outcome = judgeAction(ctx, run, call, res, err)

	return res, err
}

// guard asks for the risk of an action. Anything but readNothing refuses it.
func (l actionLayer) guard(
	ctx context.Context, run *middleware.Run, track *actionTrack, flight int, call *middleware.ToolCall,
) (risk float64, r actionReading, err error) {
	var fault error
	if l.cfg.Risk != nil {
		risk, fault = l.risk(ctx, call)
		if fault != nil && ctx.Err() != nil {
			return 0, readExcluded, middleware.NewCanceled(ctx, middleware.ComponentBreaker, call.Label(), fault)
		}
	}
	if fault == nil && risk <= l.cfg.RiskLimit && track.reading(flight) != readGuardrail {
		return risk, readNothing, nil
	}
	if fault != nil {
		risk = 1
	}
	l.notify(ctx, placeOfAction(run, call), middleware.Decision{
		Seq: l.seq.Add(1), Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
		Reason: middleware.ReasonGuardrail, Class: readGuardrail.class(), Severity: risk,
	})

	return risk, readGuardrail, middleware.NewDenial(middleware.Refusal{
		Run: run.ID(), Component: middleware.ComponentBreaker, Reason: middleware.ReasonGuardrail, Cause: fault,
	})
}

// risk calls the user's function. A fault is an error, a panic, or no number in
// [0, 1].
func (b *ActionBreaker) risk(ctx context.Context, call *middleware.ToolCall) (risk float64, fault error) {
	answered := false
	defer func() {
		if answered {
			return
		}
		b.faults.Add(1)
		if v := recover(); v != nil {
			risk, fault = 0, middleware.NewPanicError(v, debug.Stack())
		}
	}()
	risk, fault = b.cfg.Risk(ctx, call)
	if fault == nil && !(risk >= 0 && risk <= 1) { // so that NaN is a fault
		fault = failure(middleware.ReasonInvalidThreshold)
	}
	answered = fault == nil || ctx.Err() != nil

	return risk, fault
}

// settle takes in an outcome and tells what came of it.
func (l actionLayer) settle(
	ctx context.Context, run *middleware.Run, c *actionCircuit, ticket *actionTicket, call *middleware.ToolCall,
	r actionReading, risk float64,
) {
	if c.settled(*ticket, r) {
		return
	}
	rep := c.settle(*ticket, r, l.clock())
	rep.risk = risk
	l.publish(ctx, c, placeOfAction(run, call), &rep)
}

// park tells of a refusal by the state, and returns it.
func (b *ActionBreaker) park(ctx context.Context, c *actionCircuit, p actionPlace, cause error) error {
	c.mu.Lock()
	d := middleware.Decision{
		Seq: b.seq.Add(1), Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
		Reason: middleware.ReasonParked, Count: c.parked,
	}
	c.mu.Unlock()
	b.notify(ctx, p, d)

	return middleware.NewDenial(middleware.Refusal{
		Run: p.run, Component: middleware.ComponentBreaker, Reason: middleware.ReasonParked, Cause: cause,
	})
}

// sliced makes the slices of a trial one after the other.
func (l actionLayer) sliced(
	ctx context.Context, run *middleware.Run, track *actionTrack, ticket *actionTicket, call *middleware.ToolCall,
) (*middleware.ToolResult, error) {
	p := placeOfAction(run, call)
	inputs, fault := l.slices(ctx, call)
	if fault != nil {
		return nil, l.park(ctx, track.circuit, p, fault)
	}
	whole := &middleware.ToolResult{Final: true}
	for i, input := range inputs {
		if i > 0 {
			if err := middleware.CheckRun(ctx); err != nil { // the checks outside saw the whole
				return nil, partial(call, i, err)
			}
			if !track.circuit.again(ticket) {
				return nil, partial(call, i, l.park(ctx, track.circuit, p, nil))
			}
		}
		slice := call.WithInput(input)
		res, err := l.act(middleware.ContextWithToolCall(ctx, slice), run, track, ticket, slice)
		if err != nil || res == nil {
			return nil, partial(call, i, err)
		}
		if i > 0 {
			whole.Output += "\n"
		}
		whole.Output += res.Output
		whole.Final = whole.Final && res.Final
	}

	return whole, nil
}

// partial says what a failed slice means for the whole.
func partial(call *middleware.ToolCall, made int, err error) error {
	if made == 0 || call.Effect().Repeatable() {
		return err
	}

	return middleware.UnknownOutcome(call, err)
}

// slices calls the user's function. Its slices are the caller's word for being
// smaller; that they are of the same tool, differ from each other and from the
// original, is checked or given by their form.
func (l actionLayer) slices(ctx context.Context, call *middleware.ToolCall) (inputs []string, fault error) {
	answered := false
	defer func() {
		if answered {
			return
		}
		l.faults.Add(1)
		if v := recover(); v != nil {
			inputs, fault = nil, middleware.NewPanicError(v, debug.Stack())
		}
	}()
	inputs, fault = l.cfg.Slice(ctx, call)
	if fault == nil && !l.smaller(call, inputs) {
		fault = failure(middleware.ReasonInvalidConfig)
	}
	answered = fault == nil

	return inputs, fault
}

func (l actionLayer) smaller(call *middleware.ToolCall, inputs []string) bool {
	if len(inputs) < 1 || len(inputs) > MaxSlices {
		return false
	}
	seen := map[callkey.Key]bool{l.keys.Call(call.Label(), call.Input()): true}
	for _, input := range inputs {
		key := l.keys.Call(call.Label(), input)
		if seen[key] {
			return false
		}
		seen[key] = true
	}

	return true
}
