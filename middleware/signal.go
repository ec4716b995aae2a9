package middleware

import (
	"context"
	"math"
)

// SignalKind says what a [Signal] measures. The zero value is invalid.
type SignalKind uint8

// The kinds.
const (
	_ SignalKind = iota
	// SignalConfidence: how sure the agent is, 0…1.
	SignalConfidence
	// SignalDrift: how far the context moved from the task, 0…1.
	SignalDrift
	// SignalProgress: how far the task is, finite and at least 0, in any unit.
	SignalProgress
	// SignalRisk: how dangerous the action is, 0…1.
	SignalRisk

	signalEnd
)

var signalNames = []string{ //nolint:gochecknoglobals // compiled table
	SignalConfidence: "confidence", SignalDrift: "drift", SignalProgress: "progress", SignalRisk: "risk",
}

// String returns the kind's name.
func (k SignalKind) String() string { return enumName(signalNames, k) }

// SignalKinds returns the closed set, for tables and tests.
func SignalKinds() []SignalKind { return enumAll(SignalConfidence, signalEnd) }

// Signal is one reading that the agent or its tools report.
type Signal struct {
	Kind  SignalKind
	Value float64
}

// Valid reports whether the kind is known and the value within its range.
func (s Signal) Valid() bool {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0 {
		return false
	}
	switch s.Kind {
	case SignalConfidence, SignalDrift, SignalRisk:
		return s.Value <= 1
	case SignalProgress:
		return true
	default:
		return false
	}
}

// SignalReceiver is a component that hears the signals of a run. It runs on the
// goroutine that reports; a panic in it is contained. [ToolCallFrom] says which
// action the signal belongs to; without one it belongs to the run's next.
type SignalReceiver interface {
	ReceiveSignal(ctx context.Context, run *Run, s Signal)
}

// Report delivers s to every component of the run in ctx and reports whether it
// did. Without a run, or after its end, nothing happens; a signal that is not
// valid is ignored and counted ([Run.IgnoredSignals]).
func Report(ctx context.Context, s Signal) bool {
	r := RunFrom(ctx)
	if r == nil || r.Ended() {
		return false
	}
	if !s.Valid() {
		r.ignored.Add(1)

		return false
	}
	for _, rc := range r.receivers {
		deliver(ctx, rc, r, s)
	}

	return true
}

func deliver(ctx context.Context, rc SignalReceiver, r *Run, s Signal) {
	defer func() { _ = recover() }() // a component cannot break the tool that reports
	rc.ReceiveSignal(ctx, r, s)
}
