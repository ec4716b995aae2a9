package fallback_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// script is what a client does with the caller's functions: "…" is a chunk, a leading ~ is reasoning.
func streams(end ask, chunks ...string) ask {
	return func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		for _, c := range chunks {
			thought, isThought := strings.CutPrefix(c, "~")
			if isThought {
				c = ""
			}
			if o.StreamingFunc != nil {
				if err := o.StreamingFunc(ctx, []byte(c)); err != nil {
					return nil, err
				}
			}
			if o.StreamingReasoningFunc != nil {
				if !isThought {
					thought = ""
				}
				if err := o.StreamingReasoningFunc(ctx, []byte(thought), []byte(c)); err != nil {
					return nil, err
				}
			}
		}

		return end(ctx, m, o)
	}
}

func collect(into *[]string) llms.CallOption {
	return llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
		*into = append(*into, string(chunk))

		return nil
	})
}

func offered() llms.CallOption {
	return llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{
		Name: "f", Parameters: map[string]any{"type": "object"},
	}}})
}

const delta = `[{"id":"c1","type":"function","function":{"name":"f","arguments":""}}]`

func calls() ask {
	return gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{{StopReason: "tool_calls", ToolCalls: []llms.ToolCall{
		{ID: "c1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}},
	}}}})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	broken := fails(status(500))
	for name, tc := range map[string]struct {
		first       ask
		options     []llms.CallOption
		chunks      string // as the caller sees them
		interrupted string // text of the InterruptedError
		err         error
	}{
		"whole":                  {streams(says("ab"), "", "a", "b", ""), nil, "a|b", "", nil},
		"fails before":           {streams(broken, "", ""), nil, "B", "", nil},
		"fails after":            {streams(broken, "a", "b"), nil, "a|b", "ab", middleware.ReasonInterrupted},
		"bad after":              {streams(gives(nil), "a"), nil, "a", "a", middleware.ReasonInterrupted},
		"delta, then whole":      {streams(calls(), delta), []llms.CallOption{offered()}, delta, "", nil},
		"delta, then fails":      {streams(broken, "", delta, delta), []llms.CallOption{offered()}, "B", "", nil},
		"delta, text, fails":     {streams(broken, delta, "a"), []llms.CallOption{offered()}, delta + "|a", "a", middleware.ReasonInterrupted},
		"text, delta, whole":     {streams(calls(), "a", delta), []llms.CallOption{offered()}, "a|" + delta, "", nil},
		"legacy delta":           {streams(broken, `{"name":"f","arguments":"{"}`), []llms.CallOption{offered()}, "B", "", nil},
		"no tools, so text":      {streams(broken, delta), nil, delta, delta, middleware.ReasonInterrupted},
		"text like a delta":      {streams(broken, `[{"id":"a","x":1}]`), []llms.CallOption{offered()}, `[{"id":"a","x":1}]`, `[{"id":"a","x":1}]`, middleware.ReasonInterrupted},
		"text like a delta 2":    {streams(broken, `[{"id":"a"}]`), []llms.CallOption{offered()}, `[{"id":"a"}]`, `[{"id":"a"}]`, middleware.ReasonInterrupted},
		"text like a legacy one": {streams(broken, `{"name":"f"}`), []llms.CallOption{offered()}, `{"name":"f"}`, `{"name":"f"}`, middleware.ReasonInterrupted},
		"reasoning, then fails":  {streams(broken, "~hm"), nil, "B", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			second := does(streams(says("B"), "B"))
			m := build(t, fallback.Config{NoRetry: true, Candidates: list(does(tc.first), second)})
			_, err := m.GenerateContent(t.Context(), hello(), append(tc.options, collect(&got))...)
			if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Fatalf("error %v", err)
			}
			if s := strings.Join(got, "|"); s != tc.chunks {
				t.Errorf("chunks %q, want %q", s, tc.chunks)
			}
			if err == nil {
				return
			}
			e, ok := errors.AsType[*fallback.InterruptedError](err)
			if !ok || e.Text() != tc.interrupted || e.Bytes() != len(tc.interrupted) || e.Chunks() < 1 {
				t.Fatalf("got %v", err)
			}
			if second.calls.Load() != 0 {
				t.Error("it moved on after text was delivered")
			}
			if m.Active().String() != "backup" {
				t.Error("a candidate that breaks off is not benched")
			}
		})
	}
}

