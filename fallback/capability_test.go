package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// Who takes what, against what was measured.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	want := map[fallback.Provider]string{
		fallback.ProviderOpenAI:      "tools|tool_choice|images|image_urls|streaming|stop_words|history",
		fallback.ProviderAnthropic:   "tools|images|streaming|stop_words|history",
		fallback.ProviderGoogleAI:    "tools|images|streaming|stop_words|history",
		fallback.ProviderMistral:     "tools|streaming|history",
		fallback.ProviderOllama:      "images|streaming|stop_words|history",
		fallback.ProviderCohere:      "none",
		fallback.ProviderHuggingFace: "none",
		fallback.ProviderCloudflare:  "history",
		fallback.ProviderLlamafile:   "images|streaming|stop_words|history",
		fallback.ProviderOther:       "tools|tool_choice|images|image_urls|streaming|stop_words|history",
	}
	for _, p := range fallback.Providers() {
		if got := p.Capabilities().String(); got != want[p] {
			t.Errorf("%v: %s, want %s", p, got, want[p])
		}
	}
	if c := fallback.Provider(0).Capabilities() | fallback.Provider(99).Capabilities(); c != 0 {
		t.Errorf("no provider has %v", c)
	}
}

// takers sends one call to every provider alone and returns who was asked.
func takers(t *testing.T, messages []llms.MessageContent, options ...llms.CallOption) []fallback.Provider {
	t.Helper()
	var took []fallback.Provider
	for _, p := range fallback.Providers() {
		model := does(says("ok"))
		l := list(model)
		l[0].Provider = p
		var rec recorder
		_, err := build(t, fallback.Config{Candidates: l, Observer: &rec}).GenerateContent(t.Context(), messages, options...)
		if model.calls.Load() > 0 {
			took = append(took, p)

			continue
		}
		reasonIs(t, err, middleware.ReasonNoCandidate)
		if lines := rec.lines(); len(lines) == 0 || lines[0] != "abstain proceed primary ineligible skipped" {
			t.Errorf("%v: %q", p, lines)
		}
	}

	return took
}

