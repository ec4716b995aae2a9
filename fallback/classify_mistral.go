package fallback

import "regexp"

// mistralRoom: the client repeats a request whose body it has used up, and so loses the status of 429 and 5xx.
var mistralRoom = room{ //nolint:gochecknoglobals // compiled table
	status: regexp.MustCompile(`(?s)^\(HTTP Error (\d{3})\) (.*)$`),
	inner:  regexp.MustCompile(`(?s)^\{"object":"error","message":"(.*)$`),
	messages: append([]form{
		says(ClassContextLength, `Prompt contains \d+ tokens`),
		says(ClassNotFound, `Invalid model: `), // a 400
	}, openaiMessages...),
	sentences: []form{
		says(ClassOverloaded, `Post "[^"]*": http: ContentLength=\d+ with Body length 0$`),
		says(ClassBadResponse, `unexpected response from Mistral SDK|error decoding stream response: `),
	},
}
