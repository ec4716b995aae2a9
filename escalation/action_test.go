package escalation_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestActionConfig(t *testing.T) {
	t.Parallel()
	many := map[ident.WorkflowID]ident.Label{}
	for i := range 65 {
		many[ident.MustWorkflowID("workflow:org.example/w"+strconv.Itoa(i))] = ident.Label{}
	}
	volatile := &escalation.Profile{Volatility: func(context.Context, ident.WorkflowID) (float64, error) { return 0, nil }}
	for field, cfgs := range map[string][]escalation.ActionConfig{
		"FailureThreshold":   {{FailureThreshold: -1}, {FailureThreshold: 1001}},
		"HardFailures":       {{HardFailures: -1}, {HardFailures: 6}, {FailureThreshold: 2, HardFailures: 3}},
		"Recovery":           {{Recovery: -1}, {Recovery: 24*time.Hour + 1}, {Recovery: 11 * time.Minute, Profile: volatile}},
		"SuccessThreshold":   {{SuccessThreshold: -1}, {SuccessThreshold: 1001}},
		"MaxTrial":           {{MaxTrial: -1}, {MaxTrial: 65}},
		"RiskLimit":          {{RiskLimit: -0.1}, {RiskLimit: 1.1}, {RiskLimit: math.NaN()}, {RiskLimit: math.Inf(1)}},
		"DuplicateLimit":     {{DuplicateLimit: -1}, {DuplicateLimit: 1}, {DuplicateLimit: 1001}},
		"ConfidenceFloor":    {{ConfidenceFloor: -0.1}, {ConfidenceFloor: 1.1}, {ConfidenceFloor: math.NaN()}},
		"DriftLimit":         {{DriftLimit: -0.1}, {DriftLimit: 1.1}, {DriftLimit: math.NaN()}},
		"Profile.Volatility": {{Profile: &escalation.Profile{}}},
		"SinkTimeout":        {{SinkTimeout: -1}, {SinkTimeout: time.Minute + 1}},
		"Workflows":          {{Workflows: many}, {Workflows: map[ident.WorkflowID]ident.Label{{}: deskLabel}}},
	} {
		for i, cfg := range cfgs {
			b, err := escalation.NewActionBreaker(cfg)
			bad, ok := errors.AsType[*escalation.ConfigError](err)
			if b != nil || !ok || bad.Field() != field || !strings.Contains(err.Error(), field+" must be ") {
				t.Errorf("%s %d: got %v, %v", field, i, b, err)
			}
		}
	}
	if _, err := escalation.NewActionBreaker(escalation.ActionConfig{Profile: volatile, FailureThreshold: 1000, HardFailures: 1000}); err != nil {
		t.Error(err)
	}
}

// signalCase raises one signal in an action that otherwise succeeds.
type signalCase struct {
	raise  func(tb testing.TB, r *rig)
	change func(*escalation.ActionConfig)
	reason middleware.Reason // of the failure
	hard   bool
	asked  middleware.Reason // of the handoff
}

