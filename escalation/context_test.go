package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

func TestContextConfig(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		cfg    escalation.ContextConfig
		reason error
		field  string
	}{
		"no window":         {escalation.ContextConfig{}, escalation.ErrInvalidConfig, "Window must be in [1, 2^30]"},
		"negative window":   {escalation.ContextConfig{Window: -1}, escalation.ErrInvalidConfig, "Window"},
		"huge window":       {escalation.ContextConfig{Window: 1<<30 + 1}, escalation.ErrInvalidConfig, "Window"},
		"negative fill":     {escalation.ContextConfig{Window: 1, MaxFill: -0.1}, escalation.ErrInvalidThreshold, "MaxFill must be in (0, 1]"},
		"fill above 1":      {escalation.ContextConfig{Window: 1, MaxFill: 1.1}, escalation.ErrInvalidThreshold, "MaxFill"},
		"fill NaN":          {escalation.ContextConfig{Window: 1, MaxFill: math.NaN()}, escalation.ErrInvalidThreshold, "MaxFill"},
		"negative drift":    {escalation.ContextConfig{Window: 1, DriftLimit: -0.1}, escalation.ErrInvalidThreshold, "DriftLimit must be in (0, 1]"},
		"drift above 1":     {escalation.ContextConfig{Window: 1, DriftLimit: 2}, escalation.ErrInvalidThreshold, "DriftLimit"},
		"drift NaN":         {escalation.ContextConfig{Window: 1, DriftLimit: math.NaN()}, escalation.ErrInvalidThreshold, "DriftLimit"},
		"negative summary":  {escalation.ContextConfig{Window: 1, MaxSummary: -1}, escalation.ErrInvalidConfig, "MaxSummary must be in [1, 65536]"},
		"long summary":      {escalation.ContextConfig{Window: 1, MaxSummary: 1 << 17}, escalation.ErrInvalidConfig, "MaxSummary"},
		"negative timeout":  {escalation.ContextConfig{Window: 1, Timeout: -1}, escalation.ErrInvalidConfig, "Timeout must be in (0, 5 min]"},
		"long timeout":      {escalation.ContextConfig{Window: 1, Timeout: time.Hour}, escalation.ErrInvalidConfig, "Timeout"},
		"smallest possible": {escalation.ContextConfig{Window: 1, MaxFill: 1, DriftLimit: 1, MaxSummary: 1, Timeout: 1}, nil, ""},
	} {
		l, err := escalation.NewContextLimiter(x.cfg)
		if (l == nil) != (x.reason != nil) || !errors.Is(err, x.reason) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
		if err != nil && !strings.Contains(err.Error(), x.field) {
			t.Errorf("%s: %v does not name %q", name, err, x.field)
		}
	}
}

func TestContextConformance(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]escalation.ContextConfig{
		"wide":   {Window: 1000},
		"narrow": {Window: 1, Summary: brief}, // each call is past the limit and nothing can be cut
		"broken": {Window: 1, Drift: func(context.Context, string, []string) (float64, error) { panic(secret) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Model(t, conformance.ModelSuite{
				New: func(t *testing.T) middleware.ModelMiddleware { t.Helper(); return limiter(t, cfg).Model() },
			})
		})
	}
	for name, l := range map[string]*escalation.ContextLimiter{"nil": nil, "zero": {}} {
		h := l.Model()(replying)
		ctx, _ := newBench(t, nil).start(t, t.Context())
		if _, err := h(ctx, middleware.NewModelCall(nil)); !errors.Is(err, middleware.ReasonNilHandler) {
			t.Errorf("%s limiter: %v", name, err)
		}
		if n := l.Chunks(nil); n != (escalation.ChunkCounts{}) {
			t.Errorf("%s limiter: %+v", name, n)
		}
	}
}

func brief(context.Context, []llms.MessageContent) (string, error) { return "brief", nil }

func replying(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
	return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "ok"}}}}, nil
}

func limiter(tb testing.TB, cfg escalation.ContextConfig) *escalation.ContextLimiter {
	tb.Helper()
	l, err := escalation.NewContextLimiter(cfg)
	if err != nil {
		tb.Fatal(err)
	}

	return l
}

// limited is a limiter in a run, with what reached the model last.
type limited struct {
	*escalation.ContextLimiter

	log     *log
	ctx     context.Context //nolint:containedctx // of the test
	run     *middleware.Run
	handler middleware.ModelHandler
	sent    []llms.MessageContent
	counted int // what the provider says it counted
}

// newLimited makes one without drift, unless cfg speaks of it.
func newLimited(tb testing.TB, cfg escalation.ContextConfig) *limited {
	tb.Helper()
	x := &limited{log: &log{}}
	cfg.Observer = x.log
	if cfg.Drift == nil && cfg.DriftLimit == 0 {
		cfg.Drift = func(context.Context, string, []string) (float64, error) { return 0, nil }
	}
	x.ContextLimiter = limiter(tb, cfg)
	x.ctx, x.run = newBench(tb, nil).start(tb, tb.Context())
	x.handler = x.Model()(func(_ context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
		x.sent = c.Messages()

		return &middleware.ModelResult{InputTokens: x.counted}, nil
	})

	return x
}

