package anthropic_test

import (
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/anthropic"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// The key does not come from the environment, and the answer's limit is not the client's own.
func TestResolved(t *testing.T) {
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(misbehave.Reply{Text: "yes"})})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	if err := fallback.Register("local-anthropic", fallback.Registration{Provider: fallback.ProviderAnthropic, New: anthropic.At(srv.URL() + "/v1")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fallback.Resolve([]string{"local-anthropic:m"}, fallback.Keys{}); err == nil {
		t.Error("resolved without a key")
	}
	candidates, _, err := fallback.Resolve([]string{"local-anthropic:m"}, fallback.Keys{All: fallback.NewKey("k")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := fallback.New(fallback.Config{Candidates: candidates})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := llms.GenerateFromSinglePrompt(t.Context(), m, "q"); err != nil || answer != "yes" {
		t.Fatalf("%q, %v", answer, err)
	}
	if r := srv.Requests()[0]; r.Header().Get("X-Api-Key") != "k" || r.MaxTokens != 4096 || r.Model != "m" {
		t.Errorf("model %q, %d tokens", r.Model, r.MaxTokens)
	}
}
