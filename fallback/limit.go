package fallback

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// NoLimit switches a limit of [Config] off.
const NoLimit time.Duration = -1

// Limit says which limit of [Config] ended an attempt. The zero value is none.
type Limit uint8

// The limits.
const (
	_ Limit = iota
	// LimitWhole is Config.AttemptTimeout.
	LimitWhole
	// LimitFirstToken is Config.FirstToken.
	LimitFirstToken
	// LimitIdle is Config.Idle.
	LimitIdle
)

// String returns the limit's name, or "invalid".
func (l Limit) String() string {
	switch l {
	case LimitWhole:
		return "whole"
	case LimitFirstToken:
		return "first_token"
	case LimitIdle:
		return "idle"
	default:
		return middleware.Reason(0).String()
	}
}

// limits are those of [Config] with the defaults filled in; NoLimit is off.
type limits struct{ whole, first, idle time.Duration }

const (
	defaultWhole = 60 * time.Second
	defaultToken = 10 * time.Second
	minLimit     = time.Millisecond
	maxLimit     = time.Hour
)

// limits fills in the defaults. A default is never longer than the whole.
func (cfg *Config) limits() limits {
	l := limits{whole: cfg.AttemptTimeout, first: cfg.FirstToken, idle: cfg.Idle}
	if l.whole == 0 {
		l.whole = defaultWhole
	}
	part := defaultToken
	if l.whole != NoLimit {
		part = min(part, l.whole)
	}
	if l.first == 0 {
		l.first = part
	}
	if l.idle == 0 {
		l.idle = part
	}

	return l
}

// checkLimits names the first limit that is out of bounds, or longer than the whole that it is a part of.
func (cfg *Config) checkLimits() error {
	given := [...]struct {
		field string
		value time.Duration
	}{{"AttemptTimeout", cfg.AttemptTimeout}, {"FirstToken", cfg.FirstToken}, {"Idle", cfg.Idle}}
	for _, g := range given {
		if v := g.value; v != 0 && v != NoLimit && (v < minLimit || v > maxLimit) {
			return invalid(g.field, middleware.ReasonInvalidLimit, "outside of 1ms to 1h")
		}
	}
	l := cfg.limits()
	if l.whole == NoLimit {
		return nil
	}
	for _, g := range given[1:] {
		if g.value > l.whole {
			return invalid(g.field, middleware.ReasonInvalidLimit, "longer than AttemptTimeout")
		}
	}

	return nil
}

// startClock arms the limits that the attempt has: one timer for all of them. A token only notes its time; the timer
// looks when it fires, and sets itself again if it was early.
func (a *attempt) startClock() {
	if a.model.limits.whole == NoLimit && a.gate == nil {
		return // nothing that could end it
	}
	a.started = a.model.clock()
	a.clock.Lock()
	defer a.clock.Unlock()
	if _, due := a.due(0); due > 0 {
		a.timer = time.AfterFunc(due, a.expire)
	}
}

// clock is the time of limits: monotonic, and never 0.
func (m *Model) clock() time.Duration { return time.Since(m.epoch) + 1 }

// arm sets the timer to what comes next.
func (a *attempt) arm() {
	a.clock.Lock()
	defer a.clock.Unlock()
	if a.stopped || a.started == 0 {
		return
	}
	now := a.model.clock() - a.started
	_, due := a.due(now)
	switch {
	case due == 0:
	case a.timer == nil:
		a.timer = time.AfterFunc(due-now, a.expire)
	default:
		a.timer.Reset(due - now)
	}
}

// stopClock ends the limits, before what was held back is given to the caller.
func (a *attempt) stopClock() {
	a.clock.Lock()
	defer a.clock.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// expire is called by the timer.
func (a *attempt) expire() {
	a.clock.Lock()
	if a.stopped {
		a.clock.Unlock()

		return
	}
	now := a.model.clock() - a.started
	which, due := a.due(now)
	if due > now {
		a.timer.Reset(due - now)
		a.clock.Unlock()

		return
	}
	a.stopped = true
	a.limit.Store(uint32(which))
	cancel := a.cancel
	a.clock.Unlock()
	if cancel != nil {
		cancel(context.DeadlineExceeded)
	}
}

// release ends the context, and with it what the client may have left running.
func (a *attempt) release() {
	a.clock.Lock()
	a.stopped, a.released = true, true
	if a.timer != nil {
		a.timer.Stop()
	}
	cancel := a.cancel
	a.clock.Unlock()
	if cancel != nil {
		cancel(nil)
	}
}

// due returns the limit that comes next and when, counted from the start; 0 is never.
func (a *attempt) due(now time.Duration) (which Limit, due time.Duration) {
	l := &a.model.limits
	if l.whole != NoLimit {
		which, due = LimitWhole, l.whole
	}
	if a.gate == nil || (a.blind && !a.seen.present.Load()) {
		return which, due
	}
	part, from, next := LimitFirstToken, time.Duration(0), l.first
	if token := time.Duration(a.token.Load()); token > 0 {
		part, from, next = LimitIdle, token, l.idle
		if a.delivering.Load() > 0 {
			from = now // the caller's own function takes the time
		}
	}
	if next == NoLimit || (due != 0 && due <= from+next) {
		return which, due
	}

	return part, from + next
}

// tick notes a token. The first one changes what the timer waits for.
func (a *attempt) tick() {
	if a.started == 0 {
		return
	}
	if a.token.Swap(int64(max(a.model.clock()-a.started, 1))) == 0 {
		a.arm()
	}
}
