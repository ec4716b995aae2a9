package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" { // another process, of TestHaltedInAnotherProcess
		os.Exit(goOnElsewhere(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// seen collects decisions.
type seen struct {
	mu sync.Mutex
	ds []middleware.Decision
}

func (s *seen) Observe(_ context.Context, d middleware.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ds = append(s.ds, d)
}

func (s *seen) count(c middleware.Component, r middleware.Reason) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, d := range s.ds {
		if d.Component == c && d.Reason == r {
			n++
		}
	}

	return n
}

func newGuard(t *testing.T, change func(*interlock.Config)) *interlock.Guard {
	t.Helper()
	cfg := interlock.Config{Workflows: []interlock.Workflow{{ID: desk, Label: ident.MustLabel("desk")}}}
	if change != nil {
		change(&cfg)
	}
	g, err := interlock.New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	return g
}

// serve returns a guarded model of langchaingo's openai client against a
// strict provider, and the provider.
func serve(t *testing.T, g *interlock.Guard, script misbehave.Script) (llms.Model, *misbehave.Server) {
	t.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	model, err := g.Model(candidate(t, srv))
	if err != nil {
		t.Fatal(err)
	}

	return model, srv
}

func echoTool(name string) tools.Tool {
	return aTool{name, func(_ context.Context, in string) (string, error) { return name + " " + in, nil }}
}

func guardTools(t *testing.T, g *interlock.Guard, ts ...tools.Tool) []tools.Tool {
	t.Helper()
	guarded, err := g.Tools(ts...)
	if err != nil {
		t.Fatal(err)
	}

	return guarded
}

func TestBadConfig(t *testing.T) {
	t.Parallel()
	many := make([]interlock.Workflow, 65)
	for i := range many {
		many[i].ID = ident.MustWorkflowID(fmt.Sprintf("workflow:org.example/w%d", i))
	}
	ok := []interlock.Workflow{{ID: desk}}
	for field, cfg := range map[string]interlock.Config{
		"Workflows":       {},
		"Workflows: many": {Workflows: many},
		"Workflows[0].ID": {Workflows: []interlock.Workflow{{}}},
		"Workflows[1].ID": {Workflows: []interlock.Workflow{{ID: desk}, {ID: desk}}},
		"Tools[1]": {Workflows: ok, Tools: []middleware.ToolMiddleware{
			middleware.Recover[*middleware.ToolCall, *middleware.ToolResult], nil,
		}},
		"Models[0]":  {Workflows: ok, Models: []middleware.ModelMiddleware{nil}},
		"Escalation": {Workflows: ok, Escalation: escalation.Policy{Uncertainty: 33, PermissionDenial: 2, ToolFailure: 3, Total: 6}},
		"Watchdog":   {Workflows: ok, Watchdog: watchdog.Config{LoopThreshold: -1}},
	} {
		g, err := interlock.New(cfg)
		ce, is := errors.AsType[*interlock.ConfigError](err)
		want, _, _ := strings.Cut(field, ":")
		if g != nil || !is || ce.Field() != want || ce.Bound() == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v", field, g, err)
		}
		if is && ce.Reason() == 0 {
			t.Errorf("%s: no reason", field)
		}
	}
}

func TestBadModels(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	model, srv := serve(t, g, nil)
	good := candidate(t, srv)
	twice := good
	twice.Model = model
	nameless := good
	nameless.ModelName = ""
	for name, candidates := range map[string][]interlock.Candidate{
		"none": nil, "wrapped": {twice}, "zero": {{}}, "no name": {nameless}, "same label": {good, good},
	} {
		m, err := g.Model(candidates...)
		if ce, is := errors.AsType[*interlock.ConfigError](err); m != nil || !is || ce.Field() == "" {
			t.Errorf("%s: got %v, %v", name, m, err)
		}
	}
	if _, err := g.Model(twice); !errors.Is(err, middleware.ReasonAlreadyWrapped) {
		t.Errorf("wrapped twice: %v", err)
	}
}

