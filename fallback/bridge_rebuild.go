package fallback

import (
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// rebuild makes a turn anew, in the client's form.
func (h *history) rebuild(turn []llms.MessageContent) {
	given := uncached(turn[0].Parts)
	lead, calls := h.split(given)
	results, loose := h.results(given, calls, turn[1:])
	if !h.client.pairs {
		parts := lead
		for _, call := range calls {
			parts = append(parts, call)
		}
		h.put(llms.ChatMessageTypeAI, parts...)
		for i := range results {
			if results[i] != nil {
				h.put(llms.ChatMessageTypeTool, *results[i])
			}
		}
		for _, r := range loose {
			h.put(llms.ChatMessageTypeTool, r)
		}

		return
	}
	if h.client.first && len(lead) > 0 {
		if lead = joinTexts(lead); lead[0] != llms.ContentPart(llms.TextContent{}) {
			h.put(llms.ChatMessageTypeAI, lead...)
		}
		lead = nil
	}
	for i, call := range calls {
		h.put(llms.ChatMessageTypeAI, append(lead, call)...)
		lead = nil
		if results[i] != nil {
			h.put(llms.ChatMessageTypeTool, *results[i])
		}
	}
}

// split takes the calls, completed, out of what is said beside them.
func (h *history) split(parts []llms.ContentPart) (lead []llms.ContentPart, calls []llms.ToolCall) {
	for _, p := range parts {
		call, ok := p.(llms.ToolCall)
		if !ok {
			lead = append(lead, p)

			continue
		}
		if call.Type == "" {
			call.Type = functionType
		}
		call.ID = h.id(call.ID)
		if f := call.FunctionCall; f != nil && !isObject(f.Arguments) {
			call.FunctionCall = &llms.FunctionCall{Name: f.Name, Arguments: wrapArgument(f.Arguments)}
		}
		calls = append(calls, call)
	}

	return lead, calls
}

// results returns the result of each call, under the call's id, and those of no call.
func (h *history) results(
	parts []llms.ContentPart, calls []llms.ToolCall, messages []llms.MessageContent,
) (results []*llms.ToolCallResponse, loose []llms.ToolCallResponse) {
	results = make([]*llms.ToolCallResponse, len(calls))
	answered := uint64(0)
	for _, m := range messages {
		for _, p := range m.Parts {
			r, ok := resultOf(p)
			if !ok {
				continue
			}
			k := find(parts, answered, r)
			if k < 0 {
				loose = append(loose, r)

				continue
			}
			answered |= 1 << k
			r.ToolCallID = calls[k].ID
			if f := calls[k].FunctionCall; r.Name == "" && f != nil {
				r.Name = f.Name
			}
			results[k] = &r
		}
	}

	return results, loose
}

// tell puts a turn into words, for a client that cannot send calls.
func (h *history) tell(turn []llms.MessageContent) {
	parts := uncached(turn[0].Parts)
	h.put(llms.ChatMessageTypeAI, h.told(nil, parts))
	var results []llms.ContentPart
	for _, m := range turn[1:] {
		results = append(results, m.Parts...)
	}
	if len(results) > 0 {
		h.put(llms.ChatMessageTypeHuman, h.told(parts, results))
	}
}

// told is one text for parts. calls are what results belong to.
func (*history) told(calls, parts []llms.ContentPart) llms.TextContent {
	var lines []string
	answered := uint64(0)
	for _, p := range parts {
		switch p := p.(type) {
		case llms.TextContent:
			if p.Text != "" {
				lines = append(lines, p.Text)
			}
		case llms.ToolCall:
			if p.FunctionCall != nil {
				lines = append(lines, "[called the tool "+p.FunctionCall.Name+" with "+p.FunctionCall.Arguments+"]")
			}
		case llms.ToolCallResponse:
			name := p.Name
			if k := find(calls, answered, p); k >= 0 {
				answered |= 1 << k
				name = nameOf(calls, k, name)
			}
			if name != "" {
				name = " " + name
			}
			lines = append(lines, "[the tool"+name+" returned: "+p.Content+"]")
		}
	}

	return llms.TextContent{Text: strings.Join(lines, "\n")}
}

// nameOf returns the function of call number k.
func nameOf(parts []llms.ContentPart, k int, otherwise string) string {
	for _, p := range parts {
		call, ok := p.(llms.ToolCall)
		if !ok {
			continue
		}
		if k == 0 {
			if call.FunctionCall == nil {
				return otherwise
			}

			return call.FunctionCall.Name
		}
		k--
	}

	return otherwise
}
