package fallback_test

import (
	"context"
	"testing"
	"time"

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

func answers() plain {
	return plain{&llms.ContentResponse{Choices: []*llms.ContentChoice{choice("an answer")}}}
}

// unlimited is a configuration whose attempts have no limits of their own.
func unlimited(models ...llms.Model) fallback.Config {
	return fallback.Config{
		Candidates:     list(models...),
		AttemptTimeout: fallback.NoLimit, FirstToken: fallback.NoLimit, Idle: fallback.NoLimit,
	}
}

// The rows are compared within one run: "limits off" less "bare" is what the model costs; "default limits" less "bare"
// is held against "context.WithTimeout" less "bare".
func BenchmarkHealthy(b *testing.B) {
	model, messages := answers(), hello()
	options := []llms.CallOption{llms.WithTemperature(0.5)}
	asks := func(m llms.Model) func(*testing.B) {
		return func(b *testing.B) {
			b.Helper()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.GenerateContent(b.Context(), messages, options...); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("bare", asks(model))
	b.Run("limits off", asks(build(b, unlimited(model))))
	b.Run("limits off, two candidates", asks(build(b, unlimited(model, model))))
	b.Run("default limits", asks(build(b, fallback.Config{Candidates: list(model)})))
	b.Run("context.WithTimeout", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			_, _ = model.GenerateContent(ctx, messages, options...)
			cancel()
		}
	})
}

func BenchmarkHandle(b *testing.B) {
	m, messages := build(b, unlimited(answers())), hello()
	b.Run("given call", func(b *testing.B) {
		call := middleware.NewModelCall(messages, llms.WithTemperature(0.5))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Handle(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
	})
	long := messages
	for range 100 {
		long = append(long, llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.ToolCall{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"__arg1":"Oslo"}`}},
		}}, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: "1", Name: "f", Content: "rain"},
		}})
	}
	b.Run("history of 100 calls", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Handle(b.Context(), middleware.NewModelCall(long)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A healthy call allocates three times more than the bare model: the call, its options, the attempt.
//
//nolint:paralleltest // AllocsPerRun counts those of everybody
func TestHealthyCallAllocations(t *testing.T) {
	model, messages := answers(), hello()
	options := []llms.CallOption{llms.WithTemperature(0.5)}
	allocations := func(m llms.Model) float64 {
		return testing.AllocsPerRun(100, func() {
			if _, err := m.GenerateContent(t.Context(), messages, options...); err != nil {
				t.Fatal(err)
			}
		})
	}
	bare := allocations(model)
	if more := allocations(build(t, unlimited(model, model))) - bare; more > 3 {
		t.Errorf("%v allocations more with limits off", more)
	}
	if more := allocations(build(t, fallback.Config{Candidates: list(model)})) - bare; more > 8 {
		t.Errorf("%v allocations more with the default limits", more)
	}
}