// ask sends a history and returns what the model saw, short, and the last reading.
func (x *limited) ask(tb testing.TB, messages []llms.MessageContent, options ...llms.CallOption) (string, middleware.Decision) {
	tb.Helper()
	before := len(x.log.all())
	if _, err := x.handler(x.ctx, middleware.NewModelCall(messages, options...)); err != nil {
		tb.Fatal(err)
	}

	return sketch(x.sent), x.log.all()[before]
}

// sketch is a history with one word per message: its first part's first word, calls as their ids.
func sketch(messages []llms.MessageContent) string {
	var words []string
	for _, m := range messages {
		word := "(empty)"
		if len(m.Parts) > 0 {
			word = fmt.Sprintf("%T", m.Parts[0])
			switch p := m.Parts[0].(type) {
			case llms.TextContent:
				word, _, _ = strings.Cut(p.Text, " ")
				if summary, ok := strings.CutPrefix(p.Text, lead); ok {
					word = "<" + summary + ">"
				}
			case llms.ToolCall:
				word = p.ID + "?"
			case llms.ToolCallResponse:
				word = p.ToolCallID + "!"
			}
		}
		words = append(words, word)
	}

	return strings.Join(words, " ")
}

const lead = "[Summary of earlier turns that were left out]\n"

func says(role llms.ChatMessageType, text string) llms.MessageContent {
	return llms.TextParts(role, text)
}

func human(text string) llms.MessageContent  { return says(llms.ChatMessageTypeHuman, text) }
func system(text string) llms.MessageContent { return says(llms.ChatMessageTypeSystem, text) }
func spoken(text string) llms.MessageContent { return says(llms.ChatMessageTypeAI, text) }

// worked is one turn: a call and its result, of size bytes in all (at least 30).
func worked(id string, size int) []llms.MessageContent {
	return parallel(size, id)
}

// parallel is one turn of several calls at once.
func parallel(size int, ids ...string) []llms.MessageContent {
	calls := llms.MessageContent{Role: llms.ChatMessageTypeAI}
	turn := []llms.MessageContent{calls}
	for _, id := range ids {
		size -= 2*len(id) + len("look") + len(`{}`)
		turn[0].Parts = append(turn[0].Parts, llms.ToolCall{
			ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "look", Arguments: `{}`},
		})
		turn = append(turn, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: id, Content: "."},
		}})
		size--
	}
	last, _ := turn[len(turn)-1].Parts[0].(llms.ToolCallResponse)
	last.Content += strings.Repeat(".", max(size, 0))
	turn[len(turn)-1].Parts[0] = last

	return turn
}

func history(parts ...any) []llms.MessageContent {
	var all []llms.MessageContent
	for _, p := range parts {
		switch p := p.(type) {
		case llms.MessageContent:
			all = append(all, p)
		case []llms.MessageContent:
			all = append(all, p...)
		}
	}

	return all
}

// exactly is a text of size bytes that begins with a word.
func exactly(word string, size int) string { return word + " " + strings.Repeat(".", size-len(word)-1) }

// Window 1000 and the default MaxFill: the limit is 400 tokens, 1,200 bytes; a
// cut goes down to 900 bytes.
func TestContextCut(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000})
	h := history(system(exactly("sys", 50)), human(exactly("task", 50)))
	const size = 100
	for i := range 11 { // 1,200 bytes: exactly the limit
		h = append(h, worked(fmt.Sprintf("c%02d", i), size)...)
	}
	got, d := x.ask(t, h)
	if got != sketch(h) || d.Verdict != middleware.VerdictAllow || d.Reason != middleware.ReasonOK || d.Fill != 0.4 || d.Count != 0 {
		t.Fatalf("at the limit: %s, %+v", got, d)
	}
	h = append(h, worked("c11", size)...)
	got, d = x.ask(t, h)
	const cut = "sys task c04? c04! c05? c05! c06? c06! c07? c07! c08? c08! c09? c09! c10? c10! c11? c11!"
	if got != cut || d.Verdict != middleware.VerdictModify || d.Reason != middleware.ReasonContextFull || d.Count != 4 ||
		d.Fill != 0.434 || d.Action != middleware.ActionSubstitute || d.Turn != 0 || d.Run != x.run.ID() || d.Workflow != workflow {
		t.Fatalf("past the limit: %s, %+v", got, d)
	}
	// The executor sends it all again: the same is left out, and no event of it.
	h = append(h, worked("c12", size)...)
	got, d = x.ask(t, h)
	if got != cut+" c12? c12!" || d.Verdict != middleware.VerdictModify || d.Reason != middleware.ReasonOK || d.Count != 4 || d.Fill != 0.334 {
		t.Fatalf("after the cut: %s, %+v", got, d)
	}
	if n := x.Chunks(x.run); n != (escalation.ChunkCounts{Known: 13, InWindow: 9, Cut: 4, Triggered: 1}) {
		t.Errorf("%+v", n)
	}
	for range 3 {
		h = append(h, worked(fmt.Sprintf("d%02d", len(h)), size)...)
		got, d = x.ask(t, h)
	}
	if d.Count != 8 || d.Reason != middleware.ReasonContextFull || !strings.HasPrefix(got, "sys task c08? c08!") {
		t.Errorf("the second cut: %s, %+v", got, d)
	}
	if n := x.Chunks(x.run); n != (escalation.ChunkCounts{Known: 16, InWindow: 8, Cut: 8, Triggered: 2}) {
		t.Errorf("%+v", n)
	}
	x.run.End()
	if n := x.Chunks(x.run); n != (escalation.ChunkCounts{}) {
		t.Errorf("after the end: %+v", n)
	}
}

