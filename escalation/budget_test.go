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
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

// purse is a budget with all that a test looks at.
type purse struct {
	*escalation.Budget

	log *log
	now *atomic.Int64 // nanoseconds
}

// wide limits nothing.
func wide() escalation.Limits {
	return escalation.Limits{
		ModelCalls: escalation.NoLimit, ToolCalls: escalation.NoLimit, Tokens: escalation.NoLimit,
		WallTime: escalation.NoLimit, Steps: escalation.NoLimit,
	}
}

func newPurse(tb testing.TB, final bool, change func(*escalation.Limits)) purse {
	tb.Helper()
	p := purse{log: &log{}, now: &atomic.Int64{}}
	limits := wide()
	if change != nil {
		change(&limits)
	}
	var err error
	p.Budget, err = escalation.NewBudget(escalation.BudgetConfig{
		Limits: limits, FinalAnswer: final, Observer: p.log,
		Now: func() time.Time { return at.Add(time.Duration(p.now.Load())) },
	})
	if err != nil {
		tb.Fatal(err)
	}

	return p
}

func (p purse) start(tb testing.TB, ctx context.Context) (context.Context, *middleware.Run) { //nolint:revive // tb first reads better here
	tb.Helper()
	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow, Slots: []middleware.Slot{p.Slot()}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })

	return ctx, run
}

func (p purse) tool(tb testing.TB, name string, fn middleware.ToolHandler) *middleware.GuardedTool {
	tb.Helper()
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: name, Effect: middleware.ReadOnly, Chain: p.Tool()}, fn)
	if err != nil {
		tb.Fatal(err)
	}

	return tool
}

func (p purse) model(tb testing.TB, h middleware.ModelHandler) llms.Model {
	tb.Helper()
	m, err := middleware.NewModel(h, middleware.ModelConfig{Chain: p.Model()})
	if err != nil {
		tb.Fatal(err)
	}

	return m
}

// answers answers with a text of a known size and cost.
func answers(in, out int) middleware.ModelHandler {
	return func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		return &middleware.ModelResult{
			Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "sixsix"}}}, InputTokens: in, OutputTokens: out,
		}, nil
	}
}

func humanSays(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func askBudget(ctx context.Context, m llms.Model) error {
	_, err := m.GenerateContent(ctx, humanSays("nine byte"))

	return err
}

func useBudget(ctx context.Context, tool *middleware.GuardedTool) error {
	_, err := tool.Do(ctx, "", secret)

	return err
}

// refusal fails the test if err is not the budget's, and returns its denial.
func refusal(tb testing.TB, err error, want escalation.Resource) *middleware.Denial {
	tb.Helper()
	var d *middleware.Denial
	var limit *escalation.LimitError
	if !errors.As(err, &d) || !errors.As(err, &limit) || limit.Resource() != want || !errors.Is(err, escalation.ErrBudgetExceeded) ||
		d.Component() != middleware.ComponentBudget {
		tb.Fatalf("got %v; want a refusal by the budget's limit of %v", err, want)
	}

	return d
}

// overBudget is refusal for where the denial is not looked at.
func overBudget(tb testing.TB, err error, want escalation.Resource) {
	tb.Helper()
	_ = refusal(tb, err, want)
}

func TestBudgetConfig(t *testing.T) {
	t.Parallel()
	label := ident.MustLabel("lookup")
	for name, c := range map[string]struct {
		change func(*escalation.Limits)
		field  string
	}{
		"no model calls":      {func(l *escalation.Limits) { l.ModelCalls = 0 }, "Limits.ModelCalls"},
		"no tool calls":       {func(l *escalation.Limits) { l.ToolCalls = 0 }, "Limits.ToolCalls"},
		"no tokens":           {func(l *escalation.Limits) { l.Tokens = 0 }, "Limits.Tokens"},
		"no time":             {func(l *escalation.Limits) { l.WallTime = 0 }, "Limits.WallTime"},
		"no steps":            {func(l *escalation.Limits) { l.Steps = 0 }, "Limits.Steps"},
		"negative":            {func(l *escalation.Limits) { l.ModelCalls = -2 }, "Limits.ModelCalls"},
		"negative time":       {func(l *escalation.Limits) { l.WallTime = -2 }, "Limits.WallTime"},
		"over the bound":      {func(l *escalation.Limits) { l.Tokens = escalation.MaxLimit + 1 }, "Limits.Tokens"},
		"nothing of one tool": {func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{label: 0} }, "Limits.PerTool[lookup]"},
		"no label":            {func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{{}: 1} }, "Limits.PerTool"},
		"only a tool":         {func(l *escalation.Limits) { *l = escalation.Limits{PerTool: map[ident.Label]int{label: 1}} }, "Limits.ModelCalls"},
		"too many tools": {func(l *escalation.Limits) {
			l.PerTool = map[ident.Label]int{}
			for i := range escalation.MaxToolLimits + 1 {
				l.PerTool[ident.MustLabel(fmt.Sprintf("t%d", i))] = 1
			}
		}, "Limits.PerTool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := escalation.DefaultBudget()
			c.change(&limits)
			b, err := escalation.NewBudget(escalation.BudgetConfig{Limits: limits})
			var e *escalation.ConfigError
			if b != nil || !errors.As(err, &e) || e.Field() != c.field || !errors.Is(err, escalation.ErrInvalidLimit) ||
				!strings.Contains(err.Error(), c.field+" must be ") {
				t.Errorf("%v, %v", b, err)
			}
		})
	}
	b, err := escalation.NewBudget(escalation.BudgetConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := escalation.Limits{ModelCalls: 50, ToolCalls: 100, Tokens: 10_000, WallTime: 10 * time.Minute, Steps: 50}
	if d := cmp.Diff(want, b.Limits()); d != "" {
		t.Error(d)
	}
	if err := wide().Validate(); err != nil {
		t.Error(err)
	}
}

