// Package cohere lets fallback.Resolve make candidates of specs "cohere:model". Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/cohere"
//
// langchaingo's client takes no *http.Client, and sends the first text of the first message alone: calls that are more
// than that are never given to it.
package cohere

import (
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/cohere"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "cohere"

const baseURL = "https://api.cohere.ai"

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderCohere, New: At(baseURL)})
}

// At returns the factory of clients that ask another address. The client would fill an empty one in at its first call,
// which is a race.
func At(baseURL string) fallback.Factory {
	return func(cfg fallback.ClientConfig) (llms.Model, error) {
		return cohere.New(cohere.WithBaseURL(baseURL), cohere.WithToken(cfg.Key.Reveal()), cohere.WithModel(cfg.ModelName))
	}
}
