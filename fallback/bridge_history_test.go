package fallback_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
)

// asked returns what a client of p is given.
func asked(
	t *testing.T, p fallback.Provider, messages []llms.MessageContent, options ...llms.CallOption,
) ([]llms.MessageContent, llms.CallOptions) {
	t.Helper()
	before, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	var o llms.CallOptions
	var got []llms.MessageContent
	l := list(does(spy(&o, &got)))
	l[0].Provider = p
	if _, err := build(t, fallback.Config{Candidates: l}).GenerateContent(t.Context(), messages, options...); err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	if after, _ := json.Marshal(messages); string(after) != string(before) {
		t.Errorf("%v: the caller's messages were changed", p)
	}

	return got, o
}

// shown renders messages in short: a line per message, parts by |.
func shown(messages []llms.MessageContent) string {
	var lines []string
	for _, m := range messages {
		var parts []string
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llms.TextContent:
				parts = append(parts, p.Text)
			case llms.ToolCall:
				parts = append(parts, fmt.Sprintf("%s %s=%s(%s)", p.Type, p.ID, p.FunctionCall.Name, p.FunctionCall.Arguments))
			case llms.ToolCallResponse:
				parts = append(parts, fmt.Sprintf("%s=%s[%s]", p.ToolCallID, p.Name, p.Content))
			case llms.CachedContent:
				parts = append(parts, "cached")
			default:
				parts = append(parts, fmt.Sprintf("%T", p))
			}
		}
		lines = append(lines, string(m.Role)+": "+strings.Join(parts, "|"))
	}

	return strings.Join(lines, "\n")
}

func message(role llms.ChatMessageType, parts ...llms.ContentPart) llms.MessageContent {
	return llms.MessageContent{Role: role, Parts: parts}
}

func calls2(id1, id2 string) llms.MessageContent {
	call := func(id string) llms.ToolCall {
		return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "f" + id, Arguments: "{}"}}
	}

	return message(llms.ChatMessageTypeAI, llms.TextContent{Text: "look"}, call(id1), call(id2))
}

