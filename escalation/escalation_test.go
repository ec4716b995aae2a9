package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg   escalation.Config
		field string
	}{
		"defaults":       {escalation.Config{}, ""},
		"all":            {escalation.Config{Policy: escalation.DefaultPolicy(), ConfidenceFloor: 1, SinkTimeout: time.Minute}, ""},
		"partial policy": {escalation.Config{Policy: escalation.Policy{Uncertainty: 1}}, "Policy.PermissionDenial"},
		"negative floor": {escalation.Config{ConfidenceFloor: -0.1}, "ConfidenceFloor"},
		"high floor":     {escalation.Config{ConfidenceFloor: 1.01}, "ConfidenceFloor"},
		"NaN floor":      {escalation.Config{ConfidenceFloor: math.NaN()}, "ConfidenceFloor"},
		"negative time":  {escalation.Config{SinkTimeout: -1}, "SinkTimeout"},
		"long time":      {escalation.Config{SinkTimeout: time.Minute + 1}, "SinkTimeout"},
	} {
		e, err := escalation.New(c.cfg)
		var ce *escalation.ConfigError
		if (c.field == "") != (err == nil) || (e != nil) != (err == nil) ||
			(err != nil && (!errors.As(err, &ce) || ce.Field() != c.field)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the layers inside return, and what it counts as. Limits are far away.
func TestClasses(t *testing.T) {
	t.Parallel()
	own := func(c middleware.Component, r middleware.Reason, v middleware.Verdict) func(context.Context) error {
		return func(ctx context.Context) error { return denial(middleware.RunFrom(ctx).ID(), c, r, v) }
	}
	nested := func(c middleware.Component, r middleware.Reason, v middleware.Verdict) func(context.Context) error {
		return func(context.Context) error { return denial(runID(t, "c"), c, r, v) }
	}
	failed := func(c middleware.Component, r middleware.Reason, causes ...error) func(context.Context) error {
		return func(context.Context) error { return middleware.NewFailure(c, r, ident.Label{}, causes...) }
	}
	hard, soft := middleware.VerdictDeny, middleware.VerdictModify
	for name, c := range map[string]struct {
		err  func(context.Context) error
		want escalation.Class
	}{
		"plain error":        {func(context.Context) error { return errTool }, toolFailure},
		"wrapped error":      {func(context.Context) error { return fmt.Errorf("x: %w", errTool) }, toolFailure},
		"uncomparable error": {func(context.Context) error { return listError{"a"} }, toolFailure},
		"error that panics":  {func(context.Context) error { return panickingError{} }, toolFailure},
		"tool failure":       {failed(middleware.ComponentTool, middleware.ReasonToolFailed), toolFailure},
		"tool timeout":       {failed(middleware.ComponentTool, middleware.ReasonToolTimeout), toolFailure},
		"outcome unknown":    {failed(middleware.ComponentTool, middleware.ReasonOutcomeUnknown), toolFailure},
		"panic":              {func(context.Context) error { return middleware.NewPanicError(secret, nil) }, toolFailure},
		"stalled and unknown": {func(ctx context.Context) error {
			return middleware.NewDenial(middleware.Refusal{Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentWatchdog, Reason: middleware.ReasonStalled, Cause: middleware.NewFailure(middleware.ComponentTool, middleware.ReasonOutcomeUnknown, ident.Label{})})
		}, toolFailure},
		"own budget failure": {failed(middleware.ComponentBudget, middleware.ReasonBudgetExceeded), 0},
		"own run failure":    {failed(middleware.ComponentRun, middleware.ReasonCanceled), 0},
		"admission stopped":  {own(middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, hard), permission},
		"admission disabled": {own(middleware.ComponentAdmission, middleware.ReasonAdmissionDisabled, hard), permission},
		"stale":              {own(middleware.ComponentAdmission, middleware.ReasonStaleGeneration, hard), permission},
		"untrusted":          {own(middleware.ComponentAdmission, middleware.ReasonUntrustedState, hard), permission},
		"approval required":  {own(middleware.ComponentAdmission, middleware.ReasonApprovalRequired, hard), permission},
		"approval refused":   {own(middleware.ComponentApproval, middleware.ReasonApprovalRefused, hard), permission},
		"soft approval":      {own(middleware.ComponentApproval, middleware.ReasonApprovalRefused, soft), permission},
		"nudge":              {own(middleware.ComponentWatchdog, middleware.ReasonLoop, soft), uncertainty},
		"nudge, wrapped": {func(ctx context.Context) error {
			return fmt.Errorf("x: %w", own(middleware.ComponentWatchdog, middleware.ReasonLoop, soft)(ctx))
		}, uncertainty},
		"nudge without a run": {func(context.Context) error {
			return denial(ident.RunID{}, middleware.ComponentWatchdog, middleware.ReasonLoop, soft)
		}, uncertainty},
		"watchdog abort":       {own(middleware.ComponentWatchdog, middleware.ReasonLoop, hard), 0},
		"budget":               {own(middleware.ComponentBudget, middleware.ReasonBudgetExceeded, hard), 0},
		"soft budget":          {own(middleware.ComponentBudget, middleware.ReasonBudgetExceeded, soft), 0},
		"parked":               {own(middleware.ComponentBreaker, middleware.ReasonParked, hard), 0},
		"halted":               {own(middleware.ComponentEscalation, middleware.ReasonCircuitOpen, hard), 0},
		"run ended":            {own(middleware.ComponentRun, middleware.ReasonRunEnded, hard), 0},
		"unsafe order":         {own(middleware.ComponentChain, middleware.ReasonUnsafeOrder, hard), 0},
		"nil handler":          {own(middleware.ComponentChain, middleware.ReasonNilHandler, hard), 0},
		"nested, tripped":      {nested(middleware.ComponentEscalation, middleware.ReasonCircuitOpen, hard), toolFailure},
		"nested, budget":       {nested(middleware.ComponentBudget, middleware.ReasonBudgetExceeded, hard), toolFailure},
		"nested, nudge":        {nested(middleware.ComponentWatchdog, middleware.ReasonLoop, soft), toolFailure},
		"nested, approval":     {nested(middleware.ComponentApproval, middleware.ReasonApprovalRefused, hard), toolFailure},
		"nested, escalating":   {nested(middleware.ComponentWatchdog, middleware.ReasonLoop, middleware.VerdictEscalate), toolFailure},
		"nested, admission":    {nested(middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, hard), permission},
		"exhausted, as a tool": {failed(middleware.ComponentFallback, middleware.ReasonExhausted), toolFailure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			ctx, run := b.start(t, t.Context())
			chain := middleware.Chain(b.Tool(), inside(c.err))
			tool := b.chained(t, "lookup", middleware.ReadOnly, chain, works)
			want := c.err(ctx)
			if _, err := tool.Do(ctx, "", secret); err == nil {
				t.Fatal("no error")
			} else if _, bad := want.(panickingError); !bad {
				contentFree(t, err)
				if errors.Is(err, escalation.ErrCircuitOpen) != errors.Is(want, escalation.ErrCircuitOpen) {
					t.Errorf("got %v, want %v unchanged", err, want)
				}
			}
			counts := b.Counts(run)
			if counts.Of(c.want) != counts.Total() || counts.Total() != map[bool]int{true: 1}[c.want != 0] {
				t.Errorf("counted %+v, want one %v", counts, c.want)
			}
			decisions := b.log.all()
			if len(decisions) != counts.Total() {
				t.Errorf("%d decisions", len(decisions))
			}
			for _, d := range decisions {
				want := middleware.Decision{
					Seq: 1, Component: middleware.ComponentEscalation, Verdict: middleware.VerdictAbstain,
					Action: middleware.ActionProceed, Reason: middleware.ReasonFailureCounted, Run: run.ID(), Workflow: workflow,
					Label: ident.MustLabel("lookup"), Attempt: 1, Class: c.want, Count: 1,
					Limit: map[escalation.Class]int{uncertainty: 3, permission: 2, toolFailure: 3}[c.want],
				}
				if diff := cmp.Diff(want, d, cmp.Comparer(func(a, b middleware.Decision) bool { return a == b })); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

type listError []string

func (listError) Error() string { return secret }

type panickingError struct{}

func (panickingError) Error() string   { return secret }
func (panickingError) Is(error) bool   { panic(secret) }
func (panickingError) Unwrap() []error { return []error{errTool} }

func TestTripOnTheThirdToolError(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "refund", middleware.Effectful, fails)
	for i := range 2 {
		_, err := tool.Do(ctx, "", secret)
		if !errors.Is(err, errTool) || errors.Is(err, escalation.ErrCircuitOpen) {
			t.Fatalf("call %d: %v", i, err)
		}
		if _, told := tool.Observation(ctx, err); !told {
			t.Errorf("call %d ended the run", i)
		}
	}
	_, err := tool.Do(ctx, "", secret)
	d, ok := errors.AsType[*middleware.Denial](err)
	if !ok || d.Component() != middleware.ComponentEscalation || d.Reason() != middleware.ReasonCircuitOpen || d.Soft() ||
		d.Run() != run.ID() || !errors.Is(err, errTool) {
		t.Fatalf("the third error: %v", err)
	}
	contentFree(t, err)
	contentFree(t, errors.Unwrap(err))
	if _, told := tool.Observation(ctx, err); told {
		t.Error("an agent would go on")
	}
	if errors.Unwrap(err).Error() != "interlock: escalation: tripped" || !errors.Is(errors.Unwrap(err), escalation.ErrCircuitOpen) {
		t.Errorf("cause: %v", errors.Unwrap(err))
	}

	h, ok := escalation.HandoffOf(fmt.Errorf("executor: %w", err))
	if !ok || h.RunID() != run.ID() || h.WorkflowID() != workflow || h.Class() != toolFailure || h.IssuedAt() != at {
		t.Fatalf("handoff %v, %v", h, ok)
	}
	for i, d := range h.StepDigests() {
		if d != escalation.StepDigest(run.ID(), i+1, middleware.ComponentTool, tool.Label()) {
			t.Errorf("digest %d cannot be recomputed", i)
		}
	}
	if kept, ok := b.Handoff(run); !ok || len(kept.StepDigests()) != 3 {
		t.Error("the handoff is not on the breaker")
	}
	if sent := b.sink.Handoffs(); len(sent) != 1 || sent[0].RunID() != run.ID() {
		t.Errorf("delivered: %v", sent)
	}
	if c, r, halted := run.Halted(); !halted || c != middleware.ComponentEscalation || r != middleware.ReasonCircuitOpen {
		t.Errorf("halted %v %v %v", c, r, halted)
	}
	last := b.log.all()[2]
	want := middleware.Decision{
		Seq: 3, Component: middleware.ComponentEscalation, Verdict: middleware.VerdictEscalate, Action: middleware.ActionBlock,
		Reason: middleware.ReasonSafetyReview, Run: run.ID(), Workflow: workflow, Label: tool.Label(), Attempt: 1,
		Class: toolFailure, Count: 3, Limit: 3,
	}
	if last != want {
		t.Errorf("decision %+v, want %+v", last, want)
	}
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("after the trip: %v", err)
	}
	run.End()
	if _, ok := b.Handoff(run); ok || b.Counts(run) != (escalation.Counts{}) {
		t.Error("the ended run is still held")
	}
}

// A custom executor that goes on after hard refusals, with several chains in
// one run: every refusal counts, wherever it came from.
func TestCustomExecutorAcrossChains(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	refusing := func(c middleware.Component, r middleware.Reason) middleware.ToolMiddleware {
		return middleware.Chain(b.Tool(), inside(func(ctx context.Context) error {
			return denial(middleware.RunFrom(ctx).ID(), c, r, middleware.VerdictDeny)
		}))
	}
	gate := b.chained(t, "refund", middleware.Effectful, refusing(middleware.ComponentAdmission, middleware.ReasonStaleGeneration), works)
	approval := b.chained(t, "notify", middleware.Effectful, refusing(middleware.ComponentApproval, middleware.ReasonApprovalRefused), works)
	if _, err := gate.Do(ctx, "", ""); !errors.Is(err, middleware.ReasonStaleGeneration) || errors.Is(err, escalation.ErrCircuitOpen) {
		t.Fatalf("%v", err)
	}
	_, err := approval.Do(ctx, "", "")
	if !errors.Is(err, escalation.ErrCircuitOpen) || !errors.Is(err, middleware.ReasonApprovalRefused) {
		t.Fatalf("%v", err)
	}
	h, _ := b.Handoff(run)
	want := []ident.Digest{
		escalation.StepDigest(run.ID(), 1, middleware.ComponentAdmission, gate.Label()),
		escalation.StepDigest(run.ID(), 2, middleware.ComponentApproval, approval.Label()),
	}
	if d := h.StepDigests(); len(d) != 2 || d[0] != want[0] || d[1] != want[1] || h.ReasonCode() != middleware.ReasonHumanGate {
		t.Errorf("%v", h)
	}
}

func TestTotalAcrossClasses(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *escalation.Config) {
		c.Policy = escalation.Policy{Uncertainty: 9, PermissionDenial: 9, ToolFailure: 9, Total: 3}
	})
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "refund", middleware.ReadOnly, fails)
	_, _ = tool.Do(ctx, "", "")
	middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.1})
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Fatalf("%v", err)
	}
	last := b.log.all()[2]
	if last.Count != 3 || last.Limit != 3 || last.Class != toolFailure || b.Counts(run).Total() != 3 {
		t.Errorf("%+v", last)
	}
}

