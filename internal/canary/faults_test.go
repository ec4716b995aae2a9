package canary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// talkative says its text in every way that telemetry and logs might ask for.
type talkative struct{ text string }

func (e talkative) Error() string                { return e.text }
func (e talkative) ErrorType() string            { return e.text }
func (e talkative) String() string               { return e.text }
func (e talkative) GoString() string             { return e.text }
func (e talkative) Format(s fmt.State, _ rune)   { fmt.Fprint(s, e.text) }
func (e talkative) MarshalText() ([]byte, error) { return []byte(e.text), nil }
func (e talkative) MarshalJSON() ([]byte, error) { return json.Marshal(e.text) }

// panicking panics with its text as soon as somebody asks for it.
type panicking struct{ text string }

func (e panicking) Error() string   { panic(e.text) }
func (e panicking) Is(error) bool   { panic(e.text) }
func (e panicking) Unwrap() []error { panic(e.text) }

// released gives its text to the model.
type released struct{ text string }

func (e released) Error() string       { return e.text }
func (e released) Observation() string { return e.text }

// failing is a client that asks, and then fails in a way of its own.
type failing struct {
	llms.Model

	err   error
	panic any
}

func (f failing) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	_, _ = f.Model.GenerateContent(ctx, messages, options...)
	inside.enterError(f.err)
	if f.panic != nil {
		inside.enter(fmt.Sprint(f.panic))
		panic(f.panic)
	}

	return nil, f.err
}

func returns(text string) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { return text, nil }
}

func panics(value any) func(context.Context, string) (string, error) {
	return func(context.Context, string) (string, error) { panic(value) }
}

// onTurn replaces what the agent's model says on its nth turn.
func onTurn(n int, say func(turn) misbehave.Reply) func(turn, *misbehave.Reply) {
	return func(t turn, r *misbehave.Reply) {
		if t.n == n && t.kind != stream {
			*r = say(t)
		}
	}
}

// last replaces what the model says at the end.
func last(say func(turn) misbehave.Reply) func(turn, *misbehave.Reply) {
	return func(t turn, r *misbehave.Reply) {
		if t.kind == stream || (t.n > 1 && (t.kind != curious || t.final)) {
			*r = say(t)
		}
	}
}

func every(change func(*misbehave.Reply)) func(turn, *misbehave.Reply) {
	return func(_ turn, r *misbehave.Reply) { change(r) }
}

func apiError(status int, text string) func(*misbehave.Reply) {
	return func(r *misbehave.Reply) {
		*r = misbehave.Reply{Status: status, Error: &misbehave.APIError{Message: text, Type: text, Code: text}}
	}
}

// unknownEvents is a stream whose events the anthropic client would print, and
// the openai client skips.
func unknownEvents(text string) func(*misbehave.Reply) {
	event, err := json.Marshal(map[string]string{"type": text, "x": text})
	if err != nil {
		panic(err)
	}

	return func(r *misbehave.Reply) {
		*r = misbehave.Reply{Raw: &misbehave.Raw{
			ContentType: "text/event-stream",
			Body: "event: x\ndata: " + string(event) + "\n\n" +
				"data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n" +
				"data: " + string(event) + "\n\n: " + text + "\n\nretry: " + text + "\n\n",
		}}
	}
}

// everyPart is a conversation with the secret in every kind of part.
func everyPart(phrase, word string) []llms.MessageContent {
	return []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, phrase),
		llms.TextParts(llms.ChatMessageTypeHuman, phrase),
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.ToolCall{ID: "call-1", Type: "function", FunctionCall: &llms.FunctionCall{Name: word, Arguments: fmt.Sprintf(`{"a":%q}`, word)}},
		}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: "call-1", Name: word, Content: phrase},
		}},
		llms.TextParts(llms.ChatMessageTypeHuman, word),
	}
}

// alsoSink lets handoffs go on to a sink that fails.
func alsoSink(fail func() error) func(*interlock.Config) {
	return func(c *interlock.Config) {
		for _, sink := range []*escalation.Sink{&c.Handoffs, &c.Actions.Sink} {
			file := *sink
			*sink = escalation.SinkFunc(func(ctx context.Context, h escalation.Handoff) error {
				if err := file.Deliver(ctx, h); err != nil {
					return err
				}

				return fail()
			})
		}
	}
}

// store0 is the time at which handoffs are read.
func (*world) store0() time.Time { return time.Unix(1_800_000_000, 0) }