// What stays and what goes, in one call each. The limit is 1,200 bytes.
func TestContextShortens(t *testing.T) {
	t.Parallel()
	sys, task := system(exactly("sys", 50)), human(exactly("task", 50))
	full, drifted := middleware.ReasonContextFull, middleware.ReasonContextDrift
	for name, x := range map[string]struct {
		history []llms.MessageContent
		drift   float64
		want    string
		reason  middleware.Reason
		count   int
	}{
		"parallel calls go together": {
			history: history(sys, task, parallel(600, "a", "b", "c"), worked("d", 300), worked("e", 300)),
			want:    "sys task d? d! e? e!", reason: full, count: 1,
		},
		"of the four newest only what is needed": {
			history: history(task, worked("a", 300), worked("b", 300), worked("c", 300), worked("d", 300)),
			want:    "task b? b! c? c! d? d!", reason: full, count: 1,
		},
		"the last human message stays in its place": {
			history: history(task, worked("a", 500), human("now this"), worked("b", 500), worked("c", 500)),
			want:    "task now b? b! c? c!", reason: full, count: 1,
		},
		"system messages stay where they are": {
			history: history(sys, task, worked("a", 500), system("mind this"), worked("b", 500), system("and that"), worked("c", 500), system("end")),
			want:    "sys task mind b? b! and c? c! end", reason: full, count: 1,
		},
		"what stands before the task stays": {
			history: history(spoken("hello"), sys, task, spoken(exactly("a", 900)), spoken(exactly("b", 900))),
			want:    "hello sys task b", reason: full, count: 1,
		},
		"results in one message, or in the older role": {
			history: history(task, spoken(exactly("long", 1000)), llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.TextContent{Text: "both"}, llms.ToolCall{ID: "a"}, llms.ToolCall{ID: "b"},
			}}, llms.MessageContent{Role: llms.ChatMessageTypeFunction, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: "a", Content: "1"}, llms.ToolCallResponse{ToolCallID: "b", Content: exactly("2", 200)},
			}}),
			want: "task both a!", reason: full, count: 1,
		},
		"results under a human's role": {
			history: history(task, spoken(exactly("long", 1000)), llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.ToolCall{ID: "a"},
			}}, llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
				llms.ToolCallResponse{ToolCallID: "a", Content: exactly("1", 200)},
			}}),
			want: "task a? a!", reason: full, count: 1,
		},
		"one text holds everything": {
			history: history(human(exactly("all", 5000))), want: "all", reason: full,
		},
		"no human message at all": {
			history: history(sys, spoken(exactly("a", 2000)), spoken("b")), want: "sys a b", reason: full,
		},
		"only the newest turn": {
			history: history(task, worked("a", 2000)), want: "task a? a!", reason: full,
		},
		"never below the limit: the four newest stay": {
			history: history(human(exactly("task", 1300)), worked("a", 50), worked("b", 50), worked("c", 50), worked("d", 50), worked("e", 50)),
			want:    "task b? b! c? c! d? d! e? e!", reason: full, count: 1,
		},
		"never below the limit and past the window: only the newest": {
			history: history(human(exactly("task", 1300)), worked("a", 700), worked("b", 700), worked("c", 700), worked("d", 700), worked("e", 50)),
			want:    "task c? c! d? d! e? e!", reason: full, count: 2,
		},
		"drift": {
			history: history(task, worked("a", 50), worked("b", 50), worked("c", 50), worked("d", 50), worked("e", 50)), drift: 0.9,
			want: "task b? b! c? c! d? d! e? e!", reason: drifted, count: 1,
		},
		"drift at the limit": {
			history: history(task, worked("a", 50), worked("b", 50), worked("c", 50), worked("d", 50), worked("e", 50)), drift: 0.85,
			want: "task a? a! b? b! c? c! d? d! e? e!", reason: middleware.ReasonOK,
		},
		"drift of what cannot be shortened": {
			history: history(task, worked("a", 50), worked("b", 50), worked("c", 50), worked("d", 50)), drift: 0.9,
			want: "task a? a! b? b! c? c! d? d!", reason: drifted,
		},
		"an image is no text": {
			history: history(task, llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
				llms.BinaryContent{MIMEType: "image/png", Data: make([]byte, 1<<20)},
			}}),
			want: "task llms.BinaryContent", reason: full,
		},
		"nothing": {want: "", reason: middleware.ReasonOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, escalation.ContextConfig{
				Window: 1000, Drift: func(context.Context, string, []string) (float64, error) { return x.drift, nil },
			})
			got, d := l.ask(t, x.history)
			if got != x.want || d.Reason != x.reason || d.Count != x.count || d.Drift != x.drift ||
				(d.Verdict == middleware.VerdictModify) != (x.count > 0) {
				t.Errorf("%s, %+v; want %s", got, d, x.want)
			}
		})
	}
}

