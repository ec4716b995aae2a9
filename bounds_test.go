package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// limits are the default budget with something changed.
func limits(change func(*escalation.Limits)) escalation.BudgetConfig {
	l := escalation.DefaultBudget()
	change(&l)

	return escalation.BudgetConfig{Limits: l}
}

// TestBudgetStandsOutside: what the budget refuses is no failure of the run, and
// reaches neither the tool nor any layer of the user's.
func TestBudgetStandsOutside(t *testing.T) {
	t.Parallel()
	var s seen
	reached := 0
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer = &s
		c.Budget = limits(func(l *escalation.Limits) { l.ToolCalls = 2 })
		c.Tools = []middleware.ToolMiddleware{func(next middleware.ToolHandler) middleware.ToolHandler {
			return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				reached++

				return next(ctx, call)
			}
		}}
	})
	look := guardTools(t, g, interlock.ReadOnly(echoTool("look")))[0]
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		for _, in := range []string{"1", "2"} {
			if out, err := look.Call(ctx, in); err != nil || out != "look "+in {
				t.Errorf("%q, %v", out, err)
			}
		}
		_, err := look.Call(ctx, "3")
		if used := g.Budget().Used(middleware.RunFrom(ctx)); used.ToolCalls != 2 {
			t.Errorf("used %+v", used)
		}

		return err
	})
	if !errors.Is(err, escalation.ErrBudgetExceeded) || reached != 2 {
		t.Errorf("got %v, %d calls reached the user's layer", err, reached)
	}
	if n := s.count(middleware.ComponentEscalation, middleware.ReasonFailureCounted); n != 0 {
		t.Errorf("the escalation counted %d failures", n)
	}
}

// TestFinalAnswer: an agent whose budget is used up answers once more, without
// tools, in a conversation that its provider accepts.
func TestFinalAnswer(t *testing.T) {
	t.Parallel()
	everyAgent(t, func(t *testing.T, kind, wire string) {
		t.Helper()
		g := newGuard(t, func(c *interlock.Config) {
			c.Budget = limits(func(l *escalation.Limits) { l.ToolCalls, l.Tokens = 2, escalation.NoLimit })
			c.Budget.FinalAnswer = true
		})
		k := kinds[kind]
		out, _, srv, err := watched(t, g, kind, wire, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if told(r, escalation.FinalSentence) {
				if len(r.Tools) > 0 {
					t.Error("tools are offered for the final answer")
				}

				return k.answer
			}

			return k.call("look", r.Index)
		}))
		if err != nil || out != "done" || srv.Count() != 4 {
			t.Errorf("got %q, %v after %d requests", out, err, srv.Count())
		}
	})
}

// TestStoppedRunStaysStopped: what a run has used, and that it was stopped, goes
// with it into another process, which is another guard.
func TestStoppedRunStaysStopped(t *testing.T) {
	t.Parallel()
	restarted := func() (*interlock.Guard, func(context.Context) error) {
		g := newGuard(t, func(c *interlock.Config) {
			c.Budget = limits(func(l *escalation.Limits) { l.ToolCalls = 2 })
		})
		look := guardTools(t, g, interlock.ReadOnly(echoTool("look")))[0]

		return g, func(ctx context.Context) error { _, err := look.Call(ctx, "x"); return err }
	}
	first, look := restarted()
	ctx, run, err := first.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	if err := look(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, escalation.ErrBudgetExceeded, escalation.ErrBudgetExceeded} {
		saved, err := run.Save()
		if err != nil {
			t.Fatal(err)
		}
		run.End(nil)
		var next *interlock.Guard
		next, look = restarted()
		if ctx, run, err = next.RestoreRun(t.Context(), saved); err != nil {
			t.Fatal(err)
		}
		if err := look(ctx); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	run.End(nil)
}

// TestChildChargesItsParent: an agent inside of a tool works on the budget of the
// run that called the tool.
func TestChildChargesItsParent(t *testing.T) {
	t.Parallel()
	g := newGuard(t, func(c *interlock.Config) {
		c.Budget = limits(func(l *escalation.Limits) { l.ToolCalls = 3 })
	})
	inner := guardTools(t, g, interlock.ReadOnly(echoTool("inner")))[0]
	outer := guardTools(t, g, interlock.ReadOnly(aTool{"outer", func(ctx context.Context, _ string) (string, error) {
		return "", g.Do(ctx, desk, func(ctx context.Context) error {
			for _, in := range []string{"1", "2", "3"} {
				if _, err := inner.Call(ctx, in); err != nil {
					return err
				}
			}

			return nil
		})
	}}))[0]
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		_, err := outer.Call(ctx, "x")
		if used := g.Budget().Used(middleware.RunFrom(ctx)); used.ToolCalls != 3 {
			t.Errorf("used %+v", used)
		}
		_, again := inner.Call(ctx, "4")

		return errors.Join(err, again)
	})
	if !errors.Is(err, escalation.ErrBudgetExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestParkedAcrossRuns: failures of several runs open the breaker of their
// workflow, one human is asked, and another workflow goes on.
func TestParkedAcrossRuns(t *testing.T) {
	t.Parallel()
	other := ident.MustWorkflowID("workflow:org.example/billing")
	sink, err := escalation.NewMemorySink(8)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, func(c *interlock.Config) {
		c.Workflows = append(c.Workflows, interlock.Workflow{ID: other, Label: ident.MustLabel("billing")})
		c.Handoffs = sink
	})
	broken := guardTools(t, g, interlock.ReadOnly(aTool{"broken", func(context.Context, string) (string, error) {
		return "", errors.New("no")
	}}))[0]
	call := func(w ident.WorkflowID) error {
		return g.Do(t.Context(), w, func(ctx context.Context) error { _, err := broken.Call(ctx, "x"); return err })
	}
	for range 5 {
		if err := call(desk); err != nil { // an observation for the model
			t.Fatal(err)
		}
	}
	if err := call(desk); !errors.Is(err, escalation.ErrParked) {
		t.Errorf("got %v", err)
	}
	if err := call(other); err != nil {
		t.Errorf("another workflow: %v", err)
	}
	if g.Actions().State(desk) != middleware.CircuitOpen || g.Actions().State(other) != middleware.CircuitClosed {
		t.Error("the states are not those of their workflows")
	}
	if n := len(sink.Handoffs()); n != 1 {
		t.Errorf("%d handoffs", n)
	}
	open := 0
	for _, reading := range g.Gauges() {
		if reading.Kind == middleware.GaugeCircuit && reading.Circuit == middleware.CircuitOpen {
			open++
			if reading.Label != ident.MustLabel("desk") {
				t.Errorf("the gauge of %v is open", reading.Label)
			}
		}
	}
	if open != 1 {
		t.Errorf("%d gauges are open", open)
	}
}

