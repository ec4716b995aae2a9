package fallback_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := func(change func(*fallback.Candidate)) []fallback.Candidate {
		l := list(does(says("a")), does(says("b")))
		change(&l[1])

		return l
	}
	var missing *fake
	many := make([]fallback.Candidate, 33)
	for name, tc := range map[string]struct {
		cfg    fallback.Config
		field  string
		reason middleware.Reason
	}{
		"none":          {fallback.Config{}, "Candidates: ", middleware.ReasonNoCandidate},
		"too many":      {fallback.Config{Candidates: many}, "Candidates: ", middleware.ReasonInvalidConfig},
		"no label":      {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Label = ident.Label{} })}, "Candidates[1].Label: ", middleware.ReasonInvalidLabel},
		"same label":    {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Label = ident.MustLabel("primary") })}, "Candidates[1].Label: ", middleware.ReasonDuplicateLabel},
		"no provider":   {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Provider = 0 })}, "Candidates[1].Provider: ", middleware.ReasonUnknownProvider},
		"bad provider":  {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Provider = 99 })}, "Candidates[1].Provider: ", middleware.ReasonUnknownProvider},
		"no name":       {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.ModelName = "" })}, "Candidates[1].ModelName: ", middleware.ReasonInvalidConfig},
		"long name":     {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.ModelName = strings.Repeat(secret, 30) })}, "Candidates[1].ModelName: ", middleware.ReasonInvalidConfig},
		"no model":      {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Model = nil })}, "Candidates[1].Model: ", middleware.ReasonInvalidConfig},
		"typed nil":     {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Model = missing })}, "Candidates[1].Model: ", middleware.ReasonInvalidConfig},
		"window":        {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.Window = -1 })}, "Candidates[1].Window: ", middleware.ReasonInvalidConfig},
		"nil option":    {fallback.Config{Candidates: good(func(c *fallback.Candidate) { c.CallOptions = []llms.CallOption{nil} })}, "Candidates[1].CallOptions: ", middleware.ReasonInvalidConfig},
		"short timeout": {fallback.Config{Candidates: list(does(says("a"))), AttemptTimeout: time.Microsecond}, "AttemptTimeout: ", middleware.ReasonInvalidLimit},
		"long timeout":  {fallback.Config{Candidates: list(does(says("a"))), AttemptTimeout: 2 * time.Hour}, "AttemptTimeout: ", middleware.ReasonInvalidLimit},
		"auth":          {fallback.Config{Candidates: list(does(says("a"))), OnAuth: 7}, "OnAuth: ", middleware.ReasonInvalidConfig},
		"around": {fallback.Config{Candidates: list(does(says("a"))), Around: func(middleware.ModelHandler) middleware.ModelHandler {
			return nil
		}}, "Around: ", middleware.ReasonNilHandler},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := fallback.New(tc.cfg)
			if m != nil || err == nil || !strings.Contains(err.Error(), "fallback: "+tc.field) {
				t.Fatalf("got %v, %v; want an error about %q", m, err, tc.field)
			}
			reasonIs(t, err, tc.reason)
			if middleware.ReasonOf(err) != tc.reason {
				t.Errorf("reason %v", middleware.ReasonOf(err))
			}
		})
	}
}

func TestEnums(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"invalid": true}
	for _, c := range fallback.Classes() {
		if seen[c.String()] || c.Reason().String() != c.String() {
			t.Errorf("class %d: %s, reason %s", c, c, c.Reason())
		}
		seen[c.String()] = true
	}
	for _, p := range fallback.Providers() {
		if back, ok := fallback.ParseProvider(p.String()); !ok || back != p {
			t.Errorf("provider %s: %v, %v", p, back, ok)
		}
	}
	if _, ok := fallback.ParseProvider("nobody"); ok {
		t.Error("an unknown provider was found")
	}
	if len(fallback.Classes()) != 13 || len(fallback.Providers()) != 10 {
		t.Errorf("%d classes, %d providers", len(fallback.Classes()), len(fallback.Providers()))
	}
	if fallback.Class(0).String() != "invalid" || fallback.Class(99).Reason() != middleware.ReasonUnknownError ||
		fallback.Provider(0).String() != "invalid" || fallback.AuthAction(9).String() != "invalid" ||
		fallback.AuthStop.String() != "stop" || fallback.AuthNext.String() != "next" {
		t.Error("names outside of the sets")
	}
}

