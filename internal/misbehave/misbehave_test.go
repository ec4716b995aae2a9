package misbehave_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/misbehave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second // Bounds a broken test; no passing test waits for it.

func start(t *testing.T, config misbehave.Config) *misbehave.Server {
	t.Helper()
	srv, err := misbehave.Start(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

func scripted(t *testing.T, replies ...misbehave.Reply) *misbehave.Server {
	t.Helper()
	return start(t, misbehave.Config{Script: misbehave.Replies(replies...)})
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// clients are the real clients, by vendor.
func clients(t *testing.T, srv *misbehave.Server) map[misbehave.Vendor]llms.Model {
	t.Helper()
	o, err := openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("model-o"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := anthropic.New(anthropic.WithBaseURL(srv.URL()+"/v1"), anthropic.WithToken("t"), anthropic.WithModel("model-a"))
	if err != nil {
		t.Fatal(err)
	}
	return map[misbehave.Vendor]llms.Model{misbehave.VendorOpenAI: o, misbehave.VendorAnthropic: a}
}

var question = []llms.MessageContent{
	llms.TextParts(llms.ChatMessageTypeSystem, "be brief"),
	llms.TextParts(llms.ChatMessageTypeHuman, "weather?"),
}

var lookup = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
	Name: "lookup", Parameters: map[string]any{"type": "object"},
}}

// outcome is what a client reports, with anthropic's choices joined.
type outcome struct {
	Text   string
	Calls  []misbehave.Call
	Stop   string
	Chunks []string
	Err    string
}

func ask(ctx context.Context, model llms.Model, stream bool, history []llms.MessageContent, options ...llms.CallOption) outcome {
	var out outcome
	if stream {
		options = append(options, llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
			if len(chunk) > 0 {
				out.Chunks = append(out.Chunks, string(chunk))
			}
			return nil
		}))
	}
	response, err := model.GenerateContent(ctx, history, options...)
	if err != nil {
		out.Err = err.Error()
		return out
	}
	for _, choice := range response.Choices {
		out.Text += choice.Content
		out.Stop = choice.StopReason
		for _, call := range choice.ToolCalls {
			out.Calls = append(out.Calls, misbehave.Call{
				ID: call.ID, Name: call.FunctionCall.Name, Arguments: call.FunctionCall.Arguments,
			})
		}
	}
	return out
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// everyMode runs the test for each vendor, plain and streamed.
func everyMode(t *testing.T, test func(t *testing.T, vendor misbehave.Vendor, stream bool)) {
	t.Helper()
	for _, vendor := range []misbehave.Vendor{misbehave.VendorOpenAI, misbehave.VendorAnthropic} {
		for name, stream := range map[string]bool{"plain": false, "stream": true} {
			t.Run(string(vendor)+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, vendor, stream)
			})
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
		srv := scripted(t, misbehave.Reply{Text: "It is raining.", Usage: &misbehave.Usage{Prompt: 7, Completion: 3}})
		got := ask(t.Context(), clients(t, srv)[vendor], stream, question,
			llms.WithStopWords([]string{"\nObservation:"}), llms.WithMaxTokens(50), llms.WithTemperature(0.5))
		want := outcome{Text: "It is raining.", Stop: "stop"}
		wantLog := misbehave.Request{
			Path: "/v1/chat/completions", Model: "model-o", Answer: misbehave.AnswerScripted,
			Messages: []misbehave.Message{{Role: "system", Text: "be brief"}, {Role: "user", Text: "weather?"}},
			Stop:     []string{"\nObservation:"}, MaxTokens: 50, Temperature: new(0.5), Vendor: vendor, Stream: stream,
		}
		if vendor == misbehave.VendorAnthropic {
			want.Stop, wantLog.Path, wantLog.Model = "end_turn", "/v1/messages", "model-a"
		}
		if stream {
			want.Chunks = []string{"It", " is", " raining."}
		}
		diff(t, want, got)
		if err := srv.AwaitIdle(within(t)); err != nil {
			t.Fatal(err)
		}
		log := srv.Requests()
		if len(log) != 1 || srv.Count() != 1 {
			t.Fatalf("%d requests", len(log))
		}
		if log[0].At <= 0 || !strings.Contains(string(log[0].Raw()), "weather?") || log[0].Header().Get("Content-Type") == "" {
			t.Errorf("incomplete entry %+v", log[0])
		}
		log[0].At = 0
		if d := cmp.Diff(wantLog, log[0], cmp.FilterPath(func(p cmp.Path) bool {
			return p.Last().String() == ".raw" || p.Last().String() == ".header" || p.Last().String() == ".includeUsage"
		}, cmp.Ignore()), cmp.AllowUnexported(misbehave.Request{})); d != "" {
			t.Errorf("log (-want +got)\n%s", d)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
		srv := scripted(t, misbehave.Reply{Text: "x", Usage: &misbehave.Usage{Prompt: 7, Completion: 3}})
		var options []llms.CallOption
		if stream {
			options = append(options, llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
		}
		response, err := clients(t, srv)[vendor].GenerateContent(t.Context(), question, options...)
		if err != nil {
			t.Fatal(err)
		}
		info := response.Choices[0].GenerationInfo
		got := []any{info["PromptTokens"], info["CompletionTokens"]}
		if vendor == misbehave.VendorAnthropic {
			got = []any{info["InputTokens"], info["OutputTokens"]}
		}
		diff(t, []any{7, 3}, got)
	})
}

func TestParallelCallsBesideText(t *testing.T) {
	t.Parallel()
	calls := []misbehave.Call{
		{ID: "c1", Name: "lookup", Arguments: `{"__arg1":"Oslo, süd"}`},
		{ID: "c2", Name: "lookup", Arguments: `{"__arg1":"Bergen"}`},
	}
	everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
		srv := scripted(t, misbehave.Reply{Text: "Let me check.", Calls: calls})
		got := ask(t.Context(), clients(t, srv)[vendor], stream, question, llms.WithTools([]llms.Tool{lookup}))
		got.Chunks = nil // OpenAI's client mixes deltas of calls into them.
		want := outcome{Text: "Let me check.", Calls: calls, Stop: "tool_calls"}
		if vendor == misbehave.VendorAnthropic {
			want.Stop = "tool_use"
		}
		diff(t, want, got)
		diff(t, []string{"lookup"}, srv.Requests()[0].Tools)
	})
}

