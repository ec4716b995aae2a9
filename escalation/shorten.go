package escalation

import (
	"slices"

	"github.com/tmc/langchaingo/llms"
)

// bounds are what a cut is measured by.
type bounds struct {
	fill   func(bytes int) float64 // the share of MaxFill that so many bytes take
	window float64                 // the whole window, as such a share
	room   int                     // bytes that a new summary may add
}

// shorten moves the cut of a conversation that is past a limit, and reports
// whether anything more is left out. See the table at the head of context.go.
func (c *conversation) shorten(h *layout, full, drifted bool, by bounds) bool {
	newest := len(h.chunks) - 1
	left := cut{h: h, at: c.cut, bytes: c.bytes(h)}
	for i := range c.cut { // what an older cut kept and nothing keeps any more
		if c.chunks[i].kept && i != h.last {
			left.drop(i)
		}
	}
	spared := len(h.chunks) - recentTurns
	due := c.cut == 0 || spared-c.cut >= recentTurns
	least := left
	least.advance(newest)
	reachable := by.fill(least.bytes) <= 1
	if due && (drifted || !reachable) {
		left.advance(spared)
	}
	for full && left.at < newest && !left.enough(by, reachable, spared) {
		left.advance(left.at + 1)
	}
	if left.dropped == 0 {
		return false
	}
	for i := range left.at {
		c.chunks[i].kept = i == h.last
	}
	c.cut = left.at
	c.cuts++

	return true
}

// cut is a place in a history up to which chunks are left out.
type cut struct {
	h       *layout
	at      int
	bytes   int // that stay
	dropped int // chunks, since the cut before
}

func (c *cut) advance(to int) {
	for ; c.at < to; c.at++ {
		if c.at != c.h.last {
			c.drop(c.at)
		}
	}
}

// enough reports whether no more has to go. spared is where the newest turns
// begin that stay if they can.
func (c *cut) enough(by bounds, reachable bool, spared int) bool {
	if !reachable {
		return by.fill(c.bytes) <= by.window
	}

	return by.fill(c.bytes+by.room) <= 1 && (c.at >= spared || by.fill(c.bytes) <= cutTo)
}

func (c *cut) drop(i int) {
	c.bytes -= c.h.chunks[i].bytes
	c.dropped++
}

// shortened is the history that a plan leaves. It shares parts with the
// caller's messages, which are not changed.
func (h *layout) shortened(p *plan) []llms.MessageContent {
	out := make([]llms.MessageContent, 0, len(h.messages)+1)
	out = append(out, h.messages[:h.head]...)
	if p.summary != "" {
		out = append(out, llms.TextParts(llms.ChatMessageTypeHuman, summaryLead+p.summary))
	}
	next := h.head
	for i, c := range h.chunks[:p.cut] {
		out = append(out, h.messages[next:c.from]...) // system messages
		if slices.Contains(p.kept, i) {
			out = append(out, h.messages[c.from:c.to]...)
		}
		next = c.to
	}

	return append(out, h.messages[next:]...)
}