// TestStopOpensNoBreaker: what an operator stopped is no failure of the agents.
func TestStopOpensNoBreaker(t *testing.T) {
	t.Parallel()
	store := openLedger(t)
	g := newGuard(t, func(c *interlock.Config) { c.Admission = store })
	pay := guardTools(t, g, echoTool("pay"))[0]
	if _, err := g.Admission().Enable(t.Context(), admission.Transition{Scope: admission.Global()}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admission().Stop(t.Context(), admission.Transition{Scope: admission.Global()}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := g.Do(t.Context(), desk, func(ctx context.Context) error { _, err := pay.Call(ctx, "x"); return err })
			if !errors.Is(err, admission.ErrStopped) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if state := g.Actions().State(desk); state != middleware.CircuitClosed {
		t.Errorf("the breaker is %v", state)
	}
}

// TestContextFitsTheSmallestWindow: the limiter takes the window from the
// candidates, and shortens before the provider is asked.
func TestContextFitsTheSmallestWindow(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer, c.Context, c.Watchdog.DisableLoop = &s, &escalation.ContextConfig{}, true
		c.Budget = limits(func(l *escalation.Limits) { l.Tokens = escalation.NoLimit })
	})
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
		if r.Index == 12 {
			return misbehave.Reply{Text: "done"}
		}

		return misbehave.Reply{Calls: []misbehave.Call{{Name: "look", Arguments: fmt.Sprintf(`{"__arg1":"place %d"}`, r.Index)}}}
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	small, large := candidate(t, srv), candidate(t, srv)
	large.Label = ident.MustLabel("large")
	small.Window, large.Window = 2_000, 200_000
	model, err := g.Model(large, small)
	if err != nil {
		t.Fatal(err)
	}
	long := interlock.ReadOnly(aTool{"look", func(_ context.Context, in string) (string, error) {
		return in + strings.Repeat(" something new", 30), nil
	}})
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, guardTools(t, g, long)), agents.WithMaxIterations(16))
	out, err := chains.Run(t.Context(), g.Chain(desk, agent), "x")
	if err != nil || out != "done" {
		t.Errorf("got %q, %v", out, err)
	}
	if s.count(middleware.ComponentContext, middleware.ReasonContextFull) == 0 {
		t.Error("nothing was shortened")
	}
	for i, r := range srv.Requests() {
		if r.Violation != misbehave.NoViolation || len(r.Raw()) > 2_000*3 {
			t.Errorf("request %d: %d bytes, %q", i, len(r.Raw()), r.Violation)
		}
	}
}

// TestConfidenceIsHeard: a low confidence of an answer counts for the run.
func TestConfidenceIsHeard(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer = &s
		c.Confidence = func(context.Context, *middleware.ModelResult) (float64, bool) { return 0.2, true }
	})
	model, _ := serve(t, g, misbehave.Replies(misbehave.Reply{Text: "perhaps"}))
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		_, err := llms.GenerateFromSinglePrompt(ctx, model, "x")

		return err
	})
	if err != nil || s.count(middleware.ComponentEscalation, middleware.ReasonFailureCounted) != 1 {
		t.Errorf("%v, decisions %+v", err, s.ds)
	}
}