// The limits are the budget's own: a map that is changed later changes nothing.
func TestBudgetOwnsItsLimits(t *testing.T) {
	t.Parallel()
	mine := map[ident.Label]int{ident.MustLabel("lookup"): 1}
	p := newPurse(t, false, func(l *escalation.Limits) { l.PerTool = mine })
	mine[ident.MustLabel("lookup")] = 100
	clear(p.Limits().PerTool)
	ctx, _ := p.start(t, t.Context())
	tool := p.tool(t, "lookup", works)
	if err := useBudget(ctx, tool); err != nil {
		t.Fatal(err)
	}
	overBudget(t, useBudget(ctx, tool), escalation.ResourceTool)
}

// What is left is used to the last one; what is over it is refused, charges
// nothing, and stops the run for both kinds of calls.
func TestBudgetStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits   func(*escalation.Limits)
		resource escalation.Resource
		models   int // calls that fit
		tools    int
		limit    int
	}{
		"model calls": {func(l *escalation.Limits) { l.ModelCalls = 3 }, escalation.ResourceModelCalls, 3, 0, 3},
		"steps":       {func(l *escalation.Limits) { l.Steps = 2 }, escalation.ResourceSteps, 2, 0, 2},
		"tokens":      {func(l *escalation.Limits) { l.Tokens = 32 }, escalation.ResourceTokens, 3, 0, 32},
		"tool calls":  {func(l *escalation.Limits) { l.ToolCalls = 4 }, escalation.ResourceToolCalls, 0, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, false, c.limits)
			ctx, run := p.start(t, t.Context())
			model, tool := p.model(t, answers(6, 4)), p.tool(t, "lookup", works)
			for range c.models {
				if err := askBudget(ctx, model); err != nil {
					t.Fatal(err)
				}
			}
			for range c.tools {
				if err := useBudget(ctx, tool); err != nil {
					t.Fatal(err)
				}
			}
			before := p.Used(run)
			over := func() error { return useBudget(ctx, tool) }
			if c.models > 0 {
				over = func() error { return askBudget(ctx, model) }
			}
			if d := refusal(t, over(), c.resource); d.Soft() {
				t.Error("soft")
			}
			for range 2 {
				overBudget(t, useBudget(ctx, tool), c.resource)
				overBudget(t, askBudget(ctx, model), c.resource)
			}
			after := p.Used(run)
			if after.Stopped != c.resource || !after.Answered {
				t.Errorf("stopped: %v, answered: %v", after.Stopped, after.Answered)
			}
			after.Stopped, after.Answered = 0, false
			if d := cmp.Diff(before, after); d != "" {
				t.Error("refused calls consumed something", d)
			}
			all := p.log.all()
			if len(all) != 5 {
				t.Fatalf("%d decisions for 5 refusals", len(all))
			}
			for i, d := range all {
				if d.Seq != uint64(i+1) || d.Component != middleware.ComponentBudget || d.Verdict != middleware.VerdictDeny ||
					d.Action != middleware.ActionBlock || d.Reason != middleware.ReasonBudgetExceeded || d.Run != run.ID() ||
					d.Workflow != workflow || d.Limit != c.limit || d.Count > c.limit {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

func TestBudgetWallTime(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, func(l *escalation.Limits) { l.WallTime = time.Minute })
	ctx, run := p.start(t, t.Context())
	tool := p.tool(t, "lookup", works)
	if err := useBudget(ctx, tool); err != nil { // the clock starts here
		t.Fatal(err)
	}
	p.now.Store(int64(time.Minute - 1))
	if err := useBudget(ctx, tool); err != nil {
		t.Fatal(err)
	}
	p.now.Store(int64(-time.Hour)) // a clock that is set back gives nothing back
	if err := useBudget(ctx, tool); err != nil || p.Used(run).WallTime != time.Minute-1 {
		t.Fatal(err, p.Used(run).WallTime)
	}
	p.now.Store(int64(time.Minute))
	overBudget(t, useBudget(ctx, tool), escalation.ResourceWallTime)
	if d := p.log.all()[0]; d.Count != 60_000 || d.Limit != 60_000 {
		t.Errorf("%d of %d milliseconds", d.Count, d.Limit)
	}
	p.now.Store(0)
	overBudget(t, useBudget(ctx, tool), escalation.ResourceWallTime)
}

// The limit of one tool refuses that tool, in a way that the agent survives.
func TestBudgetPerTool(t *testing.T) {
	t.Parallel()
	lookup := ident.MustLabel("lookup")
	p := newPurse(t, false, func(l *escalation.Limits) { l.PerTool, l.ToolCalls = map[ident.Label]int{lookup: 2}, 4 })
	ctx, run := p.start(t, t.Context())
	limited, other := p.tool(t, "lookup", works), p.tool(t, "other", works)
	for range 2 {
		if err := useBudget(ctx, limited); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		d := refusal(t, useBudget(ctx, limited), escalation.ResourceTool)
		if !d.Soft() || d.Reason() != escalation.ErrToolLimit || !strings.Contains(d.Observation(), "this tool") {
			t.Errorf("%v, soft: %v", d, d.Soft())
		}
	}
	for range 2 {
		if err := useBudget(ctx, other); err != nil {
			t.Fatal(err)
		}
	}
	if u := p.Used(run); u.ToolCalls != 4 || u.PerTool[lookup] != 2 || len(u.PerTool) != 1 || u.Stopped != 0 {
		t.Errorf("%+v", u)
	}
	if d := p.log.all()[0]; d.Reason != middleware.ReasonToolLimit || d.Verdict != middleware.VerdictModify || d.Label != lookup ||
		d.Count != 2 || d.Limit != 2 {
		t.Errorf("%+v", d)
	}
	if d := refusal(t, useBudget(ctx, limited), escalation.ResourceToolCalls); d.Soft() {
		t.Error("the run's own limit goes before the tool's, and is hard")
	}
}

type usageInfo struct{ PromptTokens, CompletionTokens int }

// What a call costs is what the provider counted, where it did.
func TestBudgetUsage(t *testing.T) {
	t.Parallel()
	const estimate = 3 + 2 // "nine byte" and "sixsix"
	for name, c := range map[string]struct {
		in, out int
		info    map[string]any
		want    int
	}{
		"of the result":   {7, 5, map[string]any{"PromptTokens": 99}, 12},
		"nothing":         {0, 0, nil, estimate},
		"zero is unknown": {0, 0, map[string]any{"PromptTokens": 0, "CompletionTokens": 0}, estimate},
		"half of it":      {0, 0, map[string]any{"PromptTokens": 10}, 12},
		"only the answer": {0, 9, nil, 12},
		"openai":          {0, 0, map[string]any{"PromptTokens": 3, "CompletionTokens": 4, "TotalTokens": 7}, 7},
		"anthropic":       {0, 0, map[string]any{"InputTokens": 3, "OutputTokens": 5}, 8},
		"googleai":        {0, 0, map[string]any{"PromptTokens": int32(3), "CompletionTokens": int32(6), "input_tokens": int32(3)}, 9},
		"bedrock":         {0, 0, map[string]any{"input_tokens": 4, "output_tokens": 6}, 10},
		"mistral":         {0, 0, map[string]any{"usage": usageInfo{5, 6}}, 11},
		"mistral pointer": {0, 0, map[string]any{"usage": &usageInfo{5, 7}}, 12},
		"of JSON":         {0, 0, map[string]any{"PromptTokens": 6.0, "CompletionTokens": 7.0}, 13},
		"negative":        {-4, -5, map[string]any{"PromptTokens": -1, "CompletionTokens": int64(-1)}, estimate},
		"not a number":    {0, 0, map[string]any{"PromptTokens": math.NaN(), "CompletionTokens": math.Inf(1)}, estimate},
		"no count":        {0, 0, map[string]any{"PromptTokens": "12", "usage": "none"}, estimate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, false, nil)
			ctx, run := p.start(t, t.Context())
			model := p.model(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				return &middleware.ModelResult{InputTokens: c.in, OutputTokens: c.out, Response: &llms.ContentResponse{
					Choices: []*llms.ContentChoice{{Content: "sixsix", GenerationInfo: c.info}, {GenerationInfo: c.info}},
				}}, nil
			})
			if err := askBudget(ctx, model); err != nil {
				t.Fatal(err)
			}
			if u := p.Used(run); u.Tokens != c.want || u.ModelCalls != 1 || u.Steps != 1 {
				t.Errorf("%+v; want %d tokens", u, c.want)
			}
		})
	}
}

