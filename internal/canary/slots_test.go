package canary_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// slot is a way in: how the secret is planted, and out of which outlets it comes
// on purpose.
type slot struct {
	name     string
	plant    func(*plan)
	byDesign map[string]string
}

// toModel says why the secret is in requests.
func toModel(reason string) map[string]string {
	return map[string]string{"next provider request": reason}
}

const (
	history    = "the conversation so far is what the model is asked with"
	registered = "a label that the developer registers with the guard is metadata"
)

// slots is the table of the ways in.
func slots() []slot {
	phrase, word := canary.Phrase(), canary.Word()
	all := []slot{
		// What the program says.
		{"prompt", func(p *plan) { p.prompt = phrase }, toModel(history)},
		{"messages", func(p *plan) { p.messages = everyPart(phrase, word) }, toModel(history)},
		{"tool description", func(p *plan) { p.look.description = phrase }, toModel("tools are offered to the model")},
		{"tool name, with an alias", func(p *plan) {
			p.look.name = word
			p.reply = onTurn(0, func(t turn) misbehave.Reply { return asks(t.kind, word, "1001") })
		}, toModel("tools are offered to the model")},
		{"model name", func(p *plan) { p.modelName = phrase }, toModel("the provider is told which model to run")},
		{"agent label", func(p *plan) { p.agentLabel = ident.MustLabel(strings.ToLower(word)) }, map[string]string{
			"handoffs, keys, states printed": registered, "decisions printed": registered, "decisions in slog": registered,
		}},
		{"workflow that is not registered", func(p *plan) {
			p.also = func(w *world, ctx context.Context) {
				w.err(w.guard.Do(ctx, ident.MustWorkflowID("workflow:org.example/"+strings.ToLower(inside.enter(word))),
					func(context.Context) error { return nil }))
			}
		}, nil},
		{"context cause", func(p *plan) {
			p.also = func(w *world, ctx context.Context) {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(errors.New(inside.enter(phrase)))
				for _, tool := range w.tools {
					_, err := tool.Call(ctx, "1001")
					w.err(err)
				}
			}
		}, nil},
		{"cause of the run's cancellation", func(p *plan) {
			p.onLook = func(w *world) { w.cancel(errors.New(inside.enter(phrase))) }
		}, nil},
		{"state to restore", func(p *plan) {
			p.also = func(w *world, ctx context.Context) {
				for _, text := range []string{
					phrase, `{"` + word + `":1}`, `{"schema_version":"` + word + `"}`, `{"workflow_id":"workflow:org.example/` + strings.ToLower(word) + `"}`,
				} {
					_, _, err := w.guard.RestoreRun(ctx, []byte(inside.enter(text)))
					w.err(err)
				}
			}
		}, nil},
		{"identifiers to parse", func(p *plan) {
			p.also = func(w *world, _ context.Context) {
				_, e1 := ident.ParseRunID(inside.enter(phrase))
				_, e2 := ident.ParseWorkflowID(phrase)
				_, e3 := ident.NewLabel(phrase)
				_, e4 := ident.ParseDigest(phrase)
				_, e5 := admission.ParseKey([]byte(phrase[:10]))
				_, e6 := admission.ParseReceipt(phrase)
				_, e7 := admission.ParseScope(phrase)
				_, e8 := middleware.LabelFor(phrase)
				_, e9 := interlock.New(interlock.Config{})
				_, e10 := escalation.ParseHandoff([]byte(`{"`+word+`":1}`), w.store0())
				_, _, e11 := fallback.Resolve([]string{phrase}, fallback.Keys{All: fallback.NewKey(phrase)})
				w.err(e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11)
			}
		}, nil},

		// What the model says.
		{"answer", func(p *plan) { p.reply = last(func(t turn) misbehave.Reply { return answers(t.kind, phrase) }) }, nil},
		{"answer that cannot be parsed", func(p *plan) {
			p.reply = last(func(turn) misbehave.Reply { return misbehave.Reply{Text: "Action " + phrase} })
		}, nil},
		{"name of an unknown tool", func(p *plan) {
			p.reply = onTurn(0, func(t turn) misbehave.Reply { return asks(t.kind, word, "1001") })
		}, toModel(history)},
		{"arguments", func(p *plan) {
			p.reply = onTurn(0, func(t turn) misbehave.Reply { return asks(t.kind, "look", phrase) })
		}, toModel(history)},
		{"arguments of an effect that fails", func(p *plan) {
			p.pay.call = func(_ context.Context, in string) (string, error) { return "", errors.New("no account " + in) }
			p.reply = onTurn(1, func(t turn) misbehave.Reply { return asks(t.kind, "pay", phrase) })
		}, toModel(history)},
		{"call identifier", func(p *plan) {
			p.reply = onTurn(0, func(t turn) misbehave.Reply {
				r := asks(t.kind, "look", "1001")
				for i := range r.Calls {
					r.Calls[i].ID = word
				}

				return r
			})
		}, toModel(history)},
		{"finish reason", func(p *plan) { p.reply = every(func(r *misbehave.Reply) { r.Finish = misbehave.Finish(phrase) }) }, nil},
		{"response model", func(p *plan) { p.reply = every(func(r *misbehave.Reply) { r.Model = phrase }) }, nil},

		// What tools do.
		{"result", func(p *plan) { p.look.call = returns(phrase) }, toModel(history)},
		{"result of an effect", func(p *plan) { p.pay.call = returns(phrase) }, toModel(history)},
	}
	all = append(all, errorSlots(phrase, word)...)
	all = append(all, providerSlots(phrase, word)...)
	all = append(all, halved(userCode(phrase))...)
	all = append(all, halved(boundSlots(phrase, word))...)

	return append(all, placeSlots(phrase, word)...)
}

