package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// wires are the two wire formats: langchaingo's openai client, and its anthropic
// client behind an openai primary that is down. The provider is strict.
var wires = map[string]func(t *testing.T, g *interlock.Guard, script misbehave.Script) (llms.Model, *misbehave.Server){
	"openai": serve,
	"anthropic": func(t *testing.T, g *interlock.Guard, script misbehave.Script) (llms.Model, *misbehave.Server) {
		t.Helper()
		down, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(misbehave.Reply{Status: http.StatusServiceUnavailable})})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(down.Close)
		srv, err := misbehave.Start(misbehave.Config{Script: script})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Close)
		claude, err := anthropic.New(anthropic.WithBaseURL(srv.URL()+"/v1"), anthropic.WithToken("none"),
			anthropic.WithModel("claude-sonnet-4-5"), anthropic.WithHTTPClient(&http.Client{Transport: &fallback.Transport{}}))
		if err != nil {
			t.Fatal(err)
		}
		model, err := g.Model(candidate(t, down), interlock.Candidate{
			Label: ident.MustLabel("secondary"), Provider: fallback.ProviderAnthropic, ModelName: "claude-sonnet-4-5", Model: claude,
		})
		if err != nil {
			t.Fatal(err)
		}

		return model, srv
	},
}

// kinds are the two agents: how they are made, how their model asks for a call,
// and how it answers.
var kinds = map[string]struct {
	agent  func(llms.Model, []tools.Tool) agents.Agent
	call   func(name string, turn int) misbehave.Reply
	answer misbehave.Reply
}{
	"functions": {
		func(m llms.Model, ts []tools.Tool) agents.Agent { return agents.NewOpenAIFunctionsAgent(m, ts) },
		// One call in ever other spelling: the agent merges equal ones of successive turns into one message, of which
		// the anthropic client sends the first call only.
		func(name string, turn int) misbehave.Reply {
			return misbehave.Reply{Calls: []misbehave.Call{{Name: name, Arguments: `{"__arg1":"1001` + strings.Repeat(" ", turn) + `"}`}}}
		},
		misbehave.Reply{Text: "done"},
	},
	"mrkl": {
		func(m llms.Model, ts []tools.Tool) agents.Agent { return agents.NewOneShotAgent(m, ts) },
		func(name string, _ int) misbehave.Reply {
			return misbehave.Reply{Text: "I need it.\nAction: " + name + "\nAction Input: 1001"}
		},
		misbehave.Reply{Text: "Final Answer: done"},
	},
}

// everyAgent runs a test for both agents on both wires.
func everyAgent(t *testing.T, test func(t *testing.T, kind, wire string)) {
	t.Helper()
	for kind := range kinds {
		for wire := range wires {
			t.Run(kind+" "+wire, func(t *testing.T) {
				t.Parallel()
				test(t, kind, wire)
			})
		}
	}
}

// watched runs an agent of langchaingo on a scripted provider and returns what
// came out of the chain, and the run's handoff.
func watched(
	t *testing.T, g *interlock.Guard, kind, wire string, script misbehave.Script,
) (out string, handoff escalation.Handoff, srv *misbehave.Server, err error) {
	t.Helper()
	model, srv := wires[wire](t, g, script)
	agent := agents.NewExecutor(kinds[kind].agent(model, guardTools(t, g, interlock.ReadOnly(echoTool("look")))),
		agents.WithMaxIterations(12), agents.WithCallbacksHandler(g.Callbacks()),
		agents.WithParserErrorHandler(agents.NewParserErrorHandler(nil)))
	ctx, run, err := g.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	out, err = chains.Run(ctx, agent, "x")
	handoff, _ = run.Handoff()
	run.End(err)
	for i, r := range srv.Requests() {
		if r.Violation != misbehave.NoViolation {
			t.Errorf("request %d is not valid: %s", i, r.Violation)
		}
	}

	return strings.TrimSpace(out), handoff, srv, err
}

// always asks for one tool for ever.
func always(kind, tool string) misbehave.Script {
	return misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply { return kinds[kind].call(tool, r.Index) })
}

// told reports whether a request holds a fixed sentence.
func told(r misbehave.Request, sentence string) bool {
	return strings.Contains(string(r.Raw()), sentence)
}

// TestNudgeKeepsTheConversation: the model is told instead of the call being
// made, and goes on in a conversation that its provider accepts.
func TestNudgeKeepsTheConversation(t *testing.T) {
	t.Parallel()
	everyAgent(t, func(t *testing.T, kind, wire string) {
		t.Helper()
		var s seen
		g := newGuard(t, func(c *interlock.Config) { c.Observer = &s })
		k := kinds[kind]
		out, _, srv, err := watched(t, g, kind, wire, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if told(r, "This call was not made") {
				return k.answer
			}

			return k.call("look", r.Index)
		}))
		if err != nil || out != "done" {
			t.Errorf("got %q, %v", out, err)
		}
		if n := srv.Count(); n != 7 {
			t.Errorf("%d requests, want 7: five calls, the one that was not made, the answer", n)
		}
		if n := s.count(middleware.ComponentWatchdog, middleware.ReasonLoop); n != 1 {
			t.Errorf("%d loops", n)
		}
	})
}

