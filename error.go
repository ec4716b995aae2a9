package interlock

import (
	"fmt"
	"io"

	"github.com/interlock-go/interlock/middleware"
)

// ConfigError is a field of [Config] that [New], [Guard.Tools] or [Guard.Model]
// refused. It names the field and what would be allowed, never the value.
type ConfigError struct {
	field, bound string
	cause        error
}

var _ middleware.Reasoned = (*ConfigError)(nil)

func badConfig(field, bound string, cause error) *ConfigError {
	return &ConfigError{field: field, bound: bound, cause: cause}
}

// Field returns the path of the field, as "Workflows[1].ID".
func (e *ConfigError) Field() string { return e.field }

// Bound returns what would be allowed.
func (e *ConfigError) Bound() string { return e.bound }

// Reason returns the reason of the part that refused, else invalid_config.
func (e *ConfigError) Reason() middleware.Reason {
	if r := middleware.ReasonOf(e.cause); r != 0 {
		return r
	}

	return middleware.ReasonInvalidConfig
}

// Error returns reason, field and bound.
func (e *ConfigError) Error() string {
	return "interlock: " + e.Reason().String() + ": " + e.field + ": " + e.bound
}

// Format prints Error for every verb and flag, so that none shows the cause.
func (e *ConfigError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns the error of the part that refused, or nil.
func (e *ConfigError) Unwrap() error { return e.cause }

// Is reports whether target is the reason of e.
func (e *ConfigError) Is(target error) bool {
	r, ok := target.(middleware.Reason)

	return ok && r == e.Reason()
}
