package escalation_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// offering is the options of an agent's call, in both forms.
func offering() []llms.CallOption {
	f := llms.FunctionDefinition{Name: "lookup"}

	return []llms.CallOption{
		llms.WithTools([]llms.Tool{{Type: "function", Function: &f}}), llms.WithFunctions([]llms.FunctionDefinition{f}),
		llms.WithToolChoice("required"), llms.WithFunctionCallBehavior(llms.FunctionCallBehaviorAuto), llms.WithTemperature(0.5),
	}
}

// tells records the calls that reach the model.
type tells struct {
	mu    sync.Mutex
	calls []*middleware.ModelCall
	inner middleware.ModelHandler
}

func (r *tells) handle(ctx context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()

	return r.inner(ctx, c)
}

func bare(view middleware.OptionsView) bool {
	return !view.OffersTools() && view.ToolChoice() == nil && view.FunctionCallBehavior() == "" && view.Temperature() == 0.5
}

// The refused tool call is told to the model, which then answers once, without
// tools; anything after that is refused for good.
func TestBudgetFinalAnswer(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 })
	ctx, run := p.start(t, t.Context())
	heard := &tells{inner: answers(10, 10)}
	tool, model := p.tool(t, "lookup", works), p.model(t, heard.handle)
	call := func() error {
		_, err := model.GenerateContent(ctx, humanSays("hello"), offering()...)

		return err
	}
	if err := errors.Join(call(), useBudget(ctx, tool)); err != nil {
		t.Fatal(err)
	}
	for range 3 { // parallel calls of one turn are all told
		d := refusal(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
		if text, told := tool.Observation(ctx, d); !d.Soft() || !told || text != d.Observation() {
			t.Fatalf("%q, %v", text, told)
		}
	}
	if u := p.Used(run); u.Stopped != escalation.ResourceToolCalls || u.Answered {
		t.Errorf("%+v", u)
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if first, final := heard.calls[0], heard.calls[1]; bare(first.Options()) || !bare(final.Options()) ||
		!strings.Contains(messageText(final.Messages()), escalation.FinalSentence) ||
		strings.Contains(messageText(first.Messages()), escalation.FinalSentence) {
		t.Error("the final answer is not asked for without tools")
	}
	for range 2 {
		for _, err := range []error{call(), useBudget(ctx, tool)} {
			if d := refusal(t, err, escalation.ResourceToolCalls); d.Soft() {
				t.Error("soft after the final answer")
			}
		}
	}
	if u := p.Used(run); u.ModelCalls != 2 || u.ToolCalls != 1 || u.Tokens != 40 || !u.Answered {
		t.Errorf("%+v", u)
	}
	var got []string
	for _, d := range p.log.all() {
		got = append(got, d.Verdict.String()+" "+d.Action.String())
	}
	soft, hard := "modify block", "deny block"
	if d := cmp.Diff([]string{soft, soft, soft, "modify substitute", hard, hard, hard, hard}, got); d != "" {
		t.Error(d)
	}
}

// A model call that would pass a limit becomes the final answer itself.
func TestBudgetFinalAnswerOfAModelCall(t *testing.T) {
	t.Parallel()
	for r, change := range map[escalation.Resource]func(*escalation.Limits){
		escalation.ResourceModelCalls: func(l *escalation.Limits) { l.ModelCalls = 1 },
		escalation.ResourceSteps:      func(l *escalation.Limits) { l.Steps = 1 },
		escalation.ResourceTokens:     func(l *escalation.Limits) { l.Tokens = 20 },
	} {
		p := newPurse(t, true, change)
		ctx, run := p.start(t, t.Context())
		heard := &tells{inner: answers(10, 10)}
		model, tool := p.model(t, heard.handle), p.tool(t, "lookup", works)
		for range 2 {
			if _, err := model.GenerateContent(ctx, humanSays("hello"), offering()...); err != nil {
				t.Fatal(r, err)
			}
		}
		if bare(heard.calls[0].Options()) || !bare(heard.calls[1].Options()) {
			t.Errorf("%v: with tools", r)
		}
		if refusal(t, askBudget(ctx, model), r).Soft() || refusal(t, useBudget(ctx, tool), r).Soft() {
			t.Errorf("%v: soft", r)
		}
		if u := p.Used(run); u.ModelCalls != 2 || u.Stopped != r {
			t.Errorf("%+v", u)
		}
	}
}

// There is one final answer, however many ask at once and whatever it comes to.
func TestBudgetFinalAnswerOnce(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]func() (*middleware.ModelResult, error){
		"answers": func() (*middleware.ModelResult, error) { return answers(1, 1)(context.Background(), nil) },
		"fails":   func() (*middleware.ModelResult, error) { return nil, errTool },
		"panics":  func() (*middleware.ModelResult, error) { panic(secret) },
		"goexit":  func() (*middleware.ModelResult, error) { runtime.Goexit(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 })
			ctx, run := p.start(t, t.Context())
			var made atomic.Int64
			model := p.model(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				made.Add(1)

				return inside()
			})
			tool := p.tool(t, "lookup", works)
			if err := useBudget(ctx, tool); err != nil {
				t.Fatal(err)
			}
			overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() { _ = askBudget(ctx, model) })
			}
			wg.Wait()
			if made.Load() != 1 || p.Used(run).ModelCalls != 1 {
				t.Errorf("%d final answers", made.Load())
			}
			overBudget(t, askBudget(ctx, model), escalation.ResourceToolCalls)
		})
	}
}

