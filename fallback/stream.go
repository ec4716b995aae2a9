package fallback

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// maxHeld bounds how many bytes of tool-call deltas are held back; past it the attempt counts as delivered.
const maxHeld = 1 << 20

// gate stands between a client and the caller's functions for chunks, for one attempt. It knows what has reached the
// caller, holds back what must not yet, and drops what comes too late. A caller that does not stream has none, or one
// without functions, behind which the model streams inwardly.
type gate struct {
	a           *attempt
	onText      func(ctx context.Context, chunk []byte) error
	onReasoning func(ctx context.Context, reasoning, chunk []byte) error
	deltas      bool // tools are offered, so a chunk may be a delta of a tool call
	buffer      int  // bytes to hold back of everything, 0 is passthrough

	mu        sync.Mutex
	closed    bool
	committed bool // text has reached the caller
	chunks    int
	text      strings.Builder
	held      []piece
	heldBytes int
	stop      error // what the caller's function returned, or that it did not return
}

// piece is one call of a function of the caller.
type piece struct {
	ctx       context.Context //nolint:containedctx // the client's, for the call that is held back
	to        receiver
	counts    bool // as text that was delivered
	reasoning []byte
	chunk     []byte
}

type receiver uint8

const (
	toNobody receiver = iota
	toText
	toReasoning
)

// newGate returns nil if the model is not to stream.
func (a *attempt) newGate(view middleware.OptionsView) *gate {
	onText, onReasoning := view.StreamingFunc(), view.StreamingReasoningFunc()
	deltas := view.OffersTools()
	if onText == nil && onReasoning == nil && !a.inwardly(view, deltas) {
		return nil
	}
	a.blind = deltas && !a.c.deltas

	return &gate{a: a, onText: onText, onReasoning: onReasoning, deltas: deltas, buffer: a.model.buffer}
}

// inwardly reports whether a call that does not stream is streamed inwardly, to watch its progress: never with tools,
// whose parallel calls get merged, and never for several answers.
func (a *attempt) inwardly(view middleware.OptionsView, tools bool) bool {
	l := &a.model.limits
	if tools || view.N() > 1 || (l.first == NoLimit && l.idle == NoLimit) {
		return false
	}
	switch a.c.inward {
	case inwardAlways:
		return true
	case inwardWatched:
		return a.c.watched.Load()
	default:
		return false
	}
}

// options intercept the chunks. A StreamingFunc is set also for a caller that wants reasoning only: anthropic's client
// reads a stream only then.
func (g *gate) options(to []llms.CallOption) []llms.CallOption {
	to = append(to, llms.WithStreamingFunc(g.chunk))
	if g.onReasoning != nil {
		to = append(to, llms.WithStreamingReasoningFunc(g.reasoning))
	}

	return to
}

func (g *gate) chunk(ctx context.Context, chunk []byte) error {
	p := piece{ctx: ctx, to: toText, counts: true, chunk: chunk}
	if g.onText == nil || len(chunk) == 0 {
		p.to = toNobody
	}

	return g.pass(p)
}

func (g *gate) reasoning(ctx context.Context, reasoning, chunk []byte) error {
	// With both functions the client gives the text to the other one too, which counts it.
	p := piece{ctx: ctx, to: toReasoning, counts: g.onText == nil, reasoning: reasoning, chunk: chunk}
	if len(reasoning) == 0 && len(chunk) == 0 {
		p.to = toNobody
	}

	return g.pass(p)
}

// pass delivers, holds back or drops one chunk.
func (g *gate) pass(p piece) error {
	if len(p.chunk)+len(p.reasoning) > 0 {
		g.a.tick()
	}
	delta := g.deltas && isDelta(p.chunk)
	g.mu.Lock()
	switch {
	case g.stop != nil:
		defer g.mu.Unlock()

		return g.stop
	case g.closed, p.ctx.Err() != nil, g.a.limit.Load() != 0:
		g.mu.Unlock()

		return errLate
	case p.to == toNobody:
		g.mu.Unlock()

		return nil
	case g.holds(p, delta):
		p.chunk, p.reasoning = bytes.Clone(p.chunk), bytes.Clone(p.reasoning)
		g.held = append(g.held, p)
		g.heldBytes += len(p.chunk) + len(p.reasoning)
		g.mu.Unlock()

		return nil
	}
	queue := g.release(p)
	g.mu.Unlock()

	return g.deliver(queue, p)
}

