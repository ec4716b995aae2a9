package escalation

import (
	"context"
	"math"
	"unicode/utf8"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Embedder makes a vector of each text. Those of langchaingo's package
// embeddings are ones.
type Embedder interface {
	EmbedDocuments(ctx context.Context, texts []string) ([][]float32, error)
}

// maxEmbedded bounds a text that is embedded, in bytes: models take only so
// much, and some refuse more.
const maxEmbedded = 8 << 10

// EmbeddingDrift returns a [DriftFunc] that is 1 − the cosine of the embeddings
// of the task and of the turns (their mean), not below 0 nor above 1. It
// embeds once per model call, the first 8 KiB of each text; empty texts are left
// out. It fails where the embedder does, or gives vectors that are missing, of
// different lengths, zero or not finite. A nil embedder is a [ConfigError].
func EmbeddingDrift(e Embedder) (DriftFunc, error) {
	if e == nil {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "Embedder", bound: "set"}
	}

	return func(ctx context.Context, task string, turns []string) (float64, error) {
		texts := []string{firstBytes(task)}
		for _, t := range turns {
			if t != "" {
				texts = append(texts, firstBytes(t))
			}
		}
		if texts[0] == "" || len(texts) == 1 {
			return 0, nil // nothing to compare
		}
		vectors, err := e.EmbedDocuments(ctx, texts)
		if err != nil {
			return 0, err //nolint:wrapcheck // its text is not rendered
		}
		if len(vectors) != len(texts) {
			return 0, middleware.NewFailure(middleware.ComponentContext, middleware.ReasonDetectorFailed, ident.Label{})
		}

		return cosineDrift(vectors[0], vectors[1:])
	}, nil
}

// cosineDrift is that of a and the mean direction of bs.
func cosineDrift(a []float32, bs [][]float32) (float64, error) {
	mean := make([]float64, len(a))
	for _, b := range bs {
		if len(b) != len(a) {
			return 0, middleware.NewFailure(middleware.ComponentContext, middleware.ReasonDetectorFailed, ident.Label{})
		}
		for i, x := range b {
			mean[i] += float64(x)
		}
	}
	var dot, aa, bb float64
	for i, x := range a {
		dot += float64(x) * mean[i]
		aa += float64(x) * float64(x)
		bb += mean[i] * mean[i]
	}
	drift := 1 - dot/math.Sqrt(aa*bb)
	if math.IsNaN(drift) || math.IsInf(drift, 0) {
		return 0, middleware.NewFailure(middleware.ComponentContext, middleware.ReasonDetectorFailed, ident.Label{})
	}

	return clampShare(drift), nil
}

func firstBytes(text string) string {
	if len(text) <= maxEmbedded {
		return text
	}
	end := maxEmbedded
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end]
}