// Only a budget's stop has a last word.
func TestBudgetFinalAnswerNeverWhenHalted(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 })
	ctx, run := p.start(t, t.Context())
	heard := &tells{inner: answers(1, 1)}
	tool, model := p.tool(t, "lookup", works), p.model(t, heard.handle)
	if err := useBudget(ctx, tool); err != nil {
		t.Fatal(err)
	}
	overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
	run.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	if err := askBudget(ctx, model); !errors.Is(err, middleware.ReasonCircuitOpen) || len(heard.calls) != 0 {
		t.Errorf("%v, %d calls", err, len(heard.calls))
	}
	// Nor without the adapter's own check.
	if _, err := p.Model()(heard.handle)(ctx, middleware.NewModelCall(humanSays("x"))); !errors.Is(err, middleware.ReasonCircuitOpen) {
		t.Error(err)
	}
	if p.Used(run).Answered {
		t.Error("answered")
	}
}

// A tool that asks the model for something of its own does not take the agent's
// final answer, and does not end its run.
func TestBudgetFinalAnswerIsTheAgents(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ModelCalls = 1 })
	ctx, run := p.start(t, t.Context())
	model := p.model(t, answers(1, 1))
	summarize := p.tool(t, "summarize", func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{}, askBudget(ctx, model)
	})
	if err := useBudget(ctx, summarize); err != nil {
		t.Fatal(err)
	}
	if u := p.Used(run); u.Steps != 0 || u.ModelCalls != 1 {
		t.Errorf("a call inside of a tool is no step: %+v", u)
	}
	err := useBudget(ctx, summarize)
	if d := refusal(t, err, escalation.ResourceModelCalls); !d.Soft() {
		t.Error("hard")
	}
	if _, told := summarize.Observation(ctx, err); !told {
		t.Error("the agent is not told")
	}
	if err := askBudget(ctx, model); err != nil {
		t.Fatal(err)
	}
	overBudget(t, askBudget(ctx, model), escalation.ResourceModelCalls)
}

// Each run that was there when its tree stopped has a final answer of its own,
// so that a nested agent can hand back what it has; a run that is begun later
// has none.
func TestBudgetFinalAnswerOfChildren(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 })
	model, tool := p.model(t, answers(1, 1)), p.tool(t, "lookup", works)
	ctx, _ := p.start(t, t.Context())
	childCtx, _ := p.start(t, ctx)
	if err := useBudget(childCtx, tool); err != nil {
		t.Fatal(err)
	}
	if !refusal(t, useBudget(childCtx, tool), escalation.ResourceToolCalls).Soft() {
		t.Error("hard")
	}
	lateCtx, _ := p.start(t, ctx)
	if refusal(t, askBudget(lateCtx, model), escalation.ResourceToolCalls).Soft() {
		t.Error("soft")
	}
	for _, c := range []context.Context{childCtx, ctx} {
		if err := askBudget(c, model); err != nil {
			t.Error(err)
		}
		overBudget(t, askBudget(c, model), escalation.ResourceToolCalls)
	}
}

func messageText(messages []llms.MessageContent) string {
	var all []string
	for _, m := range messages {
		line := string(m.Role) + ":"
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llms.TextContent:
				line += " " + p.Text
			case llms.ToolCall:
				line += " call"
			case llms.ToolCallResponse:
				line += " result"
			default:
				line += " other"
			}
		}
		all = append(all, line)
	}

	return strings.Join(all, "\n")
}