func signals() map[string]signalCase {
	report := func(k middleware.SignalKind, v float64) func(testing.TB, *rig) {
		return func(tb testing.TB, r *rig) {
			tb.Helper()
			_ = r.call(tb, middleware.Effectful, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				middleware.Report(ctx, middleware.Signal{Kind: k, Value: v})

				return works(ctx, c)
			})
		}
	}
	risk := func(f func(ctx context.Context, c *middleware.ToolCall) (float64, error)) func(*escalation.ActionConfig) {
		return func(c *escalation.ActionConfig) { c.Risk = f }
	}
	returns := func(v float64, err error) func(*escalation.ActionConfig) {
		return risk(func(context.Context, *middleware.ToolCall) (float64, error) { return v, err })
	}
	told := func(reason middleware.Reason) func(testing.TB, *rig) {
		return func(tb testing.TB, r *rig) {
			tb.Helper()
			ctx, run := r.start(tb)
			r.Note(ctx, run, reason)
		}
	}
	call := do(middleware.Effectful, works)
	const human, low, safety = middleware.ReasonHumanGate, middleware.ReasonLowConfidence, middleware.ReasonSafetyReview
	unknown := func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, context.DeadlineExceeded
	}

	return map[string]signalCase{
		"risk above the limit": {call, returns(0.81, nil), middleware.ReasonGuardrail, true, human},
		"risk not a number":    {call, returns(math.NaN(), nil), middleware.ReasonGuardrail, true, human},
		"risk below zero":      {call, returns(-0.1, nil), middleware.ReasonGuardrail, true, human},
		"risk above one":       {call, returns(1.5, nil), middleware.ReasonGuardrail, true, human},
		"risk fails":           {call, returns(0, errTool), middleware.ReasonGuardrail, true, human},
		"risk panics":          {call, risk(func(context.Context, *middleware.ToolCall) (float64, error) { panic(secret) }), middleware.ReasonGuardrail, true, human},
		"risk exits": {call, risk(func(context.Context, *middleware.ToolCall) (float64, error) {
			runtime.Goexit()

			return 0, nil
		}), middleware.ReasonGuardrail, true, human},
		"reported risk":     {report(middleware.SignalRisk, 0.81), nil, middleware.ReasonGuardrail, true, human},
		"panic":             {do(middleware.ReadOnly, panics), nil, middleware.ReasonPanic, true, safety},
		"panic of a change": {do(middleware.Effectful, panics), nil, middleware.ReasonPanic, true, safety},
		"unknown":           {do(middleware.Effectful, unknown), nil, middleware.ReasonOutcomeUnknown, true, safety},
		"exit":              {do(middleware.Effectful, exits), nil, middleware.ReasonOutcomeUnknown, true, safety},
		"budget":            {told(middleware.ReasonBudgetExceeded), nil, middleware.ReasonBudgetExceeded, false, safety},
		"error":             {do(middleware.Effectful, fails), nil, middleware.ReasonActionFailed, false, safety},
		"late but harmless": {do(middleware.ReadOnly, unknown), nil, middleware.ReasonActionFailed, false, safety},
		"confidence":        {report(middleware.SignalConfidence, 0.59), nil, middleware.ReasonLowConfidence, false, low},
		"drift":             {report(middleware.SignalDrift, 0.86), nil, middleware.ReasonContextDrift, false, low},
		"told drift":        {told(middleware.ReasonContextDrift), nil, middleware.ReasonContextDrift, false, low},
		"told full":         {told(middleware.ReasonContextFull), nil, middleware.ReasonContextFull, false, safety},
	}
}

// Each row of the list of signals: what it counts as, alone and up to the trip,
// and what the human is asked.
func TestActionSignals(t *testing.T) {
	t.Parallel()
	for name, c := range signals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.change)
			n := 0
			for n < 10 && r.State(workflow) == middleware.CircuitClosed {
				n++
				c.raise(t, r)
			}
			if want := map[bool]int{true: 1, false: 5}[c.hard]; n != want {
				t.Errorf("it opened after %d, want %d", n, want)
			}
			if got := r.log.count(c.reason); got < n+1 {
				t.Errorf("%d decisions with %v: %v", got, c.reason, r.log.reasons())
			}
			queued := r.sink.Handoffs()
			if len(queued) != 1 || queued[0].ReasonCode() != c.asked || queued[0].WorkflowID() != workflow {
				t.Fatalf("queued %v", queued)
			}
			checkDigest(t, r, queued[0])
			fault := strings.HasPrefix(name, "risk ") && name != "risk above the limit"
			if got := r.Faults(); got != uint64(b2i(fault)) {
				t.Errorf("%d faults of the user function", got)
			}
			history := r.History(workflow)
			want := escalation.ActionTransition{At: at, State: middleware.CircuitOpen, Reason: c.reason, Count: n}
			if len(history) != 1 || history[0] != want {
				t.Errorf("history %+v, want %+v", history, want)
			}
		})
	}
}

