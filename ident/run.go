package ident

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"strings"
)

const (
	runPrefix = "run_"
	runBytes  = 16
)

// RunID names one agent run: "run_" and 32 lower-case hex digits, 128 random
// bits. Because it cannot be guessed, digests made over it cannot be either.
// The zero value is invalid.
type RunID struct{ s string }

// NewRunID draws a RunID from crypto/rand.
func NewRunID() (RunID, error) { return GenerateRunID(rand.Reader) }

// GenerateRunID draws 16 bytes from source, for tests and for replays. A nil
// source, an error or a short read is entropy_failed: a partly random
// identifier would be guessable.
func GenerateRunID(source io.Reader) (RunID, error) {
	if source == nil {
		return RunID{}, refuse(CodeEntropyFailed)
	}
	var raw [runBytes]byte
	if _, err := io.ReadFull(source, raw[:]); err != nil {
		return RunID{}, &Error{code: CodeEntropyFailed, cause: err}
	}
	var text [len(runPrefix) + 2*runBytes]byte
	copy(text[:], runPrefix)
	hex.Encode(text[len(runPrefix):], raw[:])

	return RunID{s: string(text[:])}, nil
}

// ParseRunID returns the identifier that s spells, or an [Error]:
// identifier_too_long, wrong_identifier_kind for a reverse-domain identifier,
// else invalid_identifier.
func ParseRunID(s string) (RunID, error) {
	switch {
	case isRunID(s):
		return RunID{s: s}, nil
	case len(s) > maxIdentifier:
		return RunID{}, refuse(CodeIdentifierTooLong)
	}
	switch kind, _, _ := strings.Cut(s, ":"); kind {
	case "capability", "purpose", "policy", "workflow", "tool":
		return RunID{}, refuse(CodeWrongIdentifierKind)
	}

	return RunID{}, refuse(CodeInvalidIdentifier)
}

// IsZero reports whether r is the invalid zero value.
func (r RunID) IsZero() bool { return r.s == "" }

// String returns the canonical text, "" for the zero value.
func (r RunID) String() string { return r.s }

// GoString redacts.
func (r RunID) GoString() string { return "ident.RunID(redacted)" }

// MarshalText gives the canonical text; the zero value is invalid_identifier.
func (r RunID) MarshalText() ([]byte, error) { return marshalText(r.s) }

// UnmarshalText parses as [ParseRunID] does. On error r is unchanged.
func (r *RunID) UnmarshalText(text []byte) error {
	id, err := ParseRunID(string(text))
	if err == nil {
		*r = id
	}

	return err
}

func isRunID(s string) bool {
	return len(s) == len(runPrefix)+2*runBytes && s[:len(runPrefix)] == runPrefix &&
		isLowerHex(s[len(runPrefix):])
}

func isLowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}

	return true
}
