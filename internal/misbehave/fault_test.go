package misbehave_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/internal/misbehave"
)

// seen is what a client reports: the text, or a part of the error.
type seen struct{ text, err string }

// TestFaults shows each fault, at chunk or byte 1 of "a b c", through the real clients.
func TestFaults(t *testing.T) {
	t.Parallel()
	const unreachable, noAnswer = "failed to reach API server", "no response"
	for _, test := range []struct {
		fault                                            misbehave.Fault
		openai, openaiStream, anthropic, anthropicStream seen
		chunks                                           []string // What a stream delivers before its end.
	}{
		{misbehave.FaultNone, seen{text: "a b c"}, seen{text: "a b c"}, seen{text: "a b c"}, seen{text: "a b c"}, []string{"a", " b", " c"}},
		{misbehave.FaultResetBeforeHeaders, seen{err: unreachable}, seen{err: unreachable}, seen{err: "connection reset"}, seen{err: "connection reset"}, nil},
		{misbehave.FaultCloseBeforeHeaders, seen{err: unreachable}, seen{err: unreachable}, seen{err: "EOF"}, seen{err: "EOF"}, nil},
		{misbehave.FaultCut, seen{err: "unexpected EOF"}, seen{err: "unexpected EOF"}, seen{err: "unexpected EOF"}, seen{err: "unexpected EOF"}, []string{"a"}},
		{misbehave.FaultReset, seen{err: "connection reset"}, seen{err: "connection reset"}, seen{err: "connection reset"}, seen{err: "connection reset"}, nil},
		{misbehave.FaultEndEarly, seen{err: "unexpected EOF"}, seen{text: "a"}, seen{err: "unexpected EOF"}, seen{err: noAnswer}, []string{"a"}},
		{misbehave.FaultMalformedEvent, seen{err: "unexpected EOF"}, seen{text: "a c"}, seen{err: "unexpected EOF"}, seen{err: "failed to parse stream event"}, nil},
		{misbehave.FaultErrorEvent, seen{err: "empty response"}, seen{text: "a"}, seen{err: noAnswer}, seen{err: "received error event"}, []string{"a"}},
		{misbehave.FaultNoTerminal, seen{text: "a b c"}, seen{text: "a b c"}, seen{text: "a b c"}, seen{err: noAnswer}, []string{"a", " b", " c"}},
		{misbehave.FaultEmptyChoices, seen{err: "empty response"}, seen{}, seen{err: noAnswer}, seen{err: noAnswer}, nil},
		{misbehave.FaultNullContent, seen{}, seen{}, seen{err: noAnswer}, seen{err: noAnswer}, nil},
		{misbehave.FaultInterleaved, seen{text: "a b c"}, seen{text: "a b c"}, seen{text: "a b c"}, seen{text: "a b c"}, []string{"a", " b", " c"}},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			t.Parallel()
			srv := scripted(t, misbehave.Reply{Text: "a b c", Fault: test.fault, At: 1})
			models := clients(t, srv)
			check := func(want seen, vendor misbehave.Vendor, stream bool) {
				t.Helper()
				got := ask(t.Context(), models[vendor], stream, question)
				if got.Text != want.text || (want.err == "") != (got.Err == "") || !strings.Contains(got.Err, want.err) {
					t.Errorf("%s, stream %t: %+v, want %+v", vendor, stream, got, want)
				}
				if stream && test.chunks != nil {
					diff(t, test.chunks, got.Chunks)
				}
			}
			check(test.openai, misbehave.VendorOpenAI, false)
			check(test.openaiStream, misbehave.VendorOpenAI, true)
			check(test.anthropic, misbehave.VendorAnthropic, false)
			check(test.anthropicStream, misbehave.VendorAnthropic, true)
			if err := srv.AwaitIdle(within(t)); err != nil {
				t.Fatal(err)
			}
			for _, r := range srv.Requests() {
				if r.Fault != test.fault || r.Answer != misbehave.AnswerScripted {
					t.Errorf("logged %q %q", r.Answer, r.Fault)
				}
				// Only a client that gives up on a bad event leaves while the server goes on.
				if r.Gone && test.fault != misbehave.FaultMalformedEvent {
					t.Errorf("%s, stream %t: gone", r.Vendor, r.Stream)
				}
			}
		})
	}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for _, fault := range []misbehave.Fault{misbehave.FaultHang, misbehave.FaultStall} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
				srv := scripted(t, misbehave.Reply{Text: "a b c", Fault: fault, At: 1})
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				got := ask(ctx, clients(t, srv)[vendor], stream, question)
				// OpenAI's client may report a stream that ran into its deadline as an answer.
				if got.Err == "" && (vendor != misbehave.VendorOpenAI || !stream || fault != misbehave.FaultStall) {
					t.Errorf("got %+v", got)
				}
				if ctx.Err() == nil {
					t.Error("answered")
				}
			})
		})
	}
}