func TestEscalateTripsAtOnce(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]func(run ident.RunID) error{
		"denial": func(run ident.RunID) error {
			return denial(run, middleware.ComponentWatchdog, middleware.ReasonLoop, middleware.VerdictEscalate)
		},
		"cause of an unknown outcome": func(run ident.RunID) error {
			return middleware.NewFailure(middleware.ComponentTool, middleware.ReasonOutcomeUnknown, ident.Label{}, errTool,
				denial(run, middleware.ComponentWatchdog, middleware.ReasonStalled, middleware.VerdictEscalate))
		},
	} {
		b := newBench(t, nil)
		ctx, run := b.start(t, t.Context())
		tool := b.chained(t, "lookup", middleware.ReadOnly,
			middleware.Chain(b.Tool(), inside(func(context.Context) error { return err(run.ID()) })), works)
		_, got := tool.Do(ctx, "", "")
		h, ok := escalation.HandoffOf(got)
		if !ok || h.Class() != uncertainty || !errors.Is(got, escalation.ErrCircuitOpen) ||
			h.StepDigests()[0] != escalation.StepDigest(run.ID(), 1, middleware.ComponentWatchdog, tool.Label()) {
			t.Errorf("%s: %v", name, got)
		}
		if b.log.count(middleware.ReasonLowConfidence) != 1 {
			t.Errorf("%s: %+v", name, b.log.all())
		}
	}
}

func TestDeadContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect middleware.Effect
		fn     middleware.ToolHandler
		want   int
	}{
		"error of a read-only tool":   {middleware.ReadOnly, fails, 0},
		"error of an effectful tool":  {middleware.Effectful, fails, 1}, // outcome_unknown
		"panic of a read-only tool":   {middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(secret) }, 1},
		"success of a read-only tool": {middleware.ReadOnly, works, 0},
	} {
		b := newBench(t, nil)
		ctx, run := b.start(t, t.Context())
		ctx, cancel := context.WithCancel(ctx)
		tool := b.tool(t, "lookup", c.effect, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			cancel()

			return c.fn(ctx, call)
		})
		_, err := tool.Do(ctx, "", "")
		contentFree(t, err)
		if got := b.Counts(run).ToolFailure; got != c.want {
			t.Errorf("%s: counted %d, want %d", name, got, c.want)
		}
	}
}

func TestPanicAndGoexitOfALayerInside(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	chain := middleware.Chain(b.Tool(), func(middleware.ToolHandler) middleware.ToolHandler {
		return func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if call.Input() == "exit" {
				runtime.Goexit()
			}
			panic(secret)
		}
	})
	tool := b.chained(t, "lookup", middleware.ReadOnly, chain, works)
	_, err := tool.Do(ctx, "", "")
	if !errors.Is(err, middleware.ReasonPanic) {
		t.Errorf("%v", err)
	}
	contentFree(t, err)
	for want := range 2 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = tool.Do(ctx, "", "exit")
		}()
		<-done
		if got := b.Counts(run).ToolFailure; got != want+2 {
			t.Errorf("counted %d, want %d", got, want+2)
		}
	}
	if !errors.Is(run.Check(), escalation.ErrCircuitOpen) || len(b.sink.Handoffs()) != 1 {
		t.Error("a Goexit at the limit did not halt the run")
	}
}

