package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// agentCase is a real agent of langchaingo with one guarded tool, over the
// real client and a strict server.
type agentCase struct {
	srv  *misbehave.Server
	exec *agents.Executor
}

// kinds are the two kinds of agents, each with a model that calls the tool
// twice and then answers.
func kinds() map[string]func(llms.Model, []tools.Tool) (agents.Agent, misbehave.Script) {
	const arguments = `{"city":"Oslo"}`

	return map[string]func(llms.Model, []tools.Tool) (agents.Agent, misbehave.Script){
		"functions": func(m llms.Model, ts []tools.Tool) (agents.Agent, misbehave.Script) {
			return agents.NewOpenAIFunctionsAgent(m, ts), misbehave.Replies(
				misbehave.Reply{Calls: []misbehave.Call{{ID: "call_a", Name: "lookup", Arguments: arguments}}},
				misbehave.Reply{Calls: []misbehave.Call{{ID: "call_b", Name: "lookup", Arguments: arguments}}},
				misbehave.Reply{Text: "It is raining."},
			)
		},
		"one shot": func(m llms.Model, ts []tools.Tool) (agents.Agent, misbehave.Script) {
			return agents.NewOneShotAgent(m, ts), misbehave.Replies(
				misbehave.Reply{Text: "Thought: look\nAction: lookup\nAction Input: " + arguments},
				misbehave.Reply{Text: "Thought: again\nAction: LOOKUP\nAction Input: " + arguments},
				misbehave.Reply{Text: "Thought: done\nFinal Answer: It is raining."},
			)
		},
	}
}

func newAgent(
	t *testing.T, kind func(llms.Model, []tools.Tool) (agents.Agent, misbehave.Script), cfg middleware.ToolConfig,
	fn func(context.Context, string) (string, error),
) *agentCase {
	t.Helper()
	srv, err := misbehave.Start(misbehave.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	client, err := openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("m"))
	if err != nil {
		t.Fatal(err)
	}
	tool, err := middleware.WrapTool(plainTool{name: "lookup", fn: fn}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	agent, script := kind(wrapModel(t, client, middleware.ModelConfig{}), []tools.Tool{tool})
	srv.Script(script)

	return &agentCase{srv: srv, exec: agents.NewExecutor(agent, agents.WithMaxIterations(5))}
}

// valid fails the test if the server saw a request that a provider refuses, or
// the secret.
func (a *agentCase) valid(t *testing.T, requests int) []misbehave.Request {
	t.Helper()
	log := a.srv.Requests()
	if len(log) != requests {
		t.Errorf("%d requests, want %d", len(log), requests)
	}
	for _, r := range log {
		if r.Violation != misbehave.NoViolation {
			t.Errorf("request %d: %v", r.Index, r.Violation)
		}
		if strings.Contains(string(r.Raw()), "SECRET") {
			t.Errorf("request %d carries content:\n%s", r.Index, r.Raw())
		}
	}

	return log
}

// ends lists how an executor is asked: its error must survive each of them.
func ends() map[string]func(context.Context, chains.Chain) (string, error) {
	return map[string]func(context.Context, chains.Chain) (string, error){
		"Run": func(ctx context.Context, c chains.Chain) (string, error) {
			return chains.Run(ctx, c, "Weather in Oslo?")
		},
		"Call": func(ctx context.Context, c chains.Chain) (string, error) {
			out, err := chains.Call(ctx, c, map[string]any{"input": "Weather in Oslo?"})

			return fmt.Sprint(out["output"]), err
		},
	}
}

func TestExecutorStopsAtAHardDenial(t *testing.T) {
	t.Parallel()
	var stopped error = middleware.ReasonAdmissionStopped
	gate := func(toolHandler) toolHandler {
		return func(ctx context.Context, _ *toolCall) (*toolResult, error) {
			return nil, middleware.NewDenial(middleware.Refusal{
				Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped, Cause: errSecret,
			})
		}
	}
	for name, kind := range kinds() {
		for how, ask := range ends() {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				a := newAgent(t, kind, middleware.ToolConfig{Chain: gate}, func(context.Context, string) (string, error) {
					t.Error("the tool was called")

					return "", nil
				})
				ctx, r := start(t, middleware.RunConfig{})
				_, err := ask(ctx, a.exec)
				d, ok := errors.AsType[*middleware.Denial](err)
				if !errors.Is(err, stopped) || !ok || d.Run() != r.ID() {
					t.Errorf("got %v", err)
				}
				contentFree(t, err)
				a.valid(t, 1)
			})
		}
	}
}

