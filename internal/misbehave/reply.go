package misbehave

import (
	"strings"
	"time"
	"unicode"
)

// Reply says how one request is answered. The zero Reply is a healthy answer with empty text. Whether it is streamed is
// what the request asks for.
type Reply struct {
	// Text is what the model says, alone or beside Calls. Default "": no text.
	Text string
	// Chunks is how a stream cuts the text; joined, they replace Text. Default nil: Text, one word per chunk.
	Chunks []string
	// Calls are the tool calls, several of them being parallel. Default nil: none.
	Calls []Call
	// Legacy sends the first call as OpenAI's function_call. Default false: only if the request offers functions and
	// no tools. Anthropic has no such form and ignores it.
	Legacy bool
	// Finish is the reason given for the end. Default "": what fits text or calls.
	Finish Finish
	// Usage is the token count. Default nil: counted from the sizes of request and reply.
	Usage *Usage
	// Model is the model named in the answer. Default "": the one asked for.
	Model string

	// Status is the HTTP status. Default 0: 200. With any other, the body is an error in the vendor's shape.
	Status int
	// Headers are added to the response or replace what it has. Default nil: none.
	Headers map[string]string
	// Error is what an error body or FaultErrorEvent says. Default nil: what fits Status.
	Error *APIError
	// Raw replaces the whole body, whatever the status. Default nil: no.
	Raw *Raw

	// DelayHeaders passes before the first byte of the response. Default 0.
	DelayHeaders time.Duration
	// DelayFirst passes between the headers and the body, that is, before the first token. Default 0.
	DelayFirst time.Duration
	// DelayChunk passes between two content chunks of a stream. Default 0.
	DelayChunk time.Duration

	// Fault is how the answer goes wrong. Default FaultNone.
	Fault Fault
	// At is where the fault happens: the number of content chunks of a stream, or of body bytes otherwise, that come
	// before it. Default 0: at the start. Beyond the end means before the last thing: the finish event, or the last byte.
	At int
}

// Call is a tool call, as sent or as received.
type Call struct {
	// ID is the call's id. In a reply, "" makes one that is unique for the server, and NoID sends an empty one.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is JSON text; in a reply it is sent as it is, so cut arguments are made by cutting them here, usually
	// with FinishLength. A plain Anthropic answer cannot carry invalid JSON and has an empty object then.
	Arguments string
}

// NoID as the ID of a call in a reply sends a call with an empty id.
const NoID = "<no id>"

// Usage is a token count.
type Usage struct{ Prompt, Completion int }

// APIError is the content of an error body. Empty fields are filled with what fits the status.
type APIError struct{ Type, Code, Message string }

// Raw is a body sent as it is, such as a proxy's HTML page. The zero Raw is an empty body without a content type.
type Raw struct{ ContentType, Body string }

// Finish is the reason for the end of an answer, under OpenAI's names. For Anthropic they are translated; any other
// value is sent as it is to both.
type Finish string

// The finish reasons that are translated.
const (
	FinishAuto          Finish = ""               // Stop, or tool calls if there are any.
	FinishStop          Finish = "stop"           // Anthropic end_turn.
	FinishLength        Finish = "length"         // Anthropic max_tokens.
	FinishToolCalls     Finish = "tool_calls"     // Anthropic tool_use.
	FinishContentFilter Finish = "content_filter" // Anthropic refusal.
	FinishNull          Finish = "null"           // JSON null: no reason given.
)

func (r *Reply) text() string {
	if r.Chunks != nil {
		return strings.Join(r.Chunks, "")
	}
	return r.Text
}

func (r *Reply) textChunks() []string {
	if r.Chunks != nil {
		return r.Chunks
	}
	return words(r.Text)
}

func (r *Reply) usage(request *Request) Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	completion := len(r.textChunks())
	for _, call := range r.Calls {
		completion += len(pieces(call.Arguments))
	}
	const bytesPerToken = 4
	return Usage{Prompt: len(request.raw)/bytesPerToken + 1, Completion: completion}
}

func (r *Reply) model(request *Request) string {
	if r.Model != "" {
		return r.Model
	}
	return request.Model
}

// words cuts a text as tokenizers do, with the space in front of the word.
func words(text string) []string {
	var chunks []string
	start, inWord := 0, false
	for i, c := range text {
		space := unicode.IsSpace(c)
		if space && inWord {
			chunks = append(chunks, text[start:i])
			start = i
		}
		inWord = !space
	}
	if start < len(text) {
		chunks = append(chunks, text[start:])
	}
	return chunks
}

// pieces cuts arguments into short deltas at rune boundaries, since half a rune does not survive JSON.
func pieces(arguments string) []string {
	const size = 12
	var chunks []string
	runes := []rune(arguments)
	for len(runes) > size {
		chunks, runes = append(chunks, string(runes[:size])), runes[size:]
	}
	if len(runes) > 0 {
		chunks = append(chunks, string(runes))
	}
	return chunks
}
