package slogx

import (
	"fmt"
	"io"
	"strconv"

	"github.com/interlock-go/interlock/middleware"
)

// ConfigError says which field of [Config] is refused and what it may be. Its
// text has constants of this package and an index, never a value.
type ConfigError struct {
	field, bound string
	index        int // -1: the field as a whole
}

var _ middleware.Reasoned = (*ConfigError)(nil)

func refuse(field, bound string) error { return &ConfigError{field: field, bound: bound, index: -1} }

func refuseEntry(field string, index int, bound string) error {
	return &ConfigError{field: field, bound: bound, index: index}
}

// Field returns the name of the field of [Config].
func (e *ConfigError) Field() string { return e.field }

// Bound returns what the field may be.
func (e *ConfigError) Bound() string { return e.bound }

// Reason returns invalid_config.
func (*ConfigError) Reason() middleware.Reason { return middleware.ReasonInvalidConfig }

// Error returns field and bound.
func (e *ConfigError) Error() string {
	s := "slogx: Config." + e.field
	if e.index >= 0 {
		s += "[" + strconv.Itoa(e.index) + "]"
	}

	return s + ": must be " + e.bound
}

// Format prints Error for every verb and flag.
func (e *ConfigError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Is reports whether target is invalid_config.
func (e *ConfigError) Is(target error) bool {
	r, ok := target.(middleware.Reason)

	return ok && r == e.Reason()
}
