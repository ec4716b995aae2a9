package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

// readings keeps the signals of a run.
type readings struct {
	mu   sync.Mutex
	kept []middleware.Signal
	tool []bool // whether it came from inside of a tool
}

func (r *readings) ReceiveSignal(ctx context.Context, _ *middleware.Run, s middleware.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, inside := middleware.ToolCallFrom(ctx)
	r.kept, r.tool = append(r.kept, s), append(r.tool, inside)
}

func newConfidence(tb testing.TB, f escalation.ConfidenceFunc, o middleware.Observer) *escalation.Confidence {
	tb.Helper()
	c, err := escalation.NewConfidence(escalation.ConfidenceConfig{Func: f, Observer: o})
	if err != nil {
		tb.Fatal(err)
	}

	return c
}

func replied(content string, info map[string]any) *middleware.ModelResult {
	return &middleware.ModelResult{Candidate: ident.MustLabel("primary"), Response: &llms.ContentResponse{
		Choices: []*llms.ContentChoice{{Content: content, GenerationInfo: info}},
	}}
}

func TestConfidenceConfig(t *testing.T) {
	t.Parallel()
	c, err := escalation.NewConfidence(escalation.ConfidenceConfig{})
	var e *escalation.ConfigError
	if c != nil || !errors.As(err, &e) || e.Field() != "Func" || e.Reason() != middleware.ReasonInvalidConfig {
		t.Errorf("%v, %v", c, err)
	}
	for _, c := range []*escalation.Confidence{nil, {}} {
		p := newPurse(t, false, nil)
		ctx, _ := p.start(t, t.Context())
		_, err := c.Model()(answers(1, 1))(ctx, middleware.NewModelCall(nil))
		if !errors.Is(err, middleware.ReasonNilHandler) || c.Faults() != 0 {
			t.Error(err)
		}
	}
}

// What is reported for which reading: one that failed is the lowest.
func TestConfidenceReports(t *testing.T) {
	t.Parallel()
	value := func(v float64, known bool) escalation.ConfidenceFunc {
		return func(context.Context, *middleware.ModelResult) (float64, bool) { return v, known }
	}
	for name, c := range map[string]struct {
		read  escalation.ConfidenceFunc
		want  []float64
		fault middleware.Reason
	}{
		"sure":           {value(1, true), []float64{1}, 0},
		"unsure":         {value(0, true), []float64{0}, 0},
		"in between":     {value(0.625, true), []float64{0.625}, 0},
		"not known":      {value(0.9, false), nil, 0},
		"NaN, not known": {value(math.NaN(), false), nil, 0},
		"NaN":            {value(math.NaN(), true), []float64{0}, middleware.ReasonLowConfidence},
		"above":          {value(1.01, true), []float64{0}, middleware.ReasonLowConfidence},
		"below":          {value(-0.01, true), []float64{0}, middleware.ReasonLowConfidence},
		"infinite":       {value(math.Inf(1), true), []float64{0}, middleware.ReasonLowConfidence},
		"panic":          {func(context.Context, *middleware.ModelResult) (float64, bool) { panic(secret) }, []float64{0}, middleware.ReasonPanic},
		"goexit":         {func(context.Context, *middleware.ModelResult) (float64, bool) { runtime.Goexit(); return 1, true }, []float64{0}, middleware.ReasonPanic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, heard := &log{}, &readings{}
			conf := newConfidence(t, c.read, l)
			ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Receivers: []middleware.SignalReceiver{heard}})
			if err != nil {
				t.Fatal(err)
			}
			defer run.End()
			want := replied("an answer", nil)
			h := conf.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return want, nil })
			var wg sync.WaitGroup
			wg.Go(func() {
				if res, err := h(ctx, middleware.NewModelCall(nil)); res != want || err != nil {
					t.Errorf("the answer has changed: %v, %v", res, err)
				}
			})
			wg.Wait()
			if len(heard.kept) != len(c.want) || (len(c.want) == 1 && heard.kept[0] != middleware.Signal{Kind: middleware.SignalConfidence, Value: c.want[0]}) {
				t.Errorf("reported: %v", heard.kept)
			}
			all := l.all()
			if (c.fault == 0) != (len(all) == 0) || (conf.Faults() == 0) != (c.fault == 0) || run.IgnoredSignals() != 0 {
				t.Fatalf("%v, %d faults", all, conf.Faults())
			}
			for _, d := range all {
				contentFree(t, d)
				if d.Reason != c.fault || d.Verdict != middleware.VerdictAbstain || d.FailMode != middleware.FailClosed || d.Run != run.ID() ||
					d.Label.String() != "primary" || d.Seq != 1 {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// Nothing is read of what is no answer.
func TestConfidenceOfFailures(t *testing.T) {
	t.Parallel()
	heard := &readings{}
	asked := 0
	conf := newConfidence(t, func(context.Context, *middleware.ModelResult) (float64, bool) { asked++; return 0, true }, nil)
	ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Receivers: []middleware.SignalReceiver{heard}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		dead bool
		res  *middleware.ModelResult
		err  error
	}{
		"error":      {false, replied("x", nil), errTool},
		"nil":        {false, nil, nil},
		"empty":      {false, &middleware.ModelResult{}, nil},
		"no choices": {false, &middleware.ModelResult{Response: &llms.ContentResponse{}}, nil},
		"nil choice": {false, &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{nil}}}, nil},
		"canceled":   {true, replied("x", nil), nil},
	} {
		h := conf.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return c.res, c.err })
		ctx := ctx
		if c.dead {
			ctx = dead
		}
		if res, err := h(ctx, middleware.NewModelCall(nil)); res != c.res || err != c.err {
			t.Errorf("%s: %v, %v", name, res, err)
		}
	}
	if asked != 0 || len(heard.kept) != 0 {
		t.Errorf("asked %d times, reported %v", asked, heard.kept)
	}
}