func TestModelSeam(t *testing.T) {
	t.Parallel()
	exhausted := middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonExhausted, ident.Label{}, errTool)
	for name, c := range map[string]struct {
		err  func(ctx context.Context) error
		want escalation.Counts
	}{
		"provider error": {func(context.Context) error { return errTool }, escalation.Counts{}},
		"rate limited": {func(context.Context) error {
			return middleware.NewFailure(middleware.ComponentModel, middleware.ReasonRateLimited, ident.Label{})
		}, escalation.Counts{}},
		"exhausted":   {func(context.Context) error { return exhausted }, escalation.Counts{ToolFailure: 1}},
		"panic":       {func(context.Context) error { panic(secret) }, escalation.Counts{ToolFailure: 1}},
		"panic error": {func(context.Context) error { return middleware.NewPanicError(secret, nil) }, escalation.Counts{ToolFailure: 1}},
		"nudge": {func(ctx context.Context) error {
			return denial(middleware.RunFrom(ctx).ID(), middleware.ComponentWatchdog, middleware.ReasonAnswerLoop, middleware.VerdictModify)
		}, escalation.Counts{Uncertainty: 1}},
		"abort": {func(ctx context.Context) error {
			return denial(middleware.RunFrom(ctx).ID(), middleware.ComponentWatchdog, middleware.ReasonAnswerLoop, middleware.VerdictDeny)
		}, escalation.Counts{}},
	} {
		b := newBench(t, nil)
		ctx, run := b.start(t, t.Context())
		h := middleware.Chain(middleware.Recover, b.Model())(
			func(ctx context.Context, _ *middleware.ModelCall) (*middleware.ModelResult, error) {
				return nil, c.err(ctx)
			})
		if _, err := h(ctx, middleware.NewModelCall(nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := b.Counts(run); got != c.want {
			t.Errorf("%s: counted %+v, want %+v", name, got, c.want)
		}
	}

	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	model, err := middleware.NewModel(
		func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, exhausted },
		middleware.ModelConfig{Chain: b.Model()})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err = llms.GenerateFromSinglePrompt(ctx, model, secret)
	}
	if !errors.Is(err, escalation.ErrCircuitOpen) || !errors.Is(err, errTool) {
		t.Errorf("the third exhaustion: %v", err)
	}
	got, _ := b.Handoff(run)
	if d := got.StepDigests(); len(d) != 3 || d[2] != escalation.StepDigest(run.ID(), 3, middleware.ComponentFallback, ident.Label{}) {
		t.Errorf("digests %v", d)
	}

	b = newBench(t, nil)
	ctx, run = b.start(t, t.Context())
	ctx, cancel := context.WithCancel(ctx)
	h := b.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		cancel()

		return nil, exhausted
	})
	if _, err := h(ctx, middleware.NewModelCall(nil)); !errors.Is(err, exhausted) {
		t.Errorf("%v", err)
	}
	if b.Counts(run).Total() != 0 {
		t.Error("a call that its caller canceled was counted")
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	low := middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.59}
	report := func(n int) middleware.ToolHandler {
		return func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			for range n {
				middleware.Report(ctx, low)
			}

			return &middleware.ToolResult{Output: "done"}, nil
		}
	}
	type world struct {
		bench

		ctx  context.Context //nolint:containedctx // of the test
		tool func(middleware.ToolHandler) error
	}
	nudged := func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, denial(middleware.RunFrom(ctx).ID(), middleware.ComponentWatchdog, middleware.ReasonLoop, middleware.VerdictModify)
	}
	model := func(w world) {
		_, err := w.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
			return &middleware.ModelResult{}, nil
		})(w.ctx, middleware.NewModelCall(nil))
		if err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		do   func(w world)
		want int
	}{
		"at the floor": {func(w world) {
			middleware.Report(w.ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.60})
		}, 0},
		"other signals": {func(w world) { middleware.Report(w.ctx, middleware.Signal{Kind: middleware.SignalRisk, Value: 0}) }, 0},
		"invalid": {func(w world) {
			middleware.Report(w.ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: -1})
		}, 0},
		"once in a call":                {func(w world) { _ = w.tool(report(1)) }, 1},
		"three times in a call":         {func(w world) { _ = w.tool(report(3)) }, 1},
		"in two calls":                  {func(w world) { _ = w.tool(report(1)); _ = w.tool(report(1)) }, 2},
		"outside, nothing follows":      {func(w world) { middleware.Report(w.ctx, low) }, 1},
		"outside, twice":                {func(w world) { middleware.Report(w.ctx, low); middleware.Report(w.ctx, low) }, 1},
		"outside, then in the action":   {func(w world) { middleware.Report(w.ctx, low); _ = w.tool(report(2)) }, 1},
		"outside, then in the second":   {func(w world) { middleware.Report(w.ctx, low); _ = w.tool(report(0)); _ = w.tool(report(1)) }, 2},
		"outside, around an action":     {func(w world) { middleware.Report(w.ctx, low); _ = w.tool(report(0)); middleware.Report(w.ctx, low) }, 2},
		"outside, a model call between": {func(w world) { middleware.Report(w.ctx, low); model(w); middleware.Report(w.ctx, low) }, 2},
		"outside, then nudged":          {func(w world) { middleware.Report(w.ctx, low); _ = w.tool(nudged) }, 1},
		"nudged twice":                  {func(w world) { _ = w.tool(nudged); _ = w.tool(nudged) }, 2},
		"in a call that is nudged": {func(w world) {
			_ = w.tool(func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				middleware.Report(ctx, low)

				return nudged(ctx, call)
			})
		}, 1},
	} {
		b := newBench(t, nil)
		w := world{bench: b}
		var run *middleware.Run
		w.ctx, run = b.start(t, t.Context())
		w.tool = func(fn middleware.ToolHandler) error {
			chain := middleware.Chain(b.Tool(), func(middleware.ToolHandler) middleware.ToolHandler { return fn })
			_, err := b.chained(t, "lookup", middleware.ReadOnly, chain, works).Do(w.ctx, "", "")

			return err
		}
		c.do(w)
		if got := b.Counts(run); got.Uncertainty != c.want || got.Total() != c.want {
			t.Errorf("%s: counted %+v, want %d", name, got, c.want)
		}
	}
}

