package escalation

import (
	"math"
	"slices"
	"sync"
)

// contextState is what a limiter knows of one run. No content but the
// summaries, which are the caller's own words, and none of it is persisted: a
// restored run is judged anew.
type contextState struct {
	mu            sync.Mutex
	conversations []*conversation // the last used last
	scale         float64         // the provider's tokens per estimated one, 0: unknown
	drifts        int             // drifts that could not be measured
	summaries     int             // summaries that failed
}

// conversation is a history that grows from call to call, known by its task and
// its first chunk: agents of one run often share the task.
type conversation struct {
	task    chunkKey
	chunks  []knownChunk
	cut     int // chunks[:cut] are left out, but for those that are kept
	cuts    int // how often it was cut
	summary string
}

// knownChunk is what is remembered of a chunk.
type knownChunk struct {
	key       chunkKey
	kept      bool // stays although it is older than the cut: it was the last human message
	told      bool // the summary speaks of it
	triggered bool // a limit was passed with it
}

// plan is what to do with one call.
type plan struct {
	conversation *conversation // nil: there are no chunks
	cuts         int           // of the conversation, when the plan was made

	full, drifted bool
	fill          float64 // of the window, before this plan cuts further
	cut           int     // chunks[:cut] are left out
	kept          []int   // but for these
	dropped       int     // how many are left out
	tell          []int   // those that a summary has to be made of, nil: none
	summary       string
	sent          int // bytes
}

// plan finds out where a history stands and, past a limit, cuts it further.
func (s *contextState) plan(l *ContextLimiter, h *layout, drifted bool) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := plan{drifted: drifted, sent: h.bytes}
	var c *conversation
	if len(h.chunks) > 0 {
		c = s.find(h)
		p.sent = c.bytes(h)
	}
	p.fill = s.fill(p.sent, l.cfg.Window)
	p.full = p.fill > l.cfg.MaxFill
	if c == nil {
		return p
	}
	cut := false
	if p.full || p.drifted {
		c.chunks[len(c.chunks)-1].triggered = true
		by := bounds{
			fill:   func(bytes int) float64 { return s.fill(bytes, l.cfg.Window) / l.cfg.MaxFill },
			window: 1 / l.cfg.MaxFill,
		}
		if l.cfg.Summary != nil && l.maxBytes > 0 {
			by.room = max(0, len(summaryLead)+l.maxBytes-summaryBytes(c.summary))
		}
		cut = c.shorten(h, p.full, p.drifted, by)
	}
	p.conversation, p.cuts, p.cut, p.summary, p.sent = c, c.cuts, c.cut, c.summary, c.bytes(h)
	for i := range c.cut {
		switch {
		case c.stays(i, h):
			p.kept = append(p.kept, i)

			continue
		case cut && l.cfg.Summary != nil && !c.chunks[i].told:
			p.tell = append(p.tell, i)
		}
		p.dropped++
	}

	return p
}

// fill is the share of the window that so many bytes take.
func (s *contextState) fill(bytes, window int) float64 {
	tokens := float64(tokensFor(bytes))
	if s.scale > 0 {
		tokens = math.Ceil(tokens * s.scale)
	}

	return tokens / float64(window)
}

// calibrate learns from what a provider counted.
func (s *contextState) calibrate(sent, counted, window int) {
	const trifle, least, most = 16, 1.0 / 3, 3.0
	estimated := tokensFor(sent)
	if counted <= 0 || estimated == 0 || estimated < int64(window/trifle) {
		return
	}
	scale := min(float64(counted)/float64(estimated), most)
	if scale < least {
		return // part of the request was not counted
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scale = scale
}

// failed counts what went wrong in a call.
func (s *contextState) failed(drift, summary error) (drifts, summaries int) {
	if drift == nil && summary == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if drift != nil {
		s.drifts++
	}
	if summary != nil {
		s.summaries++
	}

	return s.drifts, s.summaries
}

// told keeps a summary, unless the conversation was cut again in the meantime.
func (s *contextState) told(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := p.conversation
	if c.cuts != p.cuts {
		return
	}
	c.summary = p.summary
	for _, i := range p.tell {
		c.chunks[i].told = true
	}
}

func (s *contextState) counts() ChunkCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n ChunkCounts
	for _, c := range s.conversations {
		n.Known += len(c.chunks)
		for i, k := range c.chunks {
			if i < c.cut && !k.kept {
				n.Cut++
			}
			if k.triggered {
				n.Triggered++
			}
		}
	}
	n.InWindow = n.Known - n.Cut

	return n
}

// find returns the conversation that h goes on with, brought up to h.
func (s *contextState) find(h *layout) *conversation {
	c := s.take(h)
	same := 0
	for same < min(len(c.chunks), len(h.chunks)) && c.chunks[same].key == h.chunks[same].key {
		same++
	}
	if c.cut > 0 && (same < c.cut || len(h.chunks) <= c.cut) { // not what was cut: judged anew
		same, c.cut, c.summary = 0, 0, ""
		c.cuts++
	}
	c.chunks = c.chunks[:same]
	for _, chunk := range h.chunks[same:] {
		c.chunks = append(c.chunks, knownChunk{key: chunk.key})
	}

	return c
}

// take returns the conversation with the beginning of h, as the last used one.
func (s *contextState) take(h *layout) *conversation {
	for i, c := range s.conversations {
		if c.task == h.task && c.chunks[0].key == h.chunks[0].key {
			s.conversations = append(slices.Delete(s.conversations, i, i+1), c)

			return c
		}
	}
	if len(s.conversations) == maxConversations {
		s.conversations = slices.Delete(s.conversations, 0, 1)
	}
	c := &conversation{task: h.task}
	s.conversations = append(s.conversations, c)

	return c
}

// stays reports whether chunk i of h is sent although it is older than the cut.
func (c *conversation) stays(i int, h *layout) bool { return i == h.last || c.chunks[i].kept }

// bytes is the size of h as the cut leaves it.
func (c *conversation) bytes(h *layout) int {
	bytes := h.bytes + summaryBytes(c.summary)
	for i := range c.cut {
		if !c.stays(i, h) {
			bytes -= h.chunks[i].bytes
		}
	}

	return bytes
}
