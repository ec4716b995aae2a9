package escalation

import (
	"context"
	"io"

	"github.com/interlock-go/interlock/middleware"
)

// Sink takes a handoff to where humans look. Deliver is called once per
// handoff, on the goroutine of the call that tripped, outside of all locks. ctx
// outlives the cancellation of that call and has a deadline of its own. An
// error, a panic or a deadline that passes leaves the run halted.
type Sink interface {
	Deliver(ctx context.Context, h Handoff) error
}

// SinkFunc makes a [Sink] of a function.
type SinkFunc func(ctx context.Context, h Handoff) error

var _ Sink = SinkFunc(nil)

// Deliver calls f; a nil f is sink_failed.
func (f SinkFunc) Deliver(ctx context.Context, h Handoff) error {
	if f == nil {
		return sinkFailed(nil)
	}

	return f(ctx, h)
}

func sinkFailed(cause error) error { return failure(middleware.ReasonSinkFailed, cause) }

// ChannelSink sends handoffs to a Go channel. It never blocks: a channel that
// is full, or closed, is sink_failed.
type ChannelSink struct{ ch chan<- Handoff }

var _ Sink = (*ChannelSink)(nil)

// NewChannelSink returns a sink that sends to ch, which should have a buffer. A
// nil ch is a [ConfigError].
func NewChannelSink(ch chan<- Handoff) (*ChannelSink, error) {
	if ch == nil {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "ch", bound: "set"}
	}

	return &ChannelSink{ch: ch}, nil
}

// Deliver sends h if the channel takes it at once.
func (s *ChannelSink) Deliver(_ context.Context, h Handoff) (err error) {
	defer func() {
		if recover() != nil { // the channel was closed
			err = sinkFailed(nil)
		}
	}()
	if h.IsZero() {
		return sinkFailed(nil)
	}
	select {
	case s.ch <- h:
		return nil
	default:
		return sinkFailed(nil)
	}
}

// WriterSink writes handoffs as JSON lines: each one canonical line, with one
// Write.
type WriterSink struct {
	turn chan struct{} // holds one token while a Write is under way
	w    io.Writer
}

var _ Sink = (*WriterSink)(nil)

// NewWriterSink returns a sink that writes to w, one Write at a time. A nil w is
// a [ConfigError].
func NewWriterSink(w io.Writer) (*WriterSink, error) {
	if w == nil {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "w", bound: "set"}
	}

	return &WriterSink{turn: make(chan struct{}, 1), w: w}, nil
}

// Deliver writes the line. It waits for its turn until ctx is done.
func (s *WriterSink) Deliver(ctx context.Context, h Handoff) error {
	line, err := handoffLine(h)
	if err != nil {
		return sinkFailed(err)
	}
	if err := takeTurn(ctx, s.turn); err != nil {
		return sinkFailed(err)
	}
	defer func() { <-s.turn }()
	n, err := s.w.Write(line)
	if err != nil || n != len(line) {
		return sinkFailed(err)
	}

	return nil
}

// takeTurn is a lock that a context can give up on.
func takeTurn(ctx context.Context, turn chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func handoffLine(h Handoff) ([]byte, error) {
	line, err := h.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if len(line) >= MaxHandoffBytes {
		return nil, &HandoffError{defect: DefectOversize}
	}

	return append(line, '\n'), nil
}
