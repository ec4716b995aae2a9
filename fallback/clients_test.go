package fallback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/mistral"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// What every client says of every failure, as it was measured: the status, where the client keeps one, else its words.
// A status that a client loses and a body that it cannot read are what they look like.
func TestClassesOfClients(t *testing.T) {
	t.Parallel()
	const (
		auth, rate, over, network, bad = fallback.ClassAuth, fallback.ClassRateLimited, fallback.ClassOverloaded, fallback.ClassNetwork, fallback.ClassBadResponse
		quota, found, length           = fallback.ClassQuota, fallback.ClassNotFound, fallback.ClassContextLength
		filter, invalid, unknown       = fallback.ClassContentFilter, fallback.ClassInvalidRequest, fallback.ClassUnknown
		tooLong                        = "This model's maximum context length is 8192 tokens. However, your messages resulted in 10425 tokens. Please reduce the length of the messages."
		policy                         = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."
		inactive                       = "Your account is not active, please check your billing details on our website."
		key                            = "Incorrect API key provided: sk-abc***def. You can find your API key at https://platform.openai.com/account/api-keys."
		country                        = "Country, region, or territory not supported"
		missing                        = "The model 'own-model' does not exist or you do not have access to it."
		limit                          = "Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 7s."
		used                           = "You exceeded your current quota, please check your plan and billing details."
		fault                          = "The server had an error while processing your request. Sorry about that!"
		busy                           = "The engine is currently overloaded, please try again later"
		value                          = "Invalid value for 'temperature': must be between 0 and 2."
	)
	// The failures that all clients were shown.
	all := []struct {
		status  int
		message string
		class   fallback.Class
	}{
		{400, value, invalid}, {400, tooLong, length}, {400, policy, filter}, {400, inactive, quota}, {401, key, auth},
		{403, country, auth}, {404, missing, found}, {408, "Request timed out.", over},
		{409, "The resource was updated by another request.", over}, {413, "Payload too large", invalid},
		{422, "Unprocessable Entity", invalid}, {429, limit, rate}, {429, used, quota}, {500, fault, over}, {503, busy, over},
		{529, "Overloaded", over},
	}
	for p, words := range map[fallback.Provider]func(status int, message string) string{
		fallback.ProviderOpenAI: func(s int, m string) string {
			return fmt.Sprintf("API returned unexpected status code: %d: %s", s, m)
		},
		fallback.ProviderGoogleAI: func(s int, m string) string {
			return fmt.Sprintf("error in stream mode: googleapi: Error %d: %s", s, m)
		},
		fallback.ProviderMistral: func(s int, m string) string {
			return fmt.Sprintf(`(HTTP Error %d) {"object":"error","message":"%s","type":"invalid_request_error","param":null,"code":""}`, s, m)
		},
		fallback.ProviderOllama: func(_ int, m string) string { return m },
		fallback.ProviderHuggingFace: func(s int, m string) string {
			return fmt.Sprintf(`failed to run inference: unexpected status code: %d, body: {"error":"%s"}`, s, m)
		},
		fallback.ProviderCloudflare: func(_ int, m string) string {
			return fmt.Sprintf(`error: {"errors":[{"message":"%s","code":3040}],"success":false,"result":{},"messages":[]}`, m)
		},
	} {
		for _, f := range all {
			expectClass(t, p, said(words(f.status, f.message)), f.class)
		}
	}

	post := func(err error) error {
		return &url.Error{Op: "Post", URL: "http://host:40123/x?key=" + secret, Err: err}
	}
	for _, tc := range []struct {
		p     fallback.Provider
		err   error
		class fallback.Class
	}{
		{fallback.ProviderGoogleAI, said("error in stream mode: googleapi: Error 502:"), over},
		{fallback.ProviderGoogleAI, said("googleapi: Error 400: API key not valid. Please pass a valid API key."), auth},
		{fallback.ProviderGoogleAI, said("googleapi: Error 400: The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."), length},
		{fallback.ProviderGoogleAI, said("proto: syntax error (line 1:1): invalid value <"), bad},
		{fallback.ProviderGoogleAI, said("error in stream mode: unexpected opening token, expected '['"), bad},
		{fallback.ProviderGoogleAI, said("expect single candidate in stream mode; got 0"), bad},
		{fallback.ProviderGoogleAI, fmt.Errorf("error in stream mode: %w", post(opError(syscall.ECONNREFUSED))), network},
		{fallback.ProviderGoogleAI, fmt.Errorf("error in stream mode: %w", io.ErrUnexpectedEOF), network},
		{fallback.ProviderGoogleAI, context.DeadlineExceeded, fallback.ClassTimeout}, // how it hides a 503

		{fallback.ProviderMistral, post(said("http: ContentLength=160 with Body length 0")), over}, // how it hides 429 and 5xx
		{fallback.ProviderMistral, said("(HTTP Error 503) "), over},
		{fallback.ProviderMistral, said(`(HTTP Error 422) {"detail":[{"loc":["body","messages",0,"role"]}]}`), invalid},
		{fallback.ProviderMistral, said(`(HTTP Error 400) {"object":"error","message":"Invalid model: x","type":"invalid_model"}`), found},
		{fallback.ProviderMistral, fmt.Errorf("error decoding stream response: %w", jsonError("{")), bad},
		{fallback.ProviderMistral, fmt.Errorf("error reading stream response: %w", opError(syscall.ECONNRESET)), network},
		{fallback.ProviderMistral, jsonError("<html>"), bad},
		{fallback.ProviderMistral, post(opError(syscall.ECONNREFUSED)), network},

		{fallback.ProviderOllama, said("422 Unprocessable Entity"), invalid}, // only for a body without a message
		{fallback.ProviderOllama, said(`model "llama9" not found, try pulling it first`), found},
		{fallback.ProviderOllama, said("server busy, please try again.  maximum pending requests exceeded"), over},
		{fallback.ProviderOllama, said("an error was encountered while running the model: CUDA error: out of memory"), over},
		{fallback.ProviderOllama, said("only support Text and BinaryContent parts right now"), invalid},
		{fallback.ProviderOllama, said("upstream exploded"), unknown},
		{fallback.ProviderOllama, jsonError("<html>"), bad},
		{fallback.ProviderOllama, said("the tool said: Overloaded"), unknown},
		{fallback.ProviderOllama, said("422 is not a Status, 429"), unknown},
		{fallback.ProviderOllama, post(io.EOF), network},

		{fallback.ProviderCohere, said("empty response"), bad},
		{fallback.ProviderCohere, said("model not found, make sure the correct model ID was used"), found},
		{fallback.ProviderCohere, fmt.Errorf("parse response: %w", jsonError("<html>")), bad},
		{fallback.ProviderCohere, fmt.Errorf("parse response: %w", io.EOF), network},
		{fallback.ProviderCohere, fmt.Errorf("send request: %w", post(&net.DNSError{Err: "no such host"})), network},

		{fallback.ProviderHuggingFace, said("failed to run inference: unexpected status code: 429"), rate},
		{fallback.ProviderHuggingFace, said("failed to run inference: unexpected status code: 502, body: <html>\n<head>\n"), over},
		{fallback.ProviderHuggingFace, said(`failed to run inference: unexpected status code: 503, body: {"error":"Model own-model is currently loading","estimated_time":20.0}`), over},
		{fallback.ProviderHuggingFace, said("empty response"), bad},
		{fallback.ProviderHuggingFace, fmt.Errorf("failed to run inference: %w", jsonError(`{"A":{}}`)), bad},
		{fallback.ProviderHuggingFace, fmt.Errorf("failed to run inference: %w", post(opError(syscall.ECONNRESET))), network},

		{fallback.ProviderCloudflare, said("error: "), over},
		{fallback.ProviderCloudflare, said("error: <html><body><h1>504 Gateway Time-out</h1></body></html>"), over},
		{fallback.ProviderCloudflare, said(`error: {"detail":[{"loc":["body"]}]}`), unknown},
		{fallback.ProviderCloudflare, errors.Join(said("")), unknown}, // all that is left of any failure of a stream
		{fallback.ProviderCloudflare, jsonError("<html>"), bad},
		{fallback.ProviderCloudflare, said("only supports Text right now"), invalid},

		{fallback.ProviderLlamafile, unmarshalError(), bad}, // all that is left of any status
		{fallback.ProviderLlamafile, said("failed to unmarshal JSON: invalid character '<' looking for beginning of value"), bad},
		{fallback.ProviderLlamafile, said("422 Unprocessable Entity"), invalid},
		{fallback.ProviderLlamafile, said("slot unavailable"), over},
		{fallback.ProviderLlamafile, said("context canceled"), unknown},
		{fallback.ProviderLlamafile, post(opError(syscall.ECONNREFUSED)), network},
	} {
		expectClass(t, tc.p, tc.err, tc.class)
	}
}