func TestInterruptedError(t *testing.T) {
	t.Parallel()
	var got []string
	m := build(t, fallback.Config{Candidates: list(does(streams(fails(errSecret), secret, " more")))})
	_, err := m.GenerateContent(t.Context(), hello(), collect(&got))
	reasonIs(t, err, middleware.ReasonInterrupted)
	e, _ := errors.AsType[*fallback.InterruptedError](err)
	if e.Error() != "interlock: fallback: primary: interrupted after 2 chunks: unknown" || !errors.Is(err, errSecret) ||
		e.Candidate().String() != "primary" || e.Class() != fallback.ClassUnknown || e.Reason() != middleware.ReasonInterrupted ||
		!errors.Is(err, middleware.ReasonUnknownError) || errors.Is(err, middleware.ReasonExhausted) {
		t.Errorf("got %v", err)
	}
}

func TestReasoningIsStreamed(t *testing.T) {
	t.Parallel()
	var thoughts, texts []string
	think := llms.WithStreamingReasoningFunc(func(_ context.Context, reasoning, chunk []byte) error {
		thoughts = append(thoughts, string(reasoning)+"/"+string(chunk))

		return nil
	})
	m := build(t, fallback.Config{Candidates: list(does(streams(says("ab"), "~hm", "a", "")))})
	if _, err := m.GenerateContent(t.Context(), hello(), think, collect(&texts)); err != nil {
		t.Fatal(err)
	}
	if a, b := strings.Join(thoughts, " "), strings.Join(texts, " "); a != "hm/ /a" || b != "a" {
		t.Errorf("thoughts %q, texts %q", a, b)
	}
	// Reasoning alone: its text counts as delivered, and the client streams.
	cut := build(t, fallback.Config{Candidates: list(does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		if o.StreamingFunc == nil {
			t.Error("the client reads no stream")
		}

		return streams(fails(status(500)), "~hm", "a")(ctx, m, o)
	}), does(says("B")))})
	_, err := cut.GenerateContent(t.Context(), hello(), think)
	if e, ok := errors.AsType[*fallback.InterruptedError](err); !ok || e.Text() != "a" {
		t.Errorf("got %v", err)
	}
}

// Reasoning is no answer: what is held back stays so, and the call may move on.
func TestReasoningReleasesNothing(t *testing.T) {
	t.Parallel()
	var texts []string
	thoughts := 0
	m := build(t, fallback.Config{NoRetry: true, Candidates: list(does(streams(fails(status(500)), delta, "~hm")), does(streams(says("B"), "B")))})
	_, err := m.GenerateContent(t.Context(), hello(), offered(), collect(&texts),
		llms.WithStreamingReasoningFunc(func(_ context.Context, reasoning, _ []byte) error {
			thoughts += len(reasoning)

			return nil
		}))
	if err != nil || strings.Join(texts, "|") != "B" || thoughts != len("hm") {
		t.Errorf("got %v, %q, %d", err, texts, thoughts)
	}
}

func TestCallerStopsTheStream(t *testing.T) {
	t.Parallel()
	own := errors.New("enough " + secret)
	for name, f := range map[string]func(context.Context, []byte) error{
		"error": func(context.Context, []byte) error { return own },
		"panic": func(context.Context, []byte) error { panic(own) },
	} {
		for where, first := range map[string]ask{
			"client returns it": streams(says("abc"), "a", "b", "c"),
			"client swallows it": func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				_ = o.StreamingFunc(ctx, []byte("a"))
				_ = o.StreamingFunc(ctx, []byte("b"))

				return says("a")(ctx, nil, nil)
			},
		} {
			n := 0
			second := does(says("B"))
			m := build(t, fallback.Config{Candidates: list(does(first), second)})
			resp, err := m.GenerateContent(t.Context(), hello(), llms.WithStreamingFunc(func(ctx context.Context, b []byte) error {
				n++

				return f(ctx, b)
			}))
			if resp != nil || !errors.Is(err, own) || n != 1 || second.calls.Load() != 0 {
				t.Errorf("%s, %s: %v, %v, %d chunks", name, where, resp, err, n)
			}
			reasonIs(t, err, middleware.ReasonCanceled)
			if m.Active().String() != "primary" {
				t.Error("the caller's stop benches")
			}
		}
	}
}

