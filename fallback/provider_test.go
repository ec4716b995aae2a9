package fallback_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// provider is a misbehaving server with a real client in front of it.
func provider(tb testing.TB, p fallback.Provider, watched bool, script misbehave.Script) (fallback.Candidate, *misbehave.Server) {
	tb.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(srv.Close)
	base := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: base}
	if watched {
		client.Transport = &fallback.Transport{Base: base}
	}
	c := fallback.Candidate{Label: ident.MustLabel(p.String()), Provider: p}
	if p == fallback.ProviderOpenAI {
		c.ModelName = "gpt-4o"
		c.Model, err = openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("own"), openai.WithHTTPClient(client))
	} else {
		c.ModelName = "claude-sonnet-4"
		c.Model, err = anthropic.New(anthropic.WithBaseURL(srv.URL()+"/v1"), anthropic.WithToken("t"), anthropic.WithHTTPClient(client))
	}
	if err != nil {
		tb.Fatal(err)
	}

	return c, srv
}

func replies(r ...misbehave.Reply) misbehave.Script { return misbehave.Replies(r...) }

func both() []fallback.Provider {
	return []fallback.Provider{fallback.ProviderOpenAI, fallback.ProviderAnthropic}
}

func other(p fallback.Provider) fallback.Provider {
	if p == fallback.ProviderOpenAI {
		return fallback.ProviderAnthropic
	}

	return fallback.ProviderOpenAI
}