// Answers that are low, again and again, halt the run; where there is an action
// around it, it is that action's.
func TestConfidenceHaltsARun(t *testing.T) {
	t.Parallel()
	heard := &readings{}
	e := newBench(t, nil)
	conf := newConfidence(t, escalation.ConfidenceField("confidence"), nil)
	ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{Workflow: workflow, Receivers: []middleware.SignalReceiver{e, heard}})
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	model, err := middleware.NewModel(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		return replied(`{"answer":"`+secret+`","confidence":0.25}`, nil), nil
	}, middleware.ModelConfig{Chain: middleware.Chain(e.Model(), conf.Model())})
	if err != nil {
		t.Fatal(err)
	}
	tool := e.tool(t, "ask", middleware.ReadOnly, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{}, askBudget(ctx, model)
	})
	for range 2 {
		if err := useBudget(ctx, tool); err != nil {
			t.Fatal(err)
		}
	}
	if err := askBudget(ctx, model); err != nil {
		t.Fatal(err)
	}
	if err := askBudget(ctx, model); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("%v after %d readings", err, len(heard.kept))
	}
	if got := fmt.Sprint(heard.tool); got != "[true true false]" {
		t.Error(got)
	}
	if h, ok := e.Handoff(run); !ok || h.Class() != uncertainty {
		t.Errorf("%v, %v", h, ok)
	}
}