// checkDigest makes the digest again from the decision about the action.
func checkDigest(t *testing.T, r *rig, h escalation.Handoff) {
	t.Helper()
	all := r.log.all()
	for i, d := range all {
		if d.Circuit != middleware.CircuitOpen {
			continue
		}
		about := all[i-1]
		want := escalation.StepDigest(about.Run, about.Count, middleware.ComponentBreaker, about.Label)
		if got := h.StepDigests(); len(got) != 1 || got[0] != want || h.RunID() != about.Run {
			t.Errorf("the handoff is not of the action that tripped: %+v", about)
		}
	}
}

// An action has one outcome, the worst of its signals.
func TestActionOneOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	_ = r.call(t, middleware.Effectful, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		for range 5 {
			middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalDrift, Value: 0.9})
			middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.1})
			r.Note(ctx, middleware.RunFrom(ctx), middleware.ReasonContextFull)
		}

		return fails(ctx, c)
	})
	all := r.log.all()
	if len(all) != 1 || all[0].Reason != middleware.ReasonActionFailed || all[0].Count != 1 || all[0].Limit != 5 {
		t.Errorf("decisions %+v", all)
	}
	r.in(t, middleware.CircuitClosed)
}

// A signal belongs to the action in its context, else to the run's next one.
func TestActionSignalBelongs(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ctx, run := r.start(t)
	low := middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.1}
	outer := func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
			if c.Input() == "early" {
				middleware.Report(ctx, low)
				if _, err := r.tool(t, "other", middleware.ReadOnly, works).Do(ctx, "other", ""); err != nil {
					t.Error(err)
				}
			}

			return next(ctx, c)
		}
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "act", Effect: middleware.ReadOnly, Chain: middleware.Chain(outer, r.Tool())}, works)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		input string
		label string
	}{{"early", "act"}, {"plain", ""}} {
		r.log.clear()
		if _, err := tool.Do(ctx, "id "+step.input, step.input); err != nil {
			t.Fatal(err)
		}
		all := r.log.all()
		if (len(all) == 1) != (step.label != "") || (len(all) == 1 && all[0].Label.String() != step.label) {
			t.Errorf("%s: %+v", step.input, all)
		}
	}
	middleware.Report(ctx, low) // of the run's next action, whichever
	if _, err := tool.Do(ctx, "id next", "next"); err != nil {
		t.Fatal(err)
	}
	if n := r.log.count(middleware.ReasonLowConfidence); n != 1 {
		t.Errorf("%d failures, want 1", n)
	}
	r.ReceiveSignal(ctx, run, middleware.Signal{Kind: middleware.SignalRisk, Value: math.NaN()})
	r.ReceiveSignal(ctx, run, middleware.Signal{Kind: middleware.SignalRisk, Value: 7})
	r.ReceiveSignal(ctx, nil, middleware.Signal{Kind: middleware.SignalRisk, Value: 1})
	if _, err := tool.Do(ctx, "id after", "after"); err != nil {
		t.Errorf("a signal out of range refused an action: %v", err)
	}
}

// Stops, refusals of inner layers and cancels open nothing; neither do they
// forgive.
func TestActionExcluded(t *testing.T) {
	t.Parallel()
	refusal := func(c middleware.Component, reason middleware.Reason) func(testing.TB, *rig) {
		return func(tb testing.TB, r *rig) {
			tb.Helper()
			ctx, run := r.start(tb)
			_, _ = r.inner(tb, "act", middleware.Effectful, inside(func(context.Context) error {
				return denial(run.ID(), c, reason, middleware.VerdictDeny)
			}), works).Do(ctx, "", "")
		}
	}
	for name, happen := range map[string]func(testing.TB, *rig){
		"stop":     refusal(middleware.ComponentAdmission, middleware.ReasonAdmissionStopped),
		"approval": refusal(middleware.ComponentApproval, middleware.ReasonApprovalRefused),
		"order":    refusal(middleware.ComponentChain, middleware.ReasonUnsafeOrder),
		"stop of a nested run": func(tb testing.TB, r *rig) {
			tb.Helper()
			_ = r.call(tb, middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
				return nil, denial(runID(tb, "cd"), middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, middleware.VerdictDeny)
			})
		},
		"stop in the middle": func(tb testing.TB, r *rig) {
			tb.Helper()
			ctx, run := r.start(tb)
			_, _ = r.inner(tb, "act", middleware.Effectful, func(middleware.ToolHandler) middleware.ToolHandler {
				return func(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
					return nil, middleware.UnknownOutcome(c,
						denial(run.ID(), middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, middleware.VerdictDeny))
				}
			}, works).Do(ctx, "", "")
		},
		"cancel": canceled,
		"cancel of a change": func(tb testing.TB, r *rig) {
			tb.Helper()
			ctx, _ := r.start(tb)
			ctx, cancel := context.WithCancel(ctx)
			_, err := r.tool(tb, "act", middleware.Effectful, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
				cancel()

				return nil, errTool
			}).Do(ctx, "", "")
			if !errors.Is(err, middleware.ReasonOutcomeUnknown) {
				tb.Errorf("got %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			times(4, do(middleware.ReadOnly, fails))(t, r)
			r.log.clear()
			times(30, happen)(t, r)
			r.in(t, middleware.CircuitClosed)
			if all := r.log.all(); len(all) != 0 {
				t.Errorf("decisions %+v", all)
			}
			do(middleware.ReadOnly, fails)(t, r)
			r.in(t, middleware.CircuitOpen) // the fifth in a row
		})
	}
}