// Soft denials and errors of the tool are observations: the agent goes on, its
// next request is valid and carries only what is released.
func TestExecutorGoesOn(t *testing.T) {
	t.Parallel()
	nudge := middleware.NewDenial(middleware.Refusal{
		Verdict: middleware.VerdictModify, Component: middleware.ComponentWatchdog, Reason: middleware.ReasonLoop, Cause: errSecret,
	})
	for name, kind := range kinds() {
		for _, tc := range []struct {
			name string
			cfg  middleware.ToolConfig
			err  error
			want string
		}{
			{"soft denial", middleware.ToolConfig{Chain: func(toolHandler) toolHandler { return failing(nudge) }}, nil, nudge.Observation()},
			{"tool error", middleware.ToolConfig{}, errSecret, fixed(middleware.ReasonToolFailed)},
			{"own timeout of a reader", middleware.ToolConfig{Effect: middleware.ReadOnly}, fmt.Errorf("%s: %w", secret, context.DeadlineExceeded), fixed(middleware.ReasonToolTimeout)},
			{"released text", middleware.ToolConfig{ErrorText: true}, errors.New("no such\ncity"), "no such city"},
			{"observable", middleware.ToolConfig{}, observable{"use a city"}, "use a city"},
		} {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				a := newAgent(t, kind, tc.cfg, func(context.Context, string) (string, error) { return "", tc.err })
				ctx, r := start(t, middleware.RunConfig{})
				out, err := chains.Run(ctx, a.exec, "Weather in Oslo?")
				if err != nil || out != "It is raining." && !strings.HasSuffix(out, "It is raining.") {
					t.Fatalf("got %q, %v", out, err)
				}
				log := a.valid(t, 3)
				if last := string(log[2].Raw()); strings.Count(last, tc.want) != 2 {
					t.Errorf("the model was not told %q twice:\n%s", tc.want, last)
				}
				if r.Turn() != 3 {
					t.Errorf("turn %d", r.Turn())
				}
			})
		}
	}
}

func TestExecutorNeverPaysTwice(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		for why, pay := range map[string]func() (string, error){
			"timeout": func() (string, error) { return "", context.DeadlineExceeded },
			"panic":   func() (string, error) { panic(secret) },
		} {
			t.Run(name+"/"+why, func(t *testing.T) {
				t.Parallel()
				paid := 0
				a := newAgent(t, kind, middleware.ToolConfig{}, func(context.Context, string) (string, error) { paid++; return pay() })
				ctx, _ := start(t, middleware.RunConfig{})
				_, err := chains.Run(ctx, a.exec, "Pay.")
				wantReason(t, err, middleware.ReasonOutcomeUnknown)
				if paid != 1 {
					t.Errorf("paid %d times", paid)
				}
				a.valid(t, 1)
			})
		}
	}
}

// The identifiers that the model gave arrive at the tool, whose interface has
// no place for them.
func TestExecutorIdentifiers(t *testing.T) {
	t.Parallel()
	var got []string
	note := func(next toolHandler) toolHandler {
		return func(ctx context.Context, call *toolCall) (*toolResult, error) {
			got = append(got, fmt.Sprint(call.ID(), "@", call.Turn()))

			return next(ctx, call)
		}
	}
	a := newAgent(t, kinds()["functions"], middleware.ToolConfig{Chain: note}, nil)
	ctx, _ := start(t, middleware.RunConfig{})
	if _, err := chains.Run(ctx, a.exec, "q"); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != "call_a@1 call_b@2" {
		t.Errorf("got %v", got)
	}
}

func TestExecutorWithoutRun(t *testing.T) {
	t.Parallel()
	a := newAgent(t, kinds()["functions"], middleware.ToolConfig{}, nil)
	_, err := chains.Run(t.Context(), a.exec, "q")
	wantReason(t, err, middleware.ReasonNoRun)
	a.valid(t, 0)
}

// The client hides that it was canceled; the adapter does not.
func TestExecutorCanceled(t *testing.T) {
	t.Parallel()
	a := newAgent(t, kinds()["functions"], middleware.ToolConfig{}, nil)
	a.srv.Script(misbehave.Replies(misbehave.Reply{Fault: misbehave.FaultHang}))
	ctx, _ := start(t, middleware.RunConfig{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_ = a.srv.AwaitRequests(ctx, 1)
		cancel(errSecret)
	}()
	_, err := chains.Run(ctx, a.exec, "q")
	wantReason(t, err, middleware.ReasonCanceled)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errSecret) {
		t.Errorf("context error or cause is not in %v", err)
	}
}
