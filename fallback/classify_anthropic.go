package fallback

import "regexp"

var anthropicRoom = room{ //nolint:gochecknoglobals // compiled table
	status: regexp.MustCompile(
		`(?s)^anthropic: failed to create message: API returned unexpected status code: (\d{3})(?:: (.*))?$`),
	messages: []form{
		says(ClassContextLength, "prompt is too long: \\d|input length and .max_tokens. exceed context limit"),
		says(ClassQuota, `Your credit balance is too low|Number of request tokens has exceeded your daily`),
		says(ClassContentFilter, `Output blocked by content filtering policy`),
	},
	sentences: []form{
		says(ClassBadResponse, `no response$`),
		says(ClassBadResponse, `anthropic: failed to create message: `+
			`(?:received error event: |parse response: |failed to (?:parse|process) stream event: )`),
		says(ClassInvalidRequest, `anthropic: failed to process messages: `),
	},
}
