package mistral_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/mistral"
	"github.com/interlock-go/interlock/ident"
)

// The SDK's own retries are off: the status of a failure is heard after one request, and can be read.
func TestOneTry(t *testing.T) {
	t.Parallel()
	var requests, bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.URL.Path+" "+r.Header.Get("Authorization"))
		bodies = append(bodies, string(body))
		http.Error(w, `{"message":"Requests rate limit exceeded"}`, http.StatusTooManyRequests)
	}))
	defer srv.Close()
	model, err := mistral.At(srv.URL)(fallback.ClientConfig{ModelName: "mistral-x", Key: fallback.NewKey("k")})
	if err != nil {
		t.Fatal(err)
	}
	var class fallback.Class
	m, err := fallback.New(fallback.Config{
		Candidates: []fallback.Candidate{{
			Label: ident.MustLabel("mistral"), Provider: fallback.ProviderMistral, ModelName: "mistral-x", Model: model,
		}},
		Classify: func(f fallback.AttemptFailure) fallback.Class {
			class = f.Class

			return fallback.ClassInvalidRequest // so that nobody repeats it
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llms.GenerateFromSinglePrompt(t.Context(), m, "q")
	if err == nil || class != fallback.ClassRateLimited || len(requests) != 1 || requests[0] != "/v1/chat/completions Bearer k" {
		t.Fatalf("%v, %v, %q", err, class, requests)
	}
	if !strings.Contains(bodies[0], `"model":"mistral-x"`) || !strings.Contains(bodies[0], `"max_tokens":4096`) {
		t.Errorf("body %s", bodies[0])
	}
}