// Past both limits there are two decisions, and the readings are in the first.
func TestContextBothLimits(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{
		Window: 1000, Drift: func(context.Context, string, []string) (float64, error) { return 1, nil },
	})
	x.ask(t, history(human("task"), worked("a", 300), worked("b", 300), worked("c", 300), worked("d", 300), worked("e", 300)))
	got := x.log.all()
	if len(got) != 2 || got[0].Reason != middleware.ReasonContextFull || got[1].Reason != middleware.ReasonContextDrift ||
		got[0].Drift != 1 || got[0].Fill == 0 || got[1].Drift != 0 || got[1].Fill != 0 || got[0].Seq >= got[1].Seq {
		t.Errorf("%+v", got)
	}
}

// The drift limit cuts once in a while, not one turn per call.
func TestContextDriftCutsInSteps(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{
		Window: 1 << 20, Drift: func(context.Context, string, []string) (float64, error) { return 1, nil },
	})
	h := history(human("task"))
	var counts []int
	for i := range 14 {
		h = append(h, worked(fmt.Sprintf("c%d", i), 50)...)
		_, d := x.ask(t, h)
		counts = append(counts, d.Count)
	}
	if want := []int{0, 0, 0, 0, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9}; !slices.Equal(counts, want) {
		t.Errorf("%v, want %v", counts, want)
	}
	if n := x.log.count(middleware.ReasonContextDrift); n != 11 {
		t.Errorf("%d calls were past the limit, want 11", n)
	}
}

// A history that does not go on with what was cut is judged anew.
func TestContextOtherHistories(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000})
	first := history(human("task"), worked("a", 700), worked("b", 700), worked("c", 500), worked("d", 100))
	got, _ := x.ask(t, first)
	const cut = "task c? c! d? d!"
	if got != cut {
		t.Fatal(got)
	}
	for name, y := range map[string]struct {
		history []llms.MessageContent
		want    string
	}{
		"another task":           {history(human("other"), worked("a", 700), worked("b", 100)), "other a? a! b? b!"},
		"another first turn":     {history(human("task"), worked("z", 700), worked("b", 100)), "task z? z! b? b!"},
		"no more than was cut":   {history(human("task"), worked("a", 700), worked("b", 700)), "task b? b!"},
		"another second turn":    {history(human("task"), worked("a", 700), worked("y", 300), worked("c", 100)), "task a? a! y? y! c? c!"},
		"a result differs":       {history(human("task"), worked("a", 700), worked("b", 300), worked("c", 100)), "task a? a! b? b! c? c!"},
		"another end, as before": {history(human("task"), worked("a", 700), worked("b", 700), worked("x", 100)), "task x? x!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := newLimited(t, escalation.ContextConfig{Window: 1000})
			z.ask(t, first)
			if got, _ := z.ask(t, y.history); got != y.want {
				t.Errorf("%s, want %s", got, y.want)
			}
		})
	}
	// Conversations of one run do not disturb each other, up to sixteen.
	for i := range 15 {
		x.ask(t, history(human(fmt.Sprint("task", i)), worked("a", 50)))
	}
	if got, d := x.ask(t, first); got != cut || d.Reason != middleware.ReasonOK {
		t.Errorf("%s, %+v", got, d)
	}
	for i := range 16 {
		x.ask(t, history(human(fmt.Sprint("task", i)), worked("a", 50)))
	}
	if _, d := x.ask(t, first); d.Reason != middleware.ReasonContextFull {
		t.Errorf("a conversation that was let go is judged anew: %+v", d)
	}
	// Another run knows nothing of it.
	ctx, _ := newBench(t, nil).start(t, t.Context())
	if _, err := x.handler(ctx, middleware.NewModelCall(first[:3])); err != nil || sketch(x.sent) != "task a? a!" {
		t.Errorf("%s, %v", sketch(x.sent), err)
	}
}