// What the caller gets of each fault, over real HTTP, streamed and plain, from both clients.
func TestFaults(t *testing.T) {
	t.Parallel()
	const sentence = "one two three four five six"
	type result uint8
	const (
		whole result = iota // the first candidate's answer
		moved               // the second one's
		stopped
		interrupted
	)
	error400 := func(message, code string) misbehave.Reply { // anthropic sends no code
		return misbehave.Reply{Status: 400, Error: &misbehave.APIError{Message: message, Code: code}}
	}
	for _, tc := range []struct {
		name     string
		reply    misbehave.Reply
		plain    result
		streamed result
		class    fallback.Class // of the first attempt, where it does not answer; 0: any
	}{
		{"healthy", misbehave.Reply{Text: sentence}, whole, whole, 0},
		{"429", misbehave.Reply{Status: 429, Headers: map[string]string{"Retry-After": "2"}}, moved, moved, fallback.ClassRateLimited},
		{"quota", misbehave.Reply{Status: 429, Error: &misbehave.APIError{Type: "insufficient_quota", Code: "insufficient_quota", Message: secret}}, moved, moved, fallback.ClassQuota},
		{"500", misbehave.Reply{Status: 500}, moved, moved, fallback.ClassOverloaded},
		{"503 empty", misbehave.Reply{Status: 503, Raw: &misbehave.Raw{}}, moved, moved, fallback.ClassOverloaded},
		{"502 html", misbehave.Reply{Status: 502, Raw: &misbehave.Raw{ContentType: "text/html", Body: "<html>" + secret}}, moved, moved, fallback.ClassOverloaded},
		{"404", misbehave.Reply{Status: 404}, moved, moved, fallback.ClassNotFound},
		{"401", misbehave.Reply{Status: 401, Error: &misbehave.APIError{Message: secret}}, stopped, stopped, fallback.ClassAuth},
		{"422", misbehave.Reply{Status: 422}, stopped, stopped, fallback.ClassInvalidRequest},
		{"context length", error400("prompt is too long: 9 tokens > 8 maximum, "+secret, "context_length_exceeded"), stopped, stopped, fallback.ClassContextLength},
		{"policy", error400("Output blocked by content filtering policy "+secret, "content_policy_violation"), stopped, stopped, fallback.ClassContentFilter},
		{"filtered", misbehave.Reply{Text: "no", Finish: misbehave.FinishContentFilter}, stopped, interrupted, fallback.ClassContentFilter},
		{"reset", misbehave.Reply{Fault: misbehave.FaultResetBeforeHeaders}, moved, moved, fallback.ClassNetwork},
		{"close", misbehave.Reply{Fault: misbehave.FaultCloseBeforeHeaders}, moved, moved, fallback.ClassNetwork},
		{"html", misbehave.Reply{Raw: &misbehave.Raw{ContentType: "text/html", Body: "<html>" + secret}}, moved, moved, fallback.ClassBadResponse},
		{"empty body", misbehave.Reply{Raw: &misbehave.Raw{}}, moved, moved, 0},
		{"no choices", misbehave.Reply{Fault: misbehave.FaultEmptyChoices}, moved, moved, fallback.ClassBadResponse},
		{"null content", misbehave.Reply{Fault: misbehave.FaultNullContent}, moved, moved, fallback.ClassBadResponse},
		{"hang", misbehave.Reply{Fault: misbehave.FaultHang}, moved, moved, fallback.ClassTimeout},
		{"cut before text", misbehave.Reply{Text: sentence, Fault: misbehave.FaultCut}, moved, moved, 0},
		{"cut after text", misbehave.Reply{Text: sentence, Fault: misbehave.FaultCut, At: 3}, moved, interrupted, 0},
		{"reset after text", misbehave.Reply{Text: sentence, Fault: misbehave.FaultReset, At: 3, DelayChunk: 5 * time.Millisecond}, moved, interrupted, 0},
		{"ends early, no text", misbehave.Reply{Text: sentence, Fault: misbehave.FaultEndEarly}, moved, moved, 0},
		{"ends early", misbehave.Reply{Text: sentence, Fault: misbehave.FaultEndEarly, At: 3}, moved, interrupted, 0},
		{"stalls", misbehave.Reply{Text: sentence, Fault: misbehave.FaultStall, At: 3}, moved, interrupted, fallback.ClassTimeout},
		{"error event first", misbehave.Reply{Text: sentence, Fault: misbehave.FaultErrorEvent}, moved, moved, 0},
		{"error event", misbehave.Reply{Text: sentence, Fault: misbehave.FaultErrorEvent, At: 3}, moved, interrupted, 0},
		{"malformed event first", misbehave.Reply{Text: sentence, Fault: misbehave.FaultMalformedEvent}, moved, moved, 0},
		{"malformed event", misbehave.Reply{Text: sentence, Fault: misbehave.FaultMalformedEvent, At: 3}, moved, interrupted, 0},
		{"cut call", misbehave.Reply{Calls: []misbehave.Call{{Name: "f", Arguments: `{"__arg1":"rm -rf /tm`}}, Finish: misbehave.FinishLength}, moved, moved, fallback.ClassBadResponse},
	} {
		for _, p := range both() {
			for _, streamed := range []bool{false, true} {
				name, expect := tc.name+" "+p.String(), tc.plain
				if streamed {
					name, expect = name+" streamed", tc.streamed
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					first, srv := provider(t, p, true, replies(tc.reply))
					second, _ := provider(t, other(p), true, replies(misbehave.Reply{Text: "rescued"}))
					var seen fallback.Class
					limit := 30 * time.Second
					if f := tc.reply.Fault; f == misbehave.FaultHang || f == misbehave.FaultStall {
						limit = time.Second
					}
					m := build(t, fallback.Config{NoRetry: true,
						Candidates:     []fallback.Candidate{first, second},
						AttemptTimeout: limit,
						Classify: func(f fallback.AttemptFailure) fallback.Class {
							seen = f.Class

							return 0
						},
					})
					var chunks []string
					options := []llms.CallOption{offered()}
					if streamed {
						options = append(options, collect(&chunks))
					}
					got, err := text(t.Context(), m, options...)
					got = strings.TrimSpace(got)
					switch expect {
					case whole, moved:
						answer := sentence
						if expect == moved {
							answer = "rescued"
						}
						if err != nil || got != answer {
							t.Fatalf("got %q, %v; want %q", got, err, answer)
						}
						if streamed && strings.TrimSpace(strings.Join(chunks, "")) != answer {
							t.Errorf("chunks %q", chunks)
						}
					case stopped:
						if c := classOf(t, err); c != tc.class {
							t.Fatalf("class %v", c)
						}
					case interrupted:
						e, ok := errors.AsType[*fallback.InterruptedError](err)
						if !ok || e.Chunks() == 0 || e.Text() != strings.Join(chunks, "") {
							t.Fatalf("got %q, %v, chunks %q", got, err, chunks)
						}
					}
					if err != nil {
						contentFree(t, err)
					}
					if tc.class != 0 && seen != tc.class {
						t.Errorf("class %v, want %v", seen, tc.class)
					}
					if n := srv.Count(); n != 1 {
						t.Errorf("the first provider saw %d requests", n)
					}
					for _, r := range srv.Requests() {
						if r.Model != first.ModelName || r.Violation != misbehave.NoViolation {
							t.Errorf("model %q, violation %q", r.Model, r.Violation)
						}
					}
				})
			}
		}
	}
}