// What the watchdog's stall clock cancels is not the caller's wish, and a caller
// whose time runs out knows as little of a payment as anybody.
func TestActionCanceledByOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect middleware.Effect
		ctx    func(context.Context) (context.Context, func())
		want   middleware.Reason
	}{
		"stalled change": {middleware.Effectful, stalling, middleware.ReasonOutcomeUnknown},
		"stalled read":   {middleware.ReadOnly, stalling, middleware.ReasonActionFailed},
		"late change": {middleware.Effectful, func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithDeadline(ctx, time.Now().Add(time.Hour))

			return &expired{Context: ctx, after: 3}, cancel
		}, middleware.ReasonOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			ctx, _ := r.start(t)
			ctx, cancel := c.ctx(ctx)
			defer cancel()
			_, err := r.tool(t, "act", c.effect, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
				cancel()

				return nil, errTool
			}).Do(ctx, "", "")
			if err == nil || r.log.count(c.want) == 0 {
				t.Errorf("got %v, decisions %v, want %v", err, r.log.reasons(), c.want)
			}
		})
	}
}

func stalling(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)

	return ctx, func() { cancel(middleware.ReasonStalled) }
}

// expired is a context whose deadline passes after it was asked a few times.
type expired struct {
	context.Context //nolint:containedctx // this is a context

	asked atomic.Int64
	after int64
}

func (e *expired) Err() error {
	if e.asked.Add(1) > e.after {
		return context.DeadlineExceeded
	}

	return nil
}

