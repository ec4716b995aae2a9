package fallback

import "regexp"

// cloudflareRoom: the client prints the body and no status, and of a stream nothing at all.
var cloudflareRoom = room{ //nolint:gochecknoglobals // compiled table
	inner:    regexp.MustCompile(`(?s)^error: \{"errors":\[\{"message":"(.*?)(?:","code":.*)?$`),
	messages: openaiMessages,
	bare:     openaiBare,
	sentences: []form{
		says(ClassOverloaded, `error: $|error: <html>`),
		says(ClassInvalidRequest, `only supports Text right now`),
	},
}
