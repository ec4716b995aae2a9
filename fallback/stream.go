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
// caller, holds back what must not yet, and drops what comes too late.
type gate struct {
	onText      func(ctx context.Context, chunk []byte) error
	onReasoning func(ctx context.Context, reasoning, chunk []byte) error
	deltas      bool // tools are offered, so a chunk may be a delta of a tool call

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
	reasoning []byte
	chunk     []byte
}

type receiver uint8

const (
	toNobody receiver = iota
	toText
	toReasoning
)

// newGate returns nil if the caller does not stream.
func newGate(view middleware.OptionsView) *gate {
	onText, onReasoning := view.StreamingFunc(), view.StreamingReasoningFunc()
	if onText == nil && onReasoning == nil {
		return nil
	}

	return &gate{onText: onText, onReasoning: onReasoning, deltas: view.OffersTools()}
}

// options intercept the chunks. A StreamingFunc is set also for a caller that wants reasoning only: anthropic's client
// reads a stream only then.
func (g *gate) options(to []llms.CallOption) []llms.CallOption {
	if g == nil {
		return to
	}
	to = append(to, llms.WithStreamingFunc(g.chunk))
	if g.onReasoning != nil {
		to = append(to, llms.WithStreamingReasoningFunc(g.reasoning))
	}

	return to
}

func (g *gate) chunk(ctx context.Context, chunk []byte) error {
	p := piece{ctx: ctx, to: toText, chunk: chunk}
	if g.onText == nil || len(chunk) == 0 {
		p.to = toNobody
	}

	return g.pass(p, true)
}

func (g *gate) reasoning(ctx context.Context, reasoning, chunk []byte) error {
	p := piece{ctx: ctx, to: toReasoning, reasoning: reasoning, chunk: chunk}
	if len(reasoning) == 0 && len(chunk) == 0 {
		p.to = toNobody
	}

	// With both functions the client gives the text to the other one too, which counts it.
	return g.pass(p, g.onText == nil)
}

// pass delivers, holds back or drops one chunk.
func (g *gate) pass(p piece, counts bool) error {
	delta := g.deltas && isDelta(p.chunk)
	g.mu.Lock()
	switch {
	case g.stop != nil:
		defer g.mu.Unlock()

		return g.stop
	case g.closed, p.ctx.Err() != nil:
		g.mu.Unlock()

		return errLate
	case p.to == toNobody:
		g.mu.Unlock()

		return nil
	case delta && !g.committed && g.heldBytes+len(p.chunk) <= maxHeld:
		p.chunk, p.reasoning = bytes.Clone(p.chunk), bytes.Clone(p.reasoning)
		g.held = append(g.held, p)
		g.heldBytes += len(p.chunk)
		g.mu.Unlock()

		return nil
	}
	if counts && len(p.chunk) > 0 {
		g.committed = true
		g.chunks++
		g.text.Write(p.chunk)
	}
	var queue []piece
	if g.committed { // reasoning alone is no answer
		queue, g.held = g.held, nil
	}
	g.mu.Unlock()

	return g.deliver(queue, p)
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
	if g == nil {
		return nil
	}
	g.mu.Lock()
	queue := g.held
	g.held = nil
	g.mu.Unlock()
	for i := range queue {
		queue[i].ctx = ctx //nolint:fatcontext // replaced, not nested
	}

	return g.deliver(queue, piece{})
}

// close drops everything that has not been delivered yet or comes later.
func (g *gate) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.closed, g.held = true, nil
	g.mu.Unlock()
}

// stopped returns why the caller wants no more, or nil.
func (g *gate) stopped() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.stop
}

// delivered returns what text has reached the caller.
func (g *gate) delivered() (chunks int, text string) {
	if g == nil {
		return 0, ""
	}
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