// The second equal action in a row counts: equal tool, arguments and result, in
// whatever spelling.
func TestActionDuplicates(t *testing.T) {
	t.Parallel()
	type step struct{ tool, input, output string }
	for name, c := range map[string]struct {
		steps  []step
		effect middleware.Effect
		want   int
	}{
		"equal":           {[]step{{"a", "1", "x"}, {"a", "1", "x"}}, middleware.ReadOnly, 1},
		"three":           {[]step{{"a", "1", "x"}, {"a", "1", "x"}, {"a", "1", "x"}}, middleware.Effectful, 2},
		"spelling":        {[]step{{"a", `{"a":1,"b":2}`, "at 10:15:02"}, {"a", `{"b":2.0,"a":1}`, "at 10:16:00"}}, middleware.ReadOnly, 1},
		"first spelling":  {[]step{{"a", `{"a":1,"b":2}`, "x"}, {"a", `{"b":2.0,"a":1}`, "x"}, {"a", `{"a":1,"b":2}`, "x"}}, middleware.ReadOnly, 2},
		"other tool":      {[]step{{"a", "1", "x"}, {"b", "1", "x"}, {"a", "1", "x"}}, middleware.ReadOnly, 0},
		"other input":     {[]step{{"a", "1", "x"}, {"a", "2", "x"}, {"a", "1", "x"}}, middleware.ReadOnly, 0},
		"other result":    {[]step{{"a", "1", "x"}, {"a", "1", "y"}, {"a", "1", "x"}}, middleware.ReadOnly, 0},
		"error between":   {[]step{{"a", "1", "x"}, {"a", "1", "!"}, {"a", "1", "x"}}, middleware.ReadOnly, 0},
		"refused between": {[]step{{"a", "1", "x"}, {"a", "1", "?"}, {"a", "1", "x"}}, middleware.ReadOnly, 1},
		"polling":         {[]step{{"a", "1", "x"}, {"a", "1", "x"}, {"a", "1", "x"}}, middleware.Polling, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			ctx, run := r.start(t)
			for _, s := range c.steps {
				tool := r.tool(t, s.tool, c.effect, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
					switch s.output {
					case "!":
						return nil, errTool
					case "?":
						return nil, denial(run.ID(), middleware.ComponentApproval, middleware.ReasonApprovalRefused, middleware.VerdictDeny)
					}

					return &middleware.ToolResult{Output: s.output}, nil
				})
				if res, err := tool.Do(ctx, "", s.input); s.output > "a" && (err != nil || res.Output != s.output) {
					t.Errorf("a duplicate lost its result: %v, %v", res, err)
				}
			}
			if got := r.log.count(middleware.ReasonDuplicateAction); got != c.want {
				t.Errorf("%d duplicates, want %d", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		progress []float64
		want     int
	}{
		"progress rises": {[]float64{1, 2, 3, 4}, 0},
		"it stands":      {[]float64{1, 1, 1, 1}, 3},
		"it falls":       {[]float64{4, 3, 2, 1}, 3},
		"it rises late":  {[]float64{1, 1, 2, 2, 2}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			ctx, _ := r.start(t)
			for _, v := range c.progress {
				tool := r.tool(t, "a", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
					middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: v})

					return &middleware.ToolResult{Output: "x"}, nil
				})
				if _, err := tool.Do(ctx, "", "1"); err != nil {
					t.Error(err)
				}
			}
			if got := r.log.count(middleware.ReasonDuplicateAction); got != c.want {
				t.Errorf("%d duplicates, want %d", got, c.want)
			}
		})
	}
	t.Run("runs are apart", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		times(20, do(middleware.ReadOnly, works))(t, r)
		r.in(t, middleware.CircuitClosed)
	})
}

// However many fail at once, a trip asks once.
func TestActionOneHandoffPerTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for trip := 1; trip <= 3; trip++ {
		ready := make(chan struct{})
		var group sync.WaitGroup
		for range 64 {
			ctx, _ := r.start(t)
			tool := r.tool(t, "act", middleware.ReadOnly, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				<-ready

				return panics(ctx, c)
			})
			group.Go(func() { _, _ = tool.Do(ctx, "", "") })
		}
		close(ready)
		group.Wait()
		r.in(t, middleware.CircuitOpen)
		if n := len(r.sink.Handoffs()); n != trip {
			t.Fatalf("%d handoffs after %d trips", n, trip)
		}
		h, ok := r.Handoff(workflow)
		if all := r.sink.Handoffs(); !ok || all[trip-1].RunID() != h.RunID() {
			t.Errorf("the breaker has another handoff than the sink")
		}
		r.clock.move(time.Minute)
	}
}

