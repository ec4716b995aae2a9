package fallback

import (
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// Capabilities is a set of things that a call may need and a client may silently drop. A call is never given to a
// candidate that lacks one of them: the answer would look like one to the question that was asked.
//
// A JSON answer (llms.WithJSONMode) is not among them: a client that drops it is asked all the same, and a check of the
// response sees what came of it.
type Capabilities uint16

// The capabilities.
const (
	// CapTools: tools, and functions, which become tools.
	CapTools Capabilities = 1 << iota
	// CapToolChoice: a forced choice of tool. "auto" needs nothing, and for "none" the tools are left out.
	CapToolChoice
	// CapImages: images as bytes.
	CapImages
	// CapImageURLs: images by address.
	CapImageURLs
	// CapStreaming: chunks while the answer comes in.
	CapStreaming
	// CapStopWords: stop words. Textual agents depend on them: without, the model invents what a tool observed.
	CapStopWords
	// CapHistory: more than one message of one text.
	CapHistory

	// capLoose: a history in which calls and results do not pair.
	capLoose
	// capOdd: what no client sends: a tool or call without function, parts that do not belong to their message's role.
	capOdd

	capPublic = capLoose - 1
	capAll    = capOdd<<1 - 1
)

var capabilityNames = [...]string{ //nolint:gochecknoglobals // compiled table
	"tools", "tool_choice", "images", "image_urls", "streaming", "stop_words", "history",
}

// String returns the names, joined by "|", "none" for the empty set.
func (c Capabilities) String() string {
	var names []string
	for i, name := range capabilityNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}

	return strings.Join(names, "|")
}

// client is what was measured of the form in which a client of langchaingo takes a call.
type client struct {
	can Capabilities

	// The history.

	// pairs: a call and its result stand alone, in a message each.
	pairs bool
	// first: only the first part of an assistant's message is sent.
	first bool
	// render: without tools offered, calls and results cannot be sent, and are told as text.
	render bool
	// texts says in which messages only one text is sent, or taken.
	texts textRule
	// oneSystem: only the last system message is sent.
	oneSystem bool
	// names: a result is sent by the name of its function.
	names bool
	// cached: takes llms.CachedContent, in messages of the user.
	cached bool
	// generic: takes the role generic.
	generic bool
	ids     idRule

	// The options.

	// schema says what the parameters of a tool have to be.
	schema schemaRule
	// hottest temperature that the provider takes, 0 if the client does not send it or no limit is known.
	hottest float64
	// silentMax: the client sets a limit for the answer of its own, and does not say so.
	silentMax bool
}

type (
	textRule   uint8
	idRule     uint8
	schemaRule uint8
)

const (
	textAny     textRule = iota
	textReplies          // one text in messages of the system and the assistant
	textOne              // one text in every message
)

const (
	idAny  idRule = iota
	idWord        // letters, digits, _ and -, unique in the history
	idNine        // nine letters or digits, unique in the history; the provider's documentation, not measured
)

const (
	schemaAny    schemaRule = iota
	schemaObject            // may not be absent
	schemaPlain             // made of map[string]any and []any, with properties
)

const (
	capText = CapStreaming | CapStopWords | CapHistory
	capAny  = capAll // what is not measured is not refused
)