// The last human message is kept in the middle of what is cut, also when another
// one follows, until the next cut.
func TestContextLastHuman(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000})
	h := history(human("task"), worked("a", 400), human("second"), worked("b", 400), worked("c", 100), worked("d", 100),
		worked("e", 100), worked("f", 100), worked("g", 100), worked("h", 100))
	const rest = "c? c! d? d! e? e! f? f! g? g! h? h!"
	if got, d := x.ask(t, h); got != "task second "+rest || d.Count != 2 {
		t.Fatalf("%s, %+v", got, d)
	}
	if n := x.Chunks(x.run); n != (escalation.ChunkCounts{Known: 9, InWindow: 7, Cut: 2, Triggered: 1}) {
		t.Errorf("%+v", n)
	}
	h = append(h, human("third"))
	if got, d := x.ask(t, h); got != "task second "+rest+" third" || d.Count != 2 {
		t.Fatalf("%s, %+v", got, d)
	}
	h = append(h, worked("z", 700)...)
	if got, d := x.ask(t, h); got != "task g? g! h? h! third z? z!" || d.Count != 7 {
		t.Fatalf("%s, %+v", got, d)
	}
}

// Calls of successive turns that are equal are put into one message by
// langchaingo's agent: the newest chunk changes from call to call.
func TestContextGrowingTurn(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000})
	h := history(human("task"), worked("a", 700), worked("b", 400), worked("c", 200))
	if got, _ := x.ask(t, h); got != "task b? b! c? c!" {
		t.Fatal(got)
	}
	h = history(human("task"), worked("a", 700), worked("b", 400), parallel(400, "c", "d"))
	if got, d := x.ask(t, h); got != "task b? b! c? c! d!" || d.Reason != middleware.ReasonOK {
		t.Fatalf("%s, %+v", got, d)
	}
}

func TestContextSize(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000})
	h := history(human(exactly("task", 601)))
	if _, d := x.ask(t, h); d.Fill != 0.201 { // 200⅓ tokens
		t.Errorf("rounded up: %v", d.Fill)
	}
	offer := llms.FunctionDefinition{Name: exactly("look", 300), Description: exactly("looks", 300)}
	_, tools := x.ask(t, h, llms.WithTools([]llms.Tool{{Type: "function", Function: &offer}}))
	_, functions := x.ask(t, h, llms.WithFunctions([]llms.FunctionDefinition{offer}))
	if tools.Fill < 0.401 || tools.Fill > 0.405 || tools.Fill != functions.Fill || tools.Reason != middleware.ReasonContextFull {
		t.Errorf("with a tool %v, with a function %v", tools.Fill, functions.Fill)
	}
	// A provider's count scales what follows, in bounds.
	for _, y := range []struct {
		counted int
		want    float64
	}{{402, 0.402}, {0, 0.402}, {100, 0.1}, {50, 0.1}, {5000, 0.603}, {201, 0.201}} {
		x.counted = y.counted
		x.ask(t, h)
		if _, d := x.ask(t, h); math.Abs(d.Fill-y.want) > 0.0005 {
			t.Errorf("%d tokens counted: fill %v, want %v", y.counted, d.Fill, y.want)
		}
	}
	// A trifle says nothing.
	x.counted = 500
	x.ask(t, history(human(exactly("task", 180))))
	x.counted = 0
	if _, d := x.ask(t, h); d.Fill != 0.201 {
		t.Errorf("after a trifle: %v", d.Fill)
	}
}

// Clients count in places of their own, and one counts what a cache held apart.
func TestContextProviderUsage(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]map[string]any{
		"openai":    {"PromptTokens": 402, "PromptCachedTokens": 300},
		"anthropic": {"InputTokens": 2, "CacheCreationInputTokens": 100, "CacheReadInputTokens": 300},
		"googleai":  {"PromptTokens": int32(402)},
		"none":      nil,
	} {
		log := &log{}
		l := limiter(t, escalation.ContextConfig{Window: 1000, Observer: log})
		ctx, _ := newBench(t, nil).start(t, t.Context())
		h := l.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
			return &middleware.ModelResult{
				Response:    &llms.ContentResponse{Choices: []*llms.ContentChoice{{GenerationInfo: info}}},
				InputTokens: 402,
			}, nil
		})
		for range 2 {
			if _, err := h(ctx, middleware.NewModelCall(history(human(exactly("task", 601))))); err != nil {
				t.Fatal(err)
			}
		}
		if d := log.all()[1]; math.Abs(d.Fill-0.402) > 0.0005 {
			t.Errorf("%s: %v", name, d.Fill)
		}
	}
}

