package middleware

import (
	"context"

	"github.com/interlock-go/interlock/ident"
)

// Op is an operation that has children in a trace and therefore must be opened
// before it is decided about.
type Op uint8

// The operations. The zero value is invalid.
const (
	_ Op = iota
	OpRun
	OpFallback
	OpAttempt
	OpTool

	opEnd
)

var opNames = []string{ //nolint:gochecknoglobals // compiled table
	OpRun: "run", OpFallback: "fallback", OpAttempt: "attempt", OpTool: "tool",
}

// String returns the operation's name.
func (o Op) String() string { return enumName(opNames, o) }

// Ops returns the closed set, for tables and tests.
func Ops() []Op { return enumAll(OpRun, opEnd) }

// Outcome is how an operation ended.
type Outcome struct {
	// Decision about the operation, where there is one; its Reason is the
	// reason of a failure, or zero or ok.
	Decision Decision
	// InputTokens and OutputTokens are the provider's count; 0 is unknown.
	InputTokens, OutputTokens int
	Finish                    FinishReason
	// ResponseModel is the registered name of the model that answered.
	ResponseModel ident.Label
}

// End ends an operation. It is called exactly once.
type End func(o Outcome)

// Tracer opens operations. The context that it returns is the parent of what
// happens inside. label and attempt are zero where they do not apply.
type Tracer interface {
	Start(ctx context.Context, op Op, label ident.Label, attempt int) (context.Context, End)
}

// StartOp opens an operation of t and returns an End that is never nil and has
// an effect once. A nil t costs nothing, and a panic of t is contained.
func StartOp(ctx context.Context, t Tracer, op Op, label ident.Label, attempt int) (context.Context, End) {
	if t == nil {
		return ctx, endNothing
	}
	inner, end := startContained(ctx, t, op, label, attempt)
	if inner == nil {
		inner = ctx
	}
	if end == nil {
		return inner, endNothing
	}
	done := false // an End belongs to one goroutine, like a span

	return inner, func(o Outcome) {
		if done {
			return
		}
		done = true
		defer func() { _ = recover() }()
		end(o)
	}
}

func endNothing(Outcome) {}

func startContained(ctx context.Context, t Tracer, op Op, label ident.Label, attempt int) (c context.Context, e End) {
	defer func() {
		if recover() != nil {
			c, e = nil, nil
		}
	}()

	return t.Start(ctx, op, label, attempt)
}

// GaugeKind says what a [Gauge] measures. The zero value is invalid.
type GaugeKind uint8

// The kinds.
const (
	_ GaugeKind = iota
	// GaugeCircuit: Value 1 for the state that the breaker Label is in.
	GaugeCircuit
	// GaugeAdmission: Value 1 for the state that a scope is in.
	GaugeAdmission
	// GaugeQueue: handoffs that wait.
	GaugeQueue
	// GaugeInFlight: effects that have begun and not ended.
	GaugeInFlight

	gaugeEnd
)

var gaugeNames = []string{ //nolint:gochecknoglobals // compiled table
	GaugeCircuit: "circuit", GaugeAdmission: "admission", GaugeQueue: "queue", GaugeInFlight: "in_flight",
}

// String returns the kind's name.
func (k GaugeKind) String() string { return enumName(gaugeNames, k) }

// GaugeKinds returns the closed set, for tables and tests.
func GaugeKinds() []GaugeKind { return enumAll(GaugeCircuit, gaugeEnd) }

// Gauge is one reading of a state that alerts look at.
type Gauge struct {
	Kind    GaugeKind
	Label   ident.Label  // breaker or candidate
	Circuit CircuitState // for GaugeCircuit
	Reason  Reason       // for GaugeAdmission: admission_enabled, _disabled, _stopped or untrusted_state
	Global  bool         // for GaugeAdmission: the global scope, else a workflow's
	Value   float64
}

// GaugeSource is read when metrics are collected. The gate, the breakers and
// the review queue implement it. Gauges returns current readings and does not
// block on I/O.
type GaugeSource interface {
	Gauges() []Gauge
}
