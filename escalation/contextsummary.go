package escalation

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// SummaryFunc says in few words what messages hold that are left out of a
// history. The first of them may be its own earlier summary, which the new one
// replaces. It is asked once per cut, with copies, outside of all locks; a model
// that it asks may be the guarded one, whose limiter then stands aside. An error,
// a panic, more bytes than allowed, nothing but white space, text that is not
// UTF-8, or an answer after the deadline leaves the history shortened and without
// a new summary; the next cut asks for those messages again. It is not asked
// about less than 64 bytes, nor where the window has no room for a summary.
type SummaryFunc func(ctx context.Context, dropped []llms.MessageContent) (string, error)

// summaryLead stands in front of a summary, so that a model does not take it for
// the user's words.
const summaryLead = "[Summary of earlier turns that were left out]\n"

// leastSummarized is what is not too short to be worth a summary, in bytes.
const leastSummarized = 64

func summaryBytes(summary string) int {
	if summary == "" {
		return 0
	}

	return len(summaryLead) + len(summary)
}

// summarize asks for a summary of what a plan leaves out and puts it into it.
func (l *ContextLimiter) summarize(ctx context.Context, state *contextState, h *layout, p *plan) error {
	most := 0
	for i, c := range h.chunks[:p.cut] {
		if !slices.Contains(p.kept, i) {
			most += c.bytes
		}
	}
	if most < leastSummarized || l.maxBytes <= 0 {
		return nil
	}
	text, err := ask(ctx, l.cfg.Timeout, func(ctx context.Context) (string, error) {
		return l.cfg.Summary(ctx, h.toTell(p))
	})
	if err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if text == "" || len(text) > min(most, l.maxBytes) || !utf8.ValidString(text) {
		return failure(middleware.ReasonSummaryFailed)
	}
	p.sent += summaryBytes(text) - summaryBytes(p.summary)
	p.summary = text
	state.told(p)

	return nil
}

// toTell copies what has to be summarized, with what was said of earlier chunks.
func (h *layout) toTell(p *plan) []llms.MessageContent {
	var dropped []llms.MessageContent
	if p.summary != "" {
		dropped = append(dropped, llms.TextParts(llms.ChatMessageTypeHuman, summaryLead+p.summary))
	}
	for _, i := range p.tell {
		for _, m := range h.messages[h.chunks[i].from:h.chunks[i].to] {
			dropped = append(dropped, llms.MessageContent{Role: m.Role, Parts: slices.Clone(m.Parts)})
		}
	}

	return dropped
}

// askingKey marks the context of a user function of the limiter.
type askingKey struct{}

func asking(ctx context.Context) bool { return ctx.Value(askingKey{}) != nil }

// ask calls a user function: bounded in time by its context, its panic
// contained, and its answer after the deadline no answer.
func ask[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (answer T, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, askingKey{}, true), timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, nil)
		}
	}()
	answer, err = f(ctx)
	if err == nil && ctx.Err() != nil {
		err = middleware.NewCanceled(ctx, middleware.ComponentContext, ident.Label{}, nil)
	}

	return answer, err
}