// Of any number of runs no more than MaxTrial try at a time, and the breaker
// comes back.
func TestActionMaxTrial(t *testing.T) {
	t.Parallel()
	const limit, runs, rounds = 3, 64, 40
	// All in all, less time passes than a trial may take.
	r := newRig(t, func(c *escalation.ActionConfig) {
		c.MaxTrial, c.SuccessThreshold, c.Recovery, c.Sink = limit, 1000, time.Second, nil
	})
	r.open(t)
	r.clock.move(time.Minute)
	var now, most, made atomic.Int64
	tool := r.tool(t, "act", middleware.ReadOnly, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		runtime.Gosched()
		switch k := made.Add(1); {
		case k%7 == 0:
			r.clock.move(time.Second) // due as soon as it opens
			return fails(ctx, c)
		case k%11 == 0:
			return panics(ctx, c)
		case k%13 == 0:
			return exits(ctx, c)
		default:
			return works(ctx, c)
		}
	})
	var group sync.WaitGroup
	for range runs {
		ctx, _ := r.start(t)
		group.Go(func() {
			for i := range rounds {
				apart(func() { _, _ = tool.Do(ctx, "", strconv.Itoa(i)) })
				r.clock.move(time.Millisecond)
			}
		})
	}
	group.Wait()
	if most.Load() > limit || made.Load() == 0 {
		t.Errorf("%d trials at a time of %d, want at most %d", most.Load(), made.Load(), limit)
	}
	r.clock.move(time.Hour)
	made.Store(0)
	if err := r.call(t, middleware.ReadOnly, works); err != nil {
		t.Errorf("nothing is under way, and a trial is refused: %v", err)
	}
}

// Everything can be read from every callback, and nothing waits for itself.
func TestActionReadableFromCallbacks(t *testing.T) {
	t.Parallel()
	var r *rig
	var reads atomic.Int64
	read := func() {
		if r == nil {
			return
		}
		_ = r.State(workflow)
		_ = r.History(workflow)
		_ = r.Gauges()
		_ = r.Faults()
		_, _ = r.Handoff(workflow)
		reads.Add(1)
	}
	made := newRig(t, func(c *escalation.ActionConfig) {
		now := c.Now
		c.Now = func() time.Time { read(); return now() }
		c.Observer = middleware.ObserverFunc(func(context.Context, middleware.Decision) { read() })
		c.Sink = escalation.SinkFunc(func(context.Context, escalation.Handoff) error { read(); return errTool })
		c.Risk = func(context.Context, *middleware.ToolCall) (float64, error) { read(); return 0, nil }
		c.Slice = func(context.Context, *middleware.ToolCall) ([]string, error) { read(); return []string{"a", "b"}, nil }
		c.Profile = &escalation.Profile{Volatility: func(context.Context, ident.WorkflowID) (float64, error) { read(); return 0, nil }}
	})
	r = made
	r.open(t)
	r.clock.move(time.Minute)
	for range 3 {
		if err := r.call(t, middleware.Effectful, works); err != nil {
			t.Fatal(err)
		}
	}
	r.in(t, middleware.CircuitClosed)
	if reads.Load() < 20 {
		t.Errorf("%d reads", reads.Load())
	}
}

// Callbacks that panic or end their goroutine change nothing and hold nothing.
func TestActionCallbacksMisbehave(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){"panic": func() { panic(secret) }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var bad atomic.Bool
			bad.Store(true)
			misbehave := func() {
				if bad.Load() {
					f()
				}
			}
			r := newRig(t, func(c *escalation.ActionConfig) {
				c.Observer = middleware.ObserverFunc(func(context.Context, middleware.Decision) { misbehave() })
				c.Sink = escalation.SinkFunc(func(context.Context, escalation.Handoff) error { misbehave(); return nil })
			})
			apart(func() { _ = r.call(t, middleware.ReadOnly, panics) })
			r.in(t, middleware.CircuitOpen)
			r.clock.move(time.Minute)
			for range 5 { // half-open: the decision about the trial misbehaves, its place is free again
				apart(func() { _ = r.call(t, middleware.ReadOnly, works) })
				apart(func() { _ = r.call(t, middleware.Effectful, works) })
			}
			bad.Store(false)
			r.clock.move(time.Hour)
			for range 5 {
				if err := r.call(t, middleware.ReadOnly, works); err != nil {
					t.Errorf("still refused: %v", err)
				}
			}
			r.in(t, middleware.CircuitClosed)
		})
	}
}

