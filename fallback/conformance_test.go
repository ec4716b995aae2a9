package fallback_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

// nextModel is the next handler of a chain as a candidate.
type nextModel struct{ next middleware.ModelHandler }

func (n nextModel) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	res, err := n.next(ctx, middleware.NewModelCall(messages, options...))
	if err != nil || res == nil {
		return nil, err
	}

	return res.Response, nil
}

func (n nextModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, n, prompt, options...)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, candidates := range map[string]int{"one candidate": 1, "two candidates": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Model(t, conformance.ModelSuite{
				MaxAttempts: candidates,
				New: func(t *testing.T) middleware.ModelMiddleware {
					t.Helper()

					return func(next middleware.ModelHandler) middleware.ModelHandler {
						if next == nil {
							return middleware.Chain[*middleware.ModelCall, *middleware.ModelResult]()(nil)
						}
						models := make([]llms.Model, candidates)
						for i := range models {
							models[i] = nextModel{next}
						}

						return build(t, fallback.Config{Candidates: list(models...)}).Handle
					}
				},
			})
		})
	}
}
