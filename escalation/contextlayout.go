package escalation

import (
	"crypto/sha256"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// imageBytes is what an image counts as: 1,600 tokens, near the most that
// providers take for one. Its bytes say nothing about its tokens.
const imageBytes = 1600 * bytesPerToken

// chunkKey is a keyed digest of a chunk.
type chunkKey [16]byte

// chunk is a piece of a history that stays together: messages[from:to].
type chunk struct {
	from, to int
	bytes    int
	human    bool
	key      chunkKey
}

// layout is how the history of one call falls into pieces. It is pooled, and
// holds the caller's messages only while the call is looked at.
type layout struct {
	messages []llms.MessageContent
	head     int // messages[:head] always stay; the last of them is the task
	task     chunkKey
	chunks   []chunk
	last     int // number of the last human chunk, -1: none
	bytes    int // of everything, with tool definitions
	parts    []string
}

func (l *ContextLimiter) layout(call *middleware.ModelCall) *layout {
	h, ok := l.layouts.Get().(*layout)
	if !ok {
		h = new(layout)
	}
	h.messages, h.chunks, h.last, h.bytes = call.Messages(), h.chunks[:0], -1, toolBytes(call)
	h.head = headEnd(h.messages)
	for _, m := range h.messages[:h.head] {
		h.bytes += messageBytes(m)
	}
	for i := h.head; i < len(h.messages); {
		if h.messages[i].Role == llms.ChatMessageTypeSystem {
			h.bytes += messageBytes(h.messages[i])
			i++

			continue
		}
		i = h.chunk(l, i)
	}
	if len(h.chunks) > 0 {
		h.task = h.digest(l, h.messages[h.head-1:h.head])
	}

	return h
}

func (l *ContextLimiter) release(h *layout) {
	h.messages = nil
	h.chunks = h.chunks[:0] // no content
	clear(h.parts[:cap(h.parts)])
	l.layouts.Put(h)
}

// headEnd returns the end of what always stays: behind the first human message,
// or, in a history without one, behind everything.
func headEnd(messages []llms.MessageContent) int {
	for i, m := range messages {
		if isHuman(m) {
			return i + 1
		}
	}

	return len(messages)
}

// chunk adds the one that starts at i, and returns its end. Results belong to
// what stands before them, so that none is ever the first that stays.
func (h *layout) chunk(l *ContextLimiter, i int) int {
	end := i + 1
	for end < len(h.messages) && isResult(h.messages[end]) {
		end++
	}
	c := chunk{from: i, to: end, human: isHuman(h.messages[i]), key: h.digest(l, h.messages[i:end])}
	for _, m := range h.messages[i:end] {
		c.bytes += messageBytes(m)
	}
	h.bytes += c.bytes
	if c.human {
		h.last = len(h.chunks)
	}
	h.chunks = append(h.chunks, c)

	return end
}

// isHuman reports whether a message is a human's word. Clients send the generic
// role as one; some callers give results that role too.
func isHuman(m llms.MessageContent) bool {
	return (m.Role == llms.ChatMessageTypeHuman || m.Role == llms.ChatMessageTypeGeneric) && !holdsResult(m)
}

func isResult(m llms.MessageContent) bool {
	return m.Role == llms.ChatMessageTypeTool || m.Role == llms.ChatMessageTypeFunction ||
		(m.Role != llms.ChatMessageTypeAI && m.Role != llms.ChatMessageTypeSystem && holdsResult(m))
}

func holdsResult(m llms.MessageContent) bool {
	return slices.ContainsFunc(m.Parts, func(p llms.ContentPart) bool {
		_, ok := uncached(p).(llms.ToolCallResponse)

		return ok
	})
}

// uncached takes a part out of its instruction for caching.
func uncached(p llms.ContentPart) llms.ContentPart {
	if c, ok := p.(llms.CachedContent); ok {
		return c.ContentPart
	}

	return p
}

// digest is the same for the same messages within one process, and says nothing
// to anybody else.
func (h *layout) digest(l *ContextLimiter, messages []llms.MessageContent) chunkKey {
	parts := h.parts[:0]
	for _, m := range messages {
		parts = append(parts, "m", string(m.Role))
		for _, p := range m.Parts {
			parts = appendPart(parts, uncached(p))
		}
	}
	h.parts = parts
	sum := l.keys.Sum(parts...)

	return chunkKey(sum[:len(chunkKey{})])
}

func appendPart(parts []string, p llms.ContentPart) []string {
	switch p := p.(type) {
	case llms.TextContent:
		return append(parts, "t", p.Text)
	case llms.ToolCall:
		if p.FunctionCall == nil {
			return append(parts, "n", p.ID)
		}

		return append(parts, "c", p.ID, p.FunctionCall.Name, p.FunctionCall.Arguments)
	case llms.ToolCallResponse:
		return append(parts, "r", p.ToolCallID, p.Name, p.Content)
	case llms.ImageURLContent:
		return append(parts, "u", p.URL)
	case llms.BinaryContent:
		sum := sha256.Sum256(p.Data) // no copy of the data; keyed with the rest

		return append(parts, "b", p.MIMEType, string(sum[:]))
	default:
		return append(parts, "?")
	}
}

func messageBytes(m llms.MessageContent) int {
	size := 0
	for _, p := range m.Parts {
		switch p := uncached(p).(type) {
		case llms.ImageURLContent:
			size += imageBytes
		case llms.BinaryContent:
			if len(p.MIMEType) > len("image/") && p.MIMEType[:len("image/")] == "image/" {
				size += imageBytes
			} else {
				size += len(p.Data)
			}
		default:
			size += partSize(p)
		}
	}

	return size
}

func toolBytes(call *middleware.ModelCall) int {
	view := call.Options()
	if !view.OffersTools() {
		return 0
	}
	size := 0
	for _, t := range view.Tools() {
		if t.Function != nil {
			size += definitionSize(t.Function)
		}
	}
	functions := view.Functions()
	for i := range functions {
		size += definitionSize(&functions[i])
	}

	return size
}

// inputTokens is the provider's count of what was sent, 0 if unknown: of the
// attempt that was answered where the client tells, with what it read from and
// wrote to a cache, which one client counts apart.
func inputTokens(res *middleware.ModelResult) int {
	if res == nil {
		return 0
	}
	in, _ := countedTokens(res.Response)
	if in == 0 {
		return res.InputTokens
	}
	info := res.Response.Choices[0].GenerationInfo
	in += toCount(info["CacheCreationInputTokens"]) + toCount(info["CacheReadInputTokens"])

	return int(in)
}
