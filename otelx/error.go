package otelx

import (
	"fmt"
	"io"
	"strconv"

	"github.com/interlock-go/interlock/middleware"
)

// ConfigError says which field of [Config] is refused and why. Its text has the
// field's name, numbers and a code, never a label or what a provider said.
type ConfigError struct {
	field  string // a constant of this package
	index  int    // -1: the field as a whole
	part   string // a field of the entry, or ""
	reason middleware.Reason
	count  int // with limit: how many entries there are
	limit  int
	cause  error
}

var _ middleware.Reasoned = (*ConfigError)(nil)

func refuseEntry(field string, index int, part string, reason middleware.Reason) error {
	return &ConfigError{field: field, index: index, part: part, reason: reason}
}

func refuseCount(field string, count, limit int) error {
	return &ConfigError{field: field, index: -1, reason: middleware.ReasonInvalidConfig, count: count, limit: limit}
}

func refuseField(field string, cause error) error {
	return &ConfigError{field: field, index: -1, reason: middleware.ReasonInvalidConfig, cause: cause}
}

// Reason returns invalid_config, invalid_label or duplicate_label.
func (e *ConfigError) Reason() middleware.Reason { return e.reason }

// Field returns the name of the field of [Config].
func (e *ConfigError) Field() string { return e.field }

// Error returns field and bound, or field, index and code.
func (e *ConfigError) Error() string {
	s := "otelx: Config." + e.field
	if e.index >= 0 {
		s += "[" + strconv.Itoa(e.index) + "]"
	}
	if e.part != "" {
		s += "." + e.part
	}
	if e.limit > 0 {
		return s + ": " + strconv.Itoa(e.count) + " entries, at most " + strconv.Itoa(e.limit)
	}

	return s + ": " + e.reason.String()
}

// Format prints Error for every verb and flag, so that none shows the cause.
func (e *ConfigError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns what a provider failed with, or nil.
func (e *ConfigError) Unwrap() error { return e.cause }

// Is reports whether target is the reason of e.
func (e *ConfigError) Is(target error) bool {
	r, ok := target.(middleware.Reason)

	return ok && r == e.reason
}
