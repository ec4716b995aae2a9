package fallback

import "regexp"

var huggingfaceRoom = room{ //nolint:gochecknoglobals // compiled table
	status:   regexp.MustCompile(`(?s)^failed to run inference: unexpected status code: (\d{3})(?:, body: (.*))?$`),
	inner:    regexp.MustCompile(`(?s)^\{"error":"(.*)$`),
	messages: openaiMessages,
	sentences: []form{
		says(ClassBadResponse, `empty response$`),
	},
}