// TestFaultPlaces reads the wire itself, since clients differ in what they make of it.
func TestFaultPlaces(t *testing.T) {
	t.Parallel()
	body := openaiBody(user, `,"stream":true`)
	for name, test := range map[string]struct {
		reply      misbehave.Reply
		content    int // Content events.
		terminated bool
		finished   bool
		broken     bool
	}{
		"healthy":                {misbehave.Reply{Text: "a b c"}, 3, true, true, false},
		"negative place":         {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultEndEarly, At: -1}, 0, false, false, false},
		"end at start":           {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultEndEarly}, 0, false, false, false},
		"end beyond end":         {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultEndEarly, At: 9}, 3, false, false, false},
		"cut beyond end":         {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultCut, At: 9}, 3, false, false, true},
		"malformed beyond end":   {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultMalformedEvent, At: 9}, 3, true, true, false},
		"error event beyond end": {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultErrorEvent, At: 9}, 3, false, false, false},
		"no terminal":            {misbehave.Reply{Text: "a b c", Fault: misbehave.FaultNoTerminal}, 3, false, true, false},
		"own chunks":             {misbehave.Reply{Chunks: []string{"a b", " c"}}, 2, true, true, false},
		"finish null":            {misbehave.Reply{Text: "a b c", Finish: misbehave.FinishNull}, 3, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := scripted(t, test.reply)
			text, err := read(t, srv, body)
			if (err != nil) != test.broken {
				t.Errorf("error %v", err)
			}
			if n := strings.Count(text, `"delta":{"content"`); n != test.content {
				t.Errorf("%d content events, want %d", n, test.content)
			}
			if strings.HasSuffix(text, "data: [DONE]\n\n") != test.terminated {
				t.Errorf("terminal event: %q", text)
			}
			if strings.Contains(text, `"finish_reason":"stop"`) != test.finished {
				t.Errorf("finish: %q", text)
			}
		})
	}
	for _, fault := range []misbehave.Fault{misbehave.FaultCut, misbehave.FaultReset, misbehave.FaultEndEarly} {
		for _, at := range []int{0, 5, 1 << 20} {
			srv := scripted(t, misbehave.Reply{Text: "a", Fault: fault, At: at})
			whole, err := read(t, scripted(t, misbehave.Reply{Text: "a"}), openaiBody(user, ""))
			if err != nil {
				t.Fatal(err)
			}
			text, err := read(t, srv, openaiBody(user, ""))
			want := min(at, len(whole)-1)
			if (err == nil) != (fault == misbehave.FaultEndEarly) || !strings.HasPrefix(whole, text) ||
				len(text) != want && fault != misbehave.FaultReset {
				t.Errorf("%s at %d: %d bytes, %v", fault, at, len(text), err)
			}
		}
	}
}

