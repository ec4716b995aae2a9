package canary_test

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// boundSlots are what bounds an agent's work: the calls that are parked, the
// functions that rate, measure, shorten and divide, and the last answer.
func boundSlots(phrase, word string) []slot {
	all := []slot{
		{"arguments that are parked", func(p *plan) { p.input = phrase }, nil},
		{"parked: panic", func(p *plan) { p.crash = phrase }, nil},
		{"parked: panic with an error", func(p *plan) { p.crash = talkative{phrase} }, nil},
		{"arguments that are a risk", func(p *plan) { p.risky = "drop table " + phrase }, nil},
		{"pattern of a risk", func(p *plan) { p.pattern, p.risky = regexp.QuoteMeta(phrase), phrase }, nil},
		{"pattern of a risk, a word", func(p *plan) { p.pattern, p.risky = "(?i)"+word, word }, nil},
		{"history that is cut", func(p *plan) {
			p.look.call = returns(phrase)
			p.bounds = summary(func() (string, error) { return "", errors.New("no summary of " + phrase) })
		}, toModel(history)},
		{"final answer of a budget", func(p *plan) {
			p.reply = final(func(t turn) misbehave.Reply { return answers(t.kind, phrase) })
		}, nil},
		{"call beyond the final answer of a budget", func(p *plan) {
			p.reply = final(func(t turn) misbehave.Reply { return asks(t.kind, "look", phrase) })
		}, nil},
		{"slices of an action", func(p *plan) {
			p.bounds = func(c *interlock.Config) {
				c.Actions.Slice = func(context.Context, *middleware.ToolCall) ([]string, error) { return []string{phrase, word}, nil }
			}
			p.pay.call = func(_ context.Context, in string) (string, error) {
				if in == word {
					return "", errors.New("no account " + in)
				}

				return in, nil
			}
		}, nil},
		{"slices that are not smaller", func(p *plan) {
			p.input = phrase
			p.bounds = func(c *interlock.Config) {
				c.Actions.Slice = func(_ context.Context, call *middleware.ToolCall) ([]string, error) {
					return []string{call.Input()}, nil
				}
			}
		}, nil},
		{"summary: text", func(p *plan) {
			p.bounds = summary(func() (string, error) { return inside.enter(phrase), nil })
		}, toModel("a summary is what its author tells the model")},
		{"summary: text that is too long", func(p *plan) {
			p.bounds = summary(func() (string, error) { return strings.Repeat(inside.enter(phrase), 100), nil })
		}, nil},
	}

	return append(append(all, boundFunctions(phrase)...), reviewSlots(phrase, word)...)
}

// boundFunctions are the functions of the user's, which fail and panic.
func boundFunctions(phrase string) []slot {
	var all []slot
	boom := func() error { return errors.New(inside.enter(phrase)) }
	ways := map[string]func() error{"error": boom, "panic": func() error { panic(boom()) }, "panic with a text": func() error { panic(boom().Error()) }}
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		fail := ways[way]
		functions := map[string]func(*interlock.Config){
			"risk": func(c *interlock.Config) {
				c.Actions.Risk = func(context.Context, *middleware.ToolCall) (float64, error) { return 0, fail() }
			},
			"slice": func(c *interlock.Config) {
				c.Actions.Slice = func(context.Context, *middleware.ToolCall) ([]string, error) { return []string{phrase}, fail() }
			},
			"volatility": func(c *interlock.Config) {
				c.Actions.Profile = &escalation.Profile{Volatility: func(context.Context, ident.WorkflowID) (float64, error) { return 0, fail() }}
			},
			"summary": summary(func() (string, error) { return phrase, fail() }),
			"drift": func(c *interlock.Config) {
				c.Context.Drift = func(context.Context, string, []string) (float64, error) { return 0, fail() }
			},
			"embedding": func(c *interlock.Config) {
				drift, err := escalation.EmbeddingDrift(embedder(fail))
				if err != nil {
					panic(err)
				}
				c.Context.Drift = drift
			},
		}
		if way != "error" { // it can return none
			functions["confidence"] = func(c *interlock.Config) {
				c.Confidence = func(context.Context, *middleware.ModelResult) (float64, bool) { return 0, fail() == nil }
			}
		}
		for _, name := range slices.Sorted(maps.Keys(functions)) {
			all = append(all, slot{name + ": " + way, func(p *plan) { p.bounds = functions[name] }, nil})
		}
	}

	return all
}

// reviewSlots are what a reviewer and the file of handoffs say.
func reviewSlots(phrase, word string) []slot {
	lower := strings.ToLower(word)
	onRecord := "a reviewer is asked for the label that goes on record"
	id := "sha256:" + strings.Repeat("0", 64)

	return []slot{
		{"reviewer", func(p *plan) { p.reviewer = lower }, map[string]string{
			"parked handoffs and their reviews": onRecord, "handoffs command, standard output": onRecord,
			"handoffs, keys, states printed": onRecord,
		}},
		{"handoffs command: arguments", func(p *plan) {
			p.operator = true
			p.handoffArgs = [][]string{
				{phrase}, {word}, {"list", phrase}, {"list", "--only", phrase}, {"list", "--" + word}, {"list", "--file", "/" + phrase},
				{"show", phrase}, {"show", "sha256:" + word}, {"show", id, phrase}, {"show", id, "--file", word}, {"show", "--help", phrase},
				{"decide", phrase, "--decision", "abort_run", "--reviewer", "desk"}, {"decide", id, "--decision", phrase, "--reviewer", "desk"},
				{"decide", id, "--decision", "abort_run", "--reviewer", phrase}, {"decide", id, "--decision", "abort_run", "--reviewer", word},
				{"decide", id, "--decision", "dismissed", "--reviewer", lower}, {"decide", id, "--" + word + "=" + phrase},
				{"decide", id, phrase}, {"list", "--timeout", phrase}, {"list", "--json=" + phrase},
			}
		}, nil},
		{"handoff file with foreign lines", func(p *plan) {
			p.operator = true
			p.foreign = phrase + "\n" + `{"` + word + `":1}` + "\n" + `{"decided_at":"` + word + `"}` + "\n" +
				`{"evidence":["` + word + `"]}` + "\n" + phrase
		}, nil},
	}
}

func summary(f func() (string, error)) func(*interlock.Config) {
	return func(c *interlock.Config) {
		c.Context.Summary = func(context.Context, []llms.MessageContent) (string, error) { return f() }
	}
}

// final replaces what the model says when it is offered no tools.
func final(say func(turn) misbehave.Reply) func(turn, *misbehave.Reply) {
	return func(t turn, r *misbehave.Reply) {
		if t.kind == curious && t.final {
			*r = say(t)
		}
	}
}

type embedder func() error

func (e embedder) EmbedDocuments(context.Context, []string) ([][]float32, error) { return nil, e() }