func expectClass(t *testing.T, p fallback.Provider, err error, class fallback.Class) {
	t.Helper()
	l := list(does(fails(err)))
	l[0].Provider = p
	_, out := text(t.Context(), build(t, fallback.Config{Candidates: l, NoRetry: true}))
	if got := classOf(t, out); got != class {
		t.Errorf("%v of %q: class %v, want %v", p, err, got, class)
	}
	if !errors.Is(out, err) {
		t.Errorf("%v: the cause is lost", p)
	}
	contentFree(t, out)
}

func unmarshalError() error {
	var v struct {
		Error string `json:"error"`
	}

	return json.Unmarshal([]byte(`{"error":{}}`), &v)
}

// Every failure that a client was seen to call a success, with what it returned. The ones that leave no trace outside of
// the client are marked: for those there is Transport (openai), or no help at all.
func TestSilentFailures(t *testing.T) {
	t.Parallel()
	usage := map[string]any{"PromptTokens": 0, "CompletionTokens": 0}
	for _, tc := range []struct {
		provider fallback.Provider
		streamed bool
		failure  string
		chunks   []string
		content  string
		stop     string
		info     map[string]any
		unseen   bool
	}{
		{fallback.ProviderOpenAI, true, "200 malformed json", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "200 html", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "200 empty body", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "200 error object", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "clean end, no terminal event", []string{"hel", "lo"}, "hello", "", nil, false},
		{fallback.ProviderOpenAI, true, "no chunks at all", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "error event after 2", []string{"hel", "lo"}, "hello", "", nil, false},
		{fallback.ProviderOpenAI, true, "error event first", nil, "", "", nil, false},
		{fallback.ProviderOpenAI, true, "malformed frame mid", []string{"hel", "", "lo", "!"}, "hello!", "stop", nil, true},
		{fallback.ProviderOpenAI, true, "deadline mid stream", []string{"hel", "lo"}, "hello", "", nil, false},
		{fallback.ProviderOpenAI, false, "filtered", nil, "", "content_filter", nil, false},
		{fallback.ProviderGoogleAI, true, "clean end, no terminal event", []string{"hel", "lo"}, "hello", "FinishReasonUnspecified", nil, false},
		{fallback.ProviderMistral, true, "200 malformed json", nil, "", "", nil, false},
		{fallback.ProviderMistral, true, "200 html", nil, "", "", nil, false},
		{fallback.ProviderMistral, true, "200 empty body", nil, "", "", nil, false},
		{fallback.ProviderMistral, true, "200 error object", nil, "", "", nil, false},
		{fallback.ProviderMistral, true, "clean end, no terminal event", []string{"hel", "lo"}, "hello", "", nil, false},
		{fallback.ProviderMistral, true, "no chunks at all", nil, "", "", nil, false},
		{fallback.ProviderMistral, true, "error event after 2", []string{"hel", "lo", ""}, "hello", "", nil, false},
		{fallback.ProviderMistral, true, "error event first", []string{""}, "", "", nil, false},
		{fallback.ProviderOllama, false, "429 empty body", nil, "", "", usage, false},
		{fallback.ProviderOllama, false, "503 empty body", nil, "", "", usage, false},
		{fallback.ProviderOllama, false, "200 empty body", nil, "", "", usage, false},
		{fallback.ProviderOllama, true, "200 empty body", nil, "", "", usage, false},
		{fallback.ProviderOllama, false, "200 empty choices", nil, "", "", usage, false},
		{fallback.ProviderOllama, false, "rst before the first byte", nil, "", "", usage, false},
		{fallback.ProviderOllama, true, "rst after 2 chunks", []string{"hel", "lo"}, "", "", usage, false},
		{fallback.ProviderOllama, true, "eof after 2", []string{"hel", "lo"}, "", "", usage, false},
		{fallback.ProviderOllama, true, "clean end, no terminal event", []string{"hel", "lo"}, "", "", usage, false},
		{fallback.ProviderOllama, true, "no chunks at all", nil, "", "", usage, false},
		{fallback.ProviderOllama, true, "deadline mid stream", []string{"hel", "lo"}, "", "", usage, false},
		{fallback.ProviderCloudflare, false, "200 empty choices", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, false, "429 empty body", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, false, "503 empty body", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, false, "200 empty body", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, true, "200 empty body", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, false, "200 empty choices", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, true, "no chunks at all", nil, "", "", nil, false},
		{fallback.ProviderLlamafile, true, "clean end, no terminal event", []string{"hel", "lo"}, "hello", "", nil, true},
	} {
		first := gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{
			{Content: tc.content, StopReason: tc.stop, GenerationInfo: tc.info},
		}})
		if tc.streamed {
			first = streams(first, tc.chunks...)
		}
		l := list(does(first))
		l[0].Provider = tc.provider
		var chunks []string
		var options []llms.CallOption
		if tc.streamed {
			options = append(options, collect(&chunks))
		}
		_, err := text(t.Context(), build(t, fallback.Config{Candidates: l, NoRetry: true}), options...)
		if (err == nil) != tc.unseen {
			t.Errorf("%v %s: %v", tc.provider, tc.failure, err)
		}
	}
	// Cloudflare's client loses the text of every stream: it is not asked to stream at all.
	if fallback.ProviderCloudflare.Capabilities()&fallback.CapStreaming != 0 {
		t.Error("cloudflare is asked to stream")
	}
}

