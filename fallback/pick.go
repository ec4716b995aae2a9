package fallback

import (
	"slices"

	"github.com/interlock-go/interlock/middleware"
)

// pick is who comes next: a candidate to ask, a probe to wait for, or nobody.
type pick struct {
	ask    bool
	ticket ticket
	change *change
	wait   *probe
	index  int
	skips  []skip
}

type skip struct {
	seq    uint64
	index  int
	reason middleware.Reason
}

func (w *walk) pick() (p pick) {
	m := w.m
	now := m.cfg.Now()
	w.now = now
	m.mu.Lock()
	defer m.mu.Unlock()
	if !w.counted {
		w.counted = true
		m.share.call(now, m.timing.second)
	}
	soonest := -1
	for i := w.next; i < len(m.candidates); i++ {
		b := &m.benches[i]
		reason := w.unfit(m.candidates[i])
		if reason == 0 {
			if b.free(now) {
				return w.takeLocked(p, i)
			}
			if soonest < 0 || b.until.Before(m.benches[soonest].until) {
				soonest = i
			}
			reason = middleware.ReasonBenched
			if b.probe != nil {
				reason = middleware.ReasonProbe
			}
		}
		p.skips = w.skipLocked(p.skips, i, reason)
	}
	if soonest < 0 || w.number > 0 {
		return p
	}
	// Nobody was asked yet, and nobody is free: one call asks the candidate whose bench ends soonest, the others wait.
	p.skips = slices.DeleteFunc(p.skips, func(s skip) bool { return s.index == soonest })
	if b := &m.benches[soonest]; b.probe != nil {
		p.wait, p.index = b.probe, soonest

		return p
	}

	return w.takeLocked(p, soonest)
}

func (w *walk) takeLocked(p pick, index int) pick {
	p.ask, p.index = true, index
	p.ticket, p.change = w.m.takeLocked(index)
	w.next = index + 1

	return p
}

func (w *walk) skipLocked(to []skip, index int, r middleware.Reason) []skip {
	bit := uint32(1) << index
	if w.m.cfg.Observer == nil || w.told&bit != 0 {
		return to
	}
	w.told |= bit

	return append(to, skip{seq: w.m.seq.Add(1), index: index, reason: r})
}

// unfit returns why a candidate cannot take this call, or 0.
func (w *walk) unfit(c *candidate) middleware.Reason {
	switch {
	case !c.client.takes(w.needs), c.Window < w.minWindow:
		return middleware.ReasonIneligible
	case c.deaf && c.abandoned.Load() >= maxAbandoned:
		return middleware.ReasonAbandoned
	default:
		return 0
	}
}