// What is reserved counts the whole request, and what the answer may be.
func TestBudgetReservesTheRequest(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "required": []string{"city"}, "more": []any{1, true, nil, 1.5},
		"properties": map[string]any{"city": map[string]string{"type": "string"}}}
	type custom struct {
		Type string `json:"type"`
	}
	definition := func(parameters any) llms.FunctionDefinition {
		return llms.FunctionDefinition{Name: "lookup", Description: "looks up", Parameters: parameters}
	}
	text := humanSays("123456789")
	functions := func(parameters any) llms.CallOption {
		return llms.WithFunctions([]llms.FunctionDefinition{definition(parameters)})
	}
	held := func(t *testing.T, messages []llms.MessageContent, options ...llms.CallOption) int {
		t.Helper()
		p := newPurse(t, false, nil)
		ctx, run := p.start(t, t.Context())
		tokens := 0
		model := p.model(t, func(ctx context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
			tokens = p.Used(run).Tokens

			return answers(1, 1)(ctx, c)
		})
		if _, err := model.GenerateContent(ctx, messages, options...); err != nil {
			t.Fatal(err)
		}

		return tokens
	}
	for name, c := range map[string]struct {
		messages []llms.MessageContent
		options  []llms.CallOption
		least    int
		most     int
	}{
		"nothing":     {nil, nil, 0, 0},
		"text":        {text, nil, 3, 3},
		"rounded up":  {humanSays("1234567890"), nil, 4, 4},
		"max tokens":  {text, []llms.CallOption{llms.WithMaxTokens(100)}, 103, 103},
		"two choices": {text, []llms.CallOption{llms.WithMaxTokens(100), llms.WithN(2)}, 203, 203},
		"negative":    {text, []llms.CallOption{llms.WithMaxTokens(-100), llms.WithN(-2)}, 3, 3},
		"all parts": {[]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.TextContent{Text: "123456789"}, llms.BinaryContent{Data: make([]byte, 9)},
			llms.ToolCall{ID: "123", FunctionCall: &llms.FunctionCall{Name: "123", Arguments: "123"}}, llms.ToolCall{},
			llms.ToolCallResponse{ToolCallID: "123", Name: "123", Content: "123"}, llms.CachedContent{ContentPart: llms.TextContent{Text: "123456789"}},
		}}}, nil, 15, 15},
		"pictures": {[]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.BinaryContent{MIMEType: "image/png", Data: make([]byte, 9)}, llms.ImageURLContent{URL: "123456789"},
		}}}, nil, 3200, 3200},
		"a schema":        {text, []llms.CallOption{functions(schema)}, 3 + 40, 3 + 60},
		"an unknown type": {text, []llms.CallOption{functions(custom{"object"})}, 3 + 10, 3 + 11},
		"no schema":       {text, []llms.CallOption{functions(func() {})}, 3 + 5, 3 + 6},
		"tools": {text, []llms.CallOption{llms.WithTools([]llms.Tool{{}, {Function: &llms.FunctionDefinition{
			Name: "lookup", Description: "looks up", Parameters: schema,
		}}})}, 3 + 40, 3 + 60},
	} {
		if got := held(t, c.messages, c.options...); got < c.least || got > c.most {
			t.Errorf("%s: %d tokens are held; want %d…%d", name, got, c.least, c.most)
		}
	}
}

