package escalation_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// The limiter stands inside of the escalation breaker and outside of the
// fallback. What is too much for the window is left out, oldest first, and a
// summary stands in for it.
func ExampleNewContextLimiter() {
	limiter, err := escalation.NewContextLimiter(escalation.ContextConfig{
		Window: 1000, // tokens, of which 40 % may be filled
		Summary: func(_ context.Context, dropped []llms.MessageContent) (string, error) {
			return fmt.Sprintf("%d questions and answers about the weather", len(dropped)/2), nil
		},
		Observer: middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
			fmt.Printf("%v %v, %d left out, %.2f full\n", d.Verdict, d.Reason.String(), d.Count, d.Fill)
		}),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	esc, err := escalation.New(escalation.Config{})
	if err != nil {
		fmt.Println(err)

		return
	}
	model, err := middleware.NewModel(func(_ context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		for _, m := range call.Messages() {
			text, _ := m.Parts[0].(llms.TextContent)
			line, _, _ := strings.Cut(text.Text, "  ")
			fmt.Printf("  %s: %s\n", m.Role, strings.ReplaceAll(line, "\n", " "))
		}

		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "sun"}}}}, nil
	}, middleware.ModelConfig{Chain: middleware.Chain(esc.Model(), limiter.Model())})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: workflow})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()

	history := []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "Be brief."),
		llms.TextParts(llms.ChatMessageTypeHuman, "Tell me the weather of cities."),
	}
	for _, city := range []string{"Oslo", "Bergen", "Turku", "Malmö"} {
		history = append(history,
			llms.TextParts(llms.ChatMessageTypeHuman, "The weather of "+city+"?"),
			llms.TextParts(llms.ChatMessageTypeAI, "The weather of "+city+" is fine."+strings.Repeat("  Tell me the weather of cities", 10)))
	}
	history = append(history, llms.TextParts(llms.ChatMessageTypeHuman, "Where is it best?"))
	if _, err := model.GenerateContent(ctx, history); err != nil {
		fmt.Println(err)
	}

	// Output:
	// modify context_full, 4 left out, 0.50 full
	//   system: Be brief.
	//   human: Tell me the weather of cities.
	//   human: [Summary of earlier turns that were left out] 2 questions and answers about the weather
	//   human: The weather of Turku?
	//   ai: The weather of Turku is fine.
	//   human: The weather of Malmö?
	//   ai: The weather of Malmö is fine.
	//   human: Where is it best?
}

// An embedder of langchaingo's measures drift by meaning.
func ExampleEmbeddingDrift() {
	byLength := embedder(func(texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, text := range texts {
			vectors[i] = []float32{float32(len(text)), 5}
		}

		return vectors, nil
	})
	drift, err := escalation.EmbeddingDrift(byLength)
	if err != nil {
		fmt.Println(err)

		return
	}
	_, err = escalation.NewContextLimiter(escalation.ContextConfig{Window: 128_000, Drift: drift})
	fmt.Println(err)
	near, _ := drift(context.Background(), "sort the mail", []string{"sorted"})
	fmt.Printf("%.2f\n", near)

	// Output:
	// <nil>
	// 0.05
}
