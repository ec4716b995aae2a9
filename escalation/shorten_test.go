package escalation_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// valid reports what a history breaks of both wire formats: it is written from
// their rules, not from the limiter's code.
func valid(messages []llms.MessageContent) error {
	return errors.Join(validOpenAI(messages), validAnthropic(messages))
}

// validOpenAI: an assistant message with calls is followed at once by exactly one
// result for each; nothing else is a result.
func validOpenAI(messages []llms.MessageContent) error {
	open := map[string]bool{}
	for i, m := range messages {
		results := idsOf(m, false)
		if len(results) == 0 && len(open) > 0 {
			return fmt.Errorf("openai: message %d: calls %v have no result", i, open)
		}
		for _, id := range results {
			if !open[id] {
				return fmt.Errorf("openai: message %d: result %q without its call", i, id)
			}
			delete(open, id)
		}
		for _, id := range idsOf(m, true) {
			open[id] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("openai: calls %v at the end", open)
	}

	return nil
}

// validAnthropic: system messages are taken out, neighbours of one role are one
// turn; the first turn is the user's, and the results of an assistant's calls are
// the first things in the very next turn.
func validAnthropic(messages []llms.MessageContent) error {
	var due []string // calls of the assistant's turn that is going on
	var open []string
	user, texted, turns := false, false, 0
	for i, m := range messages {
		if m.Role == llms.ChatMessageTypeSystem {
			continue
		}
		now := m.Role != llms.ChatMessageTypeAI
		if turns == 0 && !now {
			return errors.New("anthropic: the first turn is not the user's")
		}
		if turns == 0 || now != user { // a new turn
			if len(open) > 0 {
				return fmt.Errorf("anthropic: message %d: calls %v have no result", i, open)
			}
			open, due, texted = due, nil, false
			user = now
			turns++
		}
		results := idsOf(m, false)
		for _, id := range results {
			k := slices.Index(open, id)
			if k < 0 || texted {
				return fmt.Errorf("anthropic: message %d: result %q without its call, or behind text", i, id)
			}
			open = slices.Delete(open, k, k+1)
		}
		texted = texted || len(results) == 0
		due = append(due, idsOf(m, true)...)
	}
	if len(open)+len(due) > 0 {
		return fmt.Errorf("anthropic: calls %v at the end", append(open, due...))
	}

	return nil
}

func idsOf(m llms.MessageContent, calls bool) []string {
	var ids []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llms.ToolCall:
			if calls {
				ids = append(ids, p.ID)
			}
		case llms.ToolCallResponse:
			if !calls {
				ids = append(ids, p.ToolCallID)
			}
		}
	}

	return ids
}