// TestSecondTurn is a scripted model that goes by what it has seen, with a history that the strict check accepts.
func TestSecondTurn(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
		srv := start(t, misbehave.Config{Script: misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if results := r.Results(); len(results) > 0 {
				return misbehave.Reply{Text: "It says " + results[0].Text}
			}
			return misbehave.Reply{Calls: []misbehave.Call{{Name: "lookup", Arguments: `{"q":"Oslo"}`}}}
		})})
		model, tools := clients(t, srv)[vendor], llms.WithTools([]llms.Tool{lookup})
		turn := ask(t.Context(), model, stream, question, tools)
		if len(turn.Calls) != 1 || turn.Calls[0].ID == "" {
			t.Fatalf("first turn %+v", turn)
		}
		call := turn.Calls[0]
		history := append(slices.Clip(question),
			llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{
				ID: call.ID, Type: "function", FunctionCall: &llms.FunctionCall{Name: call.Name, Arguments: call.Arguments},
			}}},
			llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{
				ToolCallID: call.ID, Name: call.Name, Content: "rain",
			}}})
		if got := ask(t.Context(), model, stream, history, tools); got.Text != "It says rain" {
			t.Errorf("second turn %+v", got)
		}
		messages := srv.Requests()[1].Messages
		diff(t, []misbehave.Call{call}, messages[len(messages)-2].Calls)
		diff(t, []misbehave.Result{{ID: call.ID, Text: "rain"}}, srv.Requests()[1].Last().Results)
	})
}

