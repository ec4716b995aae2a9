package googleai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/googleai"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const key = "s3cret-key"

// service is a local stand-in for the provider, which answers one reply per request and notes what it saw.
type service struct {
	mu       sync.Mutex
	replies  []reply
	requests []request
}

type reply struct {
	status  int
	headers map[string]string
	body    string
}

type request struct {
	url, key, body string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request{r.URL.String(), r.Header.Get("X-Goog-Api-Key"), string(body)})
	next := s.replies[min(len(s.requests), len(s.replies))-1]
	w.Header().Set("Content-Type", "application/json")
	for k, v := range next.headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(max(next.status, http.StatusOK))
	if next.status == 0 && strings.Contains(r.URL.Path, ":streamGenerateContent") { // with a history it always streams
		next.body = "[" + next.body + "]"
	}
	_, _ = io.WriteString(w, next.body)
}

// local sends every request to the local service.
type local struct {
	base *http.Transport
	url  *url.URL
}

func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	own := r.Clone(r.Context())
	own.URL.Scheme, own.URL.Host = l.url.Scheme, l.url.Host

	return l.base.RoundTrip(own)
}

func candidate(t *testing.T, replies ...reply) (fallback.Candidate, *service) {
	t.Helper()
	s := &service{replies: replies}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &fallback.Transport{Base: local{&http.Transport{DisableKeepAlives: true}, at}}}
	model, err := googleai.NewClient(fallback.ClientConfig{ModelName: "gemini-x", Key: fallback.NewKey(key), HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}

	return fallback.Candidate{
		Label: ident.MustLabel("googleai"), Provider: fallback.ProviderGoogleAI, ModelName: "gemini-x", Model: model,
	}, s
}

func says(parts string) reply {
	return reply{body: `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[` + parts + `]}}],` +
		`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`}
}

type lookup struct{ inputs []string }

func (*lookup) Name() string        { return "lookup" }
func (*lookup) Description() string { return "looks a city up" }
func (l *lookup) Call(_ context.Context, input string) (string, error) {
	l.inputs = append(l.inputs, input)

	return "weather in " + input, nil
}

// langchaingo's functions agent fails with this client before any request is sent; over the bridge it works, and its
// calls and results are pairs, by name.
func TestFunctionsAgent(t *testing.T) {
	t.Parallel()
	call := func(city string) string {
		return `{"functionCall":{"name":"lookup","args":{"__arg1":"` + city + `"}}}`
	}
	c, s := candidate(t, says(`{"text":"Let me check."},`+call("Oslo")+","+call("Bergen")), says(`{"text":"Both."}`))
	m, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{c}, Requires: fallback.CapTools})
	if err != nil {
		t.Fatal(err)
	}
	l := &lookup{}
	out, err := chains.Run(t.Context(), agents.NewExecutor(agents.NewOpenAIFunctionsAgent(m, []tools.Tool{l})), "Which weather?")
	if err != nil || out != "Both." || strings.Join(l.inputs, " ") != "Oslo Bergen" {
		t.Fatalf("%q, %q, %v", out, l.inputs, err)
	}
	if len(s.requests) != 2 {
		t.Fatalf("%d requests", len(s.requests))
	}
	type named struct{ Name string }
	var second struct { // encoding/json does not mind the case
		Contents []struct {
			Role  string
			Parts []struct{ FunctionCall, FunctionResponse *named }
		}
		Tools []any
	}
	if err := json.Unmarshal([]byte(s.requests[1].body), &second); err != nil {
		t.Fatal(err)
	}
	var shape []string
	for _, c := range second.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				shape = append(shape, c.Role+" calls "+p.FunctionCall.Name)
			case p.FunctionResponse != nil:
				shape = append(shape, c.Role+" answers "+p.FunctionResponse.Name)
			default:
				shape = append(shape, c.Role)
			}
		}
	}
	const want = "user, model calls lookup, user answers lookup, model calls lookup, user answers lookup"
	if got := strings.Join(shape, ", "); got != want || len(second.Tools) != 1 {
		t.Errorf("got %s, %d tools", got, len(second.Tools))
	}
	for _, r := range s.requests {
		if r.key != key || strings.Contains(r.url, key) || !strings.Contains(r.url, "/models/gemini-x:") {
			t.Errorf("key in the header: %t, url %s", r.key == key, r.url)
		}
		if !strings.Contains(r.body, `"maxOutputTokens":4096`) {
			t.Errorf("the limit of the answer is not ours: %s", r.body)
		}
	}
}

// The client repeats a call that is answered 503 until its context ends; here the fallback hears of it at once.
func TestOverloadedIsHeard(t *testing.T) {
	t.Parallel()
	c, s := candidate(t, reply{status: 503, headers: map[string]string{"Retry-After": "9"}, body: `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`})
	var seen fallback.AttemptFailure
	m, err := fallback.New(fallback.Config{
		Candidates: []fallback.Candidate{c},
		Classify: func(f fallback.AttemptFailure) fallback.Class {
			seen = f

			return fallback.ClassInvalidRequest // so that nobody repeats it
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err = llms.GenerateFromSinglePrompt(t.Context(), m, "q")
	if seen.Class != fallback.ClassOverloaded || seen.Status != 503 || seen.RetryAfter != 9*time.Second || len(s.requests) != 1 {
		t.Errorf("%v after %v: %+v, %d requests", err, time.Since(begin), seen, len(s.requests))
	}
	if all := fmt.Sprintf("%v %+v %#v", err, err, seen.Err); strings.Contains(all, key) {
		t.Errorf("the key is shown: %s", all)
	}
}

// Google's client puts the address into its errors; the key is not in it.
func TestNoKeyInTheAddress(t *testing.T) {
	t.Parallel()
	model, err := googleai.NewClient(fallback.ClientConfig{ModelName: "m", Key: fallback.NewKey(key), HTTPClient: &http.Client{Transport: refused{}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llms.GenerateFromSinglePrompt(t.Context(), model, "q", llms.WithModel("m"))
	if err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
}

type refused struct{}

func (refused) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

func ExampleNewClient() {
	candidates, _, err := fallback.Resolve([]string{"googleai:gemini-2.0-flash"}, fallback.Keys{All: fallback.NewKey("…")})
	fmt.Println(candidates[0].Label, candidates[0].Provider, err)
	_, _, err = fallback.Resolve([]string{"googleai:gemini-2.0-flash"}, fallback.Keys{})
	fmt.Println(middleware.ReasonOf(err).String())
	// Output:
	// googleai googleai <nil>
	// key_missing
}
