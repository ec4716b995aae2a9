package interlock_test

import (
	"errors"
	"testing"

	"github.com/tmc/langchaingo/llms/ollama"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// langchaingo's ollama client drops tools: a guard whose agents need them refuses such a model when it is made.
func TestModelThatCannotServeTheAgent(t *testing.T) {
	t.Parallel()
	client, err := ollama.New(ollama.WithModel("llama3"))
	if err != nil {
		t.Fatal(err)
	}
	local := interlock.Candidate{
		Label: ident.MustLabel("local"), Provider: fallback.ProviderOllama, ModelName: "llama3", Model: client,
	}
	for requires, refused := range map[fallback.Capabilities]bool{
		fallback.CapTools | fallback.CapHistory: true, fallback.CapStopWords: false, 0: false,
	} {
		g := newGuard(t, func(cfg *interlock.Config) { cfg.Fallback.Requires = requires })
		m, err := g.Model(local)
		if (m == nil) != refused || errors.Is(err, middleware.ReasonIneligible) != refused {
			t.Errorf("%v: %v", requires, err)
		}
	}
}