// A clock that fails or goes back keeps the breaker open, and not for ever.
func TestActionClock(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	r := newRig(t, func(c *escalation.ActionConfig) {
		now := c.Now
		c.Now = func() time.Time {
			if broken.Load() {
				panic(secret)
			}

			return now()
		}
	})
	broken.Store(true)
	r.open(t)
	if len(r.sink.Handoffs()) != 0 || r.log.count(middleware.ReasonInvalidTimestamp) != 1 || r.Faults() == 0 {
		t.Errorf("%d handoffs, %v, %d faults", len(r.sink.Handoffs()), r.log.reasons(), r.Faults())
	}
	refused := func() {
		t.Helper()
		if err := r.call(t, middleware.ReadOnly, works); !errors.Is(err, escalation.ErrParked) {
			t.Errorf("got %v, want parked", err)
		}
	}
	refused()
	broken.Store(false)
	refused() // the recovery begins here
	r.clock.move(59 * time.Second)
	refused()
	r.clock.move(-time.Hour)
	refused() // and here
	r.clock.move(time.Minute)
	if err := r.call(t, middleware.ReadOnly, works); err != nil {
		t.Error(err)
	}
}

// A sink that fails is a decision, and the handoff stays on the breaker.
func TestActionSinkFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *escalation.ActionConfig) {
		c.Sink = escalation.SinkFunc(func(ctx context.Context, h escalation.Handoff) error {
			if _, ok := ctx.Deadline(); !ok || h.IsZero() {
				t.Error("the sink got no time of its own")
			}

			return errTool
		})
	})
	if _, ok := r.Handoff(workflow); ok {
		t.Error("a handoff before the trip")
	}
	r.open(t)
	if h, ok := r.Handoff(workflow); !ok || h.WorkflowID() != workflow || r.log.count(middleware.ReasonSinkFailed) != 1 {
		t.Errorf("%v, %v", h, r.log.reasons())
	}
}

// Workflows that are not registered are guarded, with one state for all.
func TestActionUnregistered(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	a, b := ident.MustWorkflowID("workflow:org.example/a"), ident.MustWorkflowID("workflow:org.example/b")
	ctx, _ := r.startOf(t, a)
	_, _ = r.tool(t, "act", middleware.ReadOnly, panics).Do(ctx, "", "")
	ctx, run := r.startOf(t, b)
	_, err := r.tool(t, "act", middleware.ReadOnly, works).Do(ctx, "", "")
	d, ok := errors.AsType[*middleware.Denial](err)
	if !ok || d.Reason() != middleware.ReasonParked || d.Soft() || d.Run() != run.ID() || d.Component() != middleware.ComponentBreaker {
		t.Errorf("got %v, want a hard denial", err)
	}
	r.in(t, middleware.CircuitClosed)
	if g := newRig(t, nil).Gauges(); len(g) != 1 || g[0].Label != deskLabel {
		t.Errorf("nobody was unregistered, gauges %v", g)
	}
	gauges := map[ident.Label]middleware.CircuitState{}
	for _, g := range r.Gauges() {
		if g.Kind != middleware.GaugeCircuit || g.Value != 1 {
			t.Errorf("gauge %+v", g)
		}
		gauges[g.Label] = g.Circuit
	}
	if len(gauges) != 2 || gauges[deskLabel] != middleware.CircuitClosed || gauges[ident.Label{}] != middleware.CircuitOpen {
		t.Errorf("gauges %v", gauges)
	}
	if h := r.sink.Handoffs(); len(h) != 1 || h[0].WorkflowID() != a {
		t.Errorf("handoffs %v", h)
	}
}

// The escalation breaker outside counts no class for what this one refuses.
func TestActionDenialHasNoClass(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.open(t)
	esc := newBench(t, nil)
	ctx, run := esc.start(t, t.Context())
	tool := esc.chained(t, "act", middleware.ReadOnly, middleware.Chain(esc.Tool(), r.Tool()), works)
	for range 10 {
		if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrParked) {
			t.Fatal(err)
		}
	}
	if n := esc.Counts(run).Total(); n != 0 {
		t.Errorf("%d failures counted", n)
	}
}