func TestModelIsAModel(t *testing.T) {
	t.Parallel()
	m := build(t, fallback.Config{Candidates: list(does(says("hi")))})
	if got, err := m.Call(t.Context(), "x"); err != nil || got != "hi" {
		t.Fatalf("Call: %q, %v", got, err)
	}
	if m.SupportsReasoning() {
		t.Error("the model does not reason")
	}
	both := list(&fake{reasons: true}, &fake{reasons: true})
	if !build(t, fallback.Config{Candidates: both}).SupportsReasoning() {
		t.Error("both reason")
	}
	both[1].Model = &fake{}
	if build(t, fallback.Config{Candidates: both}).SupportsReasoning() {
		t.Error("only one reasons")
	}
}

func TestModelNameIsTheLastOption(t *testing.T) {
	t.Parallel()
	var got []string
	look := func(err error) ask {
		return func(_ context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			got = append(got, o.Model)
			if err != nil {
				return nil, err
			}
			if o.Temperature != 0.25 {
				t.Errorf("temperature %v", o.Temperature)
			}

			return says("ok")(context.Background(), nil, nil)
		}
	}
	l := list(does(look(status(503))), does(look(nil)))
	l[1].CallOptions = []llms.CallOption{llms.WithTemperature(0.25), llms.WithModel("foreign")}
	m := build(t, fallback.Config{NoRetry: true, Candidates: l})
	if _, err := text(t.Context(), m, llms.WithModel("the-callers"), llms.WithTemperature(1)); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != "model-primary model-backup" {
		t.Errorf("models %v", got)
	}
}

func TestFallbackAnswers(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	m := build(t, fallback.Config{NoRetry: true,
		Candidates: list(does(fails(status(503))), does(says("backup"))), Observer: rec, Tracer: rec,
	})
	res, err := m.Handle(t.Context(), middleware.NewModelCall(hello()))
	if err != nil || res.Candidate.String() != "backup" || res.InputTokens != 3 || res.OutputTokens != 2 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if m.Active().String() != "backup" {
		t.Errorf("active is %v", m.Active())
	}
	got := strings.Join(rec.lines(), "\n")
	if got != `allow proceed primary overloaded #1 error
deny block primary overloaded open
modify substitute backup overloaded #2
allow proceed backup ok #2 success` {
		t.Errorf("decisions:\n%s", got)
	}
	if len(rec.ops) != 3 || rec.ops[0] != middleware.OpFallback || rec.open != 0 {
		t.Errorf("spans %v, %d open", rec.ops, rec.open)
	}
	last := rec.outcomes[2]
	if last.ResponseModel.String() != "backup" || last.InputTokens != 3 || last.Decision.Count != 2 ||
		last.Finish != middleware.FinishStop || last.Decision.Reason != middleware.ReasonOK {
		t.Errorf("the call's outcome: %+v", last)
	}
	if o := rec.outcomes[0].Decision; o.Outcome != middleware.OutcomeError || o.Reason != middleware.ReasonOverloaded {
		t.Errorf("the attempt's outcome: %+v", o)
	}
}

func TestSingleCandidateHasNoFallbackSpan(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	m := build(t, fallback.Config{NoRetry: true, Candidates: list(does(fails(status(503)), says("back"))), Tracer: rec, Observer: rec})
	_, err := text(t.Context(), m)
	if got := classOf(t, err); got != fallback.ClassOverloaded {
		t.Fatalf("class %v", got)
	}
	if len(rec.ops) != 1 || rec.ops[0] != middleware.OpAttempt {
		t.Errorf("spans %v", rec.ops)
	}
	if g := m.Gauges(); len(g) != 1 || g[0].Circuit != middleware.CircuitClosed {
		t.Errorf("a single candidate is never benched: %+v", g)
	}
	want(t, m, "back")
}

func TestUsageOfRejectedAttemptsIsKept(t *testing.T) {
	t.Parallel()
	bad := choice("")
	m := build(t, fallback.Config{NoRetry: true, Candidates: list(
		does(gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{bad}})), does(says("ok")),
	)})
	res, err := m.Handle(t.Context(), middleware.NewModelCall(hello()))
	if err != nil || res.InputTokens != 6 || res.OutputTokens != 4 {
		t.Fatalf("got %+v, %v", res, err)
	}
}

