package watchdog

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// task is a call on a goroutine of its own, which its agent may stop to wait
// for. The goroutine ends when the tool does: nothing can end it from outside.
type task struct {
	ended chan struct{} // closed unless it was abandoned before
	state atomic.Uint32
	res   *middleware.ToolResult
	err   error
}

// The states of a task: it leaves the first one once.
const (
	taskOpen uint32 = iota
	taskEnded
	taskAbandoned
)

// apart makes the call on another goroutine. After the call was cancelled it
// waits for the grace time, then returns without the result.
func (w *Watchdog) apart(
	ctx context.Context, c *clock, next middleware.ToolHandler,
) (*middleware.ToolResult, error) {
	// A call of its own: the mark of the stage belongs to one goroutine.
	call := c.call.Clone()
	t := &task{ended: make(chan struct{})}
	go t.do(middleware.ContextWithToolCall(ctx, call), call, next, &w.abandoned)
	select {
	case <-t.ended:
		return t.res, t.err
	case <-c.gone:
	}
	grace := time.NewTimer(w.cfg.Detach)
	defer grace.Stop()
	select {
	case <-t.ended:
		return t.res, t.err
	case <-grace.C:
	}
	w.abandoned.Add(1)
	if !t.state.CompareAndSwap(taskOpen, taskAbandoned) {
		w.abandoned.Add(-1)
		<-t.ended

		return t.res, t.err
	}
	d := w.decision(c.run, whereOf(c.call), Detection{Reason: middleware.ReasonAbandoned, Count: w.Abandoned()})
	d.Seq, d.Verdict, d.Action = w.seq.Add(1), middleware.VerdictDeny, middleware.ActionCancel
	middleware.Notify(ctx, w.cfg.Observer, d)

	return nil, middleware.NewFailure(middleware.ComponentWatchdog, middleware.ReasonAbandoned, c.call.Label())
}

func (t *task) do(
	ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler, abandoned *atomic.Int64,
) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			t.fail(call, middleware.NewPanicError(v, debug.Stack()))
		} else if !returned { // runtime.Goexit
			t.fail(call, middleware.NewFailure(middleware.ComponentTool, middleware.ReasonToolFailed, call.Label()))
		}
		if t.state.CompareAndSwap(taskOpen, taskEnded) {
			close(t.ended)
		} else {
			abandoned.Add(-1)
		}
	}()
	t.res, t.err = next(ctx, call)
	returned = true
}

func (t *task) fail(call *middleware.ToolCall, err error) {
	if !call.Effect().Repeatable() {
		err = middleware.UnknownOutcome(call, err)
	}
	t.res, t.err = nil, err
}
