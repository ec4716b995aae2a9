package fallback

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

const idNineLength = 9

// bridgeMessages brings the history into the form that the client takes. What needs no change is not copied; the
// caller's messages are never changed.
func (c *client) bridgeMessages(messages []llms.MessageContent, offered bool) []llms.MessageContent {
	h := history{client: c, in: messages, offered: offered, system: -1}
	for i := 0; i < len(messages); {
		end := turnEnd(messages, i)
		if isCalling(messages[i]) {
			h.turn(i, end)
		} else {
			h.message(i)
		}
		i = end
	}
	if h.out == nil {
		return messages
	}

	return h.out
}

// history is a history on its way into the form of one client.
type history struct {
	client  *client
	offered bool
	in, out []llms.MessageContent // out is nil as long as nothing has changed
	system  int                   // of the first system message in out or in, -1: none yet
	ids     map[string]struct{}   // given out so far, for clients that want each once
	made    int
}

// change starts out with all that came before message i.
func (h *history) change(i int) {
	if h.out == nil {
		h.out = append(make([]llms.MessageContent, 0, len(h.in)+2), h.in[:i]...)
	}
}

func (h *history) keep(from, to int) {
	if h.out != nil {
		h.out = append(h.out, h.in[from:to]...)
	}
}

func (h *history) put(role llms.ChatMessageType, parts ...llms.ContentPart) {
	h.out = append(h.out, llms.MessageContent{Role: role, Parts: parts})
}

// message converts one that makes no calls.
func (h *history) message(i int) {
	m := h.in[i]
	role, parts := m.Role, h.parts(m)
	switch {
	case role == llms.ChatMessageTypeGeneric && !h.client.generic:
		role = llms.ChatMessageTypeHuman
	case h.client.oneSystem && role == llms.ChatMessageTypeSystem && h.system >= 0 && len(parts) > 0:
		h.change(i)
		h.out[h.system] = llms.MessageContent{Role: role, Parts: slices.Concat(h.out[h.system].Parts, parts)}

		return
	}
	empty := len(parts) == 0 // panics in some clients, and says nothing
	if h.client.first && role == llms.ChatMessageTypeAI && len(parts) == 1 {
		empty = parts[0] == llms.ContentPart(llms.TextContent{})
	}
	switch {
	case empty:
		h.change(i)

		return
	case role != m.Role || !sameParts(parts, m.Parts):
		h.change(i)
		h.put(role, parts...)
	case h.client.render && isResult(m): // of a call that is not there
		h.change(i)
		h.put(llms.ChatMessageTypeHuman, h.told(nil, m.Parts))
	default:
		h.keep(i, i+1)
	}
	if role == llms.ChatMessageTypeSystem && h.system < 0 {
		h.system = i
		if h.out != nil {
			h.system = len(h.out) - 1
		}
	}
}

func sameParts(a, b []llms.ContentPart) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// parts returns the parts of a message without calls as the client takes them: the same slice if nothing changes.
func (h *history) parts(m llms.MessageContent) []llms.ContentPart {
	parts := m.Parts
	if !h.client.cached || m.Role == llms.ChatMessageTypeAI {
		parts = uncached(parts)
	}
	if len(parts) < 2 || h.client.texts == textAny ||
		(h.client.texts == textReplies && m.Role != llms.ChatMessageTypeSystem && m.Role != llms.ChatMessageTypeAI) {
		return parts
	}

	return joinTexts(uncached(parts))
}

// uncached takes texts and images out of their instructions for caching, which other clients drop with what they hold.
func uncached(parts []llms.ContentPart) []llms.ContentPart {
	var own []llms.ContentPart
	for i, p := range parts {
		cached, ok := p.(llms.CachedContent)
		if !ok {
			continue
		}
		if own == nil {
			own = slices.Clone(parts)
		}
		own[i] = cached.ContentPart
	}
	if own == nil {
		return parts
	}

	return own
}

// joinTexts puts all texts in the place of the first one.
func joinTexts(parts []llms.ContentPart) []llms.ContentPart {
	var (
		joined strings.Builder
		own    []llms.ContentPart
	)
	texts, at := 0, 0
	for _, p := range parts {
		t, ok := p.(llms.TextContent)
		if !ok {
			own = append(own, p)

			continue
		}
		if texts == 0 {
			at = len(own)
			own = append(own, t)
		} else {
			joined.WriteByte('\n')
		}
		joined.WriteString(t.Text)
		texts++
	}
	if texts < 2 {
		return parts
	}
	own[at] = llms.TextContent{Text: joined.String()}

	return own
}

// turn converts a message with calls and its results.
func (h *history) turn(from, to int) {
	turn := h.in[from:to]
	switch {
	case h.client.render && !h.offered:
		h.change(from)
		h.tell(turn)
	case h.fits(turn):
		h.remember(turn[0].Parts)
		h.keep(from, to)
	default:
		h.change(from)
		h.rebuild(turn)
	}
}

// fits reports whether a turn is in the client's form already.
func (h *history) fits(turn []llms.MessageContent) bool {
	calls := 0
	for _, p := range turn[0].Parts {
		switch p := p.(type) {
		case llms.ToolCall:
			calls++
			_, used := h.ids[p.ID]
			if p.FunctionCall == nil || p.Type == "" || used || !h.client.ids.fits(p.ID) || !isObject(p.FunctionCall.Arguments) {
				return false
			}
		case llms.CachedContent:
			return false
		}
	}
	if h.client.pairs && (calls > 1 || len(turn) > 2 || (h.client.first && len(turn[0].Parts) > 1)) {
		return false
	}
	for _, m := range turn[1:] {
		if m.Role != llms.ChatMessageTypeTool || len(m.Parts) != 1 {
			return false
		}
		r, ok := m.Parts[0].(llms.ToolCallResponse)
		if !ok || r.ToolCallID == "" || (h.client.names && r.Name == "") {
			return false
		}
	}

	return true
}

// remember notes the ids of calls for clients that want each only once.
func (h *history) remember(parts []llms.ContentPart) {
	if h.client.ids == idAny {
		return
	}
	for _, p := range parts {
		if call, ok := p.(llms.ToolCall); ok {
			h.note(call.ID)
		}
	}
}

func (h *history) note(id string) {
	if h.ids == nil {
		h.ids = make(map[string]struct{})
	}
	h.ids[id] = struct{}{}
}

// id returns the id of a call, or one made for it.
func (h *history) id(id string) string {
	if _, used := h.ids[id]; used || !h.client.ids.fits(id) {
		for used := true; used; _, used = h.ids[id] {
			h.made++
			digits := strconv.Itoa(h.made)
			id = "call" + strings.Repeat("0", max(0, idNineLength-len("call")-len(digits))) + digits
		}
	}
	if h.client.ids != idAny {
		h.note(id)
	}

	return id
}