func TestWhoTakesACall(t *testing.T) {
	t.Parallel()
	const (
		openai, anthropic, google = fallback.ProviderOpenAI, fallback.ProviderAnthropic, fallback.ProviderGoogleAI
		mistral, ollama, other    = fallback.ProviderMistral, fallback.ProviderOllama, fallback.ProviderOther
		cloudflare, llamafile     = fallback.ProviderCloudflare, fallback.ProviderLlamafile
	)
	type providers = []fallback.Provider
	stream := llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })
	reasoning := llms.WithStreamingReasoningFunc(func(context.Context, []byte, []byte) error { return nil })
	older := llms.WithFunctions([]llms.FunctionDefinition{{Name: "f"}})
	human := func(parts ...llms.ContentPart) []llms.MessageContent {
		return []llms.MessageContent{message(llms.ChatMessageTypeHuman, parts...)}
	}
	text := llms.TextContent{Text: "look"}
	turn := func(parts ...llms.ContentPart) []llms.MessageContent {
		return append(human(text), message(llms.ChatMessageTypeAI, called("a", "Oslo")), message(llms.ChatMessageTypeTool, parts...))
	}
	good := turn(llms.ToolCallResponse{ToolCallID: "a"})
	loose := turn(llms.ToolCallResponse{ToolCallID: "b"})
	for _, tc := range []struct {
		name     string
		messages []llms.MessageContent
		options  []llms.CallOption
		want     providers
	}{
		{"one text", hello(), nil, fallback.Providers()},
		{"two texts", human(text, text), nil, providers{openai, anthropic, google, mistral, ollama, cloudflare, llamafile, other}},
		{"tools", hello(), []llms.CallOption{offered()}, providers{openai, anthropic, google, mistral, other}},
		{"functions", hello(), []llms.CallOption{older}, providers{openai, anthropic, google, mistral, other}},
		{"auto", hello(), []llms.CallOption{offered(), llms.WithToolChoice("auto")}, providers{openai, anthropic, google, mistral, other}},
		{"none", hello(), []llms.CallOption{offered(), llms.WithToolChoice("none")}, fallback.Providers()},
		{"forced", hello(), []llms.CallOption{offered(), llms.WithToolChoice("required")}, providers{openai, other}},
		{"forced by name", hello(), []llms.CallOption{older, llms.WithFunctionCallBehavior(`{"name":"f"}`)}, providers{openai, other}},
		{"forced tool", hello(), []llms.CallOption{offered(), llms.WithToolChoice(llms.ToolChoice{Type: "function"})}, providers{openai, other}},
		{"stop words", hello(), []llms.CallOption{llms.WithStopWords([]string{"x"})}, providers{openai, anthropic, google, ollama, llamafile, other}},
		{"stream", hello(), []llms.CallOption{stream}, providers{openai, anthropic, google, mistral, ollama, llamafile, other}},
		{"reasoning", hello(), []llms.CallOption{reasoning}, providers{openai, anthropic, google, mistral, ollama, llamafile, other}},
		{"image", human(text, llms.BinaryContent{MIMEType: "image/png"}), nil, providers{openai, anthropic, google, ollama, llamafile, other}},
		{"image by address", human(text, llms.ImageURLContent{URL: "u"}), nil, providers{openai, other}},
		{"cached image", human(text, llms.WithCacheControl(llms.ImageURLContent{URL: "u"}, nil)), nil, providers{openai, other}},
		{"calls", good, []llms.CallOption{offered()}, providers{openai, anthropic, google, mistral, other}},
		{"calls told", good, nil, providers{openai, anthropic, google, mistral, ollama, cloudflare, llamafile, other}},
		{"a result of no call", loose, []llms.CallOption{offered()}, providers{openai, other}},
		{"a result of no call, told", loose, nil, providers{openai, anthropic, ollama, cloudflare, llamafile, other}},
		{"a call without result", good[:2], []llms.CallOption{offered()}, providers{openai, other}},
		{"a result alone", slices.Concat(good[:1], good[2:]), []llms.CallOption{offered()}, providers{openai, other}},
		{"two results", turn(llms.ToolCallResponse{ToolCallID: "a"}, llms.ToolCallResponse{ToolCallID: "a"}), []llms.CallOption{offered()}, providers{openai, other}},
		{"a call without function", append(human(text), message(llms.ChatMessageTypeAI, llms.ToolCall{ID: "a"}), good[2]), nil, providers{other}},
		{"a call of the user's", human(text, called("a", "x")), nil, providers{other}},
		{"a result of the user's", human(text, llms.ToolCallResponse{}), nil, providers{other}},
		{"a tool without function", hello(), []llms.CallOption{llms.WithTools([]llms.Tool{{Type: "function"}})}, providers{other}},
		{"a nil part", human(text, nil), nil, providers{other}},
	} {
		if d := cmp.Diff(tc.want, takers(t, tc.messages, tc.options...)); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

// What a candidate cannot take goes past it, and says so; the others are asked.
func TestIneligibleIsSkipped(t *testing.T) {
	t.Parallel()
	first, second := does(says("first")), does(says("second"))
	l := list(first, second)
	l[0].Lacks = fallback.CapImages
	var rec recorder
	m := build(t, fallback.Config{Candidates: l, Observer: &rec})
	messages := append(hello(), message(llms.ChatMessageTypeHuman, llms.BinaryContent{MIMEType: "image/png", Data: []byte(secret)}))
	resp, err := m.GenerateContent(t.Context(), messages)
	if err != nil || resp.Choices[0].Content != "second" || first.calls.Load() != 0 {
		t.Fatalf("%v, %v", resp, err)
	}
	want(t, m, "first") // it is not benched
	lines := rec.lines()
	if len(lines) != 3 || lines[0] != "abstain proceed primary ineligible skipped" {
		t.Errorf("%q", lines)
	}
}

// A list that cannot serve the agent in use is refused when it is built: ollama's client has no tools.
func TestRequires(t *testing.T) {
	t.Parallel()
	with := func(requires fallback.Capabilities, p ...fallback.Provider) error {
		var models []llms.Model
		for range p {
			models = append(models, does(says("ok")))
		}
		l := list(models...)
		for i := range p {
			l[i].Provider = p[i]
		}
		_, err := fallback.New(fallback.Config{Candidates: l, Requires: requires})

		return err
	}
	agent := fallback.CapTools | fallback.CapHistory
	err := with(agent, fallback.ProviderOllama, fallback.ProviderCohere)
	reasonIs(t, err, middleware.ReasonIneligible)
	if err.Error() != "interlock: fallback: Requires: no candidate has tools|history" {
		t.Error(err)
	}
	reasonIs(t, with(fallback.CapStopWords, fallback.ProviderMistral), middleware.ReasonIneligible)
	// One candidate must have all of it.
	reasonIs(t, with(fallback.CapTools|fallback.CapStopWords, fallback.ProviderMistral, fallback.ProviderOllama), middleware.ReasonIneligible)
	if err := errors.Join(with(agent, fallback.ProviderOllama, fallback.ProviderAnthropic), with(0, fallback.ProviderCohere)); err != nil {
		t.Error(err)
	}
}

func TestBadCapabilities(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field  string
		change func(*fallback.Candidate)
	}{
		{"Lacks", func(c *fallback.Candidate) { c.Lacks = 1 << 15 }},
		{"Bridge.MaxTokens", func(c *fallback.Candidate) { c.Bridge.MaxTokens = -1 }},
		{"Bridge.MaxTokens", func(c *fallback.Candidate) { c.Bridge.MaxTokens = 1<<20 + 1 }},
	} {
		l := list(does(says("ok")))
		tc.change(&l[0])
		if _, err := fallback.New(fallback.Config{Candidates: l}); err == nil || !strings.Contains(err.Error(), "Candidates[0]."+tc.field+": ") {
			t.Errorf("%s: %v", tc.field, err)
		}
	}
}

func ExampleModel_Serves() {
	l := list(does(says("an answer")))
	l[0].Provider = fallback.ProviderOllama // its client drops tools
	m, err := fallback.New(fallback.Config{Candidates: l})
	if err != nil {
		fmt.Println(err)

		return
	}
	fmt.Println(m.Serves(fallback.CapStopWords))
	fmt.Println(m.Serves(fallback.CapTools | fallback.CapHistory))
	// Output:
	// <nil>
	// interlock: fallback: Requires: no candidate has tools|history
}