// A client may call the caller's function on a goroutine of its own, as anthropic's does.
func TestCallerExitsInAChunk(t *testing.T) {
	t.Parallel()
	second := does(says("B"))
	m := build(t, fallback.Config{Candidates: list(does(
		func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = o.StreamingFunc(ctx, []byte("a"))
			}()
			<-done

			return nil, errors.New("no response")
		}), second)})
	_, err := m.GenerateContent(t.Context(), hello(), llms.WithStreamingFunc(func(context.Context, []byte) error {
		runtime.Goexit()

		return nil
	}))
	reasonIs(t, err, middleware.ReasonCanceled)
	if second.calls.Load() != 0 {
		t.Error("it moved on")
	}
}

func TestHeldDeltasThatTheCallerRefuses(t *testing.T) {
	t.Parallel()
	own := errors.New("no deltas")
	m := build(t, fallback.Config{Candidates: list(does(streams(calls(), delta)))})
	_, err := m.GenerateContent(t.Context(), hello(), offered(), llms.WithStreamingFunc(func(ctx context.Context, _ []byte) error {
		if ctx.Err() != nil {
			t.Error("a held chunk comes with a dead context")
		}

		return own
	}))
	if !errors.Is(err, own) || !errors.Is(err, middleware.ReasonCanceled) {
		t.Errorf("got %v", err)
	}
}

func TestHeldDeltasAreBounded(t *testing.T) {
	t.Parallel()
	big := `[{"type":"function","function":{"name":"f","arguments":"` + strings.Repeat("x", 300<<10) + `"}}]`
	var got []string
	m := build(t, fallback.Config{Candidates: list(does(streams(fails(status(500)), big, big, big, big, big)), does(says("B")))})
	_, err := m.GenerateContent(t.Context(), hello(), offered(), collect(&got))
	if !errors.Is(err, middleware.ReasonInterrupted) || len(got) != 5 {
		t.Errorf("got %v, %d chunks", err, len(got))
	}
}

// Chunks after the end of an attempt are dropped: anthropic's client goes on reading after an error event.
func TestLateChunksAreDropped(t *testing.T) {
	t.Parallel()
	var late func(context.Context, []byte) error
	var got []string
	m := build(t, fallback.Config{NoRetry: true, Candidates: list(does(
		func(_ context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			late = o.StreamingFunc

			return nil, status(503)
		}), does(streams(says("B"), "B")))})
	if _, err := m.GenerateContent(t.Context(), hello(), collect(&got)); err != nil {
		t.Fatal(err)
	}
	if err := late(context.Background(), []byte("late")); err == nil {
		t.Error("a late chunk is taken")
	} else {
		contentFree(t, err)
	}
	if strings.Join(got, "|") != "B" {
		t.Errorf("chunks %q", got)
	}
}

func TestSuspectStreams(t *testing.T) {
	t.Parallel()
	unfinished := func(stop string, info map[string]any) ask {
		return gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "hello", StopReason: stop, GenerationInfo: info}}})
	}
	for name, tc := range map[string]struct {
		provider fallback.Provider
		end      ask
		plain    bool // whether it is an answer when it is not streamed
		streamed bool
	}{
		"openai":    {fallback.ProviderOpenAI, unfinished("", nil), true, false},
		"anthropic": {fallback.ProviderAnthropic, unfinished("", nil), true, false},
		"mistral":   {fallback.ProviderMistral, unfinished("", nil), true, false},
		"googleai":  {fallback.ProviderGoogleAI, unfinished("FinishReasonUnspecified", nil), false, false},
		"ollama":    {fallback.ProviderOllama, unfinished("", map[string]any{"PromptTokens": 0}), false, false},
		"ollama ok": {fallback.ProviderOllama, unfinished("", map[string]any{"PromptTokens": 3}), true, true},
		"other":     {fallback.ProviderOther, unfinished("", nil), true, true},
	} {
		l := list(does(tc.end))
		l[0].Provider = tc.provider
		m := build(t, fallback.Config{Candidates: l})
		if _, err := text(t.Context(), m); (err == nil) != tc.plain {
			t.Errorf("%s plain: %v", name, err)
		}
		var got []string
		if _, err := text(t.Context(), m, collect(&got)); (err == nil) != tc.streamed {
			t.Errorf("%s streamed: %v", name, err)
		}
	}
}
