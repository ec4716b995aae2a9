package escalation

import (
	"context"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// DriftFunc measures how far turns have moved from the task: 0 not at all, 1
// entirely. task is the text of the first human message, turns are the texts of
// the last four turns, oldest first: what was said, called and returned. They are
// content. An error, a panic, NaN, a value outside of [0, 1] or an answer after
// the deadline is read as 1: a drift that nobody can tell is past the limit.
type DriftFunc func(ctx context.Context, task string, turns []string) (float64, error)

// drift returns the reading of a history, and an error if it is not one. A
// history of fewer than four turns has none: 0.
func (l *ContextLimiter) drift(ctx context.Context, h *layout) (float64, error) {
	if len(h.chunks) < recentTurns {
		return 0, nil
	}
	recent := h.chunks[len(h.chunks)-recentTurns:]
	if l.cfg.Drift == nil {
		return l.termDrift(h, recent), nil
	}
	task, turns := textOf(h.messages[h.head-1:h.head]), make([]string, 0, recentTurns)
	for _, c := range recent {
		turns = append(turns, textOf(h.messages[c.from:c.to]))
	}
	drift, err := ask(ctx, l.cfg.Timeout, func(ctx context.Context) (float64, error) { return l.cfg.Drift(ctx, task, turns) })
	if err != nil {
		return 1, err
	}
	if !(drift >= 0 && drift <= 1) { // so that NaN is refused
		return 1, middleware.NewFailure(middleware.ComponentContext, middleware.ReasonDetectorFailed, ident.Label{})
	}

	return drift, nil
}

// eachText calls f with every text of messages.
func eachText(messages []llms.MessageContent, f func(text string)) {
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := uncached(p).(type) {
			case llms.TextContent:
				f(p.Text)
			case llms.ToolCall:
				if p.FunctionCall != nil {
					f(p.FunctionCall.Name)
					f(p.FunctionCall.Arguments)
				}
			case llms.ToolCallResponse:
				f(p.Content)
			}
		}
	}
}

func textOf(messages []llms.MessageContent) string {
	var b strings.Builder
	eachText(messages, func(text string) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	})

	return b.String()
}

// termBuckets is the length of a term vector.
const termBuckets = 4096

// termVectors are those of a task and of the last turns. Lengths and product are
// kept up while terms are added, so that no bucket is looked at twice. They are
// pooled, and hold counts only.
type termVectors struct {
	task, turns           [termBuckets]uint32
	task2, turns2, common uint64 // squares of the lengths, and the product
}

func (v *termVectors) addTask(bucket uint32) {
	v.task2 += 2*uint64(v.task[bucket]) + 1 // (n+1)² − n²
	v.task[bucket]++
}

func (v *termVectors) addTurn(bucket uint32) {
	v.turns2 += 2*uint64(v.turns[bucket]) + 1
	v.common += uint64(v.task[bucket])
	v.turns[bucket]++
}

// termDrift is 1 − the cosine of the term vectors. Where one side has no letter
// there is nothing to compare: 0. Languages without spaces have few terms in
// common with anything; they want an embedder.
func (l *ContextLimiter) termDrift(h *layout, recent []chunk) float64 {
	v, ok := l.vectors.Get().(*termVectors)
	if !ok {
		v = new(termVectors)
	}
	defer l.vectors.Put(v)
	*v = termVectors{}
	eachText(h.messages[h.head-1:h.head], func(text string) { eachTerm(text, v.addTask) })
	for _, c := range recent {
		eachText(h.messages[c.from:c.to], func(text string) { eachTerm(text, v.addTurn) })
	}
	if v.task2 == 0 || v.turns2 == 0 {
		return 0
	}

	return clampShare(1 - float64(v.common)/math.Sqrt(float64(v.task2)*float64(v.turns2)))
}

// clampShare takes off what rounding leaves outside of [0, 1].
func clampShare(v float64) float64 { return min(max(v, 0), 1) }

// eachTerm calls f with the bucket of each term of a text: of a run of letters in
// lower case, by its hash (FNV-1a).
func eachTerm(text string, f func(bucket uint32)) {
	const offset, prime = 2166136261, 16777619
	term := uint32(offset)
	inside := false
	for i := 0; i < len(text); {
		b := text[i]
		r, size := rune(b), 1
		if b >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		i += size
		switch {
		case r >= 'a' && r <= 'z':
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case r >= utf8.RuneSelf && unicode.IsLetter(r):
			r = unicode.ToLower(r)
		default:
			if inside {
				f(term % termBuckets)
			}
			term, inside = offset, false

			continue
		}
		term = (term ^ uint32(r)) * prime //nolint:gosec // a rune is not negative
		inside = true
	}
	if inside {
		f(term % termBuckets)
	}
}
