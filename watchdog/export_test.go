package watchdog

import (
	"hash/maphash"
	"unsafe"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// Rules are those of LoopProgress, without the hashing around them.
type Rules struct {
	t trail
	c toolCall
}

// NewRules returns the rules of a fresh run, for calls of one tool.
func NewRules(effect middleware.Effect) *Rules {
	return &Rules{
		t: trail{fuse: DefaultFuse},
		c: toolCall{
			keys: callkey.New(), seed: maphash.MakeSeed(), label: ident.MustLabel("lookup"), input: "{}", effect: effect,
		},
	}
}

// Call plays one call and reports whether it fired.
func (r *Rules) Call(key, result uint64, turn int) bool {
	c := r.c
	c.key, c.turn = mix(saltTool, key), turn
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	_, fired := r.t.enter(&c)
	r.t.leave(&c, &outcome{result: mix(saltTool, result), plain: mix(saltTool, result)})

	return fired
}

// Size is what the state of the run takes, in bytes.
func (r *Rules) Size() uintptr {
	n := unsafe.Sizeof(r.t) + uintptr(cap(r.t.keys))*unsafe.Sizeof(keyEntry{}) +
		uintptr(cap(r.t.tools))*unsafe.Sizeof(toolEntry{}) + uintptr(cap(r.t.pairs.all))*unsafe.Sizeof(uint64(0))
	if r.t.known.gen != nil {
		n += unsafe.Sizeof(*r.t.known.gen)
	}

	return n
}

// LeaveTwice ends a call twice, and one that never began.
func LeaveTwice(w *Watchdog, run *middleware.Run, call *middleware.ToolCall) {
	var v visit
	w.progress.leave(call, &v, endMade, nil, nil)
	if _, _, err := w.progress.enter(run, call, &v); err != nil {
		return
	}
	w.progress.leave(call, &v, endMade, nil, nil)
	w.progress.leave(call, &v, endMade, nil, nil)
}