func TestBridgeHistory(t *testing.T) {
	t.Parallel()
	const (
		openai, anthropic, google = fallback.ProviderOpenAI, fallback.ProviderAnthropic, fallback.ProviderGoogleAI
		mistral, ollama, other    = fallback.ProviderMistral, fallback.ProviderOllama, fallback.ProviderOther
	)
	question := llms.TextParts(llms.ChatMessageTypeHuman, "q")
	text := func(s string) llms.ContentPart { return llms.TextContent{Text: s} }
	result := func(id, name, content string) llms.ContentPart {
		return llms.ToolCallResponse{ToolCallID: id, Name: name, Content: content}
	}
	cached := llms.WithCacheControl(llms.TextContent{Text: "long"}, nil)
	for _, tc := range []struct {
		name string
		in   []llms.MessageContent
		want map[fallback.Provider]string // without the question
	}{
		{
			"results in another order", []llms.MessageContent{
				question, calls2("a", "b"), message(llms.ChatMessageTypeTool, result("b", "", "2")), message(llms.ChatMessageTypeTool, result("a", "", "1")),
			}, map[fallback.Provider]string{
				openai:    "ai: look|function a=fa({})|function b=fb({})\ntool: b=[2]\ntool: a=[1]",
				other:     "ai: look|function a=fa({})|function b=fb({})\ntool: b=[2]\ntool: a=[1]",
				anthropic: "ai: look\nai: function a=fa({})\ntool: a=fa[1]\nai: function b=fb({})\ntool: b=fb[2]",
				google:    "ai: look|function a=fa({})\ntool: a=fa[1]\nai: function b=fb({})\ntool: b=fb[2]",
				mistral:   "ai: look|function call00001=fa({})\ntool: call00001=fa[1]\nai: function call00002=fb({})\ntool: call00002=fb[2]",
			},
		},
		{
			"results in one message", []llms.MessageContent{
				question, calls2("a", "b"), message(llms.ChatMessageTypeTool, result("a", "", "1"), result("b", "", "2")),
			}, map[fallback.Provider]string{
				openai:    "ai: look|function a=fa({})|function b=fb({})\ntool: a=fa[1]\ntool: b=fb[2]",
				anthropic: "ai: look\nai: function a=fa({})\ntool: a=fa[1]\nai: function b=fb({})\ntool: b=fb[2]",
			},
		},
		{
			"no ids, the older role", []llms.MessageContent{
				question, calls2("", ""), message(llms.ChatMessageTypeFunction, result("", "f", "1")), message(llms.ChatMessageTypeFunction, text("2")),
			}, map[fallback.Provider]string{
				openai:    "ai: look|function call00001=f({})|function call00002=f({})\ntool: call00001=f[1]\ntool: call00002=f[2]",
				anthropic: "ai: look\nai: function call00001=f({})\ntool: call00001=f[1]\nai: function call00002=f({})\ntool: call00002=f[2]",
			},
		},
		{
			"ids that are not anthropic's, or used twice", []llms.MessageContent{
				question, calls2("f:0", "b"), message(llms.ChatMessageTypeTool, result("f:0", "x", "1")), message(llms.ChatMessageTypeTool, result("b", "x", "2")),
				message(llms.ChatMessageTypeAI, llms.ToolCall{ID: "b", Type: "function", FunctionCall: &llms.FunctionCall{Name: "g", Arguments: "{}"}}),
				message(llms.ChatMessageTypeTool, result("b", "x", "3")),
			}, map[fallback.Provider]string{
				openai: "ai: look|function f:0=ff:0({})|function b=fb({})\ntool: f:0=x[1]\ntool: b=x[2]\nai: function b=g({})\ntool: b=x[3]",
				anthropic: "ai: look\nai: function call00001=ff:0({})\ntool: call00001=x[1]\nai: function b=fb({})\ntool: b=x[2]\n" +
					"ai: function call00002=g({})\ntool: call00002=x[3]",
			},
		},
		{
			"cached, empty, several texts", []llms.MessageContent{
				question, message(llms.ChatMessageTypeSystem, text("s"), cached), message(llms.ChatMessageTypeHuman, cached, text("u")),
				message(llms.ChatMessageTypeAI), message(llms.ChatMessageTypeAI, text("")), message(llms.ChatMessageTypeAI, text("x"), text("y")),
				message(llms.ChatMessageTypeGeneric, text("g")), message(llms.ChatMessageTypeSystem, text("z")),
			}, map[fallback.Provider]string{
				openai:    "system: s|long\nhuman: long|u\nai: \nai: x|y\ngeneric: g\nsystem: z",
				other:     "system: s|cached\nhuman: cached|u\nai: \nai: x|y\ngeneric: g\nsystem: z",
				anthropic: "system: s\nlong\nhuman: cached|u\nai: x\ny\nhuman: g\nsystem: z",
				google:    "system: s|long|z\nhuman: long|u\nai: \nai: x|y\ngeneric: g",
				ollama:    "system: s\nlong\nhuman: long\nu\nai: \nai: x\ny\ngeneric: g\nsystem: z",
			},
		},
		{
			"nothing to change", []llms.MessageContent{
				question, message(llms.ChatMessageTypeAI, called("a", "Oslo")), message(llms.ChatMessageTypeTool, result("a", "lookup", "1")),
			}, map[fallback.Provider]string{
				openai:    "ai: function a=lookup({\"__arg1\":\"Oslo\"})\ntool: a=lookup[1]",
				anthropic: "ai: function a=lookup({\"__arg1\":\"Oslo\"})\ntool: a=lookup[1]",
				google:    "ai: function a=lookup({\"__arg1\":\"Oslo\"})\ntool: a=lookup[1]",
			},
		},
	} {
		for p, want := range tc.want {
			options := []llms.CallOption{offered()}
			if p == ollama {
				options = nil
			}
			got, _ := asked(t, p, tc.in, options...)
			if d := cmp.Diff("human: q\n"+want, shown(got)); d != "" {
				t.Errorf("%s, %v: %s", tc.name, p, d)
			}
			if tc.name == "nothing to change" && &got[0] != &tc.in[0] {
				t.Errorf("%v: copied without need", p)
			}
		}
	}
}