func TestUsageKeys(t *testing.T) {
	t.Parallel()
	type usage struct{ PromptTokens, TotalTokens, CompletionTokens int }
	for name, info := range map[string]map[string]any{
		"openai":    {"PromptTokens": 7, "CompletionTokens": 5, "TotalTokens": 12},
		"anthropic": {"InputTokens": 7, "OutputTokens": 5},
		"googleai":  {"PromptTokens": int32(7), "CompletionTokens": int32(5)},
		"bedrock":   {"input_tokens": int64(7), "output_tokens": float64(5)},
		"vertex":    {"input_tokens": uint32(7), "output_tokens": int32(5)},
		"mistral":   {"usage": usage{7, 12, 5}},
		"pointer":   {"usage": &usage{7, 12, 5}},
	} {
		resp := &llms.ContentResponse{Choices: []*llms.ContentChoice{
			{Content: "a", StopReason: "stop", GenerationInfo: info}, {Content: "b", StopReason: "stop", GenerationInfo: info},
		}}
		m := build(t, fallback.Config{Candidates: list(does(gives(resp)))})
		res, err := m.Handle(t.Context(), middleware.NewModelCall(hello()))
		if err != nil || res.InputTokens != 7 || res.OutputTokens != 5 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for name, info := range map[string]map[string]any{
		"negative": {"PromptTokens": -1}, "text": {"PromptTokens": "9"}, "huge": {"PromptTokens": 1e300},
		"none": {}, "no struct": {"usage": 3}, "no field": {"usage": struct{ X int }{3}}, "nil": {"usage": nil},
		"other field": {"usage": struct{ PromptTokens string }{"3"}},
	} {
		resp := &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a", StopReason: "stop", GenerationInfo: info}}}
		m := build(t, fallback.Config{Candidates: list(does(gives(resp)))})
		if res, err := m.Handle(t.Context(), middleware.NewModelCall(hello())); err != nil || res.InputTokens != 0 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func TestExhausted(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	m := build(t, fallback.Config{NoRetry: true,
		Candidates: list(does(fails(status(503))), does(fails(errSecret)), does(fails(status(404)))), Observer: rec,
	})
	_, err := text(t.Context(), m)
	reasonIs(t, err, middleware.ReasonExhausted)
	e, ok := errors.AsType[*fallback.ExhaustedError](err)
	if !ok || e.Reason() != middleware.ReasonExhausted {
		t.Fatalf("%T", err)
	}
	if got := err.Error(); got != "interlock: fallback: exhausted: primary overloaded, backup unknown, third not_found" {
		t.Errorf("text %q", got)
	}
	a := e.Attempts()
	if len(a) != 3 || a[0].Status != 503 || a[2].Class != fallback.ClassNotFound || a[1].Shared {
		t.Errorf("attempts %+v", a)
	}
	a[0].Status = 0
	if e.Attempts()[0].Status != 503 {
		t.Error("Attempts gives out its own slice")
	}
	for _, target := range []error{errSecret, status(503), middleware.ReasonOverloaded, middleware.ReasonNotFound} {
		if !errors.Is(err, target) {
			t.Errorf("%v is not found", target)
		}
	}
	for _, cause := range e.Unwrap() {
		contentFree(t, cause)
	}
	lines := rec.lines()
	if last := lines[len(lines)-1]; last != "deny block  exhausted" {
		t.Errorf("last decision %q", last)
	}
	// It works again.
	if _, err = text(t.Context(), m); !errors.Is(err, middleware.ReasonExhausted) {
		t.Errorf("second call: %v", err)
	}
}

func TestAtMostSixAttempts(t *testing.T) {
	t.Parallel()
	f := does(fails(status(503)))
	var l []fallback.Candidate
	for name := range strings.SplitSeq("a b c d e f g h", " ") {
		l = append(l, fallback.Candidate{
			Label: ident.MustLabel(name), Provider: fallback.ProviderOther, ModelName: "m", Model: f,
		})
	}
	if _, err := text(t.Context(), build(t, fallback.Config{NoRetry: true, Candidates: l})); !errors.Is(err, middleware.ReasonExhausted) {
		t.Fatal(err)
	}
	if n := f.calls.Load(); n != 6 {
		t.Errorf("%d attempts", n)
	}
}

func TestWhatIsNotMovedOnFrom(t *testing.T) {
	t.Parallel()
	filtered := &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "I can't", StopReason: "content_filter"}}}
	for name, tc := range map[string]struct {
		first ask
		class fallback.Class
	}{
		"auth":            {fails(status(401)), fallback.ClassAuth},
		"forbidden":       {fails(status(403)), fallback.ClassAuth},
		"invalid request": {fails(status(422)), fallback.ClassInvalidRequest},
		"content filter":  {gives(filtered), fallback.ClassContentFilter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := does(says("other"))
			m := build(t, fallback.Config{Candidates: list(does(tc.first), second)})
			_, err := text(t.Context(), m)
			if got := classOf(t, err); got != tc.class {
				t.Fatalf("class %v", got)
			}
			reasonIs(t, err, tc.class.Reason())
			if second.calls.Load() != 0 || m.Active().String() != "primary" {
				t.Errorf("it moved on: %d calls, active %v", second.calls.Load(), m.Active())
			}
		})
	}
}