// Without Transport the suspicion rules find what can be found from outside.
func TestFaultsUnwatched(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		reply misbehave.Reply
	}{
		{"ends early", misbehave.Reply{Text: "a b c d", Fault: misbehave.FaultEndEarly, At: 2}},
		{"error event", misbehave.Reply{Text: "a b c d", Fault: misbehave.FaultErrorEvent, At: 2}},
		{"cut", misbehave.Reply{Text: "a b c d", Fault: misbehave.FaultCut, At: 2}},
	} {
		for _, p := range both() {
			c, _ := provider(t, p, false, replies(tc.reply))
			var chunks []string
			_, err := text(t.Context(), build(t, fallback.Config{Candidates: []fallback.Candidate{c}}), collect(&chunks))
			if !errors.Is(err, middleware.ReasonInterrupted) {
				t.Errorf("%s, %v: %v, chunks %q", tc.name, p, err, chunks)
			}
		}
	}
}

// Complete, properly closed, but without [DONE] or without a finish reason: an answer, promptly.
func TestCompatibleServers(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]misbehave.Reply{
		"no done":   {Text: "all of it", Fault: misbehave.FaultNoTerminal},
		"no reason": {Text: "all of it", Finish: misbehave.FinishNull},
	} {
		c, srv := provider(t, fallback.ProviderOpenAI, true, replies(reply))
		var chunks []string
		m := build(t, fallback.Config{Candidates: []fallback.Candidate{c}})
		if got, err := text(t.Context(), m, collect(&chunks)); err != nil || got != "all of it" || srv.Count() != 1 {
			t.Errorf("%s: %q, %v, %d requests", name, got, err, srv.Count())
		}
	}
}

func TestHangAndCancelNeverMovesOn(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		first, srv := provider(t, p, true, replies(misbehave.Reply{Fault: misbehave.FaultHang}))
		second, spare := provider(t, other(p), true, nil)
		m := build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = srv.AwaitRequests(t.Context(), 1)
			cancel()
		}()
		_, err := text(ctx, m)
		if !errors.Is(err, context.Canceled) || spare.Count() != 0 {
			t.Errorf("%v: %v, %d further requests", p, err, spare.Count())
		}
		reasonIs(t, err, middleware.ReasonCanceled)
	}
}

func TestRetryAfterLengthensTheBench(t *testing.T) {
	t.Parallel()
	for header, benched := range map[string]time.Duration{
		"":                              30 * time.Second,
		"2":                             30 * time.Second,
		"90":                            90 * time.Second,
		"90.5":                          90500 * time.Millisecond,
		"99999":                         10 * time.Minute,
		"-5":                            30 * time.Second,
		"NaN":                           30 * time.Second,
		"soon":                          30 * time.Second,
		"Thu, 01 Jan 2026 00:02:00 GMT": 2 * time.Minute,
		"Thu, 01 Jan 2015 00:02:00 GMT": 30 * time.Second,
	} {
		reply := misbehave.Reply{Status: 429}
		if header != "" {
			reply.Headers = map[string]string{"Retry-After": header}
		}
		first, _ := provider(t, fallback.ProviderOpenAI, true, replies(reply, misbehave.Reply{Text: "back"}))
		second, _ := provider(t, fallback.ProviderAnthropic, true, replies(misbehave.Reply{Text: "other"}))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		m := build(t, fallback.Config{NoRetry: true,
			Candidates: []fallback.Candidate{first, second}, Now: func() time.Time { return now },
		})
		want(t, m, "other")
		now = now.Add(benched - time.Millisecond)
		if m.Active().String() != "anthropic" {
			t.Errorf("%q: back too early", header)
		}
		now = now.Add(time.Millisecond)
		want(t, m, "back")
	}
}

// lookup is a tool that answers with its input.
type lookup struct{ inputs []string }

var _ tools.Tool = (*lookup)(nil)

func (*lookup) Name() string        { return "lookup" }
func (*lookup) Description() string { return "looks a city up" }
func (l *lookup) Call(_ context.Context, input string) (string, error) {
	l.inputs = append(l.inputs, input)

	return "weather in " + input, nil
}

