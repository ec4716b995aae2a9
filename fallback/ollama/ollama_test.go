package ollama_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/ollama"
	"github.com/interlock-go/interlock/middleware"
)

func TestResolved(t *testing.T) {
	t.Parallel()
	var body, header string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		body, header = string(b), r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"message":{"role":"assistant","content":"yes"},"done":true,"eval_count":1,"prompt_eval_count":1}`)
	}))
	defer srv.Close()
	err := fallback.Register("local-ollama", fallback.Registration{
		Provider: fallback.ProviderOllama, New: ollama.At(srv.URL), Keyless: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	candidates, _, err := fallback.Resolve([]string{"local-ollama:llama3:8b"}, fallback.Keys{All: fallback.NewKey("k")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := fallback.New(fallback.Config{Candidates: candidates})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := llms.GenerateFromSinglePrompt(t.Context(), m, "q")
	if err != nil || answer != "yes" || !strings.Contains(body, `"model":"llama3:8b"`) || header != "" {
		t.Errorf("%q, %v, %s, %q", answer, err, body, header)
	}
	// An agent built on functions is refused when the chain is made.
	_, err = fallback.New(fallback.Config{Candidates: candidates, Requires: fallback.CapTools})
	if middleware.ReasonOf(err) != middleware.ReasonIneligible {
		t.Errorf("got %v", err)
	}
	if _, _, err := fallback.Resolve([]string{ollama.Name + ":llama3"}, fallback.Keys{}); err != nil {
		t.Error(err)
	}
}
