// Package anthropic lets fallback.Resolve make candidates of specs "anthropic:model". Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/anthropic"
package anthropic

import (
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "anthropic"

const baseURL = "https://api.anthropic.com/v1"

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderAnthropic, New: At(baseURL)})
}

// At returns the factory of clients that ask another address, which ends in /v1.
func At(baseURL string) fallback.Factory {
	return func(cfg fallback.ClientConfig) (llms.Model, error) {
		return anthropic.New(anthropic.WithBaseURL(baseURL), anthropic.WithToken(cfg.Key.Reveal()),
			anthropic.WithModel(cfg.ModelName), anthropic.WithHTTPClient(cfg.HTTPClient))
	}
}
