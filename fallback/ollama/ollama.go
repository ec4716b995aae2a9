// Package ollama lets fallback.Resolve make candidates of specs "ollama:model", without a key. Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/ollama"
//
// The server's address comes from OLLAMA_HOST, as for ollama itself. langchaingo's client drops tools: agents built on
// functions are never given to it.
package ollama

import (
	"net/url"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/ollama"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "ollama"

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderOllama, New: newClient, Keyless: true})
}

func newClient(cfg fallback.ClientConfig) (llms.Model, error) {
	return ollama.New(ollama.WithModel(cfg.ModelName), ollama.WithHTTPClient(cfg.HTTPClient))
}

// At returns the factory of clients that ask another address. An address that cannot be parsed is the factory's error: the
// client would print it and end the process.
func At(serverURL string) fallback.Factory {
	return func(cfg fallback.ClientConfig) (llms.Model, error) {
		if _, err := url.Parse(serverURL); err != nil {
			return nil, err
		}

		return ollama.New(ollama.WithServerURL(serverURL), ollama.WithModel(cfg.ModelName), ollama.WithHTTPClient(cfg.HTTPClient))
	}
}