func TestBridgeLimits(t *testing.T) {
	t.Parallel()
	set := func(o ...llms.CallOption) []llms.CallOption { return o }
	for _, tc := range []struct {
		p           fallback.Provider
		options     []llms.CallOption
		temperature float64
		maxTokens   int
	}{
		{fallback.ProviderAnthropic, nil, 0, 4096},
		{fallback.ProviderAnthropic, set(llms.WithTemperature(1.7), llms.WithMaxTokens(7)), 1, 7},
		{fallback.ProviderAnthropic, set(llms.WithTemperature(0.7)), 0.7, 4096},
		{fallback.ProviderAnthropic, set(llms.WithTemperature(-1)), 0, 4096},
		{fallback.ProviderOpenAI, set(llms.WithTemperature(1.7)), 1.7, 0},
		{fallback.ProviderOpenAI, set(llms.WithTemperature(2.5)), 2, 0},
		{fallback.ProviderGoogleAI, set(llms.WithTemperature(2.5)), 2, 0},
		{fallback.ProviderMistral, set(llms.WithTemperature(1.7)), 1.5, 4096},
		{fallback.ProviderOther, set(llms.WithTemperature(9)), 9, 0},
	} {
		_, o := asked(t, tc.p, hello(), tc.options...)
		if o.Temperature != tc.temperature || o.MaxTokens != tc.maxTokens {
			t.Errorf("%v: temperature %v, max tokens %d", tc.p, o.Temperature, o.MaxTokens)
		}
	}
	for _, p := range []fallback.Provider{fallback.ProviderAnthropic, fallback.ProviderOpenAI} {
		var o llms.CallOptions
		var got []llms.MessageContent
		l := list(does(spy(&o, &got)))
		l[0].Provider, l[0].Bridge.MaxTokens = p, 99
		want(t, build(t, fallback.Config{Candidates: l}), "ok")
		if o.MaxTokens != 99 {
			t.Errorf("%v: max tokens %d", p, o.MaxTokens)
		}
	}
}

func TestBridgeTools(t *testing.T) {
	t.Parallel()
	type other struct {
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties,omitempty"`
	}
	nested := map[string]any{ // as langchaingo's functions agent declares
		"type": "object", "required": []string{"a"}, "properties": map[string]any{"a": map[string]string{"type": "string"}},
	}
	flat := map[string]any{"type": "object", "required": []any{"a"}, "properties": map[string]any{"a": map[string]any{"type": "string"}}}
	empty := map[string]any{"type": "object", "properties": map[string]any{}}
	for _, tc := range []struct {
		p        fallback.Provider
		in, want any
	}{
		{fallback.ProviderOpenAI, nil, nil},
		{fallback.ProviderOpenAI, nested, nested},
		{fallback.ProviderAnthropic, nil, empty},
		{fallback.ProviderAnthropic, nested, nested},
		{fallback.ProviderGoogleAI, nil, empty},
		{fallback.ProviderGoogleAI, nested, flat},
		{fallback.ProviderGoogleAI, flat, flat},
		{fallback.ProviderGoogleAI, other{Type: "object"}, empty},
		{fallback.ProviderGoogleAI, json.RawMessage(`{"type":"object"}`), empty},
		{fallback.ProviderGoogleAI, "no schema", "no schema"},
	} {
		tools := []llms.Tool{{Function: &llms.FunctionDefinition{Name: "f", Parameters: tc.in}}}
		_, o := asked(t, tc.p, hello(), llms.WithTools(tools))
		if d := cmp.Diff(tc.want, o.Tools[0].Function.Parameters); d != "" || o.Tools[0].Type != "function" {
			t.Errorf("%v: %s", tc.p, d)
		}
		if tools[0].Type != "" || !cmp.Equal(tools[0].Function.Parameters, tc.in) {
			t.Errorf("%v: the caller's tools were changed", tc.p)
		}
	}
	_, o := asked(t, fallback.ProviderOpenAI, hello(), llms.WithFunctions([]llms.FunctionDefinition{{Name: "f"}}),
		llms.WithFunctionCallBehavior(`{"name":"f"}`))
	want := llms.ToolChoice{Type: "function", Function: &llms.FunctionReference{Name: "f"}}
	if d := cmp.Diff(any(want), o.ToolChoice); d != "" || o.FunctionCallBehavior != "" {
		t.Error(d)
	}
}

