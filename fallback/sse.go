package fallback

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxEvent bounds a line of an event stream. Clients give up at 64 KiB, some at 512 KB.
const maxEvent = 1 << 20

// watch is the body of an event stream. It hands out whole lines that it has judged, so that a client never sees a
// damaged one, and turns an error frame, a damaged event and an end without a terminal event into an error of the body:
// clients keep those, while they overlook the rest.
type watch struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	a      *attempt
	ready  []byte // judged, not yet read
	failed error

	anthropic bool // by the candidate, else by the first event
	reasoned  bool // a reason for the end was given
	done      bool // the terminal event was seen
}

func newWatch(body io.ReadCloser, a *attempt) *watch {
	return &watch{
		body: body, lines: bufio.NewReader(body), a: a,
		anthropic: a.c.Provider == ProviderAnthropic, // its client prints unknown events before the first one, too
	}
}

// Close implements [io.Closer].
func (w *watch) Close() error { return w.body.Close() }

// Read implements [io.Reader].
func (w *watch) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.failed != nil {
			return 0, w.failed
		}
		line, err := w.line()
		if err != nil && !errors.Is(err, io.EOF) {
			w.end(err) // what there is of the line is no line

			continue
		}
		keep, fault := w.judge(line)
		switch {
		case fault != 0:
			w.fail(fault)
		case err != nil:
			w.end(err)
		}
		if keep {
			w.ready = line
		}
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]

	return n, nil
}

var errLongEvent = errors.New("interlock: fallback: event too long")

// line reads one line with its end. It returns what there is beside an error.
func (w *watch) line() ([]byte, error) {
	var line []byte
	for {
		part, err := w.lines.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxEvent {
			return nil, errLongEvent
		}
	}
}

func (w *watch) fail(c Class) {
	w.a.seen.fault(c)
	w.failed = &responseError{what: "broken stream", class: c}
}

// end decides what the end of the body means.
func (w *watch) end(err error) {
	switch {
	case w.done:
		w.failed = io.EOF
	case !errors.Is(err, io.EOF): // cut, reset, canceled: the client hears of it itself
		w.failed = err
		if errors.Is(err, errLongEvent) {
			w.a.seen.fault(ClassBadResponse)
		} else {
			w.a.seen.fault(ClassNetwork)
		}
	case w.reasoned && !w.anthropic:
		w.a.seen.end()
		w.failed = io.EOF
	default:
		w.fail(ClassBadResponse)
	}
}

// event is what is looked at of OpenAI's and Anthropic's events.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		FinishReason *string                    `json:"finish_reason"`
		Delta        map[string]json.RawMessage `json:"delta"`
	} `json:"choices"`
}

// token reports whether the event carries a piece of the answer: not a role, a ping, or an empty text.
func (e *event) token() bool {
	if e.Type == "content_block_delta" || e.Type == "content_block_start" {
		return true
	}
	for _, c := range e.Choices {
		for key, value := range c.Delta {
			if key != "role" && len(value) > len(`""`) && string(value) != "null" {
				return true
			}
		}
	}

	return false
}

// judge says whether the client may see a line, or which failure it is.
func (w *watch) judge(line []byte) (keep bool, fault Class) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return len(line) > 0, 0
	}
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("[DONE]")) {
		if w.anthropic { // a proxy's trailer: the client would fail on it after the whole answer
			return false, 0
		}
		w.terminal()

		return true, 0
	}
	if len(data) == 0 { // some servers keep a connection alive so
		return false, 0
	}
	var e event
	if json.Unmarshal(data, &e) != nil {
		return false, ClassBadResponse
	}
	if e.Type == "error" || (len(e.Error) > 0 && !bytes.Equal(e.Error, []byte("null"))) {
		return false, errorFrame(e.Error)
	}
	for _, c := range e.Choices {
		w.reasoned = w.reasoned || (c.FinishReason != nil && *c.FinishReason != "")
	}

	if e.token() {
		w.a.tick()
	}

	return w.known(e.Type), 0
}

// known follows the types of Anthropic's events, and drops those that its client would print.
func (w *watch) known(kind string) bool {
	switch kind {
	case "message_start":
		w.anthropic = true
	case "message_stop":
		if w.anthropic {
			w.terminal()
		}
	case "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "ping":
	default:
		return !w.anthropic
	}

	return true
}

// terminal ends the body behind the line at hand: what a server or proxy sends after it, or that it keeps the
// connection open, cannot harm an answer that is whole.
func (w *watch) terminal() {
	w.done = true
	w.failed = io.EOF
	w.a.seen.end()
}

func errorFrame(raw json.RawMessage) Class {
	var e struct {
		Code any    `json:"code"`
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &e) == nil {
		code, _ := e.Code.(string)
		if c := codeClass(code, e.Type); c != 0 {
			return c
		}
	}

	return ClassBadResponse
}