func TestAuthNext(t *testing.T) {
	t.Parallel()
	m := build(t, fallback.Config{
		Candidates: list(does(fails(status(401))), does(says("other"))), OnAuth: fallback.AuthNext,
	})
	want(t, m, "other")
	if m.Active().String() != "backup" {
		t.Errorf("active %v", m.Active())
	}
}

func TestContextLengthAsksALargerWindowOnly(t *testing.T) {
	t.Parallel()
	long := said("API returned unexpected status code: 400: This model's maximum context length is 8192 tokens.")
	for name, tc := range map[string]struct {
		windows [3]int
		answer  string
	}{
		"larger":     {[3]int{8, 4, 16}, "third"},
		"same":       {[3]int{8, 8, 8}, ""},
		"unknown":    {[3]int{8, 0, 0}, ""},
		"of unknown": {[3]int{0, 100, 100}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := does(fails(long))
			l := list(first, does(says("backup")), does(says("third")))
			l[0].Provider = fallback.ProviderOpenAI
			for i := range l {
				l[i].Window = tc.windows[i]
			}
			m := build(t, fallback.Config{Candidates: l})
			got, err := text(t.Context(), m)
			if got != tc.answer {
				t.Fatalf("got %q, %v", got, err)
			}
			if tc.answer == "" && classOf(t, err) != fallback.ClassContextLength {
				t.Errorf("got %v", err)
			}
			if m.Active().String() != "primary" {
				t.Error("context_length benches")
			}
		})
	}
}

func TestClientsThatDropToolsAreSkipped(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	drops, keeps := does(says("no tools")), does(says("tools"))
	l := list(drops, keeps)
	l[0].Provider = fallback.ProviderCohere
	m := build(t, fallback.Config{Candidates: l, Observer: rec})
	tools := llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f"}}})
	if got, err := text(t.Context(), m, tools); err != nil || got != "tools" {
		t.Fatalf("got %q, %v", got, err)
	}
	if first := rec.lines()[0]; first != "abstain proceed primary ineligible skipped" {
		t.Errorf("decision %q", first)
	}
	want(t, m, "no tools")
	only := build(t, fallback.Config{Candidates: l[:1], Observer: rec})
	_, err := text(t.Context(), only, tools)
	reasonIs(t, err, middleware.ReasonNoCandidate)
	if drops.calls.Load() != 1 {
		t.Error("a client that drops tools was asked")
	}
}

