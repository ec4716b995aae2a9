package escalation_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
)

// The default measure, against values found by hand.
func TestTermDrift(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		task  string
		turns [4]string
		want  float64
	}{
		"the same":              {"sort the mail", [4]string{"sort the mail", "Sort THE mail!", "sort, the: mail", "sort the mail"}, 0},
		"nothing in common":     {"sort the mail", [4]string{"apples", "pears", "plums", "figs"}, 1},
		"half":                  {"sort mail", [4]string{"sort", "sort", "news", "news"}, 0.5},     // (1·2)/(√2·√8)
		"one word in two":       {"sort", [4]string{"sort", "mail", "1", "2"}, 1 - 1/math.Sqrt(2)}, // 1/√2
		"how often counts":      {"a a b", [4]string{"a", "a", "b", "b"}, 1 - 6/math.Sqrt(40)},     // (2·2+1·2)/(√5·√8)
		"letters beyond ASCII":  {"ÄRGER über Ähren", [4]string{"ärger", "ÜBER", "ähren", "…"}, 0}, // lower-cased
		"digits part letters":   {"a1b", [4]string{"a", "b", "", ""}, 0},                           // runs of letters
		"invalid UTF-8 too":     {"a\xffb", [4]string{"a", "b", "\xff\xfe", "\xc3"}, 0},            // parts letters
		"a task without words":  {"2 + 2 = ?", [4]string{"four", "it", "is", "4"}, 0},              // nothing to compare
		"turns without a word":  {"sort the mail", [4]string{"1", "2", "3", "4"}, 0},               // nothing to compare
		"order does not matter": {"sort the mail", [4]string{"mail", "the", "sort", "sort the mail"}, 0},
	} {
		l := newLimited(t, escalation.ContextConfig{Window: 1000, DriftLimit: 1})
		h := history(human(x.task))
		for i, text := range x.turns {
			if i%2 == 0 {
				h = append(h, spoken(text))
			} else {
				h = append(h, human(text))
			}
		}
		if _, d := l.ask(t, h); math.Abs(d.Drift-x.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, d.Drift, x.want)
		}
		// Only the last four turns count, and there must be four.
		if _, d := l.ask(t, h[:4]); d.Drift != 0 {
			t.Errorf("%s: three turns: %v", name, d.Drift)
		}
		old := history(human(x.task), spoken(strings.Repeat("zebra ", 99)), h[1:])
		if _, d := l.ask(t, old); math.Abs(d.Drift-x.want) > 1e-9 {
			t.Errorf("%s: after an older turn: %v, want %v", name, d.Drift, x.want)
		}
	}
}

