package looptrace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

// Code says what is wrong with a corpus.
type Code string

// The codes.
const (
	CodeUnreadable   Code = "unreadable"    // the reader failed
	CodeEmpty        Code = "empty"         // no trace
	CodeTooLarge     Code = "too_large"     // a line, or the number of traces
	CodeNotJSON      Code = "not_json"      // not one JSON value in UTF-8
	CodeNotObject    Code = "not_object"    // not the structure of a trace
	CodeUnknownField Code = "unknown_field" // also one that is spelled otherwise
	CodeTwice        Code = "repeated_field"
	CodeType         Code = "wrong_type"
	CodeVersion      Code = "unknown_version"
	CodeName         Code = "invalid_name" // of trace, family or tool
	CodeDuplicate    Code = "duplicate_id"
	CodeLabel        Code = "invalid_label"
	CodeMarks        Code = "invalid_marks"
	CodeStyle        Code = "invalid_style"
	CodeTools        Code = "invalid_tools"
	CodeSteps        Code = "invalid_steps"  // how many
	CodeTurn         Code = "invalid_turn"   // not the same and not one more
	CodeStep         Code = "invalid_step"   // a field that is missing or has no meaning there
	CodeResult       Code = "invalid_result" // no result class, or of no tool
	CodeBounds       Code = "out_of_bounds"  // a text or number
)

// ParseError says where a corpus is malformed and how. It holds nothing of what
// the corpus says.
type ParseError struct {
	line int
	code Code
}

func fail(code Code) *ParseError { return &ParseError{code: code} }

// Line returns the number of the line, from 1.
func (e *ParseError) Line() int { return e.line }

// Code returns what is wrong.
func (e *ParseError) Code() Code { return e.code }

// Error returns code and line.
func (e *ParseError) Error() string {
	return "looptrace: " + string(e.code) + ": line " + strconv.Itoa(e.line)
}

// Read parses a corpus. It fails with a [ParseError] at the first thing that is
// wrong.
func Read(r io.Reader) ([]*Trace, error) {
	var traces []*Trace
	ids := make(map[string]struct{})
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		t, err := parse(lines.Bytes())
		if err == nil {
			if _, twice := ids[t.ID]; twice {
				err = fail(CodeDuplicate)
			} else if len(traces) == MaxTraces {
				err = fail(CodeTooLarge)
			}
		}
		if err != nil {
			err.line = n

			return nil, err
		}
		ids[t.ID] = struct{}{}
		traces = append(traces, t)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &ParseError{line: n + 1, code: CodeTooLarge}
	case err != nil:
		return nil, &ParseError{line: n + 1, code: CodeUnreadable}
	case len(traces) == 0:
		return nil, &ParseError{line: max(n, 1), code: CodeEmpty}
	default:
		return traces, nil
	}
}

func parse(line []byte) (*Trace, *ParseError) {
	if !utf8.Valid(line) || !json.Valid(line) {
		return nil, fail(CodeNotJSON)
	}
	// encoding/json takes the last of equal fields, and any case of a name.
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber() // a number that is too large is of the wrong type, not of no type
	if err := checkFields(d, traceFields); err != nil {
		return nil, err
	}
	var t Trace
	if err := json.Unmarshal(line, &t); err != nil {
		return nil, fail(CodeType)
	}
	if err := t.check(); err != nil {
		return nil, err
	}

	return &t, nil
}

// fields are the names that an object may have, with the fields of the objects
// in the list that one of them is, nil for a plain value.
type fields map[string]fields

//nolint:gochecknoglobals // compiled table
var traceFields = fields{
	"v": nil, "id": nil, "family": nil, "label": nil, "earliest": nil, "stop_by": nil, "why": nil, "style": nil,
	"prompt": nil,
	"tools":  {"name": nil, "effect": nil},
	"steps": {
		"turn": nil, "thought": nil, "tool": nil, "args": nil, "offered": nil, "result": nil, "text": nil, "final": nil,
		"progress": nil, "infra": nil, "answer": nil, "reply": nil, "unparsable": nil,
	},
}

// checkFields reads one object and refuses what the schema does not know. The
// text is known to be JSON, so that tokens do not fail.
func checkFields(d *json.Decoder, known fields) *ParseError {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fail(CodeNotObject)
	}
	seen := make(map[string]struct{}, len(known))
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return fail(CodeNotJSON)
		}
		inner, ok := known[name]
		if !ok {
			return fail(CodeUnknownField)
		}
		if _, twice := seen[name]; twice {
			return fail(CodeTwice)
		}
		seen[name] = struct{}{}
		if err := checkValue(d, inner); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the end of the object

	return nil
}

// checkValue reads a plain value, or a list of objects.
func checkValue(d *json.Decoder, inner fields) *ParseError {
	t, err := d.Token()
	if err != nil {
		return fail(CodeNotJSON)
	}
	_, structured := t.(json.Delim)
	if t == nil || structured != (inner != nil) || structured && t != json.Delim('[') {
		return fail(CodeType)
	}
	if inner == nil {
		return nil
	}
	for d.More() {
		if err := checkFields(d, inner); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the end of the list

	return nil
}

// Write writes traces as a corpus, one a line, in a form that is always the
// same. It fails with the writer's error, or with a [ParseError] for a trace
// that could not be read back.
func Write(w io.Writer, traces []*Trace) error {
	for i, t := range traces {
		if err := t.check(); err != nil {
			err.line = i + 1

			return err
		}
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(t); err != nil || line.Len() > MaxLine {
			return &ParseError{line: i + 1, code: CodeTooLarge}
		}
		if _, err := w.Write(line.Bytes()); err != nil {
			return err
		}
	}

	return nil
}
