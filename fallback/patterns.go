package fallback

import (
	"regexp"
	"strconv"
)

// The forms in which clients put a status into a message, anchored. (?s): bodies have newlines.
var statusForms = [providerEnd]*regexp.Regexp{ //nolint:gochecknoglobals // compiled table
	ProviderOpenAI: regexp.MustCompile(`(?s)^API returned unexpected status code: (\d{3})(?:: (.*))?$`),
	ProviderAnthropic: regexp.MustCompile(
		`(?s)^anthropic: failed to create message: API returned unexpected status code: (\d{3})(?:: (.*))?$`),
	ProviderGoogleAI:    regexp.MustCompile(`(?s)^googleapi: Error (\d{3}): ?(.*)$`),
	ProviderMistral:     regexp.MustCompile(`(?s)^\(HTTP Error (\d{3})\) (.*)$`),
	ProviderHuggingFace: regexp.MustCompile(`(?s)^failed to run inference: unexpected status code: (\d{3})(?:, body: (.*))?$`),
}

// embeddedMessage finds the message in a body that a client printed whole.
var embeddedMessage = regexp.MustCompile(`(?s)^\{"object":"error","message":"(.*)$`)

func messageStatus(p Provider, text string) (status int, message string) {
	if !p.valid() || statusForms[p] == nil {
		return 0, text
	}
	found := statusForms[p].FindStringSubmatch(text)
	if found == nil {
		return 0, text
	}
	status, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, text
	}
	message = found[2]
	if inner := embeddedMessage.FindStringSubmatch(message); inner != nil {
		message = inner[1]
	}

	return status, message
}

// What providers say where one status has several meanings. Anchored at the begin of the provider's message, because
// further inside of it may stand what the user wrote.
var messageForms = [...]struct { //nolint:gochecknoglobals // compiled table
	class Class
	form  *regexp.Regexp
}{
	{ClassContextLength, regexp.MustCompile(`^(?:This model's maximum context length is \d` +
		`|prompt is too long: \d|input length and .max_tokens. exceed context limit` +
		`|Input tokens exceed the configured limit|Requested token count exceeds` +
		`|The input token count \(?\d+\)? exceeds the maximum)`)},
	{ClassQuota, regexp.MustCompile(`^(?:You exceeded your current quota` +
		`|Your account is not active, please check your billing|Your credit balance is too low` +
		`|Billing hard limit has been reached|Number of request tokens has exceeded your daily)`)},
	{ClassContentFilter, regexp.MustCompile(`^(?:The response was filtered due to the prompt triggering` +
		`|Output blocked by content filtering policy|Your request was rejected as a result of our safety system)`)},
}

func messageClass(message string) Class {
	for i := range messageForms {
		if messageForms[i].form.MatchString(message) {
			return messageForms[i].class
		}
	}

	return 0
}

// sentences are what clients say without status and chain. Whole sentences, or the fixed begin of one.
var sentences = [...]struct { //nolint:gochecknoglobals // compiled table
	provider Provider
	class    Class
	form     *regexp.Regexp
}{
	{ProviderOpenAI, ClassNetwork, regexp.MustCompile(`^network error: failed to reach API server$`)},
	{ProviderOpenAI, ClassTimeout, regexp.MustCompile(
		`^request timeout: (?:API call exceeded deadline|network operation exceeded timeout)$`)},
	{ProviderOpenAI, ClassBadResponse, regexp.MustCompile(`^empty response$`)},
	{ProviderOpenAI, ClassInvalidRequest, regexp.MustCompile(
		`^(?:expected exactly one part for role |expected part of type ToolCallResponse for role ` +
			`|role \S+ not supported$|failed to convert llms tool to openai tool: )`)},
	{ProviderAnthropic, ClassBadResponse, regexp.MustCompile(`^no response$`)},
	{ProviderAnthropic, ClassBadResponse, regexp.MustCompile(
		`^anthropic: failed to create message: (?:received error event: |parse response: |failed to (?:parse|process) stream event: )`)},
	{ProviderAnthropic, ClassInvalidRequest, regexp.MustCompile(`^anthropic: failed to process messages: `)},
	{ProviderGoogleAI, ClassContentFilter, regexp.MustCompile(`^blocked: (?:candidate|prompt): `)},
	{ProviderGoogleAI, ClassBadResponse, regexp.MustCompile(`^(?:no content in generation response$|proto:)`)},
	{ProviderMistral, ClassBadResponse, regexp.MustCompile(`^unexpected response from Mistral SDK`)},
	{ProviderCohere, ClassBadResponse, regexp.MustCompile(`^(?:empty response$|parse response: )`)},
	{ProviderCohere, ClassNotFound, regexp.MustCompile(`^model not found`)},
}

// sentenceClass ends the classification: what nobody knows is unknown. Ollama's errors are the bare message.
func sentenceClass(p Provider, text string) Class {
	for i := range sentences {
		if s := &sentences[i]; s.provider == p && s.form.MatchString(text) {
			return s.class
		}
	}
	if p == ProviderOllama {
		if c := messageClass(text); c != 0 {
			return c
		}
	}

	return ClassUnknown
}
