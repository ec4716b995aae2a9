package misbehave

import (
	"bytes"
	"net/http"
	"time"
)

// Request is a received request in a form that does not depend on the vendor. Its slices are shared with the log: read
// them only. Of a body that is not valid JSON, only what does not come from the body is set.
type Request struct {
	// Index is the place in the log, from 0.
	Index int
	// At is when the request had been read, since the start of the server.
	At time.Duration
	// Path is the URL's path.
	Path string
	// Vendor is whose protocol the path belongs to; VendorUnknown for a path of neither.
	Vendor Vendor
	// Stream is whether a stream is asked for.
	Stream bool
	// Model is the model asked for.
	Model string
	// Messages is the history. Anthropic's system prompt is a first message of role system.
	Messages []Message
	// Tools are the names of the offered tools and functions, in order.
	Tools []string
	// Stop are the stop words.
	Stop []string
	// MaxTokens is the limit asked for; 0 for none.
	MaxTokens int
	// Temperature is nil if it was not sent.
	Temperature *float64
	// Violation is the first rule that the request breaks; NoViolation for none.
	Violation Violation
	// Answer is how the request is answered: known before the client sees the first byte. It is AnswerUndecided only in
	// the argument of a script and in a log read while a script decides.
	Answer Answer
	// Fault is the scripted fault.
	Fault Fault
	// Gone is whether the client left before its answer was complete. It settles when the answer ends: see AwaitIdle.
	Gone bool

	raw          []byte
	header       http.Header
	legacy       bool // OpenAI: functions and no tools are offered.
	includeUsage bool // OpenAI: stream_options.include_usage.
}

// Message is one entry of the history. An Anthropic message with results and text keeps both.
type Message struct {
	Role    string
	Text    string
	Calls   []Call
	Results []Result
}

// Result is a tool's result. ID is the id of its call; for the legacy form, the function's name.
type Result struct{ ID, Text string }

// Raw is a copy of the body as it was received, for scans over everything that left the process.
func (r Request) Raw() []byte { return bytes.Clone(r.raw) }

// Header is a copy of the request's header.
func (r Request) Header() http.Header { return r.header.Clone() }

// Results are all tool results in the history, in order: a scripted model goes by their number.
func (r Request) Results() []Result {
	var results []Result
	for _, m := range r.Messages {
		results = append(results, m.Results...)
	}
	return results
}

// Last is the last message, or the zero Message.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Vendor is whose protocol is spoken.
type Vendor string

// The vendors.
const (
	VendorUnknown   Vendor = ""
	VendorOpenAI    Vendor = "openai"
	VendorAnthropic Vendor = "anthropic"
)

// Answer is how a request was answered.
type Answer string

// The answers.
const (
	AnswerUndecided   Answer = ""             // The script has not been asked yet.
	AnswerScripted    Answer = "scripted"     // By the script; Request.Fault says with which fault.
	AnswerStatus      Answer = "status"       // By the script with an HTTP status other than 200.
	AnswerViolation   Answer = "violation"    // Refused for its violation.
	AnswerUnroutable  Answer = "unroutable"   // 404 or 405: not a path or method of a vendor.
	AnswerScriptPanic Answer = "script_panic" // 500: the script panicked.
)
