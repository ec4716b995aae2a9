package fallback

import "regexp"

var llamafileRoom = room{ //nolint:gochecknoglobals // compiled table
	status:   regexp.MustCompile(`^(\d{3}) ([A-Z][A-Za-z' -]*)$`),
	messages: openaiMessages,
	bare:     openaiBare,
	sentences: []form{
		says(ClassBadResponse, `failed to unmarshal JSON: `),
		says(ClassOverloaded, `slot unavailable$`),
		says(ClassInvalidRequest, `only support Text and BinaryContent parts right now`),
	},
}
