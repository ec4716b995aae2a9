package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
)

func knownProvider(name string) bool {
	return slices.Contains([]string{"openai", "anthropic", "ollama"}, name)
}

// liveModel makes the client of a real provider. Key and base URL come from the
// environment variables that langchaingo's clients read.
func liveModel(provider, name string) (llms.Model, error) {
	client := &http.Client{Transport: &fallback.Transport{}}
	switch provider {
	case "openai":
		if os.Getenv("OPENAI_API_KEY") == "" {
			return nil, errors.New("OPENAI_API_KEY is not set")
		}

		return openai.New(openai.WithModel(name), openai.WithHTTPClient(client)) //nolint:wrapcheck // replaced by the caller
	case "anthropic":
		if os.Getenv("ANTHROPIC_API_KEY") == "" {
			return nil, errors.New("ANTHROPIC_API_KEY is not set")
		}
		opts := []anthropic.Option{anthropic.WithModel(name), anthropic.WithHTTPClient(client)}
		if base := os.Getenv("ANTHROPIC_BASE_URL"); base != "" {
			opts = append(opts, anthropic.WithBaseURL(base))
		}

		return anthropic.New(opts...) //nolint:wrapcheck // replaced by the caller
	default:
		return ollama.New(ollama.WithModel(name), ollama.WithHTTPClient(client)) //nolint:wrapcheck // replaced by the caller
	}
}

// runLive lets a real model work on the desk, once, with admission enabled.
func runLive(ctx context.Context, opts options, out *collector, stdout, stderr io.Writer, paint painter) int {
	client, err := liveModel(opts.provider, opts.model)
	if err != nil {
		fmt.Fprintln(stderr, "langchaingo: the provider's client cannot be made: the key or the address is missing")

		return usageExit
	}
	live := act{name: "live", about: "a real model works on the desk", ledger: true, want: answered}
	live.play = func(ctx context.Context, s *stack) (string, error) {
		return playLive(ctx, s, opts, client)
	}
	r, tl, err := perform(ctx, live, opts.keep, out)
	if err != nil {
		fmt.Fprintf(stderr, "langchaingo: %v\n", err)

		return 1
	}
	fmt.Fprintf(stdout, "%s: %s\n", paint.bold(live.name), live.about)
	tl.print(stdout, paint)
	good := r.Outcome == answered // how many rows a real model writes is its own affair
	fmt.Fprintf(stdout, "  %s: %s, %d written\n", paint.ok(good, "outcome"), r.Outcome, r.Effects)
	if !good {
		return 1
	}

	return 0
}

func playLive(ctx context.Context, s *stack, opts options, client llms.Model) (string, error) {
	provider, _ := fallback.ParseProvider(opts.provider)
	model, err := s.guard.Model(interlock.Candidate{
		Label: ident.MustLabel("live"), Provider: provider, ModelName: opts.model, Model: client,
	})
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	if provider != fallback.ProviderOllama {
		agent, err := functionsAgent(s, model)
		if err != nil {
			return "", err
		}

		return ask(ctx, s, agent), nil
	}
	// langchaingo's ollama client has no tools: the textual agent it is.
	tools, err := s.guard.Tools(s.desk.tools()...)
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	var agent chains.Chain = agents.NewExecutor(agents.NewOneShotAgent(model, tools),
		agents.WithMaxIterations(12), agents.WithCallbacksHandler(s.guard.Callbacks()))

	return ask(ctx, s, agent), nil
}
