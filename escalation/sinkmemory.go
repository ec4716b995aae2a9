package escalation

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/middleware"
)

// maxMemorySink bounds the capacity of a [MemorySink]: about 3 KiB each.
const maxMemorySink = 1 << 16

// MemorySink keeps handoffs in memory, for tests and small programs. It is
// bounded: when it is full a handoff is sink_failed and the older ones are
// kept, because each of them still waits for somebody.
type MemorySink struct {
	capacity int

	mu   sync.Mutex
	kept []Handoff
}

var _ Sink = (*MemorySink)(nil)

// NewMemorySink returns a sink that keeps up to capacity handoffs, 1…65536;
// else a [ConfigError].
func NewMemorySink(capacity int) (*MemorySink, error) {
	if capacity < 1 || capacity > maxMemorySink {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "capacity", bound: "1…65536"}
	}

	return &MemorySink{capacity: capacity}, nil
}

// Deliver keeps h.
func (s *MemorySink) Deliver(_ context.Context, h Handoff) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.IsZero() || len(s.kept) >= s.capacity {
		return sinkFailed(nil)
	}
	s.kept = append(s.kept, h)

	return nil
}

// Handoffs returns what is kept, oldest first.
func (s *MemorySink) Handoffs() []Handoff {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.kept)
}

// Take returns what is kept, oldest first, and lets go of it.
func (s *MemorySink) Take() []Handoff {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.kept
	s.kept = nil

	return taken
}

// Gauges returns how many handoffs wait.
func (s *MemorySink) Gauges() []middleware.Gauge {
	s.mu.Lock()
	defer s.mu.Unlock()

	return []middleware.Gauge{{Kind: middleware.GaugeQueue, Value: float64(len(s.kept))}}
}

var _ middleware.GaugeSource = (*MemorySink)(nil)
