package escalation

import (
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// FinalSentence is what a model is told with the request for its final answer.
const FinalSentence = "The limit for this run is reached: no tool can be called any more. " +
	"Give your final answer now with what you know."

// withoutTools returns the call as a request for a final answer: functions,
// tools and every choice of them are taken back, and one sentence is added. The
// calls and results of the history stay: where a provider refuses those without
// tools, the fallback's bridge tells them as text. A model that calls a tool all
// the same finds it refused.
func withoutTools(call *middleware.ModelCall) *middleware.ModelCall {
	return call.WithMessages(finalMessages(call.Messages())).Append(
		llms.WithTools(nil), llms.WithFunctions(nil), llms.WithToolChoice(nil), llms.WithFunctionCallBehavior(""),
	)
}

// finalMessages adds the sentence to the system message. A single message, the
// prompt of a textual agent, stays a single one, because several clients send
// only the first. The messages of the caller are not changed.
func finalMessages(messages []llms.MessageContent) []llms.MessageContent {
	for i, m := range messages {
		if m.Role == llms.ChatMessageTypeSystem {
			own := slices.Clone(messages)
			own[i].Parts = withText(m.Parts, false)

			return own
		}
	}
	if len(messages) == 1 && messages[0].Role == llms.ChatMessageTypeHuman {
		return []llms.MessageContent{{Role: messages[0].Role, Parts: withText(messages[0].Parts, true)}}
	}

	return slices.Concat([]llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, FinalSentence)}, messages)
}

// withText adds the sentence within the last text, or before the first: clients
// that take one text per message take the first.
func withText(parts []llms.ContentPart, before bool) []llms.ContentPart {
	own := slices.Clone(parts)
	for i, p := range own {
		t, ok := p.(llms.TextContent)
		if !ok {
			continue
		}
		if before {
			own[i] = llms.TextContent{Text: FinalSentence + "\n\n" + t.Text}
		} else {
			own[i] = llms.TextContent{Text: t.Text + "\n\n" + FinalSentence}
		}

		return own
	}

	return append(own, llms.TextContent{Text: FinalSentence})
}
