package middleware

import (
	"context"
	"slices"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
)

// ModelCall is one call of a model. It is immutable: the With methods and
// Append return another call. It owns its option slice, so callers that share
// one are safe; the messages are the caller's and are not changed.
type ModelCall struct {
	mark

	messages  []llms.MessageContent
	options   []llms.CallOption
	candidate ident.Label
	attempt   int

	once sync.Once
	view llms.CallOptions
}

// NewModelCall returns a call with its own copy of options; nil options, which
// panic in clients, are dropped.
func NewModelCall(messages []llms.MessageContent, options ...llms.CallOption) *ModelCall {
	return &ModelCall{messages: messages, options: appendOptions(nil, options), attempt: 1}
}

// Messages returns the messages. They are content, and read-only.
func (c *ModelCall) Messages() []llms.MessageContent { return c.messages }

// Candidate returns the label of the model that is asked; zero before the
// fallback has chosen one.
func (c *ModelCall) Candidate() ident.Label { return c.candidate }

// Attempt returns the number of the attempt, from 1.
func (c *ModelCall) Attempt() int { return c.attempt }

// CallOptions returns the options to hand on to a model, in order. It is the
// only form that may be handed on: a resolved [llms.CallOptions] given back by
// llms.WithOptions wipes the defaults of clients (measured: an empty model name
// and zero tokens with mistral and googleai). The slice is the caller's own.
func (c *ModelCall) CallOptions() []llms.CallOption { return slices.Clone(c.options) }

// AppendCallOptions is CallOptions into a slice of the caller's own, for paths that allocate nothing.
func (c *ModelCall) AppendCallOptions(to []llms.CallOption) []llms.CallOption {
	return append(to, c.options...)
}

// Options returns a read-only view of what the options say. They are applied
// at most once per call, at the first use of the view: applying them can write
// into a metadata map of the caller.
func (c *ModelCall) Options() OptionsView {
	c.once.Do(func() {
		for _, o := range c.options {
			o(&c.view)
		}
	})

	return OptionsView{o: &c.view}
}

// Append returns the call with further options, which win over earlier ones.
func (c *ModelCall) Append(options ...llms.CallOption) *ModelCall {
	d := c.copy()
	d.options = appendOptions(c.options, options)

	return d
}

// WithMessages returns the call with other messages.
func (c *ModelCall) WithMessages(messages []llms.MessageContent) *ModelCall {
	d := c.copy()
	d.messages = messages

	return d
}

// WithCandidate returns the call as attempt number attempt at a candidate.
func (c *ModelCall) WithCandidate(label ident.Label, attempt int) *ModelCall {
	d := c.copy()
	d.candidate, d.attempt = label, attempt

	return d
}

func (c *ModelCall) copy() *ModelCall {
	d := &ModelCall{messages: c.messages, options: c.options, candidate: c.candidate, attempt: c.attempt}
	d.stage.Store(c.stage.Load())

	return d
}

func appendOptions(base, more []llms.CallOption) []llms.CallOption {
	own := make([]llms.CallOption, len(base), len(base)+len(more))
	copy(own, base)
	for _, o := range more {
		if o != nil {
			own = append(own, o)
		}
	}

	return own
}

// OptionsView reads the options of a [ModelCall]. It has no way to hand the
// resolved options on.
type OptionsView struct{ o *llms.CallOptions }

// Model returns the model name asked for, "" if none.
func (v OptionsView) Model() string { return v.o.Model }

// MaxTokens returns the limit of the answer, 0 if none.
func (v OptionsView) MaxTokens() int { return v.o.MaxTokens }

// Temperature returns the temperature; 0 also if none was set.
func (v OptionsView) Temperature() float64 { return v.o.Temperature }

// StopWords returns a copy of the stop words.
func (v OptionsView) StopWords() []string { return slices.Clone(v.o.StopWords) }

// StreamingFunc returns the caller's function for chunks, nil if the call does
// not stream. To intercept, append another one.
func (v OptionsView) StreamingFunc() func(ctx context.Context, chunk []byte) error {
	return v.o.StreamingFunc
}

// StreamingReasoningFunc is StreamingFunc for reasoning chunks.
func (v OptionsView) StreamingReasoningFunc() func(ctx context.Context, reasoning, chunk []byte) error {
	return v.o.StreamingReasoningFunc
}

// Functions returns a copy of the offered functions (the older form of tools).
func (v OptionsView) Functions() []llms.FunctionDefinition { return slices.Clone(v.o.Functions) }

// Tools returns a copy of the offered tools.
func (v OptionsView) Tools() []llms.Tool { return slices.Clone(v.o.Tools) }

// ToolChoice returns the forced choice of a tool, nil if none.
func (v OptionsView) ToolChoice() any { return v.o.ToolChoice }

// FunctionCallBehavior returns the older form of ToolChoice, "" if none.
func (v OptionsView) FunctionCallBehavior() llms.FunctionCallBehavior {
	return v.o.FunctionCallBehavior
}

// JSONMode reports whether a JSON answer was asked for.
func (v OptionsView) JSONMode() bool { return v.o.JSONMode }

// N returns how many choices were asked for, 0 if not said.
func (v OptionsView) N() int { return v.o.N }

// Offers reports whether a tool or function of this name was offered.
func (v OptionsView) Offers(name string) bool {
	for i := range v.o.Tools {
		if f := v.o.Tools[i].Function; f != nil && f.Name == name {
			return true
		}
	}
	for i := range v.o.Functions {
		if v.o.Functions[i].Name == name {
			return true
		}
	}

	return false
}

// OffersTools reports whether any tool or function was offered.
func (v OptionsView) OffersTools() bool { return len(v.o.Tools)+len(v.o.Functions) > 0 }

// ModelResult is what a model gave. Response is never nil in a result without
// error and has at least one choice, none of them nil.
type ModelResult struct {
	Response *llms.ContentResponse
	// Candidate is the label of the model that answered.
	Candidate ident.Label
	// InputTokens and OutputTokens are the provider's count over all attempts
	// of the call, rejected ones too; 0 is unknown.
	InputTokens, OutputTokens int
}