// A summary stands right behind the task, is made once per cut, and of what was
// not told yet.
func TestContextSummary(t *testing.T) {
	t.Parallel()
	var asked []string
	x := newLimited(t, escalation.ContextConfig{Window: 1000, Summary: func(_ context.Context, dropped []llms.MessageContent) (string, error) {
		asked = append(asked, sketch(dropped))
		for i := range dropped { // copies: nothing of it reaches the caller's messages
			dropped[i].Parts[0] = llms.TextContent{Text: "spoiled"}
		}

		return fmt.Sprint("part", len(asked), "\n"), nil
	}})
	h := history(system("sys"), human("task"))
	var got string
	for i := range 14 {
		h = append(h, worked(fmt.Sprintf("c%d", i), 150)...)
		got, _ = x.ask(t, h)
	}
	if got != "sys task <part3> c9? c9! c10? c10! c11? c11! c12? c12! c13? c13!" {
		t.Errorf("%s", got)
	}
	if d := cmp.Diff([]string{"c0? c0! c1? c1! c2? c2!", "<part1> c3? c3! c4? c4! c5? c5!", "<part2> c6? c6! c7? c7! c8? c8!"}, asked); d != "" {
		t.Error(d)
	}
	if strings.Contains(fmt.Sprint(h), "spoiled") {
		t.Error("the caller's messages were changed")
	}
	for _, d := range x.log.all() {
		if d.Fill > 0.5 || d.Reason == middleware.ReasonSummaryFailed {
			t.Errorf("%+v", d)
		}
	}
}

// There is room for the longest summary, even if the newest turns are large.
func TestContextSummaryHasRoom(t *testing.T) {
	t.Parallel()
	x := newLimited(t, escalation.ContextConfig{Window: 1000, Summary: func(context.Context, []llms.MessageContent) (string, error) {
		return strings.Repeat("x", 300-len(lead)), nil
	}})
	h := history(human("task"), worked("a", 250), worked("b", 350), worked("c", 350), worked("d", 350))
	if got, d := x.ask(t, h); !strings.HasSuffix(got, "> c? c! d? d!") || d.Count != 2 {
		t.Errorf("%s, %+v", got, d)
	}
	if got, d := x.ask(t, h); !strings.HasSuffix(got, "> c? c! d? d!") || d.Reason != middleware.ReasonOK || d.Fill > 0.4 {
		t.Errorf("%s, %+v", got, d)
	}
}

// The breaker hears of each call past a limit, whether or not it could be
// shortened.
func TestContextTellsTheBreaker(t *testing.T) {
	t.Parallel()
	far := func(context.Context, string, []string) (float64, error) { return 0.9, nil }
	full, drifted := middleware.ReasonContextFull, middleware.ReasonContextDrift
	for name, x := range map[string]struct {
		cfg     escalation.ContextConfig
		history []llms.MessageContent
		calls   int
		want    []middleware.Reason
	}{
		"full":         {escalation.ContextConfig{Window: 100}, history(human(exactly("all", 600))), 2, []middleware.Reason{full}},
		"full, once":   {escalation.ContextConfig{Window: 100}, history(human(exactly("all", 600))), 1, nil},
		"not full":     {escalation.ContextConfig{Window: 1000}, history(human(exactly("all", 600))), 9, nil},
		"cut for good": {escalation.ContextConfig{Window: 200}, history(human("task"), worked("a", 200), worked("b", 90)), 9, nil},
		"drifted": {
			escalation.ContextConfig{Window: 1000, Drift: far},
			history(human("task"), spoken("a"), spoken("b"), spoken("c"), spoken("d")), 2, []middleware.Reason{drifted},
		},
		"both in one call": {
			escalation.ContextConfig{Window: 100, Drift: far},
			history(human(exactly("task", 600)), spoken("a"), spoken("b"), spoken("c"), spoken("d")), 2, []middleware.Reason{full},
		},
		"both in one call, once": {
			escalation.ContextConfig{Window: 100, Drift: far},
			history(human(exactly("task", 600)), spoken("a"), spoken("b"), spoken("c"), spoken("d")), 1, nil,
		},
	} {
		breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{FailureThreshold: 2})
		if err != nil {
			t.Fatal(err)
		}
		x.cfg.Breaker = breaker
		l := newLimited(t, x.cfg)
		for range x.calls {
			l.ask(t, x.history)
		}
		var got []middleware.Reason
		for _, h := range breaker.History(workflow) {
			got = append(got, h.Reason)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: the breaker heard %v, want %v", name, got, x.want)
		}
	}
}

// However a summary fails, the history stays shortened, it is a decision, and
// the next cut asks for the same messages again.
func TestContextSummaryFails(t *testing.T) {
	t.Parallel()
	for name, summary := range map[string]escalation.SummaryFunc{
		"error":        func(context.Context, []llms.MessageContent) (string, error) { return "brief", errTool },
		"panic":        func(context.Context, []llms.MessageContent) (string, error) { panic(secret) },
		"empty":        func(context.Context, []llms.MessageContent) (string, error) { return " \n", nil },
		"too long":     func(context.Context, []llms.MessageContent) (string, error) { return strings.Repeat("x", 301), nil },
		"not UTF-8":    func(context.Context, []llms.MessageContent) (string, error) { return "brief\xff", nil },
		"not reshaped": func(_ context.Context, d []llms.MessageContent) (string, error) { return fmt.Sprint(d), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []int
			works := false
			x := newLimited(t, escalation.ContextConfig{Window: 1000, Summary: func(ctx context.Context, d []llms.MessageContent) (string, error) {
				asked = append(asked, len(d))
				if works {
					return brief(ctx, d)
				}

				return summary(ctx, d)
			}})
			h := history(human("task"), worked("a", 500), worked("b", 500), worked("c", 300))
			got, d := x.ask(t, h)
			if got != "task b? b! c? c!" || d.Reason != middleware.ReasonContextFull || d.Verdict != middleware.VerdictModify {
				t.Fatalf("%s, %+v", got, d)
			}
			f := x.log.all()[1]
			if f.Reason != middleware.ReasonSummaryFailed || f.Count != 1 || f.Verdict != middleware.VerdictModify || f.Fill != 0 {
				t.Errorf("%+v", f)
			}
			contentFree(t, x.log.all())
			if _, d := x.ask(t, h); d.Reason != middleware.ReasonOK || len(asked) != 1 {
				t.Errorf("%+v, asked %v", d, asked)
			}
			works = true
			h = append(h, worked("d", 500)...)
			if got, _ := x.ask(t, h); got != "task <brief> c? c! d? d!" || !slices.Equal(asked, []int{2, 4}) {
				t.Errorf("%s, asked %v", got, asked)
			}
		})
	}
}