func TestCallerIsNeverMovedOn(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause " + secret)
	for name, first := range map[string]func(stop func()) ask{
		"error": func(stop func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				stop()

				return nil, status(503)
			}
		},
		"nil error": func(stop func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				stop()

				return says("half an answer")(context.Background(), nil, nil)
			}
		},
		"hang": func(stop func()) ask {
			return func(ctx context.Context, _ []llms.MessageContent, _ *llms.CallOptions) (*llms.ContentResponse, error) {
				stop()

				return hangs(ctx, nil, nil)
			}
		},
		"refusal": func(stop func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				stop()

				return nil, middleware.NewDenial(middleware.Refusal{Reason: middleware.ReasonBudgetExceeded})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			second := does(says("other"))
			m := build(t, fallback.Config{Candidates: list(does(first(func() { cancel(cause) })), second)})
			got, err := text(ctx, m)
			if got != "" || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
				t.Fatalf("got %q, %v", got, err)
			}
			reasonIs(t, err, middleware.ReasonCanceled)
			if second.calls.Load() != 0 || m.Active().String() != "primary" {
				t.Error("it moved on")
			}
			// A call under a dead context asks nobody.
			if _, err = text(ctx, m); !errors.Is(err, middleware.ReasonCanceled) || second.calls.Load() != 0 {
				t.Errorf("second call: %v", err)
			}
		})
	}
}

func TestDenialPassesThroughAsItIs(t *testing.T) {
	t.Parallel()
	denial := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentBudget, Reason: middleware.ReasonBudgetExceeded})
	second := does(says("other"))
	m := build(t, fallback.Config{
		Candidates: list(does(says("x")), second),
		Around: func(middleware.ModelHandler) middleware.ModelHandler {
			return func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				return nil, errors.Join(errSecret, denial)
			}
		},
	})
	_, err := text(t.Context(), m)
	if err != error(denial) {
		t.Fatalf("got %v", err)
	}
	if second.calls.Load() != 0 || m.Active().String() != "primary" {
		t.Error("a refusal was routed around")
	}
}

func TestWhatNeverLeaves(t *testing.T) {
	t.Parallel()
	one := func(c *llms.ContentChoice) ask {
		return gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{c}})
	}
	call := func(arguments, stop string) ask {
		return one(&llms.ContentChoice{StopReason: stop, ToolCalls: []llms.ToolCall{
			{ID: "1", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: arguments}},
		}})
	}
	for name, first := range map[string]ask{
		"nothing":       gives(nil),
		"no choices":    gives(&llms.ContentResponse{}),
		"nil choice":    gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{nil}}),
		"later nil":     gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{choice("a"), nil}}),
		"empty":         one(&llms.ContentChoice{StopReason: "stop"}),
		"cut arguments": call(`{"__arg1":"rm -rf /tm`, "tool_calls"),
		"length":        call(`{"__arg1":"x"}`, "length"),
		"max_tokens":    call(`{"__arg1":"x"}`, "max_tokens"),
		"merged":        call(`{"x":1}{"y":2}`, "tool_calls"),
		"nil function":  one(&llms.ContentChoice{StopReason: "tool_calls", ToolCalls: []llms.ToolCall{{ID: "1"}}}),
		"no name":       one(&llms.ContentChoice{ToolCalls: []llms.ToolCall{{FunctionCall: &llms.FunctionCall{}}}}),
		"legacy cut":    one(&llms.ContentChoice{FuncCall: &llms.FunctionCall{Name: "f", Arguments: `{"a`}}),
		"legacy length": one(&llms.ContentChoice{FuncCall: &llms.FunctionCall{Name: "f"}, StopReason: "length"}),
		"panic": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			panic(secret)
		},
		"partial + error": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			return &llms.ContentResponse{}, status(500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, build(t, fallback.Config{Candidates: list(does(first), does(says("whole")))}), "whole")
			resp, err := build(t, fallback.Config{Candidates: list(does(first))}).GenerateContent(t.Context(), hello())
			if resp != nil || err == nil {
				t.Fatalf("got %v, %v", resp, err)
			}
			contentFree(t, err)
			if c := classOf(t, err); c != fallback.ClassBadResponse && name != "partial + error" {
				t.Errorf("class %v", c)
			}
		})
	}
}

