package watchdog

import (
	"sync"
	"time"
)

// alarm is the one timer behind the stall clocks of a run. All of them have the
// same timeout, so a list in the order of their deadlines is kept by appending,
// and a call costs no operation on a timer: it is armed for the oldest deadline
// and, where that call has returned meanwhile, rings in vain once and is armed
// for the next.
//
//	clock     event                       next
//	running   stop                        done
//	running   deadline                    firing: taken from the list, the policy is asked
//	running   pause                       paused, with what remains
//	paused    last resume                 running
//	paused    stop                        done
//	firing    stop                        done: it came back before anything was decided
//	firing    decided                     fired
//
// Anything else changes nothing. A run that ends leaves the clocks of calls that
// are still open running: nobody else would cancel them.
type alarm struct {
	timeout time.Duration

	mu         sync.Mutex
	head, tail *clock
	timer      *time.Timer
	armed      bool
	due        time.Time // when the timer rings, if it is armed
	ended      bool
}

func (a *alarm) start(c *clock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run(c, a.timeout)
}

// run puts c in the list. The caller holds the lock.
func (a *alarm) run(c *clock, left time.Duration) {
	c.phase, c.deadline = running, time.Now().Add(left)
	after := a.tail
	for after != nil && after.deadline.After(c.deadline) {
		after = after.prev // only for what was paused
	}
	c.prev = after
	if after == nil {
		c.next, a.head = a.head, c
	} else {
		c.next, after.next = after.next, c
	}
	if c.next == nil {
		a.tail = c
	} else {
		c.next.prev = c
	}
	a.arm()
}

// take removes c from the list. The caller holds the lock.
func (a *alarm) take(c *clock) {
	if c.prev == nil {
		a.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		a.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	if a.head == nil && a.ended && a.timer != nil {
		a.timer.Stop()
	}
}

// arm sees to it that the timer rings at the first deadline at the latest. The
// caller holds the lock.
func (a *alarm) arm() {
	if a.head == nil || a.armed && !a.due.After(a.head.deadline) {
		return
	}
	a.armed, a.due = true, a.head.deadline
	left := time.Until(a.due)
	if a.timer == nil {
		a.timer = time.AfterFunc(left, a.ring)
	} else {
		a.timer.Reset(left)
	}
}

// ring runs on the timer's goroutine.
func (a *alarm) ring() {
	a.mu.Lock()
	var late []*clock
	for now := time.Now(); a.head != nil && !a.head.deadline.After(now); {
		c := a.head
		a.take(c)
		c.phase = firing
		late = append(late, c)
	}
	a.armed = false
	a.arm()
	a.mu.Unlock()
	fireAll(late)
}

// fireAll fires each clock, also if the policy or the observer ends this
// goroutine at one of them.
func fireAll(late []*clock) {
	if len(late) == 0 {
		return
	}
	defer fireAll(late[1:])
	late[0].fire()
}

func (a *alarm) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.head == nil && a.timer != nil {
		a.timer.Stop()
	}
}