// The checkers themselves see what is broken.
func TestValid(t *testing.T) {
	t.Parallel()
	call, result := parallel(40, "a")[0], parallel(40, "a")[1]
	two := parallel(80, "a", "b")
	for name, x := range map[string]struct {
		history           []llms.MessageContent
		openai, anthropic bool
	}{
		"whole":                    {history(system("s"), human("h"), two, call, result, human("x")), true, true},
		"several results at once":  {history(human("h"), two[0], joined(two[1:])), true, true},
		"no call":                  {history(human("h"), result), false, false},
		"no result":                {history(human("h"), call), false, false},
		"a part of the results":    {history(human("h"), two[:2]), false, false},
		"result behind text":       {history(human("h"), call, human("x"), result), false, false},
		"a call in between":        {history(human("h"), call, spoken("x"), result), false, true},
		"twice":                    {history(human("h"), call, result, result), false, false},
		"the assistant is first":   {history(system("s"), spoken("x"), human("h")), true, false},
		"results of an older turn": {history(human("h"), call, result, spoken("x"), result), false, false},
	} {
		if err := validOpenAI(x.history); (err == nil) != x.openai {
			t.Errorf("%s: %v", name, err)
		}
		if err := validAnthropic(x.history); (err == nil) != x.anthropic {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func joined(messages []llms.MessageContent) llms.MessageContent {
	m := llms.MessageContent{Role: messages[0].Role}
	for _, other := range messages {
		m.Parts = append(m.Parts, other.Parts...)
	}

	return m
}

// writer makes valid histories out of bytes.
type writer struct {
	data    []byte
	history []llms.MessageContent
	calls   int
	texts   int
	plain   bool // no images, which not every client takes
}

func (w *writer) next(n int) int {
	if len(w.data) == 0 {
		return 0
	}
	b := int(w.data[0])
	w.data = w.data[1:]

	return b % n
}

func (w *writer) text(word string) llms.TextContent {
	w.texts++

	return llms.TextContent{Text: word + fmt.Sprint(w.texts, " ") + strings.Repeat("SECRET ", w.next(30))}
}

func (w *writer) put(role llms.ChatMessageType, parts ...llms.ContentPart) {
	w.history = append(w.history, llms.MessageContent{Role: role, Parts: parts})
}

// start writes the beginning: system messages and the task.
func (w *writer) start() {
	for range w.next(3) {
		w.put(llms.ChatMessageTypeSystem, w.text("system"), w.text("more"))
	}
	task := []llms.ContentPart{w.text("task")}
	kind := w.next(4)
	if w.plain {
		kind = 0
	}
	switch kind {
	case 1:
		task = append(task, llms.ImageURLContent{URL: "https://example.org/a.png"})
	case 2:
		task = append(task, llms.BinaryContent{MIMEType: "application/pdf", Data: make([]byte, 90)}, w.text("and"))
	case 3:
		task = []llms.ContentPart{llms.CachedContent{ContentPart: task[0]}}
	}
	w.put(llms.ChatMessageTypeHuman, task...)
}

// step writes one more piece.
func (w *writer) step() {
	switch w.next(8) {
	case 0:
		w.put(llms.ChatMessageTypeHuman, w.text("human"), w.text("part"))
	case 1:
		w.put(llms.ChatMessageTypeAI, w.text("said"))
	case 2:
		w.put(llms.ChatMessageTypeSystem, w.text("system"))
	case 3:
		w.put(llms.ChatMessageTypeGeneric, w.text("generic"))
	case 4: // results in one message
		w.put(llms.ChatMessageTypeTool, w.turn()...)
	case 5: // the older role, in another order
		results := w.turn()
		slices.Reverse(results)
		for _, r := range results {
			w.put(llms.ChatMessageTypeFunction, r)
		}
	default:
		for _, r := range w.turn() {
			w.put(llms.ChatMessageTypeTool, r)
		}
	}
}

// turn writes an assistant message with calls and returns their results.
func (w *writer) turn() (results []llms.ContentPart) {
	var parts []llms.ContentPart
	if w.next(3) == 0 {
		parts = append(parts, w.text("beside"))
	}
	for range 1 + w.next(4) {
		w.calls++
		id := fmt.Sprint("call", w.calls)
		parts = append(parts, llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{
			Name: "lookup", Arguments: []string{`{"__arg1":"x"}`, "not JSON"}[w.next(2)],
		}})
		results = append(results, llms.ToolCallResponse{ToolCallID: id, Content: w.text("result").Text})
	}
	w.put(llms.ChatMessageTypeAI, parts...)

	return results
}

// grow sends a history that grows piece by piece through a limiter and checks
// each of what is left of it.
func grow(t *testing.T, data []byte) (cuts int) {
	t.Helper()
	w := &writer{data: data}
	cfg := escalation.ContextConfig{Window: 100 + 40*w.next(32), DriftLimit: 0.3 + 0.7*float64(w.next(8))/8}
	if w.next(2) == 0 {
		cfg.Summary = brief
	}
	x := newLimited(t, cfg)
	w.start()
	var said []middleware.Decision
	for steps := 0; steps < 60 && (len(w.data) > 0 || steps == 0); steps++ {
		w.step()
		before := copied(w.history)
		seen := len(x.log.all())
		_, d := x.ask(t, slices.Clip(w.history))
		said = append(said, x.log.all()[seen:]...)
		if !reflect.DeepEqual(before, w.history) {
			t.Fatal("the caller's messages were changed")
		}
		x.counted = w.next(3) * int(d.Fill*float64(cfg.Window))
		if err := valid(w.history); err != nil {
			t.Fatalf("the test's own history: %v", err)
		}
		if err := valid(x.sent); err != nil {
			t.Fatalf("%v\nof  %s\ngot %s", err, sketch(w.history), sketch(x.sent))
		}
		checkKept(t, w.history, x.sent, d.Count)
		if d.Count > 0 {
			cuts++
		}
	}
	contentFree(t, said)

	return cuts
}

// checkKept: all system messages, the first and the last human message and the
// newest turn are there; everything is in order; nothing else but one summary
// right behind the task.
func checkKept(t *testing.T, all, sent []llms.MessageContent, dropped int) {
	t.Helper()
	must := map[int]bool{len(all) - 1: true}
	first, last := -1, -1
	for i, m := range all {
		must[i] = must[i] || m.Role == llms.ChatMessageTypeSystem
		if m.Role == llms.ChatMessageTypeHuman || m.Role == llms.ChatMessageTypeGeneric {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	must[first], must[last] = true, true
	for i := len(all) - 1; len(idsOf(all[i], false)) > 0; i-- {
		must[i-1] = true
	}
	next := 0
	for k, m := range sent {
		if text, ok := m.Parts[0].(llms.TextContent); ok && strings.HasPrefix(text.Text, lead) {
			if k != first+1 || dropped == 0 || m.Role != llms.ChatMessageTypeHuman {
				t.Errorf("a summary as message %d", k)
			}

			continue
		}
		for next < len(all) && &all[next].Parts[0] != &m.Parts[0] {
			if must[next] {
				t.Errorf("message %d (%s) is missing in %s", next, sketch(all[next:next+1]), sketch(sent))
			}
			next++
		}
		if next == len(all) {
			t.Fatalf("%s is not in order, or not of %s", sketch(sent[k:k+1]), sketch(all))
		}
		next++
	}
	if next != len(all) {
		t.Errorf("the newest is missing in %s", sketch(sent))
	}
	if dropped == 0 && len(sent) != len(all) {
		t.Errorf("%d messages of %d, but nothing is said to be left out", len(sent), len(all))
	}
}

func copied(messages []llms.MessageContent) []llms.MessageContent {
	own := slices.Clone(messages)
	for i := range own {
		own[i].Parts = slices.Clone(own[i].Parts)
	}

	return own
}

func TestShortenRandomHistories(t *testing.T) {
	t.Parallel()
	random, cuts := rand.New(rand.NewPCG(1, 2)), 0
	for range 120 {
		data := make([]byte, random.IntN(600))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		cuts += grow(t, data)
	}
	if cuts < 400 {
		t.Errorf("only %d histories were shortened", cuts)
	}
}

func FuzzShorten(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a conversation that is long enough to be shortened, with calls and results and so on"))
	f.Add([]byte{3, 0, 0, 1, 0, 39, 39, 0, 39, 7, 0, 39, 3, 1, 39, 1, 39, 1, 39, 39, 7, 1, 2, 39, 39, 39, 39, 39, 0, 39, 39, 6, 39, 39, 39})
	f.Add([]byte(strings.Repeat("\x04\x00\x27\x03\x27\x05\x27", 40)))
	f.Fuzz(func(t *testing.T, data []byte) { grow(t, data) })
}