// Ids that a client does not give are made, so that the next vendor can take them.
func TestBridgeMakesIDs(t *testing.T) {
	t.Parallel()
	call := llms.ToolCall{FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}
	l := list(does(gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{{ToolCalls: []llms.ToolCall{call, call}}}})))
	resp, err := build(t, fallback.Config{Candidates: l}).GenerateContent(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	made := resp.Choices[0].ToolCalls
	if made[0].ID == "" || made[1].ID == "" || made[0].ID == made[1].ID || made[0].Type != "function" {
		t.Errorf("got %+v", made)
	}
}

// FuzzBridge: whatever well-formed history, a client that takes one call at a time is given nothing else, and loses no
// call and no result.
func FuzzBridge(f *testing.F) {
	f.Add([]byte("\x01aO\x02b:b:xx\x03"), "arg")
	f.Add([]byte{}, "")
	f.Add([]byte{2, 0, 0, 0, 0, 1, 255, 1, 1}, `{"a":1}`)
	f.Fuzz(func(t *testing.T, shape []byte, arguments string) {
		messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "q")}
		total := 0
		for len(shape) > 0 && total < 20 {
			n := int(shape[0]) % 4
			shape = shape[1:]
			turn := message(llms.ChatMessageTypeAI)
			var results []llms.MessageContent
			for range n {
				id := ""
				if len(shape) > 0 {
					id, shape = string(shape[:1]), shape[1:]
				}
				total++
				turn.Parts = append(turn.Parts, llms.ToolCall{ID: id, FunctionCall: &llms.FunctionCall{Name: "f", Arguments: arguments}})
				results = append(results, message(llms.ChatMessageTypeTool, llms.ToolCallResponse{ToolCallID: id, Content: strconv.Itoa(total)}))
			}
			messages = append(append(messages, turn), results...)
		}
		got, _ := asked(t, fallback.ProviderAnthropic, messages, offered())
		seen, found := map[string]bool{}, 0
		for i := 1; i < len(got); i += 2 {
			call, ok := got[i].Parts[0].(llms.ToolCall)
			if !ok || i+1 == len(got) || len(got[i].Parts) != 1 || seen[call.ID] || call.ID == "" || call.Type != "function" {
				t.Fatalf("message %d: %s", i, shown(got))
			}
			var object map[string]any
			if json.Unmarshal([]byte(call.FunctionCall.Arguments), &object) != nil || object == nil {
				t.Fatalf("arguments %q", call.FunctionCall.Arguments)
			}
			seen[call.ID] = true
			r, ok := got[i+1].Parts[0].(llms.ToolCallResponse)
			found++
			if !ok || r.ToolCallID != call.ID {
				t.Fatalf("message %d: %s", i+1, shown(got))
			}
		}
		if found != total {
			t.Fatalf("%d of %d calls: %s", found, total, shown(got))
		}
	})
}
