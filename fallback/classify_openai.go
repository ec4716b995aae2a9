package fallback

import "regexp"

// openaiMessages are OpenAI's words, which servers that speak its protocol often share.
var openaiMessages = []form{ //nolint:gochecknoglobals // compiled table
	says(ClassContextLength, `This model's maximum context length is \d|Input tokens exceed the configured limit|`+
		`Requested token count exceeds`),
	says(ClassQuota, `You exceeded your current quota|Your account is not active, please check your billing|`+
		`Billing hard limit has been reached`),
	says(ClassContentFilter, `The response was filtered due to the prompt triggering|`+
		`Your request was rejected as a result of our safety system`),
}

// openaiBare are OpenAI's words for what its status would say, for clients that keep the message alone.
var openaiBare = []form{ //nolint:gochecknoglobals // compiled table
	says(ClassRateLimited, `Rate limit reached for `),
	says(ClassOverloaded, `The server had an error while processing your request|The engine is currently overloaded|`+
		`Overloaded$|Request timed out\.$|The resource was updated by another request\.$`),
	says(ClassAuth, `Incorrect API key provided: |Country, region, or territory not supported$`),
	says(ClassNotFound, "The model ['`][^'`]*['`] does not exist"),
	says(ClassInvalidRequest, `Invalid value for '|Payload too large$|Unprocessable Entity$`),
}

// openaiRoom: the cause of everything before the answer's body is lost.
var openaiRoom = room{ //nolint:gochecknoglobals // compiled table
	status:   regexp.MustCompile(`(?s)^API returned unexpected status code: (\d{3})(?:: (.*))?$`),
	messages: openaiMessages,
	sentences: []form{
		says(ClassNetwork, `network error: failed to reach API server$`),
		says(ClassTimeout, `request timeout: (?:API call exceeded deadline|network operation exceeded timeout)$`),
		says(ClassBadResponse, `empty response$`),
		says(ClassInvalidRequest, `expected exactly one part for role |expected part of type ToolCallResponse for role |`+
			`role \S+ not supported$|failed to convert llms tool to openai tool: `),
	},
}
