// Package googleai lets fallback.Resolve make candidates of specs "googleai:model". Import it for that alone:
//
//	import _ "github.com/interlock-go/interlock/fallback/googleai"
//
// The key travels in a header, not in the address, from where Google's client would put it into errors. That client also
// repeats a call for as long as its context allows while the service answers 503, without telling: it is shown another
// status, so that the fallback hears of it.
package googleai

import (
	"context"
	"net/http"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/googleai"

	"github.com/interlock-go/interlock/fallback"
)

// Name under which specs name the provider.
const Name = "googleai"

// maxTokens where neither caller nor candidate limits the answer. The client's own limit is 2048.
const maxTokens = 4096

func init() {
	// The only error is a second registration, which Resolve tells.
	_ = fallback.Register(Name, fallback.Registration{Provider: fallback.ProviderGoogleAI, New: newClient})
}

func newClient(cfg fallback.ClientConfig) (llms.Model, error) {
	client := *cfg.HTTPClient
	client.Transport = &transport{key: cfg.Key, base: client.Transport}

	// The default model is the one that is asked, because the client writes another one down without a lock. The key is
	// given to it too, for a part of it that is not used but wants to be made.
	return googleai.New(context.Background(), googleai.WithAPIKey(cfg.Key.Reveal()), googleai.WithHTTPClient(&client),
		googleai.WithDefaultModel(cfg.ModelName), googleai.WithDefaultMaxTokens(maxTokens))
}

// transport adds the key, and hides the status that the client would repeat the call for. It stands outside of
// fallback.Transport, which sees what the service said.
type transport struct {
	key  fallback.Key
	base http.RoundTripper
}

var _ http.RoundTripper = (*transport)(nil)

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.Clone(req.Context()) // a round tripper may not change its request
	own.Header.Set("X-Goog-Api-Key", t.key.Reveal())
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(own)
	if err == nil && resp.StatusCode == http.StatusServiceUnavailable {
		resp.StatusCode, resp.Status = http.StatusInternalServerError, "500 Internal Server Error"
	}

	return resp, err
}