// A user function that is late, or during which the call is cancelled.
func TestContextUserFunctionsAreLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		waits := func(ctx context.Context) { <-ctx.Done() }
		h := history(human("task"), worked("a", 500), worked("b", 500), worked("c", 100), worked("d", 100))
		x := newLimited(t, escalation.ContextConfig{
			Window: 1000, Timeout: time.Second,
			Summary: func(ctx context.Context, _ []llms.MessageContent) (string, error) { waits(ctx); return "brief", nil },
		})
		start := time.Now()
		if got, _ := x.ask(t, h); got != "task b? b! c? c! d? d!" || time.Since(start) != time.Second || x.log.count(middleware.ReasonSummaryFailed) != 1 {
			t.Errorf("%s after %v", got, time.Since(start))
		}
		x = newLimited(t, escalation.ContextConfig{
			Window: 1000, Drift: func(ctx context.Context, _ string, _ []string) (float64, error) { waits(ctx); return 0, nil },
		})
		start = time.Now()
		if _, d := x.ask(t, h); d.Drift != 1 || time.Since(start) != 30*time.Second || x.log.count(middleware.ReasonDetectorFailed) != 1 {
			t.Errorf("%+v after %v", d, time.Since(start))
		}
		for name, cfg := range map[string]escalation.ContextConfig{
			"summary": {Summary: func(ctx context.Context, _ []llms.MessageContent) (string, error) { waits(ctx); return "", ctx.Err() }},
			"drift":   {Drift: func(ctx context.Context, _ string, _ []string) (float64, error) { waits(ctx); return 0, ctx.Err() }},
		} {
			cfg.Window = 1000
			x := newLimited(t, cfg)
			ctx, cancel := context.WithTimeout(x.ctx, time.Second)
			res, err := x.handler(ctx, middleware.NewModelCall(h))
			cancel()
			if res != nil || !errors.Is(err, middleware.ReasonCanceled) || x.sent != nil {
				t.Errorf("%s: %v, %v: a call under a dead context must not be made", name, res, err)
			}
			if n := x.log.count(middleware.ReasonContextDrift) + x.log.count(middleware.ReasonDetectorFailed); n != 0 {
				t.Errorf("%s: the caller's cancel is no drift", name)
			}
		}
	})
}

// A summary may ask the model that is being limited, and a Goexit in it ends its
// goroutine and nothing else.
func TestContextSummaryAsksTheModel(t *testing.T) {
	t.Parallel()
	var model llms.Model
	depth := 0
	l := limiter(t, escalation.ContextConfig{Window: 1000, Summary: func(ctx context.Context, dropped []llms.MessageContent) (string, error) {
		depth++
		resp, err := model.GenerateContent(ctx, append(history(human("sum up")), dropped...))
		if err != nil {
			return "", err
		}

		return resp.Choices[0].Content, nil
	}})
	var seen []int
	model, err := middleware.NewModel(func(ctx context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
		seen = append(seen, len(c.Messages()))

		return replying(ctx, c)
	}, middleware.ModelConfig{Chain: l.Model()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBench(t, nil).start(t, t.Context())
	h := history(human("task"), spoken(exactly("a", 1300)), spoken(exactly("b", 1300)), spoken(exactly("c", 300)))
	if _, err := model.GenerateContent(ctx, h); err != nil || depth != 1 || !slices.Equal(seen, []int{3, 3}) {
		t.Errorf("%v; asked %d times; messages %v", err, depth, seen)
	}

	quits := true
	x := newLimited(t, escalation.ContextConfig{Window: 1000, Summary: func(ctx context.Context, d []llms.MessageContent) (string, error) {
		if quits {
			runtime.Goexit()
		}

		return brief(ctx, d)
	}})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = x.handler(x.ctx, middleware.NewModelCall(h)) })
	wg.Wait()
	quits = false
	h = append(h, spoken(exactly("d", 1000)))
	if got, _ := x.ask(t, h); got != "task <brief> d" {
		t.Errorf("%s", got)
	}
}