func TestConfidenceField(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for text, want := range map[string]struct {
		value float64
		known bool
	}{
		`{"confidence":0.75}`:                 {0.75, true},
		`{"confidence":0}`:                    {0, true},
		`{"confidence":1}`:                    {1, true},
		`{"confidence":1e-1,"a":{"b":[1]}}`:   {0.1, true},
		" \r\n\t{ \"confidence\" : 0.5 }\n":   {0.5, true},
		``:                                    {0, false},
		`sure`:                                {0, false},
		`0.9`:                                 {0, false},
		`[0.9]`:                               {0, false},
		`{}`:                                  {0, false},
		`{"Confidence":0.9}`:                  {0, false},
		`{"a":{"confidence":0.9}}`:            {0, false},
		`{"confidence":0.9`:                   {0, false},
		`{"confidence":0.9} and more`:         {0, false},
		`{"confidence":0.9}{}`:                {0, false},
		`{"confidence":"0.9"}`:                {nan, true},
		`{"confidence":"high"}`:               {nan, true},
		`{"confidence":null}`:                 {nan, true},
		`{"confidence":true}`:                 {nan, true},
		`{"confidence":[0.9]}`:                {nan, true},
		`{"confidence":90}`:                   {nan, true},
		`{"confidence":-0.1}`:                 {nan, true},
		`{"confidence":1.0001}`:               {nan, true},
		`{"confidence":1e999}`:                {nan, true},
		`{"confidence":0.1,"confidence":0.9}`: {nan, true},
		`{"confidence":0.1,"conf\u0069dence":0.9}`: {nan, true},
	} {
		value, known := escalation.ConfidenceField("confidence")(t.Context(), replied(text, nil))
		if known != want.known || (known && !same(value, want.value)) {
			t.Errorf("%s: %v, %v; want %v", text, value, known, want)
		}
	}
	res := replied(`{"confidence":0.9}`, nil)
	res.Response.Choices = append(res.Response.Choices, &llms.ContentChoice{Content: `{"confidence":0.2}`}, &llms.ContentChoice{Content: "text"})
	if value, known := escalation.ConfidenceField("confidence")(t.Context(), res); value != 0.2 || !known {
		t.Errorf("of several choices: %v, %v", value, known)
	}
}

func same(a, b float64) bool {
	return (math.IsNaN(a) && math.IsNaN(b)) || math.Abs(a-b) < 1e-9
}

// token is the form of a client's structure, with the names of its JSON.
type token struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
}

func TestConfidenceLogProbs(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	type structure struct {
		Content []token `json:"content"`
	}
	mean := math.Exp(-1.5)
	for name, c := range map[string]struct {
		info  map[string]any
		value float64
		known bool
	}{
		"none":               {nil, 0, false},
		"other things":       {map[string]any{"PromptTokens": 3}, 0, false},
		"nil":                {map[string]any{"logprobs": nil}, 0, false},
		"an empty list":      {map[string]any{"logprobs": []float64{}}, 0, false},
		"no content":         {map[string]any{"logprobs": map[string]any{"content": nil}}, 0, false},
		"numbers":            {map[string]any{"LogProbs": []float64{-1, -2}}, mean, true},
		"certain":            {map[string]any{"LogProbs": []float64{0, 0}}, 1, true},
		"impossible":         {map[string]any{"LogProbs": []float64{0, math.Inf(-1)}}, 0, true},
		"numbers of JSON":    {map[string]any{"Logprobs": []any{-1.0, -2.0}}, mean, true},
		"tokens of JSON":     {map[string]any{"logprobs": []any{map[string]any{"logprob": -1.0}, map[string]any{"logprob": -2.0}}}, mean, true},
		"openai's JSON":      {map[string]any{"logprobs": map[string]any{"content": []any{map[string]any{"logprob": -3.0}}}}, math.Exp(-3), true},
		"numbers as content": {map[string]any{"logprobs": map[string]any{"content": []float64{-3}}}, math.Exp(-3), true},
		"a structure":        {map[string]any{"LogProbs": &structure{[]token{{"a", -1}, {"b", -2}}}}, mean, true},
		"tokens":             {map[string]any{"LogProbs": []token{{"a", -1}, {"b", -2}}}, mean, true},
		"a mean":             {map[string]any{"avgLogprobs": -1.5}, mean, true},
		"another mean":       {map[string]any{"AvgLogProbs": -1.5}, mean, true},
		"NaN":                {map[string]any{"LogProbs": []float64{-1, nan}}, nan, true},
		"above 0":            {map[string]any{"LogProbs": []float64{-1, 0.1}}, nan, true},
		"a mean above 0":     {map[string]any{"avgLogprobs": 0.5}, nan, true},
		"a mean of NaN":      {map[string]any{"avgLogprobs": nan}, nan, true},
		"a mean in words":    {map[string]any{"avgLogprobs": "high"}, nan, true},
		"words":              {map[string]any{"logprobs": "high"}, nan, true},
		"a list of words":    {map[string]any{"logprobs": []any{"high"}}, nan, true},
		"tokens without":     {map[string]any{"logprobs": []any{map[string]any{"token": "x"}}}, nan, true},
		"another object":     {map[string]any{"logprobs": map[string]any{"tokens": []any{-1.0}}}, nan, true},
		"content in content": {map[string]any{"logprobs": map[string]any{"content": map[string]any{"content": []any{-1.0}}}}, nan, true},
		"no JSON":            {map[string]any{"logprobs": func() {}}, nan, true},
	} {
		value, known := escalation.ConfidenceLogProbs()(t.Context(), replied("", c.info))
		if known != c.known || (known && !same(value, c.value)) {
			t.Errorf("%s: %v, %v; want %v, %v", name, value, known, c.value, c.known)
		}
	}
	res := replied("", map[string]any{"LogProbs": []float64{-1}})
	res.Response.Choices = append(res.Response.Choices, &llms.ContentChoice{GenerationInfo: map[string]any{"LogProbs": []float64{-2}}})
	if value, _ := escalation.ConfidenceLogProbs()(t.Context(), res); !same(value, math.Exp(-2)) {
		t.Errorf("of several choices: %v", value)
	}
}