// errorSlots are the ways in which a tool fails: each in the agent's first call,
// in an effect, and until the run is halted.
func errorSlots(phrase, word string) []slot {
	var all []slot
	failures := map[string]error{
		"error text":                  errors.New(phrase),
		"wrapped error":               fmt.Errorf("%s: %w", phrase, &fs.PathError{Op: "open", Path: "/home/" + phrase, Err: fs.ErrNotExist}),
		"joined errors":               errors.Join(errors.New("x"), errors.New(phrase)),
		"error with its own type":     talkative{phrase},
		"error around a deadline":     fmt.Errorf("%s: %w", phrase, context.DeadlineExceeded),
		"error around a cancellation": fmt.Errorf("%s: %w", phrase, context.Canceled),
		"error that panics":           panicking{phrase},
		"denial with a cause": middleware.NewDenial(middleware.Refusal{
			Component: middleware.ComponentBudget, Reason: middleware.ReasonBudgetExceeded, Cause: errors.New(phrase),
		}),
	}
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		err := failures[name]
		all = append(all, slot{"tool: " + name, func(p *plan) {
			if _, denial := err.(*middleware.Denial); !denial { // which halts nothing
				p.fail = err
			}
			p.look.call = func(context.Context, string) (string, error) { return word, err }
			p.pay.call = func(context.Context, string) (string, error) { return "", err }
		}, nil})
	}
	values := map[string]any{"panic": phrase, "panic with an error": errors.New(phrase)}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		all = append(all,
			slot{"tool: " + name, func(p *plan) { p.look.call = panics(value) }, nil},
			slot{"effect: " + name, func(p *plan) { p.pay.call = panics(value) }, nil})
	}

	return append(all,
		slot{"tool: error text that is released", func(p *plan) {
			p.look.call = func(context.Context, string) (string, error) { return "", released{phrase} }
		}, toModel("the author of the error released its text")},
		slot{"tool: cause of its own cancellation", func(p *plan) {
			p.look.call = func(ctx context.Context, _ string) (string, error) {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(errors.New(phrase))

				return "", context.Cause(ctx)
			}
		}, nil})
}

// providerSlots are what a provider answers, in both wire formats.
func providerSlots(phrase, word string) []slot {
	var all []slot
	changes := map[string]func(*misbehave.Reply){
		"400": apiError(http.StatusBadRequest, phrase),
		"401": apiError(http.StatusUnauthorized, phrase),
		"429": apiError(http.StatusTooManyRequests, phrase),
		"503": apiError(http.StatusServiceUnavailable, phrase),
		"HTML instead of JSON": func(r *misbehave.Reply) {
			*r = misbehave.Reply{Raw: &misbehave.Raw{ContentType: "text/html", Body: "<p>" + phrase}}
		},
		"HTML with a status": func(r *misbehave.Reply) {
			*r = misbehave.Reply{Status: 502, Raw: &misbehave.Raw{ContentType: "text/html", Body: "<p>" + phrase}}
		},
		"error in a stream": func(r *misbehave.Reply) {
			r.Fault, r.Error = misbehave.FaultErrorEvent, &misbehave.APIError{Message: phrase, Type: word, Code: word}
		},
		"damaged answer":         func(r *misbehave.Reply) { *r = misbehave.Reply{Text: phrase, Fault: misbehave.FaultMalformedEvent} },
		"answer that breaks off": func(r *misbehave.Reply) { *r = misbehave.Reply{Text: phrase, Fault: misbehave.FaultCut, At: 2} },
		"headers": func(r *misbehave.Reply) {
			r.Headers = map[string]string{"Retry-After": word, "X-Request-Id": word, "Server": word, "Set-Cookie": "a=" + word}
		},
		"headers of a failure": func(r *misbehave.Reply) {
			*r = misbehave.Reply{Status: 429, Headers: map[string]string{"Retry-After": word, "Content-Type": word}}
		},
		"redirect": func(r *misbehave.Reply) {
			*r = misbehave.Reply{Status: 302, Headers: map[string]string{"Location": "http://" + word + ".invalid/"}}
		},
		"events that nobody knows": unknownEvents(phrase),
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		change := changes[name]
		all = append(all,
			slot{"primary: " + name, func(p *plan) {
				p.half = true
				p.reply = func(t turn, r *misbehave.Reply) {
					if !t.backup {
						change(r)
					}
				}
			}, nil},
			slot{"all providers: " + name, func(p *plan) { p.reply = func(_ turn, r *misbehave.Reply) { change(r) } }, nil})
	}

	return append(all,
		slot{"client: error", func(p *plan) { p.wrap = func(m llms.Model) llms.Model { return failing{m, errors.New(phrase), nil} } }, nil},
		slot{"client: error of langchaingo", func(p *plan) {
			p.wrap = func(m llms.Model) llms.Model {
				return failing{m, llms.NewError(llms.ErrCodeRateLimit, word, phrase).WithCause(errors.New(phrase)), nil}
			}
		}, nil},
		slot{"client: panic", func(p *plan) { p.wrap = func(m llms.Model) llms.Model { return failing{m, nil, phrase} } }, nil})
}