// The first cut of a conversation with a Drift that fails, in every way.
func TestContextDriftFails(t *testing.T) {
	t.Parallel()
	h := history(human("task"), worked("a", 50), worked("b", 50), worked("c", 50), worked("d", 50), worked("e", 50))
	for name, f := range map[string]escalation.DriftFunc{
		"error":    func(context.Context, string, []string) (float64, error) { return 0, errTool },
		"panic":    func(context.Context, string, []string) (float64, error) { panic(secret) },
		"NaN":      func(context.Context, string, []string) (float64, error) { return math.NaN(), nil },
		"infinite": func(context.Context, string, []string) (float64, error) { return math.Inf(1), nil },
		"negative": func(context.Context, string, []string) (float64, error) { return -0.1, nil },
		"above 1":  func(context.Context, string, []string) (float64, error) { return 1.1, nil },
	} {
		x := newLimited(t, escalation.ContextConfig{Window: 1000, Drift: f})
		got, d := x.ask(t, h)
		if got != "task b? b! c? c! d? d! e? e!" || d.Reason != middleware.ReasonContextDrift || d.Drift != 1 || d.Count != 1 {
			t.Errorf("%s: %s, %+v", name, got, d)
		}
		x.ask(t, h)
		all := x.log.all()
		if len(all) != 4 || all[1].Reason != middleware.ReasonDetectorFailed || all[1].Count != 1 || all[3].Count != 2 {
			t.Errorf("%s: %+v", name, all)
		}
		contentFree(t, all)
		short := newLimited(t, escalation.ContextConfig{Window: 1000, Drift: f})
		if _, d := short.ask(t, h[:7]); d.Reason != middleware.ReasonOK || d.Drift != 0 {
			t.Errorf("%s: three turns are not measured: %+v", name, d)
		}
	}
}

// Wrong order, no run, an ended run; a failed or missing answer calibrates nothing.
func TestContextRefusals(t *testing.T) {
	t.Parallel()
	l := limiter(t, escalation.ContextConfig{Window: 1000})
	h := l.Model()(replying)
	if _, err := h(t.Context(), middleware.NewModelCall(nil)); !errors.Is(err, middleware.ReasonNoRun) {
		t.Errorf("no run: %v", err)
	}
	ctx, run := newBench(t, nil).start(t, t.Context())
	inside := middleware.Chain(l.Model(), newBench(t, nil).Model())(replying)
	if _, err := inside(ctx, middleware.NewModelCall(nil)); !errors.Is(err, middleware.ReasonUnsafeOrder) {
		t.Errorf("outside of the escalation: %v", err)
	}
	fails := l.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, errTool })
	if _, err := fails(ctx, middleware.NewModelCall(nil)); !errors.Is(err, errTool) {
		t.Errorf("the model's error: %v", err)
	}
	missing := l.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, nil })
	if res, err := missing(ctx, middleware.NewModelCall(history(human(exactly("task", 900))))); res != nil || err != nil {
		t.Errorf("a missing result: %v, %v", res, err)
	}
	run.End()
	if _, err := h(ctx, middleware.NewModelCall(nil)); !errors.Is(err, middleware.ReasonRunEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// Observers see no content, and one that panics changes nothing.
func TestContextObserverPanics(t *testing.T) {
	t.Parallel()
	l := limiter(t, escalation.ContextConfig{Window: 10, Observer: middleware.ObserverFunc(func(context.Context, middleware.Decision) { panic(secret) })})
	ctx, _ := newBench(t, nil).start(t, t.Context())
	if res, err := l.Model()(replying)(ctx, middleware.NewModelCall(history(human(exactly("task", 900))))); res == nil || err != nil {
		t.Errorf("%v, %v", res, err)
	}
}

func TestContextConcurrent(t *testing.T) {
	t.Parallel()
	x := limiter(t, escalation.ContextConfig{Window: 300, Summary: brief, Observer: &log{}})
	ctx, run := newBench(t, nil).start(t, t.Context())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			h := history(human(fmt.Sprint("task", i/2))) // two share a conversation
			handler := x.Model()(func(_ context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
				if err := valid(c.Messages()); err != nil {
					t.Error(err)
				}
				if got, want := sketch(c.Messages()[len(c.Messages())-1:]), sketch(h[len(h)-1:]); got != want {
					t.Errorf("the newest is %s, want %s", got, want)
				}

				return &middleware.ModelResult{InputTokens: 200}, nil
			})
			for k := range 20 {
				h = append(h, worked(fmt.Sprint("c", k), 60)...)
				if _, err := handler(ctx, middleware.NewModelCall(h)); err != nil {
					t.Error(err)
				}
				x.Chunks(run)
			}
		})
	}
	wg.Wait()
	if n := x.Chunks(run); n.Known != 8*20 || n.InWindow+n.Cut != n.Known || n.Cut == 0 {
		t.Errorf("%+v", n)
	}
}
