// Package openai lets fallback.Resolve make candidates of specs "openai:model". Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/openai"
//
// or register another address that speaks the same protocol:
//
//	err := fallback.Register("groq", fallback.Registration{
//		Provider: fallback.ProviderOpenAI, New: openai.At("https://api.groq.com/openai/v1"),
//	})
//
// The environment variables of langchaingo's client are not read: an address from there would get the key.
package openai

import (
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "openai"

const baseURL = "https://api.openai.com/v1"

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderOpenAI, New: At(baseURL)})
}

// At returns the factory of clients that ask another address, such as "https://api.groq.com/openai/v1".
func At(baseURL string) fallback.Factory {
	return func(cfg fallback.ClientConfig) (llms.Model, error) {
		return openai.New(openai.WithBaseURL(baseURL), openai.WithToken(cfg.Key.Reveal()), openai.WithModel(cfg.ModelName),
			openai.WithHTTPClient(cfg.HTTPClient), openai.WithOrganization(""))
	}
}