// userCode is what runs inside of the library and is not its own.
func userCode(phrase string) []slot {
	boom := func() error { return errors.New(inside.enter(phrase)) }
	refuse := func(context.Context, *middleware.ToolCall, middleware.Preview) error { return boom() }
	toolLayer := func(f func() error) func(*plan) {
		return func(p *plan) {
			p.guard = func(c *interlock.Config) {
				c.Tools = []middleware.ToolMiddleware{func(middleware.ToolHandler) middleware.ToolHandler {
					return func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, f() }
				}}
			}
		}
	}
	modelLayer := func(f func() error) func(*plan) {
		return func(p *plan) {
			p.guard = func(c *interlock.Config) {
				c.Models = []middleware.ModelMiddleware{func(next middleware.ModelHandler) middleware.ModelHandler {
					return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
						_, _ = next(ctx, call)

						return nil, f()
					}
				}}
			}
		}
	}

	return []slot{
		{"approver: error", func(p *plan) { p.guard = func(c *interlock.Config) { c.Approver = admission.ApproverFunc(refuse) } }, nil},
		{"approver: panic", func(p *plan) {
			p.guard = func(c *interlock.Config) {
				c.Approver = admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error { panic(inside.enter(phrase)) })
			}
		}, nil},
		{"handoff sink: error", func(p *plan) { p.guard = alsoSink(func() error { return boom() }) }, nil},
		{"handoff sink: panic", func(p *plan) { p.guard = alsoSink(func() error { panic(inside.enter(phrase)) }) }, nil},
		{"observer: panic", func(p *plan) { p.observe = func(middleware.Decision) { panic(inside.enter(phrase)) } }, nil},
		{"tool middleware: error", toolLayer(boom), nil},
		{"tool middleware: panic", toolLayer(func() error { panic(boom()) }), nil},
		{"model middleware: error", modelLayer(boom), nil},
		{"model middleware: panic", modelLayer(func() error { panic(inside.enter(phrase)) }), nil},
		{"response check: error", func(p *plan) {
			p.guard = func(c *interlock.Config) {
				c.Fallback.Checks = []fallback.ResponseCheck{func(context.Context, *llms.ContentResponse) error { return boom() }}
			}
		}, nil},
	}
}

// placeSlots are names of files and hosts, keys, and the command line.
func placeSlots(phrase, word string) []slot {
	all := []slot{
		{"paths of ledger, anchor, key and handoffs", func(p *plan) { p.folder = word }, nil},
		{"paths with a phrase", func(p *plan) { p.folder = phrase }, nil},
		{"key of the ledger", func(p *plan) { p.signature = []byte(phrase) }, nil},
		{"key of the provider", func(p *plan) { p.apiKey = phrase }, nil},
		{"key of the provider, as a value", func(p *plan) {
			p.also = func(w *world, _ context.Context) { w.value(fallback.NewKey(inside.enter(phrase))) }
		}, nil},
		{"URL of the provider", func(p *plan) { p.basePath = "/" + word + "/v1" }, nil},
		{"command line: arguments", func(p *plan) {
			p.args = [][]string{
				{phrase}, {"--" + word}, {"--" + word + "=" + phrase}, {"status", phrase}, {"help", phrase}, {"completion", phrase},
				{"stop", "--scope", phrase}, {"stop", "--role", phrase}, {"stop", "--reason", phrase}, {"status", "--pin", phrase},
				{"status", "--timeout", phrase}, {"status", "--state", "/" + phrase}, {"status", "--anchor", "/" + phrase},
				{"status", "--key-file", "/" + phrase}, {"log", "--" + word}, {"keygen", "--key-file", "/" + word + "/" + phrase},
			}
		}, nil},
		{"command line: standard input", func(p *plan) { p.stdin = phrase }, nil},
	}
	for i := range all {
		plant := all[i].plant
		all[i].plant = func(p *plan) { plant(p); p.operator = true }
	}

	return halved(all)
}

// halved spares slots that no wire has a part in the other half of the agents.
func halved(all []slot) []slot {
	for i := range all {
		plant := all[i].plant
		all[i].plant = func(p *plan) { plant(p); p.half = true }
	}

	return all
}
