package fallback

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// argument is the name under which langchaingo's functions agent declares the one string that its tools take.
const argument = "__arg1"

// bridgeOptions turns functions into tools and clears them: half of the clients send only tools, and the others would
// send both. A tool of the same name is not declared twice.
func bridgeOptions(view middleware.OptionsView) []llms.CallOption {
	functions := view.Functions()
	if len(functions) == 0 {
		return nil
	}
	tools := view.Tools()
	for i := range functions {
		f := functions[i] // a copy: the caller's slice is not pointed into
		named := func(t llms.Tool) bool { return t.Function != nil && t.Function.Name == f.Name }
		if !slices.ContainsFunc(tools, named) {
			tools = append(tools, llms.Tool{Type: "function", Function: &f})
		}
	}
	options := []llms.CallOption{llms.WithTools(tools), llms.WithFunctions(nil)}
	if b := view.FunctionCallBehavior(); b != "" {
		options = append(options, llms.WithFunctionCallBehavior(""))
		if view.ToolChoice() == nil {
			options = append(options, llms.WithToolChoice(string(b)))
		}
	}

	return options
}

// bridgeMessages wraps arguments of the history that are not a JSON object: the functions agent stores the bare string,
// which some providers refuse and some clients cannot send. What needs no change is not copied; the caller's messages
// are never changed.
func bridgeMessages(messages []llms.MessageContent) (bridged []llms.MessageContent, changed bool) {
	for i := range messages {
		parts := bridgeParts(messages[i].Parts)
		if parts == nil {
			continue
		}
		if !changed {
			messages, changed = slices.Clone(messages), true
		}
		messages[i].Parts = parts
	}

	return messages, changed
}

// bridgeParts returns nil if nothing has to change.
func bridgeParts(parts []llms.ContentPart) []llms.ContentPart {
	var own []llms.ContentPart
	for i, p := range parts {
		call, ok := p.(llms.ToolCall)
		if !ok || call.FunctionCall == nil || isObject(call.FunctionCall.Arguments) {
			continue
		}
		if own == nil {
			own = slices.Clone(parts)
		}
		f := *call.FunctionCall
		f.Arguments = wrapArgument(f.Arguments)
		call.FunctionCall = &f
		own[i] = call
	}

	return own
}

func isObject(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && json.Valid([]byte(s))
}

func wrapArgument(s string) string {
	b, err := json.Marshal(map[string]string{argument: s})
	if err != nil { // cannot happen: a string always marshals
		return "{}"
	}

	return string(b)
}

// bridgeResponse merges the choices of one message, because agents read only the first: anthropic puts the text into
// choice 0 and the tool call into choice 1. The client's response is not changed; what needs no change is not copied.
func (c *candidate) bridgeResponse(resp *llms.ContentResponse, n int) *llms.ContentResponse {
	if len(resp.Choices) > 1 && (c.blocks || n <= 1) {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{completeCalls(mergeChoices(resp.Choices))}}
	}
	own := resp
	for i, choice := range resp.Choices {
		if done := completeCalls(choice); done != choice {
			if own == resp {
				own = &llms.ContentResponse{Choices: slices.Clone(resp.Choices)}
			}
			own.Choices[i] = done
		}
	}

	return own
}

func mergeChoices(choices []*llms.ContentChoice) *llms.ContentChoice {
	merged := &llms.ContentChoice{GenerationInfo: choices[0].GenerationInfo} // each repeats the whole usage
	var text, reasoning strings.Builder
	for i, c := range choices {
		text.WriteString(c.Content)
		reasoning.WriteString(c.ReasoningContent)
		if merged.StopReason == "" {
			merged.StopReason = c.StopReason
		}
		if merged.FuncCall == nil {
			merged.FuncCall = c.FuncCall
		}
		merged.ToolCalls = append(merged.ToolCalls, c.ToolCalls...)
		if i > 0 {
			merged.GenerationInfo = mergeInfo(merged.GenerationInfo, c.GenerationInfo)
		}
	}
	merged.Content, merged.ReasoningContent = text.String(), reasoning.String()

	return merged
}

// mergeInfo adds what base lacks, such as the thinking of another block, in a map of its own.
func mergeInfo(base, more map[string]any) map[string]any {
	own := false
	for k, v := range more {
		if old, has := base[k]; has && old != nil && old != "" {
			continue
		}
		if !own {
			grown := make(map[string]any, len(base)+len(more))
			maps.Copy(grown, base)
			base, own = grown, true
		}
		base[k] = v
	}

	return base
}

// completeCalls fills what clients leave out and other clients need: the type of a call, and the older field for the
// first call. It returns c itself if nothing is missing.
func completeCalls(c *llms.ContentChoice) *llms.ContentChoice {
	if len(c.ToolCalls) == 0 {
		return c
	}
	untyped := func(t llms.ToolCall) bool { return t.Type == "" }
	if c.FuncCall != nil && !slices.ContainsFunc(c.ToolCalls, untyped) {
		return c
	}
	d := *c
	d.ToolCalls = slices.Clone(c.ToolCalls)
	for i := range d.ToolCalls {
		if d.ToolCalls[i].Type == "" {
			d.ToolCalls[i].Type = "function"
		}
	}
	if d.FuncCall == nil {
		d.FuncCall = d.ToolCalls[0].FunctionCall
	}

	return &d
}
