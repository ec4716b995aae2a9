package fallback

import "regexp"

// ollamaRoom: errors are the bare message; only a body without one leaves the status line.
var ollamaRoom = room{ //nolint:gochecknoglobals // compiled table
	status:   regexp.MustCompile(`^(\d{3}) ([A-Z][A-Za-z' -]*)$`),
	messages: openaiMessages,
	bare: append([]form{
		says(ClassNotFound, `model ["'][^"']*["'] not found`),
		says(ClassOverloaded, `server busy, please try again|an error was encountered while running the model: `),
	}, openaiBare...),
	sentences: []form{
		says(ClassInvalidRequest, `only support Text and BinaryContent parts right now`),
	},
}
