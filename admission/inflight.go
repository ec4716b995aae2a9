package admission

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/interlock-go/interlock/middleware"
)

// inflight counts effects that have begun, by epoch. A drain begins a new epoch
// and waits for the older ones, so that it does not wait for what began later.
type inflight struct {
	mu     sync.Mutex
	epoch  uint64
	counts map[uint64]int
	wake   chan struct{} // closed when an older epoch has come to its end
}

func (f *inflight) enter() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts = make(map[uint64]int)
	}
	f.counts[f.epoch]++

	return f.epoch
}

func (f *inflight) leave(epoch uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[epoch]--
	if f.counts[epoch] > 0 || epoch == f.epoch {
		return
	}
	delete(f.counts, epoch)
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

func (f *inflight) total() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, count := range f.counts {
		n += count
	}

	return n
}

// begin starts an epoch and returns the one before.
func (f *inflight) begin() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.epoch
	f.epoch++
	if f.counts[last] == 0 {
		delete(f.counts, last)
	}

	return last
}

// wait returns nil if no effect of an epoch up to last is in flight, else what
// is closed when that may have changed.
func (f *inflight) wait(last uint64) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	for epoch := range f.counts {
		if epoch <= last {
			if f.wake == nil {
				f.wake = make(chan struct{})
			}

			return f.wake
		}
	}

	return nil
}

// InFlight returns how many effects have begun in this process and not ended.
// An effect is counted before it is checked, so the count includes those that
// are about to be refused.
func (c *Controller) InFlight() int {
	if c == nil {
		return 0
	}

	return c.flying.total()
}

// Drain waits until every effect that began in this process before Drain was
// called has ended; those that begin later are not waited for. After a stop it
// says that nothing that was admitted before is still running here. It knows
// nothing of other processes. If ctx is done first the answer is canceled: not
// drained.
func (c *Controller) Drain(ctx context.Context) error {
	if c == nil {
		return nil
	}
	last := c.flying.begin()
	for {
		wake := c.flying.wait(last)
		if wake == nil {
			return nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return canceled(ctx)
		}
	}
}

// Format prints the type for every verb and flag: the paths of a store may tell something.
func (*Controller) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "admission.Controller") }

// Gauges returns the last known state of the global scope, as checks and
// transitions of this process saw it, and the number of effects in flight. It
// reads nothing, and before the first check of a store it says nothing about it.
func (c *Controller) Gauges() []middleware.Gauge {
	if c == nil {
		return nil
	}
	c.known.mu.Lock()
	last := c.known.last
	c.known.mu.Unlock()
	if c.store == nil {
		last = middleware.ReasonAdmissionDisabled
	}
	gauges := []middleware.Gauge{{Kind: middleware.GaugeInFlight, Value: float64(c.flying.total())}}
	if last != 0 {
		gauges = append(gauges, middleware.Gauge{Kind: middleware.GaugeAdmission, Reason: last, Global: true, Value: 1})
	}

	return gauges
}