// A reservation is given back whichever way the call fails; that it was made
// stays counted.
func TestBudgetReleases(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]func(context.CancelFunc) (*middleware.ModelResult, error){
		"error":  func(context.CancelFunc) (*middleware.ModelResult, error) { return nil, errTool },
		"panic":  func(context.CancelFunc) (*middleware.ModelResult, error) { panic(secret) },
		"goexit": func(context.CancelFunc) (*middleware.ModelResult, error) { runtime.Goexit(); return nil, nil },
		"cancel": func(cancel context.CancelFunc) (*middleware.ModelResult, error) {
			cancel()
			return nil, context.Canceled
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, false, nil)
			ctx, run := p.start(t, t.Context())
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			model := p.model(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				if p.Used(run).Tokens == 0 {
					t.Error("nothing is reserved")
				}

				return inside(cancel)
			})
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := askBudget(ctx, model); err == nil {
					t.Error("no error")
				}
			})
			wg.Wait()
			want := escalation.Usage{ModelCalls: 1, PerTool: map[ident.Label]int{}}
			if d := cmp.Diff(want, p.Used(run)); d != "" {
				t.Error(d)
			}
		})
	}
}

// A tool call counts however it ends: an agent that is refused further in, or
// fails, over and over again has to end too.
func TestBudgetCountsFailedTools(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, func(l *escalation.Limits) { l.ToolCalls = 2 })
	ctx, _ := p.start(t, t.Context())
	tool := p.tool(t, "lookup", fails)
	for range 2 {
		if err := useBudget(ctx, tool); !errors.Is(err, errTool) {
			t.Fatal(err)
		}
	}
	overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
}

