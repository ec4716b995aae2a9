package escalation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// modelBreaker is the specification of the state machine in plain words, one
// call at a time.
type modelBreaker struct {
	threshold, hard, successes, trials int

	state      middleware.CircuitState
	generation int
	failed     int // in a row
	failedHard int // among them
	succeeded  int // of the trials, in a row
	openedAt   time.Time
	trips      int
	flying     []*modelAction
}

type modelAction struct {
	held       *held
	generation int
	trial      bool // and not lost
	begun      time.Time
}

func (m *modelBreaker) to(s middleware.CircuitState, now time.Time) {
	m.state = s
	m.generation++
	m.failed, m.failedHard, m.succeeded = 0, 0, 0
	if s == middleware.CircuitOpen {
		m.openedAt = now
		m.trips++
	}
}

// begin says whether an action may run.
func (m *modelBreaker) begin(readOnly bool, now time.Time) (a *modelAction, ok bool) {
	for _, f := range m.flying { // lost: the callers here never leave
		if m.state == middleware.CircuitClosed || !f.trial || now.Sub(f.begun) < 10*time.Minute {
			continue
		}
		f.trial = false
		if f.generation == m.generation && m.state == middleware.CircuitHalfOpen {
			m.to(middleware.CircuitOpen, now)
		}
	}
	if m.state == middleware.CircuitOpen && now.Sub(m.openedAt) >= time.Minute {
		m.to(middleware.CircuitHalfOpen, now)
	}
	if m.state == middleware.CircuitClosed {
		return &modelAction{generation: m.generation}, true
	}
	running := 0
	for _, f := range m.flying {
		running += b2i(f.trial)
	}
	if m.state != middleware.CircuitHalfOpen || !readOnly || running >= m.trials {
		return nil, false
	}

	return &modelAction{generation: m.generation, trial: true, begun: now}, true
}

func (m *modelBreaker) end(generation int, failed, hard bool, now time.Time) {
	switch {
	case generation != m.generation, m.state == middleware.CircuitOpen:
	case !failed:
		m.failed, m.failedHard = 0, 0
		m.succeeded++
		if m.state == middleware.CircuitHalfOpen && m.succeeded >= m.successes {
			m.to(middleware.CircuitClosed, now)
		}
	default:
		m.failed++
		m.failedHard += b2i(hard)
		if m.state == middleware.CircuitHalfOpen || m.failed >= m.threshold || m.failedHard >= m.hard {
			m.to(middleware.CircuitOpen, now)
		}
	}
}

func excludes(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	return nil, denial(ident.RunID{}, middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, middleware.VerdictDeny)
}

// FuzzActionBreaker runs sequences of operations against the model: after each
// one both are in the same state, have the same actions under way and asked as
// often for a human.
func FuzzActionBreaker(f *testing.F) {
	f.Add([]byte{0x00, 0, 3, 0, 3, 0, 3})
	f.Add([]byte{0x05, 0, 4, 6, 0, 2, 0, 2, 0, 2})
	f.Add([]byte{0x1b, 0, 0, 0, 0x13, 0x13, 0x13, 6, 0, 0, 0, 0x12, 0x23, 2})
	f.Add([]byte{0x2f, 7, 7, 7, 7, 6, 1, 0, 7, 6, 0, 5, 0, 2, 0, 2, 0, 2})
	f.Add([]byte{0xff, 0, 0, 7, 7, 7, 7, 6, 0, 2, 2, 0x14, 0x24, 6, 0, 0, 0, 3})
	f.Add([]byte{0x05, 0, 4, 6, 0, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 0, 1, 6, 0, 2, 0, 0x0a, 3}) // a trial for ever
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 200 {
			return
		}
		m := &modelBreaker{state: middleware.CircuitClosed}
		m.threshold = 1 + int(data[0]&3)
		m.hard = 1 + int(data[0]>>2&3)%m.threshold
		m.successes = 1 + int(data[0]>>4&3)
		m.trials = 1 + int(data[0]>>6&3)
		r := newRig(t, func(c *escalation.ActionConfig) {
			c.FailureThreshold, c.HardFailures, c.SuccessThreshold, c.MaxTrial = m.threshold, m.hard, m.successes, m.trials
		})
		for i, op := range data[1:] {
			m.step(t, r, op)
			if got := r.State(workflow); got != m.state {
				t.Fatalf("after operation %d (%#x) the breaker is %v, the model %v", i, op, got, m.state)
			}
			if got := len(r.sink.Handoffs()); got != m.trips {
				t.Fatalf("after operation %d: %d handoffs, %d trips", i, got, m.trips)
			}
		}
		for len(m.flying) > 0 {
			m.step(t, r, 2)
		}
		r.clock.move(time.Hour)
		for range 2 * m.successes { // nothing is wedged
			if err := r.call(t, middleware.ReadOnly, works); err != nil {
				t.Fatalf("with nothing under way, after an hour: %v", err)
			}
		}
		r.in(t, middleware.CircuitClosed)
	})
}

func (m *modelBreaker) step(t *testing.T, r *rig, op byte) {
	t.Helper()
	now := r.clock.Now()
	switch kind := op & 7; kind {
	case 0, 1:
		if len(m.flying) >= 8 {
			return
		}
		a, ok := m.begin(kind == 0, now)
		effect := middleware.ReadOnly
		if kind == 1 {
			effect = middleware.Effectful
		}
		h := r.hold(t, effect)
		if h.running() != ok {
			t.Fatalf("an action runs: %v, the model says %v", h.running(), ok)
		}
		if !ok {
			if err := h.end(nil); !errors.Is(err, escalation.ErrParked) {
				t.Fatalf("refused with %v", err)
			}

			return
		}
		a.held = h
		m.flying = append(m.flying, a)
	case 2, 3, 4, 5:
		if len(m.flying) == 0 {
			return
		}
		i := int(op>>3) % len(m.flying)
		a := m.flying[i]
		m.flying = append(m.flying[:i:i], m.flying[i+1:]...)
		_ = a.held.end(map[byte]middleware.ToolHandler{2: works, 3: fails, 4: panics, 5: excludes}[kind])
		if kind != 5 {
			m.end(a.generation, kind != 2, kind == 4, now)
		}
	case 6:
		r.clock.move(map[bool]time.Duration{true: 61 * time.Second, false: 20 * time.Second}[op>>3&1 == 0])
	case 7:
		ctx, run := r.start(t)
		r.Note(ctx, run, middleware.ReasonContextFull)
		m.end(m.generation, true, false, now)
	}
}