// The history keeps the latest transitions.
func TestActionHistoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *escalation.ActionConfig) { c.SuccessThreshold, c.Sink = 1, nil })
	for range 40 {
		r.open(t)
		r.clock.move(time.Minute)
		if err := r.call(t, middleware.ReadOnly, works); err != nil {
			t.Fatal(err)
		}
		r.in(t, middleware.CircuitClosed)
	}
	history := r.History(workflow)
	if len(history) != escalation.MaxHistory {
		t.Fatalf("%d transitions", len(history))
	}
	last := history[len(history)-1]
	if last.State != middleware.CircuitClosed || last.Reason != middleware.ReasonRecovered || last.Count != 1 || !last.At.Equal(r.clock.Now()) {
		t.Errorf("last %+v", last)
	}
	for i := 1; i < len(history); i++ {
		if history[i].At.Before(history[i-1].At) {
			t.Errorf("%d is out of order", i)
		}
	}
}

func TestActionBreakerNil(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*escalation.ActionBreaker{"nil": nil, "zero": {}} {
		ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Receivers: []middleware.SignalReceiver{b}})
		if err != nil {
			t.Fatal(err)
		}
		tool, err := middleware.NewTool(middleware.ToolConfig{Name: "act", Chain: b.Tool()}, works)
		if err != nil {
			t.Fatal(err)
		}
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalRisk, Value: 1})
		b.Note(ctx, run, middleware.ReasonBudgetExceeded)
		if _, err := tool.Do(ctx, "", ""); !errors.Is(err, middleware.ReasonNilHandler) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, ok := b.Handoff(workflow); ok || b.State(workflow) != middleware.CircuitOpen || b.Gauges() != nil || b.History(workflow) != nil || b.Faults() != 0 {
			t.Errorf("%s has a state", name)
		}
		run.End()
	}
}

// What a nested agent is refused because the run around it was halted, or has
// ended, is a consequence and no failure.
func TestActionOfAStoppedRun(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*middleware.Run){
		"halted": func(r *middleware.Run) { r.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen) },
		"ended":  func(r *middleware.Run) { r.End() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			outer, run := r.start(t)
			_, err := r.tool(t, "agent", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
				ctx, child, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow})
				if err != nil {
					t.Error(err)

					return nil, err
				}
				defer child.End()
				stop(run)

				return r.tool(t, "act", middleware.ReadOnly, works).Do(ctx, "", "")
			}).Do(outer, "", "")
			if err == nil {
				t.Error("a stopped run went on")
			}
			if all := r.log.all(); len(all) != 0 {
				t.Errorf("decisions %+v", all)
			}
		})
	}
}

// An observer that ends the goroutine of the call takes no handoff with it.
func TestActionHandoffInSpiteOfObserver(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *escalation.ActionConfig) {
		c.Observer = middleware.ObserverFunc(func(context.Context, middleware.Decision) { runtime.Goexit() })
	})
	apart(func() { _ = r.call(t, middleware.ReadOnly, panics) })
	r.in(t, middleware.CircuitOpen)
	if _, ok := r.Handoff(workflow); !ok || len(r.sink.Handoffs()) != 1 {
		t.Errorf("%d handoffs", len(r.sink.Handoffs()))
	}
}

// A trial that never returns, for a caller that never leaves, does not keep the
// breaker half-open for ever.
func TestActionTrialForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ recovery, patience time.Duration }{
		"short recovery": {time.Second, 10 * time.Minute},
		"long recovery":  {2 * time.Minute, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *escalation.ActionConfig) { cfg.Recovery = c.recovery })
			r.open(t)
			r.clock.move(c.recovery)
			h := r.hold(t, middleware.ReadOnly)
			r.clock.move(c.patience - time.Nanosecond)
			if err := r.call(t, middleware.ReadOnly, works); !errors.Is(err, escalation.ErrParked) {
				t.Errorf("got %v", err)
			}
			r.in(t, middleware.CircuitHalfOpen)
			r.clock.move(time.Nanosecond)
			_ = r.call(t, middleware.ReadOnly, works)
			r.in(t, middleware.CircuitOpen)
			r.clock.move(c.recovery)
			for range 3 {
				if err := r.call(t, middleware.ReadOnly, works); err != nil {
					t.Error(err)
				}
			}
			r.in(t, middleware.CircuitClosed)
			if err := h.end(panics); err == nil { // it comes back after all
				t.Error("no panic")
			}
			r.in(t, middleware.CircuitClosed)
		})
	}
}
