package otelx

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// circuitClocks remember since when breakers are in their state.
type circuitClocks struct {
	mu    sync.Mutex
	since map[circuitKey]circuitClock // bounded by components × registered labels × registered workflows
}

type circuitKey struct {
	component middleware.Component
	label     uint8
	workflow  ident.WorkflowID // of an action breaker; one agent may serve several
}

// circuitKey returns the breaker that d is about. It is not ok for what has no
// clock: a breaker without any registered name, and one that ends with its run.
func (r *registry) circuitKey(d *middleware.Decision) (k circuitKey, ok bool) {
	e, labelled := r.names.find(d.Label)
	k = circuitKey{component: d.Component, label: e.index}
	switch d.Component {
	case middleware.ComponentFallback:
		return k, labelled
	case middleware.ComponentBreaker:
		_, known := r.workflows[d.Workflow]
		if known {
			k.workflow = d.Workflow
		}

		return k, labelled || (known && d.Label.IsZero())
	default:
		return k, false
	}
}

type circuitClock struct {
	seq   uint64
	state middleware.CircuitState
	since time.Time
}

// enter notes a new state and returns the one left and how long it lasted; ok
// is false where nothing was left: at the first report, a repeated or a late one.
func (c *circuitClocks) enter(k circuitKey, d *middleware.Decision, now time.Time) (
	left middleware.CircuitState, lasted time.Duration, ok bool,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = make(map[circuitKey]circuitClock)
	}
	before, seen := c.since[k]
	if seen && (d.Circuit == before.state || (d.Seq != 0 && d.Seq <= before.seq)) {
		return 0, 0, false
	}
	c.since[k] = circuitClock{seq: d.Seq, state: d.Circuit, since: now}

	return before.state, now.Sub(before.since), seen
}