// clientTable is the second half of what was measured of the clients; the first is providerTable. Images by address
// are not given to googleai, whose client would fetch them itself, without the context.
var clientTable = [providerEnd]client{ //nolint:gochecknoglobals // compiled table
	ProviderOpenAI: {
		can: capText | CapTools | CapToolChoice | CapImages | CapImageURLs | capLoose, generic: true, hottest: 2,
	},
	ProviderAnthropic: {
		can: capText | CapTools | CapImages, pairs: true, first: true, render: true, texts: textReplies, cached: true,
		ids: idWord, schema: schemaObject, hottest: 1, silentMax: true,
	},
	ProviderGoogleAI: {
		can: capText | CapTools | CapImages, pairs: true, oneSystem: true, names: true, generic: true,
		schema: schemaPlain, hottest: 2,
	},
	ProviderMistral: {
		can: CapStreaming | CapHistory | CapTools, pairs: true, generic: true, ids: idNine, hottest: 1.5, silentMax: true,
	},
	ProviderOllama:      {can: capText | CapImages | capLoose, render: true, texts: textOne, generic: true},
	ProviderCohere:      {render: true},
	ProviderHuggingFace: {render: true},
	ProviderCloudflare:  {can: CapHistory | capLoose, render: true, texts: textOne, generic: true},
	ProviderLlamafile:   {can: capText | CapImages | capLoose, render: true, texts: textOne, generic: true},
	ProviderOther:       {can: capAny, generic: true, cached: true},
}

// Capabilities returns what the provider's client takes.
func (p Provider) Capabilities() Capabilities {
	if !p.valid() {
		return 0
	}

	return clientTable[p].can & capPublic
}

// Serves fails with [middleware.ReasonIneligible] if no candidate has all of needs, so that an agent which cannot work
// is refused when it is built: langchaingo's OpenAI-functions agent needs CapTools and CapHistory, its textual agents
// need CapStopWords.
func (m *Model) Serves(needs Capabilities) error {
	for _, c := range m.candidates {
		if needs&capPublic&^c.client.can == 0 {
			return nil
		}
	}

	return invalid("Requires", middleware.ReasonIneligible, "no candidate has "+(needs&capPublic).String())
}

// needsOf reads what a call needs of its candidate, once for all of them.
func needsOf(call *middleware.ModelCall) Capabilities {
	view := call.Options()
	needs := needsOfOptions(view)
	messages := call.Messages()
	if len(messages) > 1 || (len(messages) == 1 && len(messages[0].Parts) > 1) {
		needs |= CapHistory
	}
	for i := 0; i < len(messages); {
		end := turnEnd(messages, i)
		for _, m := range messages[i:end] {
			needs |= needsOfParts(m)
		}
		if !paired(messages[i:end]) {
			needs |= capLoose
		}
		i = end
	}

	return needs
}

// takes reports whether the client takes a call with these needs. What is told as text needs no pairs.
func (c *client) takes(needs Capabilities) bool {
	if c.render && needs&CapTools == 0 {
		needs &^= capLoose
	}

	return needs&^c.can == 0
}

func needsOfOptions(view middleware.OptionsView) (needs Capabilities) {
	if view.OffersTools() {
		switch choiceOf(view) {
		case choiceNone:
		case choiceForced:
			needs |= CapTools | CapToolChoice
		default:
			needs |= CapTools
		}
		for _, t := range view.Tools() {
			if t.Function == nil {
				needs |= capOdd
			}
		}
	}
	if view.StreamingFunc() != nil || view.StreamingReasoningFunc() != nil {
		needs |= CapStreaming
	}
	if len(view.StopWords()) > 0 {
		needs |= CapStopWords
	}

	return needs
}

func needsOfParts(m llms.MessageContent) (needs Capabilities) {
	for _, p := range m.Parts {
		if cached, ok := p.(llms.CachedContent); ok {
			p = cached.ContentPart
		}
		switch p := p.(type) {
		case llms.TextContent:
		case llms.BinaryContent:
			needs |= CapImages | oddUnless(!isResult(m))
		case llms.ImageURLContent:
			needs |= CapImageURLs | oddUnless(!isResult(m))
		case llms.ToolCall:
			needs |= oddUnless(m.Role == llms.ChatMessageTypeAI && p.FunctionCall != nil && p.FunctionCall.Name != "")
		case llms.ToolCallResponse:
			needs |= oddUnless(isResult(m))
		default:
			needs |= capOdd
		}
	}

	return needs
}

func oddUnless(ok bool) Capabilities {
	if ok {
		return 0
	}

	return capOdd
}