// The sentence goes where every client sends it, and into nobody else's slice.
func TestBudgetFinalMessages(t *testing.T) {
	t.Parallel()
	const sentence = escalation.FinalSentence
	system, user := llms.TextParts(llms.ChatMessageTypeSystem, "Be brief.", "Be kind."), llms.TextParts(llms.ChatMessageTypeHuman, "Hello.")
	picture := llms.BinaryContent{Data: []byte{1}}
	history := []llms.MessageContent{
		user, {Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: "1"}}},
		{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "1"}}},
	}
	for name, c := range map[string]struct {
		in   []llms.MessageContent
		want string
	}{
		"nothing":   {nil, "system: " + sentence},
		"a system":  {[]llms.MessageContent{system, user}, "system: Be brief.\n\n" + sentence + " Be kind.\nhuman: Hello."},
		"no system": {history, "system: " + sentence + "\nhuman: Hello.\nai: call\ntool: result"},
		"a prompt":  {[]llms.MessageContent{user}, "human: " + sentence + "\n\nHello."},
		"a picture": {[]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{picture}}}, "human: other " + sentence},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := messageText(c.in)
			p := newPurse(t, true, func(l *escalation.Limits) { l.ModelCalls = 1 })
			ctx, _ := p.start(t, t.Context())
			heard := &tells{inner: answers(1, 1)}
			model := p.model(t, heard.handle)
			for range 2 {
				if _, err := model.GenerateContent(ctx, c.in); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(c.want, messageText(heard.calls[1].Messages())); d != "" {
				t.Error(d)
			}
			if messageText(c.in) != before {
				t.Error("the caller's messages were changed")
			}
		})
	}
}

// candidate is a server of this wire format with langchaingo's client in front.
func candidate(tb testing.TB, p fallback.Provider, script misbehave.Script) (fallback.Candidate, *misbehave.Server) {
	tb.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(srv.Close)
	client := &http.Client{Transport: &fallback.Transport{Base: &http.Transport{DisableKeepAlives: true}}}
	c := fallback.Candidate{Label: ident.MustLabel(p.String()), Provider: p, ModelName: "m"}
	if p == fallback.ProviderOpenAI {
		c.Model, err = openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("m"), openai.WithHTTPClient(client))
	} else {
		c.Model, err = anthropic.New(anthropic.WithBaseURL(srv.URL()+"/v1"), anthropic.WithToken("t"), anthropic.WithHTTPClient(client))
	}
	if err != nil {
		tb.Fatal(err)
	}

	return c, srv
}

type lookup struct{ inputs []string }

func (*lookup) Name() string        { return "lookup" }
func (*lookup) Description() string { return "looks a city up" }
func (l *lookup) Call(_ context.Context, input string) (string, error) {
	l.inputs = append(l.inputs, input)

	return "weather in " + input, nil
}

// Langchaingo's agents through langchaingo's clients, against servers that
// refuse what the vendors refuse: the run ends with an answer.
func TestBudgetFinalAnswerOverTheWire(t *testing.T) {
	t.Parallel()
	city := func(name string) misbehave.Call {
		return misbehave.Call{Name: "lookup", Arguments: `{"__arg1":"` + name + `"}`}
	}
	functions := func(m llms.Model, t []tools.Tool) agents.Agent { return agents.NewOpenAIFunctionsAgent(m, t) }
	textual := func(m llms.Model, t []tools.Tool) agents.Agent { return agents.NewOneShotAgent(m, t) }
	asks := misbehave.Reply{Text: "Two cities.", Calls: []misbehave.Call{city("Oslo"), city("Bergen")}}
	writes := misbehave.Reply{Text: "Thought: look.\nAction: lookup\nAction Input: Oslo"}
	for name, c := range map[string]struct {
		agent   func(llms.Model, []tools.Tool) agents.Agent
		asks    misbehave.Reply
		answers misbehave.Reply
		limits  func(*escalation.Limits)
		want    string
		calls   int // of the tool
		turns   int // before the final one
	}{
		"tool calls":            {functions, asks, misbehave.Reply{Text: "Rain."}, func(l *escalation.Limits) { l.ToolCalls = 3 }, "Rain.", 3, 2},
		"tool calls, at once":   {functions, asks, misbehave.Reply{Text: "Rain."}, func(l *escalation.Limits) { l.ToolCalls = 1 }, "Rain.", 1, 1},
		"model calls":           {functions, asks, misbehave.Reply{Text: "Rain."}, func(l *escalation.Limits) { l.ModelCalls = 2 }, "Rain.", 4, 2},
		"steps":                 {functions, asks, misbehave.Reply{Text: "Rain."}, func(l *escalation.Limits) { l.Steps = 1 }, "Rain.", 2, 1},
		"a call all the same":   {functions, asks, asks, func(l *escalation.Limits) { l.ToolCalls = 1 }, "", 1, 1},
		"textual":               {textual, writes, misbehave.Reply{Text: "Final Answer: rain"}, func(l *escalation.Limits) { l.ToolCalls = 2 }, "rain", 2, 3},
		"textual, model calls":  {textual, writes, misbehave.Reply{Text: "Final Answer: rain"}, func(l *escalation.Limits) { l.ModelCalls = 2 }, "rain", 2, 2},
		"textual, all the same": {textual, writes, writes, func(l *escalation.Limits) { l.ToolCalls = 1 }, "", 1, 2},
	} {
		for _, vendor := range []fallback.Provider{fallback.ProviderOpenAI, fallback.ProviderAnthropic} {
			t.Run(name+" "+vendor.String(), func(t *testing.T) {
				t.Parallel()
				final := func(r misbehave.Request) bool {
					return slices.ContainsFunc(r.Messages, func(m misbehave.Message) bool { return strings.Contains(m.Text, escalation.FinalSentence) })
				}
				candidate, srv := candidate(t, vendor, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
					if final(r) {
						return c.answers
					}

					return c.asks
				}))
				chain, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{candidate}})
				if err != nil {
					t.Fatal(err)
				}
				p := newPurse(t, true, c.limits)
				ctx, run := p.start(t, t.Context())
				l := &lookup{}
				tool, err := middleware.WrapTool(l, middleware.ToolConfig{Effect: middleware.ReadOnly, Chain: p.Tool()})
				if err != nil {
					t.Fatal(err)
				}
				executor := agents.NewExecutor(c.agent(p.model(t, chain.Handle), []tools.Tool{tool}), agents.WithMaxIterations(8))
				out, err := chains.Run(ctx, executor, "Which weather?")
				if c.want == "" {
					overBudget(t, err, escalation.ResourceToolCalls)
				} else if err != nil || strings.TrimSpace(out) != c.want {
					t.Fatalf("%q, %v", out, err)
				}
				requests := srv.Requests()
				if len(l.inputs) != c.calls || len(requests) != c.turns+1 || !p.Used(run).Answered {
					t.Errorf("%d tool calls, %d requests, %+v", len(l.inputs), len(requests), p.Used(run))
				}
				for i, r := range requests {
					last := i == len(requests)-1
					if r.Violation != misbehave.NoViolation || final(r) != last || (last && len(r.Tools) != 0) {
						t.Errorf("request %d: %q, final %v, tools %v", i, r.Violation, final(r), r.Tools)
					}
				}
			})
		}
	}
}