func TestPanicIsKept(t *testing.T) {
	t.Parallel()
	m := build(t, fallback.Config{Candidates: list(does(
		func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			panic(errSecret)
		},
	))})
	_, err := text(t.Context(), m)
	reasonIs(t, err, middleware.ReasonPanic)
	if p, ok := errors.AsType[*middleware.PanicError](err); !ok || !errors.Is(err, errSecret) || len(p.Stack()) == 0 {
		t.Errorf("the panic's value is not reachable: %v", err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		classify func(fallback.AttemptFailure) fallback.Class
		class    fallback.Class
	}{
		"own":     {func(f fallback.AttemptFailure) fallback.Class { return fallback.ClassInvalidRequest }, fallback.ClassInvalidRequest},
		"zero":    {func(fallback.AttemptFailure) fallback.Class { return 0 }, fallback.ClassOverloaded},
		"invalid": {func(fallback.AttemptFailure) fallback.Class { return 99 }, fallback.ClassOverloaded},
		"panic":   {func(fallback.AttemptFailure) fallback.Class { panic(secret) }, fallback.ClassOverloaded},
	} {
		var got fallback.AttemptFailure
		m := build(t, fallback.Config{Candidates: list(does(fails(status(503)))), Classify: func(f fallback.AttemptFailure) fallback.Class {
			got = f

			return tc.classify(f)
		}})
		_, err := text(t.Context(), m)
		if c := classOf(t, err); c != tc.class {
			t.Errorf("%s: class %v", name, c)
		}
		if got.Status != 503 || got.Class != fallback.ClassOverloaded || got.Candidate.String() != "primary" || got.Err == nil {
			t.Errorf("%s: asked about %+v", name, got)
		}
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	var seen []string
	m := build(t, fallback.Config{NoRetry: true,
		Candidates: list(does(fails(status(500))), does(says("b"))),
		Around: func(next middleware.ModelHandler) middleware.ModelHandler {
			return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
				seen = append(seen, call.Candidate().String())
				if call.Attempt() != len(seen) {
					t.Errorf("attempt %d", call.Attempt())
				}
				res, err := next(ctx, call)
				if _, again := next(ctx, call); again == nil {
					t.Error("next answered twice in one attempt")
				}

				return res, err
			}
		},
	})
	want(t, m, "b")
	if strings.Join(seen, " ") != "primary backup" {
		t.Errorf("seen %v", seen)
	}
	for name, around := range map[string]middleware.ModelMiddleware{
		"panics": func(middleware.ModelHandler) middleware.ModelHandler {
			return func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { panic(secret) }
		},
		"nil": func(middleware.ModelHandler) middleware.ModelHandler {
			return func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, nil }
		},
		"no response": func(middleware.ModelHandler) middleware.ModelHandler {
			return func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				return &middleware.ModelResult{}, nil
			}
		},
		"loses the context": func(next middleware.ModelHandler) middleware.ModelHandler {
			return func(_ context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
				return next(context.Background(), call)
			}
		},
	} {
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(does(says("a"))), Around: around})
		if got, err := text(t.Context(), m); err == nil || got != "" {
			t.Errorf("%s: got %q, %v", name, got, err)
		} else {
			contentFree(t, err)
		}
	}
}

func TestOrderIsChecked(t *testing.T) {
	t.Parallel()
	late := middleware.At(middleware.StageSpan, func(next middleware.ModelHandler) middleware.ModelHandler { return next })
	m := build(t, fallback.Config{Candidates: list(does(says("a")))})
	_, err := late(m.Handle)(t.Context(), middleware.NewModelCall(hello()))
	reasonIs(t, err, middleware.ReasonUnsafeOrder)
	call := middleware.NewModelCall(hello())
	for range 2 { // the mark is taken back
		if _, err := m.Handle(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Handle(t.Context(), nil); !errors.Is(err, middleware.ReasonInvalidConfig) {
		t.Errorf("nil call: %v", err)
	}
}

func TestBrokenOptions(t *testing.T) {
	t.Parallel()
	f := does(says("a"))
	boom := func(*llms.CallOptions) { panic(secret) }
	m := build(t, fallback.Config{Candidates: list(f)})
	_, err := text(t.Context(), m, boom)
	reasonIs(t, err, middleware.ReasonPanic)
	l := list(f, does(says("b")))
	l[0].CallOptions = []llms.CallOption{boom}
	want(t, build(t, fallback.Config{Candidates: l}), "b")
	if f.calls.Load() != 0 {
		t.Error("the model was asked with options that panic")
	}
}

// brokenError panics when it is looked at.
type brokenError struct{}

func (brokenError) Error() string { panic(secret) }

func TestErrorThatPanics(t *testing.T) {
	t.Parallel()
	m := build(t, fallback.Config{Candidates: list(does(fails(brokenError{})), does(says("b")))})
	want(t, m, "b")
}
