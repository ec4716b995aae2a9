package fallback_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
)

// spy keeps what the client was given.
func spy(into *llms.CallOptions, messages *[]llms.MessageContent) ask {
	return func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		*into, *messages = *o, m

		return says("ok")(ctx, m, o)
	}
}

func TestBridgeFunctions(t *testing.T) {
	t.Parallel()
	functions := []llms.FunctionDefinition{{Name: "f", Description: "F"}, {Name: "g", Strict: true}}
	tools := make([]llms.Tool, 1, 8) // spare capacity must not be written into
	tools[0] = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: "g", Description: "own"}}
	var o llms.CallOptions
	var m []llms.MessageContent
	model := build(t, fallback.Config{Candidates: list(does(spy(&o, &m)))})
	if _, err := text(t.Context(), model, llms.WithFunctions(functions), llms.WithTools(tools),
		llms.WithFunctionCallBehavior(llms.FunctionCallBehaviorNone)); err != nil {
		t.Fatal(err)
	}
	if len(o.Functions) != 0 || o.FunctionCallBehavior != "" || o.ToolChoice != "none" {
		t.Errorf("functions %v, behavior %q, choice %v", o.Functions, o.FunctionCallBehavior, o.ToolChoice)
	}
	want := []llms.Tool{tools[0], {Type: "function", Function: &functions[0]}}
	if d := cmp.Diff(want, o.Tools); d != "" {
		t.Error(d)
	}
	if tools[:2][1].Function != nil {
		t.Error("the caller's slice was written into")
	}
	// A choice of the caller's is kept, and nothing is touched without functions.
	if _, err := text(t.Context(), model, llms.WithFunctions(functions), llms.WithToolChoice("required"),
		llms.WithFunctionCallBehavior(llms.FunctionCallBehaviorAuto)); err != nil || o.ToolChoice != "required" {
		t.Errorf("choice %v, %v", o.ToolChoice, err)
	}
	if _, err := text(t.Context(), model, llms.WithTools(tools)); err != nil || len(o.Tools) != 1 {
		t.Errorf("tools %v, %v", o.Tools, err)
	}
}

func TestBridgeArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"weather in Oslo", `{"__arg1":"weather in Oslo"}`},
		{"5", `{"__arg1":"5"}`},
		{`"x"`, `{"__arg1":"\"x\""}`},
		{"null", `{"__arg1":"null"}`},
		{"[1]", `{"__arg1":"[1]"}`},
		{"", `{"__arg1":""}`},
		{`{"a":`, `{"__arg1":"{\"a\":"}`},
		{`{"a":1}`, `{"a":1}`},
		{" \n{}\t", " \n{}\t"},
	} {
		history := []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeHuman, "q"),
			{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.TextContent{Text: "t"},
				llms.ToolCall{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: tc.in}},
				llms.ToolCall{ID: "2", Type: "function", FunctionCall: &llms.FunctionCall{Name: "g", Arguments: "{}"}},
			}},
			{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "1", Content: "5"}}},
			{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "2", Content: "6"}}},
		}
		before, err := json.Marshal(history)
		if err != nil {
			t.Fatal(err)
		}
		var o llms.CallOptions
		var got []llms.MessageContent
		m := build(t, fallback.Config{Candidates: list(does(spy(&o, &got)))})
		if _, err := m.GenerateContent(t.Context(), history); err != nil {
			t.Fatal(err)
		}
		call, _ := got[1].Parts[1].(llms.ToolCall)
		if call.FunctionCall.Arguments != tc.want || call.FunctionCall.Name != "f" || call.ID != "1" {
			t.Errorf("%q became %q, want %q", tc.in, call.FunctionCall.Arguments, tc.want)
		}
		if after, _ := json.Marshal(history); string(after) != string(before) {
			t.Errorf("%q: the caller's messages were changed", tc.in)
		}
		if same := &got[0] == &history[0]; same != (tc.in == tc.want) {
			t.Errorf("%q: copied without need, or not with need", tc.in)
		}
	}
}

func TestBridgeChoices(t *testing.T) {
	t.Parallel()
	blocks := func() *llms.ContentResponse {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{
			{StopReason: "tool_use", GenerationInfo: map[string]any{"InputTokens": 3, "ThinkingContent": ""}},
			{StopReason: "tool_use", GenerationInfo: map[string]any{"InputTokens": 3, "ThinkingContent": "hm"}, ReasoningContent: "r"},
			{Content: "Let me ", StopReason: "tool_use"},
			{Content: "check.", StopReason: "tool_use"},
			{StopReason: "tool_use", ToolCalls: []llms.ToolCall{{ID: "1", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}},
			{StopReason: "tool_use", ToolCalls: []llms.ToolCall{{ID: "2", FunctionCall: &llms.FunctionCall{Name: "g", Arguments: "{}"}}}},
		}}
	}
	given := blocks()
	l := list(does(gives(given)))
	l[0].Provider = fallback.ProviderAnthropic
	m := build(t, fallback.Config{Candidates: l})
	for _, options := range [][]llms.CallOption{nil, {llms.WithN(2)}} {
		resp, err := m.GenerateContent(t.Context(), hello(), options...)
		if err != nil {
			t.Fatal(err)
		}
		first := &llms.FunctionCall{Name: "f", Arguments: "{}"}
		want := &llms.ContentResponse{Choices: []*llms.ContentChoice{{
			Content: "Let me check.", StopReason: "tool_use", ReasoningContent: "r", FuncCall: first,
			GenerationInfo: map[string]any{"InputTokens": 3, "ThinkingContent": "hm"},
			ToolCalls: []llms.ToolCall{
				{ID: "1", Type: "function", FunctionCall: first},
				{ID: "2", Type: "function", FunctionCall: &llms.FunctionCall{Name: "g", Arguments: "{}"}},
			},
		}}}
		if d := cmp.Diff(want, resp); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff(blocks(), given); d != "" {
		t.Errorf("the client's response was changed: %s", d)
	}
}

func TestBridgeKeepsSeveralAnswers(t *testing.T) {
	t.Parallel()
	two := &llms.ContentResponse{Choices: []*llms.ContentChoice{choice("a"), choice("b")}}
	l := list(does(gives(two)))
	l[0].Provider = fallback.ProviderOpenAI
	m := build(t, fallback.Config{Candidates: l})
	resp, err := m.GenerateContent(t.Context(), hello(), llms.WithN(2))
	if err != nil || len(resp.Choices) != 2 || resp != two {
		t.Errorf("got %v, %v", resp, err)
	}
	single := &llms.ContentResponse{Choices: []*llms.ContentChoice{{StopReason: "tool_calls", ToolCalls: []llms.ToolCall{
		{ID: "1", FunctionCall: &llms.FunctionCall{Name: "f"}},
	}}}}
	resp, err = build(t, fallback.Config{Candidates: list(does(gives(single)))}).GenerateContent(t.Context(), hello())
	if err != nil || resp.Choices[0].FuncCall == nil || resp.Choices[0].ToolCalls[0].Type != "function" {
		t.Errorf("got %v, %v", resp, err)
	}
	if single.Choices[0].FuncCall != nil || single.Choices[0].ToolCalls[0].Type != "" {
		t.Error("the client's response was changed")
	}
}
