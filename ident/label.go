package ident

// Bounds of labels, in bytes.
const (
	// MaxLabel bounds the labels of [NewLabel].
	MaxLabel = 64
	// MaxModelLabel bounds the labels of [NewModelLabel].
	MaxModelLabel = 96
)

// Label is a name that telemetry may carry: of a tool, a candidate, a model, an
// agent. It is made only by [NewLabel] and [NewModelLabel] (and their Must
// forms), so a string that came over the network is never one by accident. The
// zero value is invalid and renders as "".
type Label struct{ s string }

// NewLabel returns the label s, which has to match
//
//	^[a-z][a-z0-9]*([._-][a-z0-9]+)*$
//
// and be 1…64 bytes long; else invalid_label or identifier_too_long.
func NewLabel(s string) (Label, error) { return newLabel(s, MaxLabel, false) }

// NewModelLabel is [NewLabel] for names of models, which also use upper case
// and the separators / : @ +, up to 96 bytes. A display name or a fine-tune
// identifier that does not fit needs an alias.
func NewModelLabel(s string) (Label, error) { return newLabel(s, MaxModelLabel, true) }

// MustLabel is [NewLabel] for constants; it panics on bad input with the code
// alone.
func MustLabel(s string) Label { return mustLabel(NewLabel(s)) }

// MustModelLabel is [NewModelLabel] for constants; it panics on bad input.
func MustModelLabel(s string) Label { return mustLabel(NewModelLabel(s)) }

func mustLabel(l Label, err error) Label {
	if err != nil {
		panic(err) //nolint:forbidigo // Must… is for constants of the program
	}

	return l
}

// IsZero reports whether l is the invalid zero value.
func (l Label) IsZero() bool { return l.s == "" }

// String returns the label's text, "" for the zero value.
func (l Label) String() string { return l.s }

// GoString redacts.
func (l Label) GoString() string { return "ident.Label(redacted)" }

// MarshalText gives the text; the zero value is invalid_label.
func (l Label) MarshalText() ([]byte, error) {
	if l.s == "" {
		return nil, refuse(CodeInvalidLabel)
	}

	return []byte(l.s), nil
}

// UnmarshalText accepts both grammars, so that every label survives a round
// trip. On error l is unchanged.
func (l *Label) UnmarshalText(text []byte) error {
	v, err := NewModelLabel(string(text))
	if err == nil {
		*l = v
	}

	return err
}

func newLabel(s string, limit int, model bool) (Label, error) {
	if len(s) > limit {
		return Label{}, refuse(CodeIdentifierTooLong)
	}
	if s == "" || isDigit(s[0]) {
		return Label{}, refuse(CodeInvalidLabel)
	}
	word := false // whether the byte before was a letter or digit
	for i := range len(s) {
		switch c := s[i]; {
		case isLower(c), isDigit(c), model && isUpper(c):
			word = true
		case word && isSeparator(c, model):
			word = false
		default:
			return Label{}, refuse(CodeInvalidLabel)
		}
	}
	if !word {
		return Label{}, refuse(CodeInvalidLabel)
	}

	return Label{s: s}, nil
}

func isSeparator(c byte, model bool) bool {
	switch c {
	case '.', '_', '-':
		return true
	case '/', ':', '@', '+':
		return model
	default:
		return false
	}
}
