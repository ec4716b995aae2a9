package openai_test

import (
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/openai"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// Neither key nor address come from the environment.
func TestEnvironmentIsNotRead(t *testing.T) {
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(misbehave.Reply{Text: "yes"})})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_ORGANIZATION", "from-the-environment")
	if err := fallback.Register("local-openai", fallback.Registration{Provider: fallback.ProviderOpenAI, New: openai.At(srv.URL() + "/v1")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fallback.Resolve([]string{"local-openai:m"}, fallback.Keys{}); err == nil {
		t.Error("resolved without a key")
	}
	candidates, _, err := fallback.Resolve([]string{"local-openai:m"}, fallback.Keys{All: fallback.NewKey("k")})
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
	if h := srv.Requests()[0].Header(); h.Get("Authorization") != "Bearer k" || h.Get("OpenAI-Organization") != "" { //nolint:canonicalheader // as the client writes it
		t.Errorf("header %v", h)
	}
}
