package watchdog

import (
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// The sentences that a model is told in its next request. They are fixed, so
// that a nudge never carries content.
const (
	nudgeAnswers = "Your last answers repeat each other without anything new. " +
		"Use what you already know, try something different, or give your final answer."
	nudgeTools = "There is no such tool as you asked for. Use one of the tools that were offered, or give your final answer."
	nudgeOther = "You make no progress at present. " +
		"Use what you already know, try something different, or give your final answer."
)

func nudgeText(reason middleware.Reason) string {
	switch reason {
	case middleware.ReasonAnswerLoop:
		return nudgeAnswers
	case middleware.ReasonUnknownTool:
		return nudgeTools
	default:
		return nudgeOther
	}
}

// nudged returns the call with the sentence at its end: as a message of its own
// in a conversation, and at the end of the text where there is a single message,
// because textual agents put everything into one and some clients send only the
// first.
func nudged(call *middleware.ModelCall, reason middleware.Reason) *middleware.ModelCall {
	text, messages := nudgeText(reason), slices.Clone(call.Messages())
	if len(messages) != 1 {
		return call.WithMessages(append(messages, llms.TextParts(llms.ChatMessageTypeHuman, text)))
	}
	parts := slices.Clone(messages[0].Parts)
	for i, part := range slices.Backward(parts) {
		if t, ok := part.(llms.TextContent); ok {
			t.Text += "\n" + text + "\n"
			parts[i] = t
			messages[0].Parts = parts

			return call.WithMessages(messages)
		}
	}
	messages[0].Parts = append(slices.Clip(parts), llms.TextContent{Text: text})

	return call.WithMessages(messages)
}
