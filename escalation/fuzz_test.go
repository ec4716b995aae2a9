package escalation_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// Whatever parses is exactly what the parsed value renders as, and of the table.
func FuzzParseHandoff(f *testing.F) {
	for _, c := range middleware.FailureClasses() {
		f.Add([]byte(golden(f, c)), at.Unix())
	}
	f.Add([]byte(golden(f, toolFailure)), at.Add(time.Hour).Unix())
	f.Add([]byte(goldenState(f, "state_halted.json")), at.Unix())
	f.Add([]byte(`{"evidence":[],"evidence":[]}`), at.Unix())
	f.Add([]byte("{"), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, seconds int64) {
		now := time.Unix(seconds, 0).UTC()
		h, err := escalation.ParseHandoff(data, now)
		if err != nil {
			var e *escalation.HandoffError
			if !errors.As(err, &e) || e.Defect() == 0 || !h.IsZero() {
				t.Fatalf("%v, %v", h, err)
			}

			return
		}
		again, err := h.MarshalJSON()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("renders as %s, %v", again, err)
		}
		want := routes[h.Class()]
		if want == nil || h.ReasonCode().String() != want[0] || h.RequestedDecision().String() != want[1] ||
			h.RecoveryActions()[0].String() != want[2] || h.RecoveryActions()[1].String() != want[3] {
			t.Error("outside of the table")
		}
		if !now.Before(h.ExpiresAt()) || h.IssuedAt().After(now.Add(5*time.Minute)) ||
			h.ExpiresAt().Sub(h.IssuedAt()) != 30*time.Minute || len(h.StepDigests()) == 0 || len(h.StepDigests()) > 32 {
			t.Error("outside of its time or bounds")
		}
	})
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(goldenState(f, "state_counting.json")))
	f.Add([]byte(goldenState(f, "state_halted.json")))
	f.Add([]byte(golden(f, toolFailure)))
	f.Add([]byte(`{"counts":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := escalation.ParseBreaker(config(t), data)
		if err != nil {
			if b != nil || !errors.Is(err, escalation.ErrInvalidState) {
				t.Fatalf("%v, %v", b, err)
			}

			return
		}
		if again := render(t, b); again != string(data) {
			t.Fatalf("renders as %s", again)
		}
		h, ok := b.Handoff()
		if ok != b.Halted() || (ok && len(h.StepDigests()) != b.Counts().Total()) {
			t.Error("halted without its handoff")
		}
		got, err := b.Trip(toolFailure, digest(1), at)
		if ok != errors.Is(err, escalation.ErrCircuitOpen) || ok != (got == nil) {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// model is the breaker said again, as simply as possible.
type model struct {
	policy  escalation.Policy
	counts  map[escalation.Class]int
	steps   []string
	tripped escalation.Class
}

func (m *model) step(class escalation.Class, sum string, now time.Time, trip bool) (bool, error) {
	limit, known := map[escalation.Class]int{
		uncertainty: m.policy.Uncertainty, permission: m.policy.PermissionDenial, toolFailure: m.policy.ToolFailure,
	}[class]
	switch {
	case m.tripped != 0:
		return false, escalation.ErrCircuitOpen
	case !known:
		return false, escalation.ErrInvalidClass
	case len(sum) != 64:
		return false, escalation.ErrInvalidDigest
	case now.Nanosecond() != 0:
		return false, escalation.ErrInvalidTimestamp
	}
	m.counts[class]++
	m.steps = append(m.steps, sum)
	if trip || m.counts[class] >= limit || len(m.steps) >= m.policy.Total {
		m.tripped = class

		return true, nil
	}

	return false, nil
}

// Each byte is one operation on two breakers, one of which is persisted and
// restored before every step, and on the model.
func FuzzBreaker(f *testing.F) {
	f.Add(uint8(3), uint8(2), uint8(3), uint8(6), []byte{1, 2, 3, 1, 2, 3, 1, 2, 3})
	f.Add(uint8(32), uint8(32), uint8(32), uint8(32), bytes.Repeat([]byte{1, 2, 3}, 12))
	f.Add(uint8(1), uint8(1), uint8(1), uint8(1), []byte{0x13, 0x23, 0x43, 0x83})
	f.Add(uint8(9), uint8(9), uint8(9), uint8(2), []byte{0, 3, 0x0f, 1, 1})
	f.Fuzz(func(t *testing.T, u, p, tf, total uint8, ops []byte) {
		bound := func(n uint8) int { return int(n)%32 + 1 }
		cfg := config(t)
		cfg.Policy = escalation.Policy{
			Uncertainty: bound(u), PermissionDenial: bound(p), ToolFailure: bound(tf), Total: bound(total),
		}
		b, err := escalation.NewBreaker(cfg)
		if err != nil {
			t.Fatal(err)
		}
		twin, err := escalation.NewBreaker(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m := model{policy: cfg.Policy, counts: map[escalation.Class]int{}}
		for i, op := range ops {
			class, sum, now := escalation.Class(op&7), digest(i), at.Add(time.Duration(i)*time.Second)
			if op&16 != 0 {
				sum = sum[1:]
			}
			if op&32 != 0 {
				now = now.Add(1)
			}
			if twin, err = escalation.ParseBreaker(cfg, []byte(render(t, twin))); err != nil {
				t.Fatal(err)
			}
			do, doTwin := b.RecordFailure, twin.RecordFailure
			if op&64 != 0 {
				do, doTwin = b.Trip, twin.Trip
			}
			h, err := do(class, sum, now)
			_, _ = doTwin(class, sum, now)
			trips, want := m.step(class, sum, now, op&64 != 0)
			if !errors.Is(err, want) || (err == nil) != (want == nil) || (h != nil) != trips {
				t.Fatalf("operation %d: %v, %v; want %v, %v", i, h, err, trips, want)
			}
			if trips && (h.Class() != class || len(h.StepDigests()) != len(m.steps) || h.IssuedAt() != now) {
				t.Fatalf("operation %d: handoff %v", i, h)
			}
			if render(t, b) != render(t, twin) {
				t.Fatalf("operation %d: equal calls gave\n%s\n%s", i, render(t, b), render(t, twin))
			}
			c := b.Counts()
			if c.Uncertainty != m.counts[uncertainty] || c.PermissionDenial != m.counts[permission] ||
				c.ToolFailure != m.counts[toolFailure] || b.Halted() != (m.tripped != 0) {
				t.Fatalf("operation %d: %+v", i, c)
			}
		}
	})
}
