package misbehave

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// parse brings a request into the neutral form and checks it.
func parse(httpRequest *http.Request, body []byte) Request {
	request := Request{Path: httpRequest.URL.Path, raw: body, header: httpRequest.Header}
	switch {
	case strings.HasSuffix(request.Path, "/chat/completions"):
		request.Vendor = VendorOpenAI
		request.Violation = parseOpenAI(&request)
	case strings.HasSuffix(request.Path, "/messages"):
		request.Vendor = VendorAnthropic
		request.Violation = parseAnthropic(&request)
	}
	return request
}

// first is the first violation that is one.
func first(violations ...Violation) Violation {
	for _, v := range violations {
		if v != NoViolation {
			return v
		}
	}
	return NoViolation
}

// when is v if broken.
func when(broken bool, v Violation) Violation {
	if broken {
		return v
	}
	return NoViolation
}

// block is a part of a message's content in the form of either vendor.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

var errContent = errors.New("content is neither text nor a list of blocks")

// blocks reads content that is a text, a list of blocks, or null.
func blocks(content json.RawMessage) ([]block, error) {
	switch {
	case isNull(content):
		return nil, nil
	case content[0] == '"':
		b := block{Type: "text"}
		err := json.Unmarshal(content, &b.Text)
		return []block{b}, err //nolint:wrapcheck // Only whether there is an error counts.
	case content[0] == '[':
		var list []block
		err := json.Unmarshal(content, &list)
		return list, err //nolint:wrapcheck // Only whether there is an error counts.
	default:
		return nil, errContent
	}
}

// joined is the text of blocks.
func joined(list []block) string {
	var text strings.Builder
	for _, b := range list {
		if b.Type == "text" {
			text.WriteString(b.Text)
		}
	}
	return text.String()
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func isObject(text []byte) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(text, &object) == nil && object != nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// checkNames is what both vendors demand of the names of tools; longest is the vendor's limit.
func checkNames(names []string, longest int) Violation {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if !toolName.MatchString(name) || len(name) > longest {
			return BadToolName
		}
		if seen[name] {
			return DuplicateToolName
		}
		seen[name] = true
	}
	return NoViolation
}

// ledger follows calls and their results through a history.
type ledger struct {
	known map[string]bool // Every call so far.
	due   map[string]bool // The calls of the last turn: true until answered.
}

func newLedger() *ledger { return &ledger{known: map[string]bool{}, due: map[string]bool{}} }

// open is whether calls of the last turn are unanswered.
func (l *ledger) open() bool {
	for _, due := range l.due {
		if due {
			return true
		}
	}
	return false
}

// turn forgets the last turn, whose calls no result may answer from now on.
func (l *ledger) turn() { l.due = map[string]bool{} }

func (l *ledger) call(id string) {
	l.known[id] = true
	l.due[id] = true
}

func (l *ledger) result(id string) Violation {
	due, here := l.due[id]
	switch {
	case due:
		l.due[id] = false
		return NoViolation
	case here:
		return DuplicateResult
	case l.known[id]:
		return UnexpectedToolResult
	default:
		return ResultWithoutCall
	}
}
