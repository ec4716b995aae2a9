package escalation

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// maxEarly bounds the signals that wait for one certain action of a run.
const maxEarly = 16

// actionTrack is what is kept per run: its actions under way, the signals that
// wait for one, and the last action, for duplicates. No user code runs under its
// lock.
type actionTrack struct {
	circuit *actionCircuit
	keys    callkey.Keyer
	limit   int

	mu      sync.Mutex
	ended   bool
	flights []actionFlight // a free one has no call
	next    actionReading  // of signals without an action
	early   []earlySignal  // of an action that has not begun
	last    lastAction
	best    float64 // the highest progress that was reported
	moved   bool    // it rose since an action ended
}

type actionFlight struct {
	call    *middleware.ToolCall
	reading actionReading
}

type earlySignal struct {
	action  action
	reading actionReading
}

func actionOf(c *middleware.ToolCall) action { return action{id: c.ID(), turn: c.Turn()} }

// begin notes an action as under way, with the signals that waited for it. The
// reading is theirs.
func (t *actionTrack) begin(call *middleware.ToolCall) (flight int, r actionReading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, t.next = t.next, readNothing
	if len(t.early) > 0 {
		kept := t.early[:0]
		a := actionOf(call)
		for _, e := range t.early {
			if e.action == a {
				r = worse(r, e.reading)
			} else {
				kept = append(kept, e)
			}
		}
		clear(t.early[len(kept):])
		t.early = kept
	}
	for i := range t.flights {
		if t.flights[i].call == nil {
			t.flights[i] = actionFlight{call: call, reading: r}

			return i, r
		}
	}
	t.flights = append(t.flights, actionFlight{call: call, reading: r})

	return len(t.flights) - 1, r
}

// reading returns the worst signal of an action so far.
func (t *actionTrack) reading(flight int) actionReading {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.flights[flight].reading
}

// end takes an action out and returns its outcome: r, that of a duplicate, or
// that of its signals, whichever is worst.
func (t *actionTrack) end(flight int, call *middleware.ToolCall, res *middleware.ToolResult, r actionReading) actionReading {
	t.mu.Lock()
	defer t.mu.Unlock()
	signals := t.flights[flight].reading
	t.flights[flight] = actionFlight{}
	switch {
	case t.ended || r == readExcluded:
	case r != readNothing || call.Effect() == middleware.Polling:
		t.last = lastAction{}
	default:
		if t.moved {
			t.last, t.moved = lastAction{}, false // the first of its kind
		}
		if t.last.repeated(t.keys, call, res.Output) >= t.limit {
			r = readDuplicate
		}
	}

	return worse(r, signals)
}

// signal takes in a reading from ctx.
func (t *actionTrack) signal(ctx context.Context, r actionReading) {
	call, ok := middleware.ToolCallFrom(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case ok && t.mark(call, r):
	case ok && !t.ended:
		if len(t.early) == maxEarly { // the oldest is the next action's, whichever that is
			t.next = worse(t.next, t.early[0].reading)
			t.early = append(t.early[:0], t.early[1:]...)
		}
		t.early = append(t.early, earlySignal{action: actionOf(call), reading: r})
	default:
		t.next = worse(t.next, r)
	}
}

// progress notes a reported progress: an action that got further than ever is no
// repetition, whatever its result says.
func (t *actionTrack) progress(v float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v > t.best {
		t.best, t.moved = v, true
	}
}

// inside takes in a reading if ctx is inside of an action that is under way.
func (t *actionTrack) inside(ctx context.Context, r actionReading) bool {
	call, ok := middleware.ToolCallFrom(ctx)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.mark(call, r)
}

// mark finds the action that call is, or is a further attempt of.
func (t *actionTrack) mark(call *middleware.ToolCall, r actionReading) bool {
	for i := range t.flights {
		f := &t.flights[i]
		if f.call == call || (f.call != nil && actionOf(f.call) == actionOf(call)) {
			f.reading = worse(f.reading, r)

			return true
		}
	}

	return false
}

// close lets go of content when the run ends.
func (t *actionTrack) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended, t.last, t.early = true, lastAction{}, nil
}