func runAgent(t *testing.T, m llms.Model) (string, []string, error) {
	t.Helper()
	l := &lookup{}
	agent := agents.NewOpenAIFunctionsAgent(m, []tools.Tool{l})
	out, err := chains.Run(t.Context(), agents.NewExecutor(agent), "Which weather?")

	return out, l.inputs, err
}

func city(name string) misbehave.Call {
	return misbehave.Call{Name: "lookup", Arguments: `{"__arg1":"` + name + `"}`}
}

func noViolations(t *testing.T, servers ...*misbehave.Server) {
	t.Helper()
	for _, s := range servers {
		for _, r := range s.Requests() {
			if r.Violation != misbehave.NoViolation {
				t.Errorf("%s request %d: %s", r.Vendor, r.Index, r.Violation)
			}
		}
	}
}

// langchaingo's OpenAI-functions agent, on each vendor alone: it has its tools, and it runs them.
func TestFunctionsAgentOnOneVendor(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		c, srv := provider(t, p, true, replies(
			misbehave.Reply{Text: "Let me check.", Calls: []misbehave.Call{city("Oslo")}},
			misbehave.Reply{Calls: []misbehave.Call{city("5")}},
			misbehave.Reply{Text: "It rains."},
		))
		out, inputs, err := runAgent(t, build(t, fallback.Config{Candidates: []fallback.Candidate{c}}))
		if err != nil || out != "It rains." || strings.Join(inputs, " ") != "Oslo 5" {
			t.Errorf("%v: %q, %q, %v", p, out, inputs, err)
		}
		noViolations(t, srv)
		if r := srv.Requests()[0]; strings.Join(r.Tools, " ") != "lookup" {
			t.Errorf("%v: tools %v", p, r.Tools)
		}
	}
}

// The agent changes the vendor in the middle of a run, in both directions.
func TestFunctionsAgentAcrossVendors(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		first, a := provider(t, p, true, replies(
			misbehave.Reply{Text: "Let me check.", Calls: []misbehave.Call{city("Oslo")}},
			misbehave.Reply{Status: 503},
		))
		second, b := provider(t, other(p), true, replies(
			misbehave.Reply{Text: "One more.", Calls: []misbehave.Call{city("Bergen")}},
			misbehave.Reply{Text: "Oslo and Bergen."},
		))
		out, inputs, err := runAgent(t, build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}}))
		if err != nil || out != "Oslo and Bergen." || strings.Join(inputs, " ") != "Oslo Bergen" {
			t.Errorf("%v: %q, %q, %v", p, out, inputs, err)
		}
		noViolations(t, a, b)
	}
}

// Streamed parallel calls whose deltas are mixed get merged by openai's client: never handed on.
func TestMergedCallsNeverReachTheAgent(t *testing.T) {
	t.Parallel()
	c, _ := provider(t, fallback.ProviderOpenAI, true, replies(misbehave.Reply{
		Calls: []misbehave.Call{city("Oslo"), city("Bergen")}, Fault: misbehave.FaultInterleaved,
	}))
	var chunks []string
	m := build(t, fallback.Config{Candidates: []fallback.Candidate{c}})
	resp, err := m.GenerateContent(t.Context(), hello(), llms.WithTools([]llms.Tool{{
		Type: "function", Function: &llms.FunctionDefinition{Name: "lookup", Parameters: map[string]any{"type": "object"}},
	}}), collect(&chunks))
	if resp != nil || classOf(t, err) != fallback.ClassBadResponse || len(chunks) != 0 {
		t.Errorf("got %v, %v, chunks %q", resp, err, chunks)
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	first, _ := provider(t, fallback.ProviderOpenAI, true, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
		if r.Index%3 == 0 {
			return misbehave.Reply{Status: 503}
		}

		return misbehave.Reply{Text: r.Last().Text}
	}))
	second, _ := provider(t, fallback.ProviderAnthropic, true, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
		return misbehave.Reply{Text: r.Last().Text}
	}))
	m := build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}})
	done := make(chan error)
	for i := range 16 {
		go func() {
			prompt := strings.Repeat("x", i+1)
			got, err := m.Call(t.Context(), prompt)
			if err == nil && got != prompt {
				err = errors.New("another call's answer")
			}
			done <- err
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