func TestConfidenceAndErrorOfOneActionAreTwoClasses(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "lookup", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0})

		return nil, errTool
	})
	_, _ = tool.Do(ctx, "", "")
	if got, want := b.Counts(run), (escalation.Counts{Uncertainty: 1, ToolFailure: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestConfidenceTripsWithinTheCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *escalation.Config) {
		c.Policy = escalation.Policy{Uncertainty: 2, PermissionDenial: 1, ToolFailure: 1, Total: 9}
		c.ConfidenceFloor = 0.3
	})
	ctx, run := b.start(t, t.Context())
	signal := middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.29}
	middleware.Report(ctx, signal)
	tool := b.tool(t, "lookup", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		middleware.Report(ctx, signal)

		return &middleware.ToolResult{Output: "done"}, nil
	})
	if _, err := tool.Do(ctx, "", ""); err != nil { // the action that the first one belonged to
		t.Fatal(err)
	}
	res, err := tool.Do(ctx, "", "")
	if err != nil || res.Output != "done" {
		t.Errorf("a call that was under way lost its result: %v", err)
	}
	h, ok := b.Handoff(run)
	if !ok || h.Class() != uncertainty || len(b.sink.Handoffs()) != 1 {
		t.Fatalf("%v, %v", h, ok)
	}
	if d := h.StepDigests(); d[0] != escalation.StepDigest(run.ID(), 1, middleware.ComponentRun, ident.MustLabel("desk")) ||
		d[1] != escalation.StepDigest(run.ID(), 2, middleware.ComponentTool, tool.Label()) {
		t.Error("the digests are of other steps")
	}
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("the next call: %v", err)
	}
	b.ReceiveSignal(ctx, run, signal) // after the halt: nothing
	b.ReceiveSignal(ctx, nil, signal)
	if b.Counts(run).Total() != 2 {
		t.Error("a halted run was counted on")
	}
}