// Nothing is reserved for a call that was refused before.
func TestBudgetChargesNoCallThatIsNone(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 })
	ctx, run := p.start(t, t.Context())
	h := p.Tool()(works) // no adapter around it
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for _, ctx := range []context.Context{dead, t.Context()} {
		if _, err := h(ctx, &middleware.ToolCall{}); err == nil {
			t.Error("admitted")
		}
	}
	if u := p.Used(run); u.ToolCalls != 0 {
		t.Errorf("%+v", u)
	}
	run.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
	if _, err := h(ctx, &middleware.ToolCall{}); !errors.Is(err, middleware.ReasonLoop) {
		t.Error(err)
	}
	run.End()
	if d := cmp.Diff(escalation.Usage{}, p.Used(run)); d != "" {
		t.Error(d)
	}
	var none *escalation.Budget
	for _, b := range []*escalation.Budget{none, {}} {
		h := b.Tool()(works)
		m := b.Model()(answers(1, 1))
		_, err := h(ctx, &middleware.ToolCall{})
		_, errModel := m(ctx, middleware.NewModelCall(nil))
		if err == nil || errModel == nil {
			t.Error("a budget that is none admits")
		}
		if _, _, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Slots: []middleware.Slot{b.Slot()}}); err != nil {
			t.Error(err) // it is found when the run is persisted
		}
		b.Used(run)
		b.Limits()
	}
}

// A clock that panics refuses what was not made, which is no unknown outcome; it
// is a decision, and leaves nothing locked.
func TestBudgetClockPanics(t *testing.T) {
	t.Parallel()
	broken := atomic.Bool{}
	heard := &log{}
	b, err := escalation.NewBudget(escalation.BudgetConfig{Observer: heard, Now: func() time.Time {
		if broken.Load() {
			panic(secret)
		}

		return at
	}})
	if err != nil {
		t.Fatal(err)
	}
	p := purse{Budget: b, log: heard}
	ctx, run := p.start(t, t.Context())
	other, late := p.start(t, t.Context()) // whose account is made by the broken clock
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "pay", Chain: p.Tool()}, works)
	if err != nil {
		t.Fatal(err)
	}
	model := p.model(t, answers(1, 1))
	if err := useBudget(ctx, tool); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	for _, err := range []error{useBudget(ctx, tool), askBudget(ctx, model), useBudget(other, tool), askBudget(other, model)} {
		if !errors.Is(err, middleware.ReasonPanic) || errors.Is(err, middleware.ReasonOutcomeUnknown) {
			t.Error(err)
		}
		contentFree(t, err)
	}
	if n := heard.count(middleware.ReasonPanic); n != 4 || heard.all()[0].Verdict != middleware.VerdictDeny {
		t.Errorf("%d decisions", n)
	}
	if u := p.Used(run); u.ToolCalls != 1 || p.Used(late).ToolCalls != 0 {
		t.Errorf("%+v", u)
	}
	if _, err := run.Save(); err == nil {
		t.Error("saved without the time")
	}
	broken.Store(false)
	if err := useBudget(ctx, tool); err != nil || p.Used(run).ToolCalls != 2 {
		t.Error(err)
	}
}