// What the context limiter asks the model for, a drift or a summary, is no step
// of the agent, and does not take its final answer.
func TestBudgetFinalAnswerIsNotTheLimiters(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ModelCalls = 2 })
	var model llms.Model
	var asked []error
	l := limiter(t, escalation.ContextConfig{Window: 1000, Drift: func(ctx context.Context, _ string, _ []string) (float64, error) {
		err := askBudget(ctx, model)
		asked = append(asked, err)

		return 0, err
	}})
	model, err := middleware.NewModel(answers(1, 1), middleware.ModelConfig{Chain: middleware.Chain(p.Model(), l.Model())})
	if err != nil {
		t.Fatal(err)
	}
	ctx, run := p.start(t, t.Context())
	turns := history(human("task"), worked("a", 30), worked("b", 30), worked("c", 30), worked("d", 30))
	for range 2 { // a call with its drift; a final answer, whose drift is refused
		if _, err := model.GenerateContent(ctx, turns); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0] != nil {
		t.Fatalf("asked %v", asked)
	}
	overBudget(t, asked[1], escalation.ResourceModelCalls)
	if u := p.Used(run); u.Steps != 2 || u.ModelCalls != 3 || !u.Answered {
		t.Errorf("%+v", u)
	}
}

// Also where it is the limiter's call that stops the run.
func TestBudgetFinalAnswerStoppedByTheLimiter(t *testing.T) {
	t.Parallel()
	p := newPurse(t, true, func(l *escalation.Limits) { l.ModelCalls = 1 })
	var model llms.Model
	l := limiter(t, escalation.ContextConfig{Window: 1000, Drift: func(ctx context.Context, _ string, _ []string) (float64, error) {
		return 0, askBudget(ctx, model)
	}})
	model, err := middleware.NewModel(answers(1, 1), middleware.ModelConfig{Chain: middleware.Chain(p.Model(), l.Model())})
	if err != nil {
		t.Fatal(err)
	}
	ctx, run := p.start(t, t.Context())
	turns := history(human("task"), worked("a", 30), worked("b", 30), worked("c", 30), worked("d", 30))
	if _, err := model.GenerateContent(ctx, turns); err != nil || p.Used(run).Answered {
		t.Fatalf("%v, %+v", err, p.Used(run))
	}
	if _, err := model.GenerateContent(ctx, turns); err != nil || !p.Used(run).Answered {
		t.Errorf("no final answer: %v", err)
	}
}