func TestConcurrentCallsHaveOneHandoff(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	const calls = 64
	gate := make(chan struct{})
	tool := b.tool(t, "refund", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		<-gate

		return nil, errTool
	})
	var plain, open, carried atomic.Int64
	var wg, started sync.WaitGroup
	started.Add(calls)
	for range calls {
		wg.Go(func() {
			started.Done()
			_, err := tool.Do(ctx, "", "")
			if !errors.Is(err, escalation.ErrCircuitOpen) {
				plain.Add(1)

				return
			}
			open.Add(1)
			if d, ok := errors.AsType[*middleware.Denial](err); !ok || d.Component() != middleware.ComponentEscalation || d.Run() != run.ID() {
				t.Errorf("another refusal: %v", err)
			}
			if _, ok := escalation.HandoffOf(err); ok {
				carried.Add(1)
			}
		})
	}
	started.Wait()
	close(gate)
	wg.Wait()
	if plain.Load() != 2 || open.Load() != calls-2 || carried.Load() != 1 || len(b.sink.Handoffs()) != 1 {
		t.Errorf("%d passed on, %d refused, %d carry a handoff, %d delivered",
			plain.Load(), open.Load(), carried.Load(), len(b.sink.Handoffs()))
	}
	if b.Counts(run).ToolFailure != 3 || b.log.count(middleware.ReasonSafetyReview) != 1 {
		t.Errorf("%+v", b.Counts(run))
	}
	seen := make(map[uint64]bool)
	for _, d := range b.log.all() {
		if seen[d.Seq] {
			t.Errorf("number %d twice", d.Seq)
		}
		seen[d.Seq] = true
	}
}

func TestUnderWayAtTheTripIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	entered, gate := make(chan struct{}), make(chan struct{})
	slow := b.tool(t, "slow", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		close(entered)
		<-gate

		return nil, errTool
	})
	result := make(chan error)
	go func() {
		_, err := slow.Do(ctx, "", "")
		result <- err
	}()
	<-entered
	fast := b.tool(t, "fast", middleware.ReadOnly, fails)
	for range 3 {
		_, _ = fast.Do(ctx, "", "")
	}
	close(gate)
	err := <-result
	if !errors.Is(err, escalation.ErrCircuitOpen) || !errors.Is(err, errTool) {
		t.Errorf("%v", err)
	}
	if _, ok := escalation.HandoffOf(err); ok || len(b.sink.Handoffs()) != 1 {
		t.Error("a second handoff")
	}
	last := b.log.all()[3]
	if last.Reason != middleware.ReasonCircuitOpen || last.Verdict != middleware.VerdictDeny || last.Run != run.ID() {
		t.Errorf("%+v", last)
	}
}

func TestStoppedBySomebodyElseDoesNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "lookup", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		run.Halt(middleware.ComponentBudget, middleware.ReasonBudgetExceeded)

		return nil, errTool
	})
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, errTool) || errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("%v", err)
	}
	if b.Counts(run).Total() != 0 {
		t.Error("counted")
	}
	ctx, run = b.start(t, t.Context())
	tool = b.tool(t, "lookup", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		run.End()

		return nil, errTool
	})
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, errTool) {
		t.Errorf("%v", err)
	}
}

func TestNestedRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, outer := b.start(t, t.Context())
	inner := b.tool(t, "lookup", middleware.ReadOnly, fails)
	var nested *middleware.Run
	agent := b.tool(t, "agent", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		ctx, nested = b.start(t, ctx)
		defer nested.End()
		for {
			if _, err := inner.Do(ctx, "", ""); errors.Is(err, escalation.ErrCircuitOpen) {
				return nil, err
			}
		}
	})
	_, err := agent.Do(ctx, "", "")
	d, ok := errors.AsType[*middleware.Denial](err)
	if !ok || d.Run() != nested.ID() {
		t.Fatalf("%v", err)
	}
	if _, told := agent.Observation(ctx, err); !told {
		t.Error("the outer agent is not told")
	}
	if got := b.Counts(outer); got != (escalation.Counts{ToolFailure: 1}) {
		t.Errorf("the outer run counted %+v", got)
	}
	if outer.Check() != nil || len(b.sink.Handoffs()) != 1 {
		t.Error("the outer run is halted")
	}
}

// The sink fails in every way: the run stays halted, the handoff stays readable
// and the failure is a decision.
func TestSinkFailures(t *testing.T) {
	t.Parallel()
	for name, sink := range map[string]escalation.SinkFunc{
		"error":  func(context.Context, escalation.Handoff) error { return errTool },
		"panic":  func(context.Context, escalation.Handoff) error { panic(secret) },
		"goexit": func(context.Context, escalation.Handoff) error { runtime.Goexit(); return nil },
		"nil":    nil,
		"late": func(ctx context.Context, _ escalation.Handoff) error {
			<-ctx.Done()

			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(c *escalation.Config) { c.Sink = sink })
				ctx, run := b.start(t, t.Context())
				tool := b.tool(t, "refund", middleware.ReadOnly, fails)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for range 3 {
						_, _ = tool.Do(ctx, "", "")
					}
				}()
				<-done
				if !errors.Is(run.Check(), escalation.ErrCircuitOpen) {
					t.Error("the run is not halted")
				}
				if _, ok := b.Handoff(run); !ok {
					t.Error("the handoff is lost")
				}
				if b.log.count(middleware.ReasonSafetyReview) != 1 || b.log.count(middleware.ReasonSinkFailed) != 1 {
					t.Errorf("%+v", b.log.all())
				}
			})
		})
	}
}

// The sink sees a live context with a deadline although the caller hung up, and
// may ask the run and the Escalation: no lock is held.
func TestSinkContext(t *testing.T) {
	t.Parallel()
	delivered := false
	var b bench
	var run *middleware.Run
	b = newBench(t, func(c *escalation.Config) {
		c.SinkTimeout = time.Second
		c.Sink = escalation.SinkFunc(func(ctx context.Context, h escalation.Handoff) error {
			_, bounded := ctx.Deadline()
			kept, ok := b.Handoff(run)
			delivered = bounded && ctx.Err() == nil && middleware.RunFrom(ctx) == run && ok && kept.RunID() == h.RunID() &&
				b.Counts(run).Total() == 1 && run.Check() != nil
			_, err := run.Save()

			return err
		})
	})
	ctx, r := b.start(t, t.Context())
	run = r
	ctx, cancel := context.WithCancel(ctx)
	tool := b.chained(t, "lookup", middleware.Effectful, middleware.Chain(b.Tool(), inside(func(context.Context) error {
		cancel()

		return denial(run.ID(), middleware.ComponentWatchdog, middleware.ReasonLoop, middleware.VerdictEscalate)
	})), works)
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Fatal(err)
	}
	if !delivered {
		t.Error("the sink had no use of its context")
	}
}

func TestClockThatCannotBeUsedHalts(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]func() time.Time{
		"panic":      func() time.Time { panic(secret) },
		"zero":       func() time.Time { return time.Time{} },
		"year 10000": func() time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		b := newBench(t, func(c *escalation.Config) { c.Now = now })
		ctx, run := b.start(t, t.Context())
		tool := b.tool(t, "refund", middleware.ReadOnly, fails)
		_, err := tool.Do(ctx, "", "")
		if !errors.Is(err, escalation.ErrInvalidTimestamp) || !errors.Is(err, errTool) {
			t.Errorf("%s: %v", name, err)
		}
		contentFree(t, err)
		if !errors.Is(run.Check(), escalation.ErrInvalidTimestamp) || b.log.count(middleware.ReasonInvalidTimestamp) != 1 {
			t.Errorf("%s: the run goes on uncounted", name)
		}
		if _, ok := b.Handoff(run); ok {
			t.Errorf("%s: a handoff without a time", name)
		}
	}
}

