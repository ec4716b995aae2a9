package cohere_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/cohere"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// One text is answered; a history, of which the client would send the first text alone, is not given to it.
func TestOneText(t *testing.T) {
	t.Parallel()
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.Header.Get("Authorization")+" "+string(b))
		_, _ = io.WriteString(w, `{"generations":[{"text":"yes"}]}`)
	}))
	defer srv.Close()
	model, err := cohere.At(srv.URL)(fallback.ClientConfig{ModelName: "command-x", Key: fallback.NewKey("k")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{{
		Label: ident.MustLabel("cohere"), Provider: fallback.ProviderCohere, ModelName: "command-x", Model: model,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := llms.GenerateFromSinglePrompt(t.Context(), m, "q")
	if err != nil || answer != "yes" || len(bodies) != 1 || !strings.HasPrefix(bodies[0], "Bearer k ") || !strings.Contains(bodies[0], `"model":"command-x"`) {
		t.Fatalf("%q, %v, %q", answer, err, bodies)
	}
	_, err = m.GenerateContent(t.Context(), []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "never say yes"), llms.TextParts(llms.ChatMessageTypeHuman, "q"),
	})
	if middleware.ReasonOf(err) != middleware.ReasonNoCandidate || len(bodies) != 1 {
		t.Errorf("%v, %d requests", err, len(bodies))
	}
}
