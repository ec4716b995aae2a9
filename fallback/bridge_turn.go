package fallback

import (
	"encoding/json"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// argument is the name under which langchaingo's functions agent declares the one string that its tools take.
const argument = "__arg1"

// maxCalls of one message that are told apart.
const maxCalls = 64

// turnEnd returns where the turn that starts at i ends: behind the results of a message with calls, else behind the
// message.
func turnEnd(messages []llms.MessageContent, i int) int {
	end := i + 1
	if !isCalling(messages[i]) {
		return end
	}
	for end < len(messages) && isResult(messages[end]) {
		end++
	}

	return end
}

func isCalling(m llms.MessageContent) bool {
	if m.Role != llms.ChatMessageTypeAI {
		return false
	}
	for _, p := range m.Parts {
		if _, ok := p.(llms.ToolCall); ok {
			return true
		}
	}

	return false
}

func isResult(m llms.MessageContent) bool {
	return m.Role == llms.ChatMessageTypeTool || m.Role == llms.ChatMessageTypeFunction
}

// paired reports whether each call of a turn has one result and each result its call.
func paired(turn []llms.MessageContent) bool {
	if !isCalling(turn[0]) {
		return !isResult(turn[0])
	}
	calls, answered := 0, uint64(0)
	for _, p := range turn[0].Parts {
		if _, ok := p.(llms.ToolCall); ok {
			calls++
		}
	}
	if calls > maxCalls {
		return false
	}
	for _, m := range turn[1:] {
		for _, p := range m.Parts {
			result, ok := resultOf(p)
			if !ok {
				return false
			}
			k := find(turn[0].Parts, answered, result)
			if k < 0 {
				return false
			}
			answered |= 1 << k
		}
	}

	return answered == 1<<calls-1
}

// resultOf reads a part of a result's message; a text is the older form of a result.
func resultOf(p llms.ContentPart) (llms.ToolCallResponse, bool) {
	if cached, ok := p.(llms.CachedContent); ok {
		p = cached.ContentPart
	}
	switch p := p.(type) {
	case llms.ToolCallResponse:
		return p, true
	case llms.TextContent:
		return llms.ToolCallResponse{Content: p.Text}, true
	default:
		return llms.ToolCallResponse{}, false
	}
}

// find returns which of the calls that are not answered yet a result belongs to: the one with its id, without an id the
// first one with its name, without a name the first one. -1 is none.
func find(parts []llms.ContentPart, answered uint64, r llms.ToolCallResponse) int {
	k := -1
	for _, p := range parts {
		call, ok := p.(llms.ToolCall)
		if !ok {
			continue
		}
		k++
		if k >= maxCalls {
			return -1
		}
		if answered&(1<<k) != 0 {
			continue
		}
		switch {
		case r.ToolCallID != "":
			if call.ID == r.ToolCallID {
				return k
			}
		case r.Name == "", call.FunctionCall != nil && call.FunctionCall.Name == r.Name:
			return k
		}
	}

	return -1
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

// fits reports whether an id is of the form that the client takes.
func (r idRule) fits(id string) bool {
	switch {
	case id == "":
		return false
	case r == idAny:
		return true
	case r == idNine && len(id) != idNineLength:
		return false
	}
	for i := range len(id) {
		b := id[i]
		letter := b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9'
		if !letter && (r == idNine || b != '_' && b != '-') {
			return false
		}
	}

	return true
}