// The real client that ignores its context: it is left behind at the limit, counted by the name of its candidate, and
// waited for before the test's end, where no goroutine may be left.
func TestMistralIsLeftBehind(t *testing.T) {
	t.Parallel()
	srv, err := misbehave.Start(misbehave.Config{Script: replies(misbehave.Reply{Fault: misbehave.FaultHang})})
	if err != nil {
		t.Fatal(err)
	}
	client, err := mistral.New(
		mistral.WithEndpoint(srv.URL()), mistral.WithAPIKey("k"), mistral.WithModel("m"), mistral.WithMaxRetries(1))
	if err != nil {
		t.Fatal(err)
	}
	l := list(client, does(says("backup")))
	l[0].Provider = fallback.ProviderMistral
	rec := &recorder{}
	m := build(t, fallback.Config{Candidates: l, AttemptTimeout: 100 * time.Millisecond, Observer: rec})
	want(t, m, "backup")
	if !slices.Contains(rec.lines(), "deny cancel primary abandoned #1") || m.Abandoned() != 1 {
		t.Errorf("%d abandoned", m.Abandoned())
	}
	srv.Close() // the client's own way out
	for poll := time.NewTicker(10 * time.Millisecond); m.Abandoned() > 0; <-poll.C {
		if t.Context().Err() != nil {
			t.Fatal("it does not end")
		}
	}
}
