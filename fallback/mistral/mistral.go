// Package mistral lets fallback.Resolve make candidates of specs "mistral:model". Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/mistral"
//
// langchaingo's client takes no *http.Client and ignores its context: what is left behind ends after a minute. Its own
// retries, which destroy the error that they retry, are switched off.
package mistral

import (
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/mistral"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "mistral"

const (
	endpoint = "https://api.mistral.ai"
	tries    = 1 // 0 would mean five, and a negative number panics
	longest  = time.Minute
)

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderMistral, New: At(endpoint)})
}

// At returns the factory of clients that ask another address, without a path.
func At(endpoint string) fallback.Factory {
	return func(cfg fallback.ClientConfig) (llms.Model, error) {
		return mistral.New(mistral.WithEndpoint(endpoint), mistral.WithAPIKey(cfg.Key.Reveal()), mistral.WithModel(cfg.ModelName),
			mistral.WithMaxRetries(tries), mistral.WithTimeout(longest))
	}
}
