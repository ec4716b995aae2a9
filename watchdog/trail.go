package watchdog

import (
	"hash/maphash"
	"math"
	"sync"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// The sizes of the tables of a run. With all of them full a trail takes about
// 7 KiB; each grows as it is needed, and the oldest entry makes room.
const (
	maxKeys  = 48
	maxTools = 16
	maxPairs = 128
	maxSteps = maxPeriod * rounds
)

// trail is what is remembered of the steps of a run. Its lock is held by the
// caller of every method.
type trail struct {
	fuse int

	mu       sync.Mutex
	epoch    uint32 // pieces of news so far
	made     uint32 // calls that came back
	effects  uint32 // effects that were news
	clock    uint32 // steps so far
	dry      int    // steps since the last news
	repeats  int    // the newest steps of which each was there before
	turn     int    // of the newest step, 0 if it is alone
	unknown  int    // calls of tools that do not exist, since the last news
	quiet    bool   // observed, and no news since
	spared   int    // steps of grace after the fuse blew
	open     int    // calls under way
	raised   bool   // one of them has raised the signal
	signaled bool
	signal   float64

	keys  []keyEntry
	tools []toolEntry
	pairs ring
	steps [maxSteps]step
	known words

	answers answers
}

// toolCall is a call as the rules see it.
type toolCall struct {
	keys   callkey.Keyer
	seed   maphash.Seed
	label  ident.Label
	input  string
	key    uint64
	turn   int
	effect middleware.Effect
	waits  bool // it does nothing but wait
	polls  bool // it is asked again and again on purpose
}

// keyEntry is what is known of one tool with one set of arguments.
type keyEntry struct {
	key, result uint64
	epoch       uint32 // of the news when same was counted
	effects     uint32 // at the last failing check
	step        uint32 // the last one it was in
	same        uint16 // equal results in a row without news
	fails       uint16 // equal failures with an effect before each
	open        uint16 // calls that are under way
	failing     bool
	waits       bool // what it does is waiting
	muted       bool // its stagnation was observed
}

// toolEntry is what is known of one tool.
type toolEntry struct {
	label  ident.Label
	values uint64 // the last arguments, as a set of bits
	epoch  uint32
	step   uint32
	drift  uint16 // new arguments in a row that brought nothing new
	turns  uint16 // in so many steps
}

// step is one turn of the agent, or one call outside of any.
type step struct {
	byKey, byTool uint64 // sums over the calls, so that their order does not count
	calls         uint16
	news, waits   bool
}

// at returns the step with this number, which has to be among the last maxSteps.
func (t *trail) at(number uint32) *step { return &t.steps[number%maxSteps] }

func (t *trail) findKey(key uint64) *keyEntry {
	for i := range t.keys {
		if t.keys[i].key == key {
			return &t.keys[i]
		}
	}

	return nil
}

func (t *trail) findTool(label ident.Label) *toolEntry {
	for i := range t.tools {
		if t.tools[i].label == label {
			return &t.tools[i]
		}
	}

	return nil
}

// addKey returns a fresh entry, in place of the one that was not used for the
// longest time if the table is full.
func (t *trail) addKey(key uint64) *keyEntry {
	i := 0
	if len(t.keys) < maxKeys {
		t.keys = grow(t.keys, maxKeys)
		t.keys = append(t.keys, keyEntry{})
		i = len(t.keys) - 1
	} else {
		for k := range t.keys {
			if t.keys[k].step < t.keys[i].step {
				i = k
			}
		}
	}
	t.keys[i] = keyEntry{key: key, effects: math.MaxUint32}

	return &t.keys[i]
}

func (t *trail) addTool(label ident.Label) *toolEntry {
	i := 0
	if len(t.tools) < maxTools {
		t.tools = grow(t.tools, maxTools)
		t.tools = append(t.tools, toolEntry{})
		i = len(t.tools) - 1
	} else {
		for k := range t.tools {
			if t.tools[k].step < t.tools[i].step {
				i = k
			}
		}
	}
	t.tools[i] = toolEntry{label: label}

	return &t.tools[i]
}

// grow makes room for one more by doubling, up to most: append would take more.
func grow[E any](s []E, most int) []E {
	const first = 8
	if len(s) < cap(s) {
		return s
	}
	grown := make([]E, len(s), min(most, max(2*cap(s), first)))
	copy(grown, s)

	return grown
}

// ring remembers the last maxPairs hashes.
type ring struct {
	all  []uint64
	next int
}

// has reports which of three hashes are there, in one pass.
func (r *ring) has(a, b, c uint64) (hasA, hasB, hasC bool) {
	for _, x := range r.all {
		switch x {
		case a:
			hasA = true
		case b:
			hasB = true
		case c:
			hasC = true
		}
	}

	return hasA, hasB, hasC
}

func (r *ring) add(h uint64) {
	if len(r.all) < maxPairs {
		r.all = grow(r.all, maxPairs)
		r.all = append(r.all, h)

		return
	}
	r.all[r.next] = h
	r.next = (r.next + 1) % maxPairs
}