// The property: whatever is tried at once, exactly what fits is admitted. Each
// of 64 goroutines works in a run of its own below one parent, or in the parent.
func TestBudgetNeverOvershoots(t *testing.T) {
	t.Parallel()
	const workers, tries = 64, 20
	lookup := ident.MustLabel("lookup")
	for name, c := range map[string]struct {
		limits func(*escalation.Limits)
		nested bool
		models int64 // exactly admitted; -1: less than all
		tools  int64
	}{
		"model calls":           {func(l *escalation.Limits) { l.ModelCalls = 500 }, false, 500, -1},
		"model calls, nested":   {func(l *escalation.Limits) { l.ModelCalls = 500 }, true, 500, -1},
		"tool calls":            {func(l *escalation.Limits) { l.ToolCalls = 321 }, false, -1, 321},
		"tool calls, nested":    {func(l *escalation.Limits) { l.ToolCalls = 321 }, true, -1, 321},
		"steps":                 {func(l *escalation.Limits) { l.Steps = 77 }, true, 77, -1},
		"tokens, held at once":  {func(l *escalation.Limits) { l.Tokens = 5 * 99 }, false, 99, -1},
		"tokens, held, nested":  {func(l *escalation.Limits) { l.Tokens = 5 * 99 }, true, 99, -1},
		"one tool alone":        {func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{lookup: 123} }, false, workers * tries, 123},
		"one tool, nested":      {func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{lookup: 123} }, true, workers * tries, 123},
		"everything but a tool": {func(l *escalation.Limits) { l.ModelCalls, l.ToolCalls = 1, 1 }, true, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, false, c.limits)
			limits := p.Limits()
			ctx, run := p.start(t, t.Context())
			var models, tools atomic.Int64
			tool := p.tool(t, "lookup", func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
				tools.Add(1)

				return works(ctx, call)
			})
			model := p.model(t, func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
				models.Add(1)
				if used := p.Used(run).Tokens; limits.Tokens != escalation.NoLimit && used > limits.Tokens {
					t.Errorf("%d of %d tokens are held", used, limits.Tokens)
				}

				return answers(3, 2)(ctx, call)
			})
			p.Used(run) // the parent's account is there before the children's
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					ctx := ctx
					if c.nested {
						var child *middleware.Run
						var err error
						if ctx, child, err = middleware.StartRun(ctx, middleware.RunConfig{Workflow: workflow}); err != nil {
							t.Error(err)

							return
						}
						defer child.End()
					}
					for range tries {
						_, errModel := model.GenerateContent(ctx, humanSays("nine byte"), llms.WithMaxTokens(2))
						errTool := useBudget(ctx, tool)
						for _, err := range []error{errModel, errTool} {
							if err != nil && !errors.Is(err, escalation.ErrBudgetExceeded) {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			if n := models.Load(); (c.models >= 0 && n != c.models) || (c.models < 0 && n >= workers*tries) {
				t.Errorf("%d model calls were admitted; want %d", n, c.models)
			}
			if n := tools.Load(); (c.tools >= 0 && n != c.tools) || (c.tools < 0 && n >= workers*tries) {
				t.Errorf("%d tool calls were admitted; want %d", n, c.tools)
			}
			if u := p.Used(run); int64(u.ModelCalls) != models.Load() || int64(u.ToolCalls) != tools.Load() || u.Tokens != 5*u.ModelCalls {
				t.Errorf("%+v; %d and %d calls were made", u, models.Load(), tools.Load())
			}
		})
	}
}

