package fallback

import (
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// Bridge says how a call is brought into the form that a candidate's client takes. Every attempt goes over it, also at a
// single candidate: langchaingo's functions agent has no tools on anthropic without it, and cannot change the vendor in
// the middle of a run. The conversions, each only for the clients that need it (measured, see the table in the code):
//
//   - functions become tools, and are cleared; a choice that the client drops is honoured by leaving the tools out
//     ("none") or makes the candidate ineligible (a forced one);
//   - arguments in the history that are not a JSON object are wrapped into one; types and ids that are missing are made;
//     the role function becomes tool;
//   - an assistant message of several calls is split into pairs of call and result; where no tools are offered any more,
//     calls and results are told as text;
//   - several texts of one message are joined, several system messages too;
//   - the temperature is clamped to the provider's range, and a limit of the answer that the client would set without
//     saying so is set by [Bridge.MaxTokens];
//   - the model's name is set last.
//
// Of the answer, the choices that are blocks of one message are merged, missing ids and types of calls are made, and the
// older field for a single call is filled.
//
// Messages, options and responses that belong to somebody else are never changed, and what needs no change is not
// copied. A call that cannot be brought into the form makes the candidate ineligible for it: see [Capabilities].
type Bridge struct {
	// MaxTokens limits the answer where the caller does not. Default 0: 4096 tokens where the client would set its own
	// limit without saying so (anthropic 2048, mistral 4000), else none. At most 1,048,576.
	MaxTokens int
}

const (
	defaultMaxTokens = 4096
	mostMaxTokens    = 1 << 20
)

// bridge returns the messages, the same if nothing changes, and the further options with which c is asked.
func (c *candidate) bridge(
	messages []llms.MessageContent, view middleware.OptionsView,
) (bridged []llms.MessageContent, options []llms.CallOption) {
	options, offered := c.client.bridgeTools(view)
	options = append(options, c.bridgeLimits(view)...)

	return c.client.bridgeMessages(messages, offered), options
}

// bridgeLimits keeps temperature and length in the provider's bounds, and says what the client would hide.
func (c *candidate) bridgeLimits(view middleware.OptionsView) (options []llms.CallOption) {
	if hottest := c.client.hottest; hottest > 0 {
		if t := view.Temperature(); t > hottest {
			options = append(options, llms.WithTemperature(hottest))
		} else if t < 0 {
			options = append(options, llms.WithTemperature(0))
		}
	}
	limit := c.Bridge.MaxTokens
	if limit == 0 && c.client.silentMax {
		limit = defaultMaxTokens
	}
	if limit > 0 && view.MaxTokens() == 0 {
		options = append(options, llms.WithMaxTokens(limit))
	}

	return options
}