// Calls and results are words too; images are not.
func TestDriftReadsCallsAndResults(t *testing.T) {
	t.Parallel()
	var task string
	var turns []string
	l := newLimited(t, escalation.ContextConfig{Window: 1000, Drift: func(_ context.Context, a string, b []string) (float64, error) {
		task, turns = a, b

		return 0.5, nil
	}})
	_, d := l.ask(t, history(
		system("system"),
		llms.MessageContent{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{
			llms.TextContent{Text: "the"}, llms.ImageURLContent{URL: "https://example.org"}, llms.CachedContent{ContentPart: llms.TextContent{Text: "task"}},
		}},
		spoken("old"), spoken("one"), system("system"), parallel(60, "a", "b"), human("three"),
		llms.MessageContent{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.TextContent{Text: "four"}, llms.ToolCall{FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"x":1}`}}, llms.ToolCall{},
		}},
		llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{Content: "result"}}},
	))
	want := []string{"one", "look\n{}\nlook\n{}\n.\n" + strings.Repeat(".", 43), "three", "four\nf\n{\"x\":1}\nresult"}
	if diff := cmp.Diff(want, turns); diff != "" || task != "the\ntask" || d.Drift != 0.5 {
		t.Errorf("%q, %v, %s", task, d.Drift, diff)
	}
}

type embedder func(texts []string) ([][]float32, error)

func (e embedder) EmbedDocuments(_ context.Context, texts []string) ([][]float32, error) {
	return e(texts)
}

var _ escalation.Embedder = (embeddings.Embedder)(nil)

func TestEmbeddingDrift(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for name, x := range map[string]struct {
		vectors [][]float32
		err     error
		want    float64
		fails   bool
	}{
		"the same":            {vectors: [][]float32{{1, 2}, {1, 2}, {2, 4}}, want: 0},
		"at right angles":     {vectors: [][]float32{{1, 0}, {0, 1}, {0, 3}}, want: 1},
		"the mean":            {vectors: [][]float32{{1, 0}, {1, 0}, {0, 1}}, want: 1 - 1/math.Sqrt2},
		"opposite":            {vectors: [][]float32{{1, 0}, {-1, 0}, {-1, 0}}, want: 1},
		"error":               {err: errTool, fails: true},
		"none":                {vectors: nil, fails: true},
		"too few":             {vectors: [][]float32{{1}, {1}}, fails: true},
		"too many":            {vectors: [][]float32{{1}, {1}, {1}, {1}}, fails: true},
		"of other length":     {vectors: [][]float32{{1, 0}, {1, 0}, {1}}, fails: true},
		"empty":               {vectors: [][]float32{{}, {}, {}}, fails: true},
		"zero":                {vectors: [][]float32{{0, 0}, {1, 0}, {1, 0}}, fails: true},
		"that cancel out":     {vectors: [][]float32{{1, 0}, {1, 0}, {-1, 0}}, fails: true},
		"not a number":        {vectors: [][]float32{{1, 0}, {nan, 0}, {1, 0}}, fails: true},
		"infinite":            {vectors: [][]float32{{inf, 0}, {1, 0}, {1, 0}}, fails: true},
		"infinite everywhere": {vectors: [][]float32{{inf, inf}, {inf, inf}, {inf, inf}}, fails: true},
	} {
		drift, err := escalation.EmbeddingDrift(embedder(func([]string) ([][]float32, error) { return x.vectors, x.err }))
		if err != nil {
			t.Fatal(err)
		}
		got, err := drift(t.Context(), "task", []string{"one", "two"})
		if (err != nil) != x.fails || math.Abs(got-x.want) > 1e-6 {
			t.Errorf("%s: %v, %v; want %v", name, got, err, x.want)
		}
	}
	if f, err := escalation.EmbeddingDrift(nil); f != nil || err == nil || !strings.Contains(err.Error(), "Embedder must be set") {
		t.Errorf("nil: %v", err)
	}
}

// Long texts are cut between characters, empty ones are left out, and where one
// side says nothing the embedder is not asked.
func TestEmbeddingDriftTexts(t *testing.T) {
	t.Parallel()
	var sizes []int
	drift, err := escalation.EmbeddingDrift(embedder(func(texts []string) ([][]float32, error) {
		for _, s := range texts {
			sizes = append(sizes, len(s))
		}

		return [][]float32{{1}, {1}}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := drift(t.Context(), "a"+strings.Repeat("ä", 5000), []string{"", "turn", ""}); got != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if diff := cmp.Diff([]int{8191, 4}, sizes); diff != "" {
		t.Error(diff)
	}
	for _, x := range [][2]string{{"", "turn"}, {"task", ""}} {
		if got, err := drift(t.Context(), x[0], []string{x[1]}); got != 0 || err != nil || len(sizes) != 2 {
			t.Errorf("%q: %v, %v", x, got, err)
		}
	}
}

func FuzzTermDrift(f *testing.F) {
	f.Add("sort the mail", "Sort the MAIL")
	f.Add("ß\xff", "ẞ and \xc3")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, task, turn string) {
		l := newLimited(t, escalation.ContextConfig{Window: 1 << 30, DriftLimit: 1})
		_, d := l.ask(t, history(human(task), spoken(turn), spoken(turn), spoken(turn), spoken(turn)))
		if !(d.Drift >= 0 && d.Drift <= 1) || (task == turn && d.Drift > 1e-9) {
			t.Errorf("%v", d.Drift)
		}
	})
}