func TestBadTools(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	wrapped := guardTools(t, g, echoTool("look"))
	for name, tc := range map[string]struct {
		tools  []tools.Tool
		field  string
		reason middleware.Reason
	}{
		"nil":          {[]tools.Tool{nil}, "Tools[0]", middleware.ReasonInvalidConfig},
		"declared nil": {[]tools.Tool{interlock.ReadOnly(nil)}, "Tools[0]", middleware.ReasonInvalidConfig},
		"twice":        {[]tools.Tool{echoTool("a"), interlock.ReadOnly(wrapped[0])}, "Tools[1]", middleware.ReasonAlreadyWrapped},
		"case":         {[]tools.Tool{echoTool("Look"), echoTool("x"), echoTool("lOOK")}, "Tools[2]", middleware.ReasonDuplicateTool},
		"label":        {[]tools.Tool{echoTool("look up"), echoTool("look_up")}, "Tools[1]", middleware.ReasonDuplicateLabel},
		"no label":     {[]tools.Tool{echoTool("查询")}, "Tools[0]", middleware.ReasonInvalidLabel},
	} {
		ts, err := g.Tools(tc.tools...)
		ce, is := errors.AsType[*interlock.ConfigError](err)
		if ts != nil || !is || ce.Field() != tc.field || !errors.Is(err, tc.reason) {
			t.Errorf("%s: got %v, %v", name, ts, err)
		}
	}
	alias := interlock.Alias(echoTool("查询"), ident.MustLabel("query"))
	if _, err := g.Tools(interlock.ReleaseErrors(interlock.Polling(alias))); err != nil {
		t.Errorf("with an alias: %v", err)
	}
}

// A declared tool that never met a guard must not run.
func TestDeclaredToolAlone(t *testing.T) {
	t.Parallel()
	out, err := interlock.ReadOnly(echoTool("look")).Call(t.Context(), "x")
	if out != "" || !errors.Is(err, middleware.ReasonNilHandler) {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRunsAreRequired(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) { c.Observer = &s })
	model, srv := serve(t, g, nil)
	look := guardTools(t, g, interlock.ReadOnly(echoTool("look")))[0]
	other := ident.MustWorkflowID("workflow:org.example/not-registered")

	if _, err := look.Call(t.Context(), "x"); !errors.Is(err, middleware.ReasonNoRun) {
		t.Errorf("tool without a run: %v", err)
	}
	if _, err := llms.GenerateFromSinglePrompt(t.Context(), model, "x"); !errors.Is(err, middleware.ReasonNoRun) {
		t.Errorf("model without a run: %v", err)
	}
	ctx, run, err := g.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := look.Call(ctx, "x"); err != nil {
		t.Errorf("in a run: %v", err)
	}
	if !run.End(nil) || run.End(nil) {
		t.Error("ending twice is not harmless")
	}
	if _, err := look.Call(ctx, "x"); !errors.Is(err, middleware.ReasonRunEnded) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := llms.GenerateFromSinglePrompt(ctx, model, "x"); !errors.Is(err, middleware.ReasonRunEnded) {
		t.Errorf("after the end: %v", err)
	}
	if _, _, err := g.StartRun(t.Context(), other); !errors.Is(err, middleware.ReasonUnknownWorkflow) {
		t.Errorf("unregistered: %v", err)
	}
	err = g.Do(t.Context(), other, func(context.Context) error { t.Error("fn was called"); return nil })
	if !errors.Is(err, middleware.ReasonUnknownWorkflow) {
		t.Errorf("unregistered: %v", err)
	}
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, nil))
	if _, err := chains.Run(t.Context(), g.Chain(other, agent), "x"); !errors.Is(err, middleware.ReasonUnknownWorkflow) {
		t.Errorf("unregistered: %v", err)
	}
	if n := srv.Count(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	if n := s.count(middleware.ComponentRun, middleware.ReasonUnknownWorkflow); n != 3 {
		t.Errorf("unknown_workflow was reported %d times", n)
	}
	for _, r := range []middleware.Reason{middleware.ReasonNoRun, middleware.ReasonRunEnded} {
		if n := s.count(middleware.ComponentRun, r); n != 2 {
			t.Errorf("%v was reported %d times", r, n)
		}
	}
}

func TestChainsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	model, _ := serve(t, g, nil)
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, nil))
	twice := g.Chain(desk, g.Chain(desk, agent))
	if _, err := chains.Run(t.Context(), twice, "x"); !errors.Is(err, middleware.ReasonAlreadyWrapped) {
		t.Errorf("wrapped twice: %v", err)
	}
	if _, err := chains.Run(t.Context(), g.Chain(desk, nil), "x"); !errors.Is(err, middleware.ReasonInvalidConfig) {
		t.Errorf("nil: %v", err)
	}
	memoryless := g.Chain(desk, &agents.Executor{Agent: agents.NewOpenAIFunctionsAgent(model, nil), MaxIterations: 3})
	if out, err := chains.Run(t.Context(), memoryless, "x"); err != nil || out != "ok" {
		t.Errorf("an executor without memory: %q, %v", out, err)
	}
}