// release counts a piece that is delivered, and returns what has to be delivered before it. Reasoning alone is no
// answer, and releases deltas only past the bound of a buffer.
func (g *gate) release(p piece) (queue []piece) {
	if g.buffer > 0 && !g.committed {
		for i := range g.held {
			if !g.deltas || !isDelta(g.held[i].chunk) {
				g.count(g.held[i])
			}
		}
		g.committed = true
	}
	g.count(p)
	if g.committed {
		queue, g.held = g.held, nil
	}

	return queue
}

// holds reports whether a piece is held back.
func (g *gate) holds(p piece, delta bool) bool {
	if g.committed {
		return false
	}
	size := g.heldBytes + len(p.chunk) + len(p.reasoning)
	if g.buffer > 0 {
		return size <= g.buffer
	}

	return delta && size <= maxHeld
}

// count notes text on its way to the caller.
func (g *gate) count(p piece) {
	if p.counts && len(p.chunk) > 0 {
		g.committed = true
		g.chunks++
		g.text.Write(p.chunk)
	}
}

// deliver calls the caller's functions, outside of the lock, and remembers when the caller wants no more. Clients call
// us on goroutines of their own, where a panic would end the process.
func (g *gate) deliver(queue []piece, last piece) (err error) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, nil)
		} else if !returned {
			err = errGoexit
		}
		if err != nil {
			g.mu.Lock()
			if g.stop == nil {
				g.stop = err
			}
			g.mu.Unlock()
		}
	}()
	for i := 0; i < len(queue) && err == nil; i++ {
		err = g.give(queue[i])
	}
	if err == nil {
		err = g.give(last)
	}
	returned = true

	return err
}

func (g *gate) give(p piece) error {
	if p.to == toNobody {
		return nil
	}
	g.a.delivering.Add(1)
	defer func() {
		g.a.tick() // the pause was the caller's
		g.a.delivering.Add(-1)
	}()
	switch p.to {
	case toText:
		return g.onText(p.ctx, p.chunk)
	case toReasoning:
		return g.onReasoning(p.ctx, p.reasoning, p.chunk)
	default:
		return nil
	}
}

// finish delivers what was held back, after the attempt has succeeded. The client's own context has ended by then.
func (g *gate) finish(ctx context.Context) error {
	g.mu.Lock()
	queue := g.held
	g.held, g.closed = nil, true
	g.mu.Unlock()
	for i := range queue {
		queue[i].ctx = ctx //nolint:fatcontext // replaced, not nested
	}

	return g.deliver(queue, piece{})
}

// close drops everything that has not been delivered yet or comes later.
func (g *gate) close() {
	g.mu.Lock()
	g.closed, g.held = true, nil
	g.mu.Unlock()
}

// stopped returns why the caller wants no more, or nil.
func (g *gate) stopped() error {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.stop
}

// delivered returns what text has reached the caller.
func (g *gate) delivered() (chunks int, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.chunks, g.text.String()
}

// isDelta recognises what openai's client gives to a StreamingFunc for a tool call: the JSON of its deltas, or of the
// older function call.
func isDelta(chunk []byte) bool {
	type function struct {
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
	}
	strict := func(v any) bool {
		d := json.NewDecoder(bytes.NewReader(chunk))
		d.DisallowUnknownFields()

		return d.Decode(v) == nil && !d.More()
	}
	switch {
	case bytes.HasPrefix(chunk, []byte(`[{"`)):
		var calls []struct {
			ID       string    `json:"id"`
			Type     string    `json:"type"`
			Function *function `json:"function"`
		}
		if !strict(&calls) || len(calls) == 0 {
			return false
		}
		for _, c := range calls {
			if c.Function == nil {
				return false
			}
		}

		return true
	case bytes.HasPrefix(chunk, []byte(`{"name":`)):
		var f function

		return strict(&f) && f.Name != nil && f.Arguments != nil
	default:
		return false
	}
}