// A child's work is its parent's, and its grandparent's; a limit of any of them
// stops what is below it.
func TestBudgetChildren(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, func(l *escalation.Limits) { l.ToolCalls, l.ModelCalls = 5, 5 })
	tool, model := p.tool(t, "lookup", works), p.model(t, answers(2, 3))
	ctx, run := p.start(t, t.Context())
	childCtx, child := p.start(t, ctx)
	deepCtx, deep := p.start(t, childCtx)
	otherCtx, other := p.start(t, ctx)
	for _, c := range []context.Context{deepCtx, childCtx, ctx, otherCtx} {
		if err := errors.Join(useBudget(c, tool), askBudget(c, model)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		run  *middleware.Run
		want int
	}{{deep, 1}, {child, 2}, {other, 1}, {run, 4}} {
		if u := p.Used(c.run); u.ToolCalls != c.want || u.ModelCalls != c.want || u.Tokens != 5*c.want || u.Steps != c.want {
			t.Errorf("%+v; want %d", u, c.want)
		}
	}
	if err := useBudget(otherCtx, tool); err != nil {
		t.Fatal(err)
	}
	d := refusal(t, useBudget(deepCtx, tool), escalation.ResourceToolCalls)
	if d.Run() != deep.ID() || d.Soft() {
		t.Errorf("a refusal of %v", d.Run())
	}
	for _, r := range []*middleware.Run{deep, child, other, run} {
		if p.Used(r).Stopped != escalation.ResourceToolCalls {
			t.Error("a run goes on")
		}
	}
	overBudget(t, askBudget(ctx, model), escalation.ResourceToolCalls)
	lateCtx, _ := p.start(t, ctx)
	overBudget(t, askBudget(lateCtx, model), escalation.ResourceToolCalls)
}

// The tool of a child is refused where the parent's limit is reached, and the
// child's other tools are not, however closely they follow.
func TestBudgetChildrenPerTool(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, func(l *escalation.Limits) { l.PerTool = map[ident.Label]int{ident.MustLabel("lookup"): 1} })
	limited, other := p.tool(t, "lookup", works), p.tool(t, "other", works)
	ctx, run := p.start(t, t.Context())
	childCtx, child := p.start(t, ctx)
	if err := useBudget(ctx, limited); err != nil {
		t.Fatal(err)
	}
	if d := refusal(t, useBudget(childCtx, limited), escalation.ResourceTool); !d.Soft() {
		t.Error("hard")
	}
	if u := p.Used(child); u.ToolCalls != 0 || u.PerTool[ident.MustLabel("lookup")] != 0 {
		t.Errorf("refused and charged: %+v", u)
	}
	if err := useBudget(childCtx, other); err != nil || p.Used(run).ToolCalls != 2 {
		t.Error(err)
	}
}

func TestBudgetConformance(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		t.Run(fmt.Sprintf("tool, final %v", final), func(t *testing.T) {
			t.Parallel()
			conformance.Tool(t, conformance.ToolSuite{
				New: func(t *testing.T) middleware.ToolMiddleware { t.Helper(); return newPurse(t, final, nil).Tool() },
			})
		})
		t.Run(fmt.Sprintf("model, final %v", final), func(t *testing.T) {
			t.Parallel()
			conformance.Model(t, conformance.ModelSuite{
				New: func(t *testing.T) middleware.ModelMiddleware { t.Helper(); return newPurse(t, final, nil).Model() },
			})
		})
	}
}

// It stands outside of the escalation.
func TestBudgetOrder(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, nil)
	e := newBench(t, nil)
	ctx, _ := p.start(t, t.Context())
	for want, chain := range map[error]middleware.ToolMiddleware{
		nil:                          middleware.Chain(p.Tool(), e.Tool()),
		middleware.ReasonUnsafeOrder: middleware.Chain(e.Tool(), p.Tool()),
	} {
		if err := useBudget(ctx, e.chained(t, "lookup", middleware.ReadOnly, chain, works)); !errors.Is(err, want) {
			t.Errorf("%v; want %v", err, want)
		}
	}
}

// Resources are a closed set.
func TestResources(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range escalation.Resources() {
		if s := r.String(); s == "invalid" || seen[s] {
			t.Errorf("%d is %q", r, s)
		} else {
			seen[s] = true
		}
	}
	if escalation.Resource(0).String() != "invalid" || escalation.Resource(len(seen)+1).String() != "invalid" {
		t.Error("a value outside of the set has a name")
	}
}