// langchaingo's own errors quote the model; none of that comes out.
func TestAgentErrorsAreContentFree(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	model, _ := serve(t, g, misbehave.Replies(misbehave.Reply{Text: "I ramble about SECRET things"}))
	agent := agents.NewExecutor(agents.NewOneShotAgent(model, guardTools(t, g, interlock.ReadOnly(echoTool("look")))))
	_, err := chains.Run(t.Context(), g.Chain(desk, agent), "x")
	if !errors.Is(err, middleware.ReasonAgentFailed) || !errors.Is(err, agents.ErrUnableToParseOutput) {
		t.Errorf("got %v", err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s %q", err, err, err, err, err); strings.Contains(s, "SECRET") {
		t.Errorf("content in %s", s)
	}
}

// Every input of chains.Apply is a run of its own: no loop state is shared.
func TestApply(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	model, _ := serve(t, g, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
		if len(r.Results()) == 0 {
			return calling("look")
		}

		return misbehave.Reply{Text: "done"}
	}))
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, guardTools(t, g, interlock.ReadOnly(echoTool("look")))))
	inputs := make([]map[string]any, 8)
	for i := range inputs {
		inputs[i] = map[string]any{"input": "the same question"}
	}
	outs, err := chains.Apply(t.Context(), g.Chain(desk, agent), inputs, 4)
	if err != nil || len(outs) != len(inputs) {
		t.Fatalf("%d outputs, %v", len(outs), err)
	}
	for _, out := range outs {
		if out["output"] != "done" {
			t.Errorf("got %v", out)
		}
	}
}

func TestUnknownToolsAreCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script []misbehave.Reply
		make   func(llms.Model, []tools.Tool) agents.Agent
	}{
		"functions": {
			[]misbehave.Reply{calling("invented"), {Text: "done"}},
			func(m llms.Model, ts []tools.Tool) agents.Agent { return agents.NewOpenAIFunctionsAgent(m, ts) },
		},
		"mrkl": {
			[]misbehave.Reply{{Text: "Action: invented\nAction Input: x"}, {Text: "Final Answer: done"}},
			func(m llms.Model, ts []tools.Tool) agents.Agent { return agents.NewOneShotAgent(m, ts) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s seen
			g := newGuard(t, func(c *interlock.Config) { c.Observer = &s })
			model, _ := serve(t, g, misbehave.Replies(tc.script...))
			agent := agents.NewExecutor(tc.make(model, guardTools(t, g, interlock.ReadOnly(echoTool("look")))),
				agents.WithCallbacksHandler(g.Callbacks()))
			out, err := chains.Run(t.Context(), g.Chain(desk, agent), "x")
			if err != nil || strings.TrimSpace(out) != "done" {
				t.Errorf("an invented tool ended the run: %q, %v", out, err)
			}
			if n := s.count(middleware.ComponentWatchdog, middleware.ReasonUnknownTool); n != 1 {
				t.Errorf("counted %d times", n)
			}
		})
	}
}