// TestAbortSurvivesTheChain: the typed error comes out of chains.Run.
func TestAbortSurvivesTheChain(t *testing.T) {
	t.Parallel()
	everyAgent(t, func(t *testing.T, kind, wire string) {
		t.Helper()
		out, _, srv, err := watched(t, newGuard(t, nil), kind, wire, always(kind, "look"))
		if out != "" || !errors.Is(err, middleware.ReasonLoop) {
			t.Errorf("got %q, %v", out, err)
		}
		if d, ok := errors.AsType[*middleware.Denial](err); !ok || d.Soft() || d.Component() != middleware.ComponentWatchdog {
			t.Errorf("got %v", err)
		}
		if n := srv.Count(); n != 7 {
			t.Errorf("%d requests, want 7: five calls, a nudge, the end", n)
		}
	})
}

// TestEscalateHandsOffAtOnce: one detection, one handoff of class uncertainty.
func TestEscalateHandsOffAtOnce(t *testing.T) {
	t.Parallel()
	everyAgent(t, func(t *testing.T, kind, wire string) {
		t.Helper()
		g := newGuard(t, func(c *interlock.Config) {
			c.Watchdog.Policy = func(watchdog.Detection) watchdog.Action { return watchdog.Escalate }
		})
		_, handoff, srv, err := watched(t, g, kind, wire, always(kind, "look"))
		if !errors.Is(err, middleware.ReasonCircuitOpen) || handoff.Class() != middleware.FailureUncertainty {
			t.Errorf("got %v, handoff %v", err, handoff)
		}
		if n := srv.Count(); n != 6 {
			t.Errorf("%d requests, want 6", n)
		}
	})
}

// TestUnknownToolIsNudged: three calls of tools that there are not, and the next
// request says so, in a form that its provider accepts.
func TestUnknownToolIsNudged(t *testing.T) {
	t.Parallel()
	everyAgent(t, func(t *testing.T, kind, wire string) {
		t.Helper()
		k := kinds[kind]
		out, _, srv, err := watched(t, newGuard(t, nil), kind, wire, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if told(r, "There is no such tool as you asked for") {
				return k.answer
			}

			return k.call("invented", r.Index)
		}))
		if err != nil || out != "done" || srv.Count() != 4 {
			t.Errorf("got %q, %v after %d requests, want 4", out, err, srv.Count())
		}
		out, _, srv, err = watched(t, newGuard(t, nil), kind, wire, always(kind, "invented"))
		if out != "" || !errors.Is(err, middleware.ReasonUnknownTool) || srv.Count() != 4 {
			t.Errorf("got %q, %v after %d requests, want 4", out, err, srv.Count())
		}
	})
}

// TestUnreadableAnswers: of a textual agent, whatever their words.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			ramble := func(r misbehave.Request) misbehave.Reply {
				return misbehave.Reply{Text: "Let me think about it " + strings.Repeat("more ", r.Index)}
			}
			out, _, srv, err := watched(t, newGuard(t, nil), "mrkl", wire, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
				if told(r, "Your last answers repeat each other") {
					if len(r.Messages) != 1 {
						t.Errorf("%d messages, want one", len(r.Messages))
					}

					return kinds["mrkl"].answer
				}

				return ramble(r)
			}))
			if err != nil || out != "done" || srv.Count() != 5 {
				t.Errorf("got %q, %v after %d requests, want 5", out, err, srv.Count())
			}
			out, _, _, err = watched(t, newGuard(t, nil), "mrkl", wire, misbehave.ScriptFunc(ramble))
			if out != "" || !errors.Is(err, middleware.ReasonAnswerLoop) {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

// TestSignalsReachTheWatchdog: a run whose progress rises is no loop.
func TestSignalsReachTheWatchdog(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	n := 0
	dig := guardTools(t, g, interlock.ReadOnly(aTool{"dig", func(ctx context.Context, _ string) (string, error) {
		n++
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: float64(n)})

		return "dug", nil
	}}))[0]
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		for i := range 20 {
			if out, err := dig.Call(ctx, "here"); err != nil || out != "dug" {
				return fmt.Errorf("call %d: %q, %w", i, out, err)
			}
		}

		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRunnerInAGuard: a runner of the guard's watchdog in one of its runs, with a
// fallback model of the run.
func TestRunnerInAGuard(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	model, _ := serve(t, g, misbehave.Replies(misbehave.Reply{Text: "done"}))
	r, err := watchdog.NewRunner(watchdog.RunnerConfig{Watchdog: g.Watchdog(), Model: func() (llms.Model, error) { return model, nil }})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Do(t.Context(), desk, func(ctx context.Context) error {
		if err := r.Start(ctx); err != nil {
			return err
		}
		defer r.Stop()
		out, err := llms.GenerateFromSinglePrompt(ctx, r.Model(), "x")
		if out != "done" {
			t.Errorf("got %q", out)
		}

		return err
	})
	if err != nil {
		t.Error(err)
	}
}
