package watchdog

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// repeat is the loop detector: the same pair of tool and arguments more than
// threshold times in the last window calls.
type repeat struct {
	threshold, window int
	keys              callkey.Keyer
	runs              middleware.PerRun[history]
}

var (
	_ Detector = (*repeat)(nil)
	_ actor    = (*repeat)(nil)
)

func newRepeat(threshold, window int) *repeat {
	return &repeat{
		threshold: threshold, window: window, keys: callkey.New(),
		runs: middleware.PerRun[history]{New: func(*middleware.Run) (*history, error) { return new(history), nil }},
	}
}

// history is the window of one run: a ring that grows up to its size.
type history struct {
	mu     sync.Mutex
	ring   []callkey.Key
	next   int         // where the next key goes, once the ring is full
	silent bool        // whether quiet was observed and no other pair came since
	quiet  callkey.Key // this pair
}

// Check advances the window and counts the call's pair in it.
func (r *repeat) Check(ctx context.Context, call *middleware.ToolCall) (Detection, bool, error) {
	h, err := r.runs.Get(middleware.RunFrom(ctx))
	if err != nil {
		return Detection{}, false, err
	}
	key := r.keys.Call(call.Label(), call.Input())
	count, silent := h.add(key, r.window)
	if count <= r.threshold || silent {
		return Detection{}, false, nil
	}

	return Detection{
		Reason: middleware.ReasonLoop, Count: count, Limit: r.threshold,
		Severity: min(1, float64(count)/float64(2*r.threshold)),
	}, true, nil
}

func (h *history) add(key callkey.Key, window int) (count int, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) < window {
		if len(h.ring) == cap(h.ring) { // doubled by hand: append would take more than the window
			grown := make([]callkey.Key, len(h.ring), min(window, max(2*cap(h.ring), DefaultLoopWindow)))
			copy(grown, h.ring)
			h.ring = grown
		}
		h.ring = append(h.ring, key)
	} else {
		h.ring[h.next] = key
		h.next = (h.next + 1) % window
	}
	for _, k := range h.ring {
		if k == key {
			count++
		}
	}
	h.silent = h.silent && h.quiet == key

	return count, h.silent
}

// acted makes the pair silent if the call went through with a detection on it.
func (r *repeat) acted(ctx context.Context, call *middleware.ToolCall, blocked bool) {
	h, err := r.runs.Get(middleware.RunFrom(ctx))
	if blocked || err != nil {
		return
	}
	key := r.keys.Call(call.Label(), call.Input())
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.ring) - 1
	if h.next > 0 {
		last = h.next - 1
	}
	h.silent, h.quiet = h.ring[last] == key, key // another pair may have come since
}