// A tool that runs an agent in a nested run may take longer than the stall
// timeout: the clock of the outer call stops meanwhile.
func TestNestedRunPausesTheStallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, func(c *interlock.Config) {
			c.Budget.Limits = escalation.DefaultBudget()
			c.Budget.Limits.WallTime = escalation.NoLimit
		})
		slow := interlock.ReadOnly(aTool{"slow", func(ctx context.Context, _ string) (string, error) {
			err := g.Do(ctx, desk, func(ctx context.Context) error {
				inner, outer := middleware.RunFrom(ctx), middleware.RunFrom(ctx).Parent()
				if outer == nil || inner.ID() == outer.ID() {
					t.Error("the nested run has no parent")
				}
				select {
				case <-time.After(time.Hour):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})

			return "nested done", err
		}})
		hung := interlock.ReadOnly(aTool{"hung", func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()

			return "", ctx.Err()
		}})
		ts := guardTools(t, g, slow, hung)
		err := g.Do(t.Context(), desk, func(ctx context.Context) error {
			if out, err := ts[0].Call(ctx, "x"); err != nil || out != "nested done" {
				t.Errorf("the nested run was stalled: %q, %v", out, err)
			}
			began := time.Now()
			_, err := ts[1].Call(ctx, "x")
			if took := time.Since(began); took != 60*time.Second {
				t.Errorf("the stall was seen after %v", took)
			}

			return err
		})
		if !errors.Is(err, middleware.ReasonStalled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDoEndsTheRun(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	var run *middleware.Run
	boom := errors.New("the caller's own error")
	if err := g.Do(t.Context(), desk, func(ctx context.Context) error { run = middleware.RunFrom(ctx); return boom }); err != boom {
		t.Errorf("got %v", err)
	}
	if !run.Ended() {
		t.Error("not ended after an error")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Do(t.Context(), desk, func(ctx context.Context) error {
			run = middleware.RunFrom(ctx)
			runtime.Goexit()

			return nil
		})
	}()
	<-done
	if !run.Ended() {
		t.Error("not ended after Goexit")
	}
	func() {
		defer func() { _ = recover() }()
		_ = g.Do(t.Context(), desk, func(ctx context.Context) error { run = middleware.RunFrom(ctx); panic("x") })
	}()
	if !run.Ended() {
		t.Error("not ended after a panic")
	}
}

// A run that was halted is halted in the process that restores it.
func TestSaveAndRestore(t *testing.T) {
	t.Parallel()
	g := newGuard(t, nil)
	bad := guardTools(t, g, interlock.ReadOnly(aTool{"bad", func(context.Context, string) (string, error) {
		return "", errors.New("SECRET")
	}}))[0]
	ctx, run, err := g.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		out, err := bad.Call(ctx, fmt.Sprint("input ", i))
		if hard := i == 2; (err != nil) != hard || strings.Contains(out, "SECRET") {
			t.Errorf("call %d: %q, %v", i, out, err)
		}
	}
	if _, ok := run.Handoff(); !ok {
		t.Error("no handoff")
	}
	data, err := run.Save()
	if err != nil || strings.Contains(string(data), "SECRET") {
		t.Fatalf("%s, %v", data, err)
	}
	run.End(nil)

	other := newGuard(t, nil)
	look := guardTools(t, other, interlock.ReadOnly(echoTool("look")))[0]
	ctx, restored, err := other.RestoreRun(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer restored.End(nil)
	if restored.ID() != run.ID() {
		t.Error("another run")
	}
	if _, _, halted := restored.Halted(); !halted {
		t.Error("not halted")
	}
	if _, err := look.Call(ctx, "x"); !errors.Is(err, middleware.ReasonCircuitOpen) {
		t.Errorf("a halted run went on: %v", err)
	}
	h1, ok1 := run.Handoff() // of the run that has ended
	h2, ok2 := restored.Handoff()
	if !ok1 || !ok2 || h1.RunID() != run.ID() || !reflect.DeepEqual(h1, h2) {
		t.Error("the handoff was lost")
	}
	foreign := newGuard(t, func(c *interlock.Config) {
		c.Workflows = []interlock.Workflow{{ID: ident.MustWorkflowID("workflow:org.example/other")}}
	})
	if _, _, err := foreign.RestoreRun(t.Context(), data); !errors.Is(err, middleware.ReasonUnknownWorkflow) {
		t.Errorf("a guard without the workflow: %v", err)
	}
	if _, _, err := other.RestoreRun(t.Context(), []byte(`{}`)); !errors.Is(err, middleware.ReasonInvalidRunState) {
		t.Errorf("no state: %v", err)
	}
}

// User's middleware stands inside of the watchdog and outside of the gate.
func TestOrder(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer = &s
		c.Tools = []middleware.ToolMiddleware{func(next middleware.ToolHandler) middleware.ToolHandler {
			return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				if n := s.count(middleware.ComponentAdmission, middleware.ReasonAdmissionDisabled); n != 0 {
					t.Error("the gate decided before the user's middleware")
				}

				return next(ctx, call)
			}
		}}
	})
	effect := guardTools(t, g, aTool{"pay", func(context.Context, string) (string, error) {
		t.Error("paid")

		return "", nil
	}})[0]
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		_, err := effect.Call(ctx, "x")

		return err
	})
	if !errors.Is(err, middleware.ReasonAdmissionDisabled) {
		t.Errorf("got %v", err)
	}
	if n := s.count(middleware.ComponentAdmission, middleware.ReasonAdmissionDisabled); n != 1 {
		t.Errorf("reported %d times", n)
	}
	if n := s.count(middleware.ComponentEscalation, middleware.ReasonFailureCounted); n != 1 {
		t.Errorf("the escalation breaker outside counted %d times", n)
	}
}

func candidate(t *testing.T, srv *misbehave.Server) interlock.Candidate {
	t.Helper()
	model, err := clientOf(srv)
	if err != nil {
		t.Fatal(err)
	}

	return interlock.Candidate{
		Label: ident.MustLabel("primary"), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: model,
	}
}

// The whole chains of a guard pass the suite that each of their layers passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("read-only tool", func(t *testing.T) {
		t.Parallel()
		conformance.Tool(t, conformance.ToolSuite{
			Effect: middleware.ReadOnly,
			New:    func(t *testing.T) middleware.ToolMiddleware { t.Helper(); return newGuard(t, nil).ToolChain() },
		})
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		conformance.Model(t, conformance.ModelSuite{
			New: func(t *testing.T) middleware.ModelMiddleware { t.Helper(); return newGuard(t, nil).ModelChain() },
		})
	})
}