// A confidence that is known is in [0, 1] or NaN, whatever the model writes.
func FuzzConfidenceField(f *testing.F) {
	for _, s := range []string{`{"c":0.5}`, `{"c":1e999}`, `{"c":-0}`, `{"c":[`, `{"c":0.1,"c":0.2}`, `{"c":0.5} x`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, known := escalation.ConfidenceField("c")(context.Background(), replied(text, nil))
		if known && !math.IsNaN(value) && !(value >= 0 && value <= 1) {
			t.Fatalf("%v", value)
		}
	})
}

func TestConfidenceConformance(t *testing.T) {
	t.Parallel()
	conformance.Model(t, conformance.ModelSuite{New: func(t *testing.T) middleware.ModelMiddleware {
		t.Helper()

		return middleware.Chain(middleware.RequireRun, newConfidence(t, escalation.ConfidenceField("confidence"), nil).Model())
	}})
}

// The confidence stands inside of the escalation, which hears of it at once.
func ExampleNewConfidence() {
	esc, err := escalation.New(escalation.Config{Observer: middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
		fmt.Println(d.Component, d.Reason.String(), d.Class)
	})})
	if err != nil {
		fmt.Println(err)

		return
	}
	sure, err := escalation.NewConfidence(escalation.ConfidenceConfig{Func: escalation.ConfidenceField("confidence")})
	if err != nil {
		fmt.Println(err)

		return
	}
	texts := []string{`{"diagnosis":"…","confidence":0.93}`, `{"diagnosis":"…","confidence":0.31}`, `{"diagnosis":"…","confidence":"very"}`}
	model, err := middleware.NewModel(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		text := texts[0]
		texts = texts[1:]

		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text}}}}, nil
	}, middleware.ModelConfig{Chain: middleware.Chain(esc.Model(), sure.Model())})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow:  ident.MustWorkflowID("workflow:org.example/triage@1.0.0"),
		Receivers: []middleware.SignalReceiver{esc},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for range 3 {
		_, err := llms.GenerateFromSinglePrompt(ctx, model, "What is it?")
		fmt.Println(err, esc.Counts(run).Uncertainty, sure.Faults())
	}
	// Output:
	// <nil> 0 0
	// escalation failure_counted uncertainty
	// <nil> 1 0
	// escalation failure_counted uncertainty
	// <nil> 2 1
}

func BenchmarkConfidence(b *testing.B) {
	p := newPurse(b, false, nil)
	ctx, _ := p.start(b, b.Context())
	for name, f := range map[string]escalation.ConfidenceFunc{
		"field": escalation.ConfidenceField("confidence"), "log probabilities": escalation.ConfidenceLogProbs(),
	} {
		b.Run(name, func(b *testing.B) {
			res := replied(`{"answer":"rain","confidence":0.9}`, map[string]any{"LogProbs": make([]float64, 100)})
			h := newConfidence(b, f, nil).Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return res, nil })
			call := middleware.NewModelCall(nil)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = h(ctx, call)
			}
		})
	}
}