func TestLegacyForm(t *testing.T) {
	t.Parallel()
	reply := misbehave.Reply{Legacy: true, Calls: []misbehave.Call{{Name: "lookup", Arguments: `{"q":1}`}}}
	srv := scripted(t, reply)
	response, err := clients(t, srv)[misbehave.VendorOpenAI].GenerateContent(t.Context(), question,
		llms.WithFunctions([]llms.FunctionDefinition{*lookup.Function}))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, &llms.FunctionCall{Name: "lookup", Arguments: `{"q":1}`}, response.Choices[0].FuncCall)

	// The client sends functions as tools, so the request that offers functions is made by hand.
	srv = scripted(t, misbehave.Reply{Calls: reply.Calls})
	const request = `{"model":"m","functions":[{"name":"lookup"}],"messages":[{"role":"user","content":"x"}]`
	_, body := post(t, srv, openaiPath, request+`}`)
	if !strings.Contains(body, `"function_call":{"name":"lookup","arguments":"{\"q\":1}"}`) ||
		!strings.Contains(body, `"finish_reason":"function_call"`) {
		t.Errorf("plain: %s", body)
	}
	_, body = post(t, srv, openaiPath, request+`,"stream":true}`)
	if !strings.Contains(body, `"delta":{"function_call":{"arguments":"{\"q\":1}"}}`) {
		t.Errorf("stream: %s", body)
	}
}

// TestEvents pins the order of events on the wire, and that each is valid JSON.
func TestEvents(t *testing.T) {
	t.Parallel()
	srv := scripted(t, misbehave.Reply{Text: "a b", Calls: []misbehave.Call{{Name: "f", Arguments: `{}`}}})
	const messages = `"stream":true,"messages":[{"role":"user","content":"x"}]}`
	for _, test := range []struct {
		path, body string
		key        string
		want       []string
	}{
		{openaiPath, `{"model":"m","stream_options":{"include_usage":true},` + messages, "object", []string{
			"chat.completion.chunk", "chat.completion.chunk", "chat.completion.chunk", "chat.completion.chunk",
			"chat.completion.chunk", "chat.completion.chunk", "chat.completion.chunk", "[DONE]",
		}},
		{anthropicPath, `{"model":"m","max_tokens":9,` + messages, "type", []string{
			"message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta",
			"content_block_stop", "content_block_start", "content_block_delta", "content_block_stop",
			"message_delta", "message_stop",
		}},
	} {
		status, body := post(t, srv, test.path, test.body)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		var got []string
		for line := range strings.Lines(body) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			switch {
			case !ok:
			case data == "[DONE]":
				got = append(got, data)
			default:
				var event map[string]any
				if err := json.Unmarshal([]byte(data), &event); err != nil {
					t.Errorf("%s: %v", data, err)
				}
				kind, _ := event[test.key].(string)
				got = append(got, kind)
			}
		}
		diff(t, test.want, got)
	}
}

func TestScriptsInOrderAndAtRunTime(t *testing.T) {
	t.Parallel()
	srv := start(t, misbehave.Config{})
	model := clients(t, srv)[misbehave.VendorOpenAI]
	say := func() string { return ask(t.Context(), model, false, question).Text }
	got := []string{say()}
	srv.Script(misbehave.Replies(misbehave.Reply{Text: "1"}, misbehave.Reply{Text: "2"}))
	got = append(got, say(), say(), say())
	srv.Script(misbehave.RepliesThen(misbehave.Replies(), misbehave.Reply{Text: "3"}))
	got = append(got, say(), say())
	srv.Script(misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply { panic("script") }))
	got = append(got, ask(t.Context(), model, false, question).Err)
	diff(t, []string{"ok", "1", "2", "2", "3", "ok", "API returned unexpected status code: 500: " +
		"The server had an error while processing your request. Sorry about that!"}, got)
	if log := srv.Requests(); log[6].Answer != misbehave.AnswerScriptPanic {
		t.Errorf("answer %q", log[6].Answer)
	}
}

// TestConcurrent shows that under load the log and the script agree on the order.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const n = 20
	var seen []int // Without a lock: scripts are asked one at a time.
	srv := start(t, misbehave.Config{Script: misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
		seen = append(seen, r.Index)
		return misbehave.Reply{Text: "x"}
	})})
	model := clients(t, srv)[misbehave.VendorAnthropic]
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			if got := ask(t.Context(), model, false, question); got.Err != "" {
				t.Error(got.Err)
			}
		})
	}
	calls.Wait()
	if err := srv.AwaitIdle(within(t)); err != nil {
		t.Fatal(err)
	}
	srv.Close() // Orders seen before the check.
	if len(seen) != n || srv.Count() != n {
		t.Fatalf("%d replies, %d requests", len(seen), srv.Count())
	}
	for i, index := range seen {
		if i != index {
			t.Fatalf("order %v", seen)
		}
	}
}

func TestScriptThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	srv := start(t, misbehave.Config{Script: misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply {
		runtime.Goexit() // As t.FailNow does.
		return misbehave.Reply{}
	})})
	if got := ask(t.Context(), clients(t, srv)[misbehave.VendorOpenAI], false, question); got.Err == "" {
		t.Errorf("got %+v", got)
	}
	srv.Script(nil)
	if got := ask(t.Context(), clients(t, srv)[misbehave.VendorOpenAI], false, question); got.Text != "ok" {
		t.Errorf("got %+v", got)
	}
}

func TestUnroutable(t *testing.T) {
	t.Parallel()
	srv := start(t, misbehave.Config{})
	status, _ := post(t, srv, "/v1/completions", `{}`)
	diff(t, http.StatusNotFound, status)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL()+openaiPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, _ = send(t, request)
	diff(t, http.StatusMethodNotAllowed, status)
	for _, r := range srv.Requests() {
		if r.Answer != misbehave.AnswerUnroutable {
			t.Errorf("answer %q", r.Answer)
		}
	}
}

func TestClientDeparture(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]misbehave.Reply{
		"hang":          {Fault: misbehave.FaultHang},
		"delay headers": {DelayHeaders: time.Hour},
		"delay first":   {Text: "x", DelayFirst: time.Hour},
		"delay chunk":   {Text: "a b", DelayChunk: time.Hour},
		"stall":         {Text: "a b", Fault: misbehave.FaultStall, At: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := scripted(t, reply)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			model := clients(t, srv)[misbehave.VendorOpenAI]
			go func() {
				defer close(done)
				ask(ctx, model, true, question)
			}()
			if err := srv.AwaitRequests(within(t), 1); err != nil {
				t.Fatal(err)
			}
			if srv.Requests()[0].Gone {
				t.Error("gone before it left")
			}
			cancel()
			<-done
			if err := srv.AwaitIdle(within(t)); err != nil {
				t.Fatal(err)
			}
			if !srv.Requests()[0].Gone {
				t.Error("departure not seen")
			}
		})
	}
}

// TestCloseReleasesClients closes a server with a client in every kind of wait.
func TestCloseReleasesClients(t *testing.T) {
	t.Parallel()
	srv := scripted(t,
		misbehave.Reply{Fault: misbehave.FaultHang},
		misbehave.Reply{Text: "a b", Fault: misbehave.FaultStall, At: 1},
		misbehave.Reply{DelayHeaders: time.Hour},
		// More than the socket buffers hold, to a client that does not read: the server is stuck in a write.
		misbehave.Reply{Text: strings.Repeat("x", 16<<20)})
	model := clients(t, srv)[misbehave.VendorOpenAI]
	var calls sync.WaitGroup
	for i := range 3 {
		calls.Go(func() { ask(t.Context(), model, true, question) })
		if err := srv.AwaitRequests(within(t), i+1); err != nil {
			t.Fatal(err)
		}
	}
	conn := dial(t, srv)
	const body = `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n"+
		"Content-Length: %d\r\n\r\n%s", openaiPath, len(body), body); err != nil {
		t.Fatal(err)
	}
	dial(t, srv) // Asks nothing.
	if err := srv.AwaitRequests(within(t), 4); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); srv.Close() }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("Close waits for a client")
	}
	calls.Wait()
	for _, r := range srv.Requests() {
		if r.Gone {
			t.Errorf("request %d: the server left, not the client", r.Index)
		}
	}
	srv.Close()
	if got := ask(t.Context(), model, false, question); !strings.Contains(got.Err, "failed to reach") {
		t.Errorf("after Close: %+v", got)
	}
}

func dial(t *testing.T, srv *misbehave.Server) net.Conn {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

const (
	openaiPath    = "/v1/chat/completions"
	anthropicPath = "/v1/messages"
)

// post sends a body with the headers of both vendors.
func post(t *testing.T, srv *misbehave.Server, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	request.Header.Set("X-Api-Key", "t")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	return send(t, request)
}

func send(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(bufio.NewReader(response.Body))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