// A clock in another zone with fractions is what time.Now gives.
func TestClockIsTruncated(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *escalation.Config) {
		c.Policy = escalation.Policy{Uncertainty: 1, PermissionDenial: 1, ToolFailure: 1, Total: 1}
		c.Now = func() time.Time { return at.Add(999 * time.Millisecond).In(time.FixedZone("east", 3600)) }
	})
	ctx, run := b.start(t, t.Context())
	_, _ = b.tool(t, "refund", middleware.ReadOnly, fails).Do(ctx, "", "")
	if h, _ := b.Handoff(run); h.IssuedAt() != at {
		t.Errorf("issued %v", h.IssuedAt())
	}
	e, err := escalation.New(escalation.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Second)
	b.Escalation = e
	ctx, run = b.start(t, t.Context())
	tool := b.tool(t, "refund", middleware.ReadOnly, fails)
	for range 3 {
		_, _ = tool.Do(ctx, "", "")
	}
	if h, ok := b.Handoff(run); !ok || h.IssuedAt().Before(before) || h.IssuedAt().After(time.Now()) {
		t.Errorf("issued %v", h.IssuedAt())
	}
}

func TestHandMadeChains(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	calls := 0
	count := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		calls++

		return &middleware.ToolResult{}, nil
	}
	h := b.Tool()(count)
	if _, err := h(t.Context(), &middleware.ToolCall{}); !errors.Is(err, middleware.ReasonNoRun) {
		t.Errorf("without a run: %v", err)
	}
	ctx, run := b.start(t, t.Context())
	run.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	if _, err := h(ctx, &middleware.ToolCall{}); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("halted: %v", err)
	}
	ctx, _ = b.start(t, t.Context())
	late := middleware.Chain(middleware.At(middleware.StageWatchdog, pass), b.Tool())(count)
	if _, err := late(ctx, &middleware.ToolCall{}); !errors.Is(err, middleware.ReasonUnsafeOrder) {
		t.Errorf("inside of the watchdog: %v", err)
	}
	for name, e := range map[string]*escalation.Escalation{"nil": nil, "zero": {}} {
		if _, err := e.Tool()(count)(ctx, &middleware.ToolCall{}); !errors.Is(err, middleware.ReasonNilHandler) {
			t.Errorf("%s: %v", name, err)
		}
		e.ReceiveSignal(ctx, run, middleware.Signal{Kind: middleware.SignalConfidence})
		if _, ok := e.Handoff(run); ok || e.Counts(run) != (escalation.Counts{}) {
			t.Errorf("%s: has a handoff", name)
		}
		_, r, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Slots: []middleware.Slot{e.Slot()}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Save(); !errors.Is(err, escalation.ErrInvalidState) {
			t.Errorf("%s: saved: %v", name, err)
		}
		r.End()
	}
	if calls != 0 {
		t.Errorf("%d calls passed", calls)
	}
}

func pass(next middleware.ToolHandler) middleware.ToolHandler { return next }

// The result beside an error that is only counted is passed on as it came.
func TestResultBesideAnError(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, _ := b.start(t, t.Context())
	h := b.Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "half"}, errTool
	})
	for i := range 3 {
		res, err := h(ctx, &middleware.ToolCall{})
		if (res != nil) != (i < 2) || !errors.Is(err, errTool) {
			t.Errorf("%d: %v, %v", i, res, err)
		}
	}
}

func TestWaitingConfidenceEndsWithTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0})
	run.End()
	ctx, run = b.start(t, t.Context())
	if _, err := b.tool(t, "lookup", middleware.ReadOnly, works).Do(ctx, "", ""); err != nil {
		t.Error(err)
	}
	if b.Counts(run).Total() != 0 {
		t.Error("a confidence went over to another run")
	}
}

//nolint:paralleltest // AllocsPerRun
func TestSuccessAllocatesNothing(t *testing.T) {
	b := newBench(t, nil)
	ctx, _ := b.start(t, t.Context())
	res := &middleware.ToolResult{}
	h := b.Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return res, nil })
	call := &middleware.ToolCall{}
	if allocs := testing.AllocsPerRun(100, func() { _, _ = h(ctx, call) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestNoContentAnywhere(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "refund", middleware.Effectful, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, fmt.Errorf("%s: %w", secret, errTool)
	})
	for range 4 {
		_, err := tool.Do(ctx, secret, secret)
		for e := err; e != nil; e = errors.Unwrap(e) {
			if _, ok := e.(middleware.Reasoned); !ok {
				break // the tool's own error, which nothing of ours prints
			}
			contentFree(t, e)
		}
	}
	for _, d := range b.log.all() {
		fmt.Fprintf(&out, "%+v\n", d)
	}
	data, err := run.Save()
	if err != nil {
		t.Fatal(err)
	}
	out.Write(data)
	for _, h := range b.sink.Handoffs() {
		data, err := h.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	contentFree(t, out.String())
	if !strings.Contains(out.String(), "safety_review") {
		t.Error("the test saw nothing")
	}
}
