package ident

// Code says why a value was refused. The set is closed; the zero value is no
// code and never returned.
type Code uint8

// The codes, in the order in which the parsers look for them.
const (
	codeNone Code = iota
	// CodeInvalidIdentifier: the text is not of the form of this identifier.
	CodeInvalidIdentifier
	// CodeIdentifierTooLong: longer than 512 bytes (labels: 64, model labels: 96).
	CodeIdentifierTooLong
	// CodeUnknownKind: the part before the colon is none of the five kinds.
	CodeUnknownKind
	// CodeWrongKind: a known kind, but not the one asked for.
	CodeWrongKind
	// CodeNamespaceTooLong: the namespace is longer than 253 bytes.
	CodeNamespaceTooLong
	// CodeWrongIdentifierKind: a run identifier where a reverse-domain one is
	// expected, or the other way round.
	CodeWrongIdentifierKind
	// CodeInvalidLabel: outside the label grammar.
	CodeInvalidLabel
	// CodeInvalidDigest: not 64 lower-case hex digits (after the prefix, where
	// there is one).
	CodeInvalidDigest
	// CodeEntropyFailed: the source of random bytes failed or ended early.
	CodeEntropyFailed

	codeEnd
)

var codeNames = [codeEnd]string{ //nolint:gochecknoglobals // compiled table
	codeNone:                "invalid",
	CodeInvalidIdentifier:   "invalid_identifier",
	CodeIdentifierTooLong:   "identifier_too_long",
	CodeUnknownKind:         "unknown_kind",
	CodeWrongKind:           "wrong_kind",
	CodeNamespaceTooLong:    "namespace_too_long",
	CodeWrongIdentifierKind: "wrong_identifier_kind",
	CodeInvalidLabel:        "invalid_label",
	CodeInvalidDigest:       "invalid_digest",
	CodeEntropyFailed:       "entropy_failed",
}

// String returns the code's text, or "invalid" for a value outside the set.
func (c Code) String() string {
	if c >= codeEnd {
		return codeNames[codeNone]
	}

	return codeNames[c]
}

// Error is the only error type of this package. Its text is the code alone.
type Error struct {
	code  Code
	cause error
}

var _ error = (*Error)(nil)

func refuse(c Code) error { return &Error{code: c} }

// Code returns the reason of the refusal.
func (e *Error) Code() Code { return e.code }

// Error returns "ident: " and the code. It never echoes the input.
func (e *Error) Error() string { return "ident: " + e.code.String() }

// Unwrap returns the failure of the random source for [CodeEntropyFailed],
// else nil. Its text is not part of Error.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)

	return ok && t.code == e.code
}

// GoString hides the cause, whose text may hold content.
func (e *Error) GoString() string { return "ident.Error(" + e.code.String() + ")" }