// TestBadBounds: what is out of bounds is named when the guard is built, and a
// model without a window when it is wrapped.
func TestBadBounds(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*interlock.Config){
		"Budget":  func(c *interlock.Config) { c.Budget = limits(func(l *escalation.Limits) { l.Steps = 0 }) },
		"Actions": func(c *interlock.Config) { c.Actions.HardFailures = 6 },
		"Context": func(c *interlock.Config) { c.Context = &escalation.ContextConfig{Window: -1} },
		// of a limiter whose window the candidates have
		"Context, without a window": func(c *interlock.Config) { c.Context = &escalation.ContextConfig{MaxFill: 2} },
	} {
		field, _, _ = strings.Cut(field, ",")
		cfg := interlock.Config{Workflows: []interlock.Workflow{{ID: desk}}}
		change(&cfg)
		g, err := interlock.New(cfg)
		ce, ok := errors.AsType[*interlock.ConfigError](err)
		if g != nil || !ok || ce.Field() != field || errors.Unwrap(err) == nil {
			t.Errorf("%s: got %v", field, err)
		}
	}
	g := newGuard(t, func(c *interlock.Config) { c.Context = &escalation.ContextConfig{} })
	srv, err := misbehave.Start(misbehave.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	c := candidate(t, srv)
	if _, err := g.Model(c); err == nil || !strings.Contains(err.Error(), "Window") {
		t.Errorf("no window: %v", err)
	}
	c.Window = 1 << 31
	if _, err := g.Model(c); err == nil || !strings.Contains(err.Error(), "Context") {
		t.Errorf("too large a window: %v", err)
	}
	c.Window = 1000
	if _, err := g.Model(c); err != nil {
		t.Error(err)
	}
}

// TestStallCountsOnce: a payment that stalls is aborted, which is no failure of
// its run besides, and one failure of the workflow, which is parked for
// everybody; what is refused then counts for nobody.
func TestStallCountsOnce(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer, c.Admission, c.Watchdog.StallTimeout = &s, openLedger(t), 10*time.Millisecond
	})
	if _, err := g.Admission().Enable(t.Context(), admission.Transition{Scope: admission.Global()}); err != nil {
		t.Fatal(err)
	}
	pay := guardTools(t, g, aTool{"pay", func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()

		return "", ctx.Err()
	}})[0]
	call := func() error {
		return g.Do(t.Context(), desk, func(ctx context.Context) error { _, err := pay.Call(ctx, "x"); return err })
	}
	if err := call(); !errors.Is(err, middleware.ReasonOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if err := call(); !errors.Is(err, escalation.ErrParked) {
			t.Errorf("got %v", err)
		}
	}
	failed := s.count(middleware.ComponentBreaker, middleware.ReasonOutcomeUnknown) // and the trip
	counted := s.count(middleware.ComponentEscalation, middleware.ReasonFailureCounted)
	if failed != 2 || counted != 0 || s.count(middleware.ComponentBreaker, middleware.ReasonParked) != 3 {
		t.Errorf("%d decisions of the breaker, %d of the escalation", failed, counted)
	}
	if h := g.Actions().History(desk); len(h) != 1 || h[0].Reason != middleware.ReasonOutcomeUnknown || h[0].Count != 1 {
		t.Errorf("history %+v", h)
	}
}

// TestSoftRefusalsAreNoFailures: what the watchdog nudges counts for the run
// alone, and what the budget refuses softly for nobody.
func TestSoftRefusalsAreNoFailures(t *testing.T) {
	t.Parallel()
	var s seen
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer = &s
		c.Watchdog.Policy = func(watchdog.Detection) watchdog.Action { return watchdog.Nudge }
		c.Escalation = escalation.Policy{Uncertainty: 32, PermissionDenial: 32, ToolFailure: 32, Total: 32}
		c.Budget = limits(func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{ident.MustLabel("rare"): 1} })
	})
	set := guardTools(t, g, interlock.ReadOnly(echoTool("again")), interlock.ReadOnly(echoTool("rare")))
	again, rare := set[0], set[1]
	err := g.Do(t.Context(), desk, func(ctx context.Context) error {
		for range 12 {
			if _, err := again.Call(ctx, "x"); err != nil {
				return err
			}
		}
		for i := range 5 {
			if _, err := rare.Call(ctx, strconv.Itoa(i)); err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	nudged := s.count(middleware.ComponentWatchdog, middleware.ReasonLoop)
	counted := s.count(middleware.ComponentEscalation, middleware.ReasonFailureCounted)
	if nudged == 0 || counted != nudged || s.count(middleware.ComponentBudget, middleware.ReasonToolLimit) != 4 {
		t.Errorf("%d nudges, %d failures counted", nudged, counted)
	}
	for _, d := range s.ds {
		if d.Component == middleware.ComponentBreaker && d.Reason != middleware.ReasonDuplicateAction {
			t.Errorf("the breaker heard of %v", d.Reason)
		}
	}
	if state := g.Actions().State(desk); state != middleware.CircuitClosed {
		t.Errorf("the breaker is %v", state)
	}
}
