package macro

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// provider is an OpenAI-compatible server that answers both kinds of agent: with
// a call of the tool first, with an answer once the tool's result is there.
type provider struct {
	*httptest.Server

	requests atomic.Int64
	down     time.Duration // how long a 503 takes; 0: it works
}

func startProvider(down time.Duration) *provider {
	p := &provider{down: down}
	p.Server = httptest.NewServer(p)

	return p
}

const (
	mrklCall   = `"content":"I should look.\nAction: order_status\nAction Input: A-1001"`
	mrklAnswer = `"content":"I know.\nFinal Answer: it has been shipped"`
	wireCall   = `"content":null,"tool_calls":[{"id":"call_1","type":"function","function":` +
		`{"name":"order_status","arguments":"{\"__arg1\":\"A-1001\"}"}}]`
	wireAnswer = `"content":"it has been shipped"`

	busy = `{"error":{"message":"overloaded","type":"server_error","code":"overloaded"}}`
)

// ServeHTTP answers one request.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)

		return
	}
	w.Header().Set("Content-Type", "application/json")
	if p.down > 0 {
		timer := time.NewTimer(p.down)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, busy)

		return
	}
	message, finish := mrklCall, "stop"
	switch functions := bytes.Contains(body, []byte(`"functions"`)) || bytes.Contains(body, []byte(`"tools"`)); {
	case functions && (bytes.Contains(body, []byte(`"role":"tool"`)) || bytes.Contains(body, []byte(`"role":"function"`))):
		message = wireAnswer
	case functions:
		message, finish = wireCall, "tool_calls"
	case bytes.Contains(body, []byte("Observation: order shipped")):
		message = mrklAnswer
	}
	if bytes.Contains(body, []byte(`"stream":true`)) {
		stream(w, message, finish)

		return
	}
	_, _ = io.WriteString(w, `{"id":"r","object":"chat.completion",`+head+`"choices":[{"index":0,"finish_reason":"`+
		finish+`","message":{"role":"assistant",`+message+`}}],`+usage+`}`)
}

const (
	head  = `"created":1,"model":"primary-1",`
	usage = `"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}`
)

// stream sends the same answer as events: a client that watches for the first
// token asks for it this way. It is never asked for a call of a tool.
func stream(w http.ResponseWriter, message, finish string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, rest := range []string{
		`"choices":[{"index":0,"delta":{"role":"assistant",` + message + `},"finish_reason":null}]`,
		`"choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]`,
		`"choices":[],` + usage,
	} {
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk",`+head+rest+"}\n\n")
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}
