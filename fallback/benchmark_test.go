package fallback_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// plain is the cheapest model that resolves its options, as every client does.
type plain struct{ resp *llms.ContentResponse }

func (p plain) GenerateContent(
	_ context.Context, _ []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}

	return p.resp, nil
}

func (p plain) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }

func BenchmarkHandle(b *testing.B) {
	model := plain{&llms.ContentResponse{Choices: []*llms.ContentChoice{choice("an answer")}}}
	messages := hello()
	options := []llms.CallOption{llms.WithTemperature(0.5)}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = model.GenerateContent(b.Context(), messages, options...)
		}
	})
	run := func(name string, cfg fallback.Config, messages []llms.MessageContent) {
		m := build(b, cfg)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Handle(b.Context(), middleware.NewModelCall(messages, options...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("one candidate", fallback.Config{Candidates: list(model)}, messages)
	run("two candidates", fallback.Config{Candidates: list(model, model)}, messages)
	call := llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
		llms.ToolCall{ID: "1", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"__arg1":"Oslo"}`}},
	}}
	long := messages
	for range 100 {
		long = append(long, call)
	}
	run("history of 100 calls", fallback.Config{Candidates: list(model)}, long)
}