func TestInterleavedAndCutArguments(t *testing.T) {
	t.Parallel()
	calls := []misbehave.Call{
		{ID: "c1", Name: "f", Arguments: `{"a":"0123456789"}`}, {ID: "c2", Name: "f", Arguments: `{"b":"0123456789"}`},
	}
	srv := scripted(t, misbehave.Reply{Calls: calls, Fault: misbehave.FaultInterleaved})
	models, tools := clients(t, srv), llms.WithTools([]llms.Tool{lookup})
	// Anthropic's client goes by index; OpenAI's gives everything to the last call.
	diff(t, calls, ask(t.Context(), models[misbehave.VendorAnthropic], true, question, tools).Calls)
	got := ask(t.Context(), models[misbehave.VendorOpenAI], true, question, tools).Calls
	diff(t, []string{"", `{"a":"012345{"b":"0123456789"}6789"}`}, []string{got[0].Arguments, got[1].Arguments})

	srv.Script(misbehave.Replies(misbehave.Reply{
		Calls: []misbehave.Call{{ID: misbehave.NoID, Name: "f", Arguments: `{"a":"rm -rf /tm`}}, Finish: misbehave.FinishLength,
	}))
	cut := outcome{Calls: []misbehave.Call{{Name: "f", Arguments: `{"a":"rm -rf /tm`}}, Stop: "length"}
	for _, stream := range []bool{false, true} {
		got := ask(t.Context(), models[misbehave.VendorOpenAI], stream, question, tools)
		got.Chunks = nil
		diff(t, cut, got)
	}
	diff(t, outcome{Calls: []misbehave.Call{{Name: "f", Arguments: `{}`}}, Stop: "max_tokens"},
		ask(t.Context(), models[misbehave.VendorAnthropic], false, question, tools))
	if got := ask(t.Context(), models[misbehave.VendorAnthropic], true, question, tools); !strings.Contains(got.Err, "unmarshal input data") {
		t.Errorf("got %+v", got)
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for finish, want := range map[misbehave.Finish][2]string{
		misbehave.FinishStop:          {"stop", "end_turn"},
		misbehave.FinishLength:        {"length", "max_tokens"},
		misbehave.FinishToolCalls:     {"tool_calls", "tool_use"},
		misbehave.FinishContentFilter: {"content_filter", "refusal"},
		misbehave.FinishNull:          {"", ""},
		"overheated":                  {"overheated", "overheated"},
	} {
		srv := scripted(t, misbehave.Reply{Text: "a", Finish: finish, Model: "other"})
		for _, stream := range []bool{false, true} {
			diff(t, want[0], ask(t.Context(), clients(t, srv)[misbehave.VendorOpenAI], stream, question).Stop)
			diff(t, want[1], ask(t.Context(), clients(t, srv)[misbehave.VendorAnthropic], stream, question).Stop)
		}
		if text, _ := read(t, srv, openaiBody(user, "")); !strings.Contains(text, `"model":"other"`) {
			t.Error(text)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply             misbehave.Reply
		openai, anthropic string
	}{
		"401":    {misbehave.Reply{Status: 401}, "401: Incorrect API key provided.", "401: invalid x-api-key"},
		"404":    {misbehave.Reply{Status: 404}, "404: The model does not exist", "404: The requested resource"},
		"422":    {misbehave.Reply{Status: 422}, "422: Invalid request.", "422: Invalid request."},
		"429":    {misbehave.Reply{Status: 429}, "429: Rate limit reached", "429: Number of request tokens"},
		"503":    {misbehave.Reply{Status: 503}, "503: The engine is currently overloaded", "503: Internal server error"},
		"529":    {misbehave.Reply{Status: 529}, "529: The server had an error", "529: Overloaded"},
		"worded": {misbehave.Reply{Status: 429, Error: &misbehave.APIError{Code: "insufficient_quota", Message: "pay"}}, "429: pay", "429: pay"},
		"html":   {misbehave.Reply{Status: 502, Raw: &misbehave.Raw{ContentType: "text/html", Body: "<html>"}}, "502", "502"},
		"empty":  {misbehave.Reply{Status: 503, Raw: &misbehave.Raw{}}, "503", "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := scripted(t, test.reply)
			for _, stream := range []bool{false, true} {
				for vendor, want := range map[misbehave.Vendor]string{
					misbehave.VendorOpenAI: test.openai, misbehave.VendorAnthropic: test.anthropic,
				} {
					if got := ask(t.Context(), clients(t, srv)[vendor], stream, question); !strings.Contains(got.Err, want) {
						t.Errorf("%s: %q, want %q", vendor, got.Err, want)
					}
				}
			}
			for _, r := range srv.Requests() {
				if r.Answer != misbehave.AnswerStatus {
					t.Errorf("answer %q", r.Answer)
				}
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	srv := scripted(t, misbehave.Reply{Status: 429, Headers: map[string]string{"Retry-After": "7", "content-type": "x/y"}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+openaiPath, strings.NewReader(openaiBody(user, "")))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	diff(t, []string{"7", "x/y", "req_0"}, []string{
		response.Header.Get("Retry-After"), response.Header.Get("Content-Type"), response.Header.Get("X-Request-ID"),
	})
}

func TestDelays(t *testing.T) {
	t.Parallel()
	const delay = 20 * time.Millisecond
	for name, test := range map[string]struct {
		reply         misbehave.Reply
		plain, stream time.Duration
	}{
		"headers": {misbehave.Reply{Text: "a b c", DelayHeaders: delay}, delay, delay},
		"first":   {misbehave.Reply{Text: "a b c", DelayFirst: delay}, delay, delay},
		"chunk":   {misbehave.Reply{Text: "a b c", DelayChunk: delay}, 0, 2 * delay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyMode(t, func(t *testing.T, vendor misbehave.Vendor, stream bool) {
				srv := scripted(t, test.reply)
				began := time.Now()
				if got := ask(t.Context(), clients(t, srv)[vendor], stream, question); got.Text != "a b c" {
					t.Errorf("got %+v", got)
				}
				want := test.plain
				if stream {
					want = test.stream
				}
				if took := time.Since(began); took < want {
					t.Errorf("took %v, want at least %v", took, want)
				}
			})
		})
	}
}

// read posts an OpenAI request and returns as much of the answer's body as arrives.
func read(t *testing.T, srv *misbehave.Server, body string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+openaiPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
