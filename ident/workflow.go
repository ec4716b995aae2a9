package ident

import "strings"

// Bounds of a reverse-domain identifier, in bytes.
const (
	maxIdentifier = 512
	maxNamespace  = 253
	maxDNSLabel   = 63
	maxName       = 64
)

// WorkflowID names a workflow:
//
//	workflow:<namespace>/<name>[@x.y.z]
//
// The namespace is at least two DNS labels in reverse-domain order (lower case,
// ≤ 253 bytes), the name is [a-z][a-z0-9-]{0,63}, and version parts are decimal
// without leading zeros; the whole is at most 512 bytes. The zero value is
// invalid.
type WorkflowID struct{ s string }

// ToolID names a tool the way [WorkflowID] names a workflow, with kind "tool".
type ToolID struct{ s string }

// ParseWorkflowID returns the identifier that s spells, or an [Error] with one
// of the codes invalid_identifier, identifier_too_long, unknown_kind,
// wrong_kind, namespace_too_long, wrong_identifier_kind.
func ParseWorkflowID(s string) (WorkflowID, error) {
	if err := checkIdentifier(s, "workflow"); err != nil {
		return WorkflowID{}, err
	}

	return WorkflowID{s: s}, nil
}

// MustWorkflowID is [ParseWorkflowID] for constants; it panics on bad input
// with the code alone.
func MustWorkflowID(s string) WorkflowID {
	id, err := ParseWorkflowID(s)
	if err != nil {
		panic(err) //nolint:forbidigo // Must… is for constants of the program
	}

	return id
}

// ParseToolID is [ParseWorkflowID] for tools.
func ParseToolID(s string) (ToolID, error) {
	if err := checkIdentifier(s, "tool"); err != nil {
		return ToolID{}, err
	}

	return ToolID{s: s}, nil
}

// MustToolID is [ParseToolID] for constants; it panics on bad input.
func MustToolID(s string) ToolID {
	id, err := ParseToolID(s)
	if err != nil {
		panic(err) //nolint:forbidigo // Must… is for constants of the program
	}

	return id
}

// IsZero reports whether w is the invalid zero value.
func (w WorkflowID) IsZero() bool { return w.s == "" }

// String returns the canonical text, "" for the zero value.
func (w WorkflowID) String() string { return w.s }

// GoString redacts.
func (w WorkflowID) GoString() string { return "ident.WorkflowID(redacted)" }

// MarshalText gives the canonical text; the zero value is invalid_identifier.
func (w WorkflowID) MarshalText() ([]byte, error) { return marshalText(w.s) }

// UnmarshalText parses as [ParseWorkflowID] does. On error w is unchanged.
func (w *WorkflowID) UnmarshalText(text []byte) error {
	id, err := ParseWorkflowID(string(text))
	if err == nil {
		*w = id
	}

	return err
}

// IsZero reports whether t is the invalid zero value.
func (t ToolID) IsZero() bool { return t.s == "" }

// String returns the canonical text, "" for the zero value.
func (t ToolID) String() string { return t.s }

// GoString redacts.
func (t ToolID) GoString() string { return "ident.ToolID(redacted)" }

// MarshalText gives the canonical text; the zero value is invalid_identifier.
func (t ToolID) MarshalText() ([]byte, error) { return marshalText(t.s) }

// UnmarshalText parses as [ParseToolID] does. On error t is unchanged.
func (t *ToolID) UnmarshalText(text []byte) error {
	id, err := ParseToolID(string(text))
	if err == nil {
		*t = id
	}

	return err
}

func marshalText(s string) ([]byte, error) {
	if s == "" {
		return nil, refuse(CodeInvalidIdentifier)
	}

	return []byte(s), nil
}

// checkIdentifier looks at length first, so that nothing unbounded is walked,
// then at the kind, so that a mix-up of identifiers is named as such.
func checkIdentifier(s, kind string) error {
	if len(s) > maxIdentifier {
		return refuse(CodeIdentifierTooLong)
	}
	if isRunID(s) {
		return refuse(CodeWrongIdentifierKind)
	}
	got, rest, ok := strings.Cut(s, ":")
	if !ok {
		return refuse(CodeInvalidIdentifier)
	}
	switch got {
	case kind:
	case "capability", "purpose", "policy", "workflow", "tool":
		return refuse(CodeWrongKind)
	default:
		return refuse(CodeUnknownKind)
	}
	namespace, name, ok := strings.Cut(rest, "/")
	if !ok {
		return refuse(CodeInvalidIdentifier)
	}
	if len(namespace) > maxNamespace {
		return refuse(CodeNamespaceTooLong)
	}
	name, version, versioned := strings.Cut(name, "@")
	if !isNamespace(namespace) || !isName(name) || (versioned && !isVersion(version)) {
		return refuse(CodeInvalidIdentifier)
	}

	return nil
}

func isNamespace(s string) bool {
	labels := 0
	for label := range strings.SplitSeq(s, ".") {
		if !isDNSLabel(label) {
			return false
		}
		labels++
	}

	return labels >= 2
}

func isDNSLabel(s string) bool {
	if s == "" || len(s) > maxDNSLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}

	return onlyLowerDigitsHyphen(s)
}

func isName(s string) bool {
	return s != "" && len(s) <= maxName && isLower(s[0]) && onlyLowerDigitsHyphen(s)
}

func isVersion(s string) bool {
	parts := 0
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || (len(part) > 1 && part[0] == '0') {
			return false
		}
		for i := range len(part) {
			if !isDigit(part[i]) {
				return false
			}
		}
		parts++
	}

	return parts == 3
}

func onlyLowerDigitsHyphen(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isDigit(c) && c != '-' {
			return false
		}
	}

	return true
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
