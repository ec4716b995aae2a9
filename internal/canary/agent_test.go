package canary_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// The kinds of work that a world does.
const (
	functions = "functions"
	mrkl      = "mrkl"
	stream    = "stream" // one call of the model, streamed
)

// turn is where a scripted model stands.
type turn struct {
	kind   string
	n      int  // from 0; calls that were not answered do not count
	backup bool // it is the second candidate
	vendor misbehave.Vendor
	final  bool // no tools are offered
}

// asks is how a model of this kind asks for a tool.
func asks(kind, tool, input string) misbehave.Reply {
	if kind == mrkl {
		return misbehave.Reply{Text: "I need it.\nAction: " + tool + "\nAction Input: " + input}
	}
	args, err := json.Marshal(map[string]string{"__arg1": input})
	if err != nil {
		panic(err)
	}

	return misbehave.Reply{Calls: []misbehave.Call{{Name: tool, Arguments: string(args)}}}
}

func answers(kind, text string) misbehave.Reply {
	if kind == mrkl {
		text = "Final Answer: " + text
	}

	return misbehave.Reply{Text: text}
}

// harmless is what a model says in which nothing is planted: it looks something
// up, pays, and is done.
func harmless(t turn) misbehave.Reply {
	switch {
	case t.kind == curious && !t.final:
		return asks(t.kind, "look", strconv.Itoa(1001+t.n))
	case t.kind == stream || t.n > 1:
		return answers(t.kind, "done and well")
	case t.n == 0:
		return asks(t.kind, "look", "1001")
	default:
		return asks(t.kind, "pay", "1001")
	}
}

func newAgent(kind string, model llms.Model, ts []tools.Tool) agents.Agent {
	if kind == mrkl {
		return agents.NewOneShotAgent(model, ts)
	}

	return agents.NewOpenAIFunctionsAgent(model, ts)
}

// tool is a function as a tool of langchaingo.
type tool struct {
	name, description string
	call              func(ctx context.Context, input string) (string, error)
}

func (t tool) Name() string                                           { return t.name }
func (t tool) Description() string                                    { return t.description }
func (t tool) Call(ctx context.Context, input string) (string, error) { return t.call(ctx, input) }

// client makes langchaingo's client of a vendor.
func client(vendor misbehave.Vendor, base, key string) (llms.Model, error) {
	web := &http.Client{Transport: &fallback.Transport{}}
	if vendor == misbehave.VendorAnthropic {
		return anthropic.New(anthropic.WithBaseURL(base), anthropic.WithToken(key), anthropic.WithModel("claude-sonnet-4-5"),
			anthropic.WithHTTPClient(web))
	}

	return openai.New(openai.WithBaseURL(base), openai.WithToken(key), openai.WithModel("gpt-4o"), openai.WithHTTPClient(web))
}

func candidate(vendor misbehave.Vendor, second bool, name string, model llms.Model) interlock.Candidate {
	c := interlock.Candidate{Label: primary, Provider: fallback.ProviderOpenAI, ModelName: name, Model: model}
	if second {
		c.Label = backup
	}
	if vendor == misbehave.VendorAnthropic {
		c.Provider = fallback.ProviderAnthropic
	}

	return c
}
