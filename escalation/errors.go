package escalation

import (
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// What errors of this package are asked about with errors.Is.
var (
	ErrCircuitOpen      error = middleware.ReasonCircuitOpen
	ErrInvalidThreshold error = middleware.ReasonInvalidThreshold
	ErrInvalidTimestamp error = middleware.ReasonInvalidTimestamp
	ErrInvalidDigest    error = middleware.ReasonInvalidDigest
	ErrInvalidClass     error = middleware.ReasonInvalidClass
	ErrInvalidConfig    error = middleware.ReasonInvalidConfig
	ErrInvalidState     error = middleware.ReasonInvalidRunState
	ErrInvalidHandoff   error = middleware.ReasonInvalidHandoff
	ErrHandoffExpired   error = middleware.ReasonHandoffExpired
	ErrHandoffFuture    error = middleware.ReasonHandoffFuture
	ErrSinkFailed       error = middleware.ReasonSinkFailed
)

// ConfigError names the field of a configuration that is out of bounds. It does
// not hold the value.
type ConfigError struct {
	reason middleware.Reason
	field  string
	bound  string
}

var _ middleware.Reasoned = (*ConfigError)(nil)

// Reason returns invalid_threshold, invalid_limit or invalid_config.
func (e *ConfigError) Reason() middleware.Reason { return e.reason }

// Field returns the name of the field, as it is spelled in the source.
func (e *ConfigError) Field() string { return e.field }

// Error returns reason, field and bound.
func (e *ConfigError) Error() string {
	return "interlock: escalation: " + e.reason.String() + ": " + e.field + " must be " + e.bound
}

// Is reports whether target is the reason of e.
func (e *ConfigError) Is(target error) bool { return isReason(target, e.reason) }

// TripError is the cause inside of the denial that tripped a breaker: it
// carries the handoff out of the run, which may have ended by the time somebody
// looks.
type TripError struct {
	handoff Handoff
	cause   error
}

var _ middleware.Reasoned = (*TripError)(nil)

// Reason returns circuit_open.
func (e *TripError) Reason() middleware.Reason { return middleware.ReasonCircuitOpen }

// Handoff returns what the reviewer gets.
func (e *TripError) Handoff() Handoff { return e.handoff }

// Error returns a fixed text.
func (e *TripError) Error() string { return "interlock: escalation: tripped" }

// Format prints Error for every verb and flag, so that none shows the cause.
func (e *TripError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns the failure that tripped.
func (e *TripError) Unwrap() error { return e.cause }

// Is reports whether target is circuit_open.
func (e *TripError) Is(target error) bool { return isReason(target, e.Reason()) }

// HandoffOf returns the handoff of the trip that err came from, through every
// layer and through an executor that wraps errors. Errors of calls that were
// refused after the trip do not carry it.
func HandoffOf(err error) (Handoff, bool) {
	if t, ok := errors.AsType[*TripError](err); ok {
		return t.handoff, true
	}

	return Handoff{}, false
}

func isReason(target error, r middleware.Reason) bool {
	t, ok := target.(middleware.Reason) //nolint:errorlint // Is is asked per link of the chain

	return ok && t == r && r != 0
}

func failure(r middleware.Reason, causes ...error) error {
	return middleware.NewFailure(middleware.ComponentEscalation, r, ident.Label{}, causes...)
}
