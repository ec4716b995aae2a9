package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// talk is a model that says what a test tells it to, and remembers what it was
// asked.
type talk struct {
	t     *testing.T
	dog   *watchdog.Watchdog
	model llms.Model
	ctx   context.Context //nolint:containedctx // of the run that the test plays
	run   *middleware.Run
	rec   *recorder

	says *llms.ContentChoice
	err  error
	got  []llms.MessageContent
}

var (
	textual = llms.WithStopWords([]string{"\nObservation:"})
	offers  = llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "lookup"}}})
)

func newTalk(t *testing.T, cfg watchdog.Config) *talk {
	t.Helper()
	k := &talk{t: t, rec: &recorder{}}
	cfg.Observer, cfg.DisableStall = k.rec, true
	k.dog = newDog(t, cfg)
	var err error
	k.model, err = middleware.NewModel(func(_ context.Context, c *middleware.ModelCall) (*middleware.ModelResult, error) {
		k.got = c.Messages()

		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{k.says}}}, k.err
	}, middleware.ModelConfig{Chain: middleware.Chain(k.dog.Model())})
	if err != nil {
		t.Fatal(err)
	}
	k.ctx, k.run = startRun(t.Context(), t)

	return k
}

// ask says text, or asks for a tool if it begins with @.
func (k *talk) ask(text string, messages []llms.MessageContent, options ...llms.CallOption) error {
	k.says = &llms.ContentChoice{Content: text}
	if name, calls := strings.CutPrefix(text, "@"); calls {
		k.says = &llms.ContentChoice{ToolCalls: []llms.ToolCall{{
			ID: "c", Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: `{"a":1}`},
		}}}
	}
	_, err := k.model.GenerateContent(k.ctx, messages, options...)

	return err
}

func chat(humans ...string) []llms.MessageContent {
	all := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, "Be good.")}
	for _, h := range humans {
		all = append(all, llms.TextParts(llms.ChatMessageTypeHuman, h))
	}

	return all
}

func one(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

// TestAnswers says at which response the watch fires.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		says    []string
		options llms.CallOption
		humans  bool // somebody says something new each time
		want    int  // of the response, from 1; 0 is none
	}{
		"equal":                        {[]string{"I will look.", "I will look.", "I will look."}, offers, false, 3},
		"equal but for the clock":      {[]string{"At 10:00:01 I look.", "At 10:00:02 I look.", "At 10:00:03 I look."}, offers, false, 3},
		"other words":                  {[]string{"I will look.", "I shall look.", "Let me look.", "Now."}, offers, false, 0},
		"others between":               {[]string{"a b", "a b", "c d", "a b", "a b"}, offers, false, 0},
		"a human speaks":               {[]string{"Not yet.", "Not yet.", "Not yet.", "Not yet."}, offers, true, 0},
		"a human speaks to a wall":     {[]string{"Done.", "Done.", "Done.", "Done.", "Done."}, offers, true, 5},
		"no agent":                     {[]string{"yes", "yes", "yes", "yes"}, llms.WithTemperature(0), false, 0},
		"unreadable":                   {[]string{"hm", "well", "so", "and"}, textual, false, 4},
		"unreadable, readable between": {[]string{"hm", "well", "so", "Action: a\nAction Input: b", "hm", "well", "so"}, textual, false, 0},
		"readable":                     {[]string{"Final Answer: 1", "the answer is: 2", "AI: 3", "action: x\naction input: y"}, textual, false, 0},
		"unknown tools":                {[]string{"@a", "@b", "@c"}, offers, false, 3},
		"unknown, but few":             {[]string{"@a", "@b", "@lookup"}, offers, false, 0},
		"a call that nobody makes":     {[]string{"@lookup", "@lookup", "@lookup"}, offers, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := 0
			n := 0
			k := newTalk(t, watchdog.Config{Policy: func(d watchdog.Detection) watchdog.Action {
				fired = n
				if d.Reason != middleware.ReasonAnswerLoop && d.Reason != middleware.ReasonUnknownTool || !d.Label.IsZero() || d.Turn != n {
					t.Errorf("%+v", d)
				}

				return watchdog.Observe
			}})
			for i, text := range tc.says {
				n = i + 1
				messages := chat("Do it.")
				if tc.humans {
					messages = chat("Do it.", fmt.Sprint("And now? ", strings.Repeat("please ", i)))
				}
				if err := k.ask(text, messages, tc.options); err != nil {
					t.Fatal(err)
				}
			}
			if fired != tc.want {
				t.Errorf("fired at %d, want %d", fired, tc.want)
			}
		})
	}
}

// TestAnswersWithCalls: equal responses whose calls are made are judged by what
// the calls bring.
func TestAnswersWithCalls(t *testing.T) {
	t.Parallel()
	k := newTalk(t, watchdog.Config{})
	n := 0
	tool := toolOf(t, "lookup", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		n++

		return &middleware.ToolResult{Output: fmt.Sprintf("%d rows", n)}, nil
	}, k.dog.Tool())
	for range 20 {
		if err := k.ask("@lookup", chat("Count."), offers); err != nil {
			t.Fatal(err)
		}
		if _, err := tool.Do(k.ctx, "", `{"a":1}`); err != nil {
			t.Fatal(err)
		}
	}
	if len(k.rec.decisions()) > 0 {
		t.Errorf("decisions %v", k.rec.verdicts())
	}
}

// TestModelErrorsAreNoEvidence: a provider may be down for ever.
func TestModelErrorsAreNoEvidence(t *testing.T) {
	t.Parallel()
	k := newTalk(t, watchdog.Config{})
	for i, r := range slices.Repeat([]middleware.Reason{
		middleware.ReasonRateLimited, middleware.ReasonOverloaded, middleware.ReasonTimeout, middleware.ReasonExhausted,
	}, 10) {
		k.err = middleware.NewFailure(middleware.ComponentFallback, r, ident.Label{})
		if err := k.ask("x", chat("Do it."), offers); !errors.Is(err, r) {
			t.Errorf("%d: got %v", i, err)
		}
	}
	if len(k.rec.decisions()) > 0 {
		t.Errorf("decisions %v", k.rec.verdicts())
	}
}

// TestAnswerActions shows what each action does at the model's seam.
func TestAnswerActions(t *testing.T) {
	t.Parallel()
	for action, tc := range map[watchdog.Action]struct {
		verdict   middleware.Verdict // of the denial; 0 is none
		halted    bool
		decisions string
	}{
		watchdog.Nudge:    {0, false, "answer_loop/modify/proceed"},
		watchdog.Abort:    {middleware.VerdictDeny, true, "answer_loop/deny/block"},
		watchdog.Escalate: {middleware.VerdictEscalate, false, "answer_loop/escalate/block"},
		watchdog.Observe:  {0, false, "answer_loop/abstain/proceed"},
	} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, watchdog.Config{Policy: always(action)})
			var err error
			for range 3 {
				err = k.ask(secret, chat("Do it."), offers)
			}
			d, denied := errors.AsType[*middleware.Denial](err)
			if denied != (tc.verdict != 0) || denied && (d.Verdict() != tc.verdict || !errors.Is(err, middleware.ReasonAnswerLoop)) {
				t.Errorf("got %v", err)
			}
			if _, _, halted := k.run.Halted(); halted != tc.halted {
				t.Errorf("halted: %v", halted)
			}
			if got := strings.Join(k.rec.verdicts(), " "); got != tc.decisions {
				t.Errorf("decisions %s", got)
			}
			if tc.halted {
				return
			}
			if err := k.ask("other", chat("Do it."), offers); err != nil {
				t.Fatal(err)
			}
			last := k.got[len(k.got)-1]
			if nudged := len(k.got) == 3; nudged != (action == watchdog.Nudge) {
				t.Errorf("the next request is %v", k.got)
			} else if nudged && (last.Role != llms.ChatMessageTypeHuman || !strings.Contains(fmt.Sprint(last.Parts), "repeat each other")) {
				t.Errorf("the nudge is %v", last)
			}
			if err := k.ask("another", chat("Do it."), offers); err != nil || len(k.got) != 2 {
				t.Errorf("nudged twice: %v, %v", k.got, err)
			}
		})
	}
}

// TestNudgeForms: a single message keeps being one, and the caller's messages
// stay as they are.
func TestNudgeForms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		messages []llms.MessageContent
		want     int
	}{
		"chat":    {chat("Do it."), 3},
		"single":  {one("Do it.\nThought:"), 1},
		"picture": {[]llms.MessageContent{{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.ImageURLContent{URL: "u"}}}}, 1},
		"nothing": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t, watchdog.Config{Policy: always(watchdog.Nudge)})
			before := fmt.Sprint(tc.messages)
			for range 4 {
				if err := k.ask("hm", tc.messages, offers); err != nil {
					t.Fatal(err)
				}
			}
			if len(k.got) != tc.want {
				t.Fatalf("%d messages, want %d", len(k.got), tc.want)
			}
			last := k.got[tc.want-1]
			if text, ok := last.Parts[len(last.Parts)-1].(llms.TextContent); !ok || !strings.Contains(text.Text, "Your last answers repeat") ||
				last.Role != llms.ChatMessageTypeHuman {
				t.Errorf("the last message is %+v", last)
			}
			if after := fmt.Sprint(tc.messages); after != before {
				t.Errorf("the caller's messages were changed: %s", after)
			}
		})
	}
}

// TestUnknownToolOfATextualAgent: what follows from the third one happens at the
// next request or call.
func TestUnknownToolOfATextualAgent(t *testing.T) {
	t.Parallel()
	for action, want := range map[watchdog.Action]string{
		watchdog.Nudge:    "nudged",
		watchdog.Abort:    "interlock: watchdog: unknown_tool",
		watchdog.Escalate: "interlock: watchdog: unknown_tool",
		watchdog.Observe:  "",
	} {
		for _, seam := range []string{"model", "tool"} {
			t.Run(action.String()+" "+seam, func(t *testing.T) {
				t.Parallel()
				k := newTalk(t, watchdog.Config{Policy: always(action)})
				tool := toolOf(t, "lookup", middleware.ReadOnly, echo, k.dog.Tool())
				for range 3 {
					k.dog.UnknownTool(k.ctx)
				}
				if got := strings.Join(k.rec.verdicts()[:2], " "); got != "unknown_tool/abstain/proceed unknown_tool/abstain/proceed" {
					t.Errorf("decisions %s", got)
				}
				var err error
				if seam == "tool" {
					_, err = tool.Do(k.ctx, "", "x")
				} else {
					err = k.ask("Final Answer: x", one("Do it."), textual)
				}
				got := ""
				if err != nil {
					got = err.Error()
				} else if seam == "model" && strings.Contains(fmt.Sprint(k.got), "no such tool") || seam == "tool" && action == watchdog.Nudge {
					got = "nudged"
				}
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if d, ok := errors.AsType[*middleware.Denial](err); ok && (d.Verdict() == middleware.VerdictEscalate) != (action == watchdog.Escalate) {
					t.Errorf("verdict %v", d.Verdict())
				}
			})
		}
	}
}

// TestNestedModelsAreNotWatched: a model call inside of a tool is the tool's.
func TestNestedModelsAreNotWatched(t *testing.T) {
	t.Parallel()
	k := newTalk(t, watchdog.Config{})
	tool := toolOf(t, "ask", middleware.ReadOnly, func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
		outer := k.ctx
		k.ctx = ctx
		defer func() { k.ctx = outer }()
		for range 5 {
			if err := k.ask("same", chat("Do it."), offers); err != nil {
				return nil, err
			}
		}

		return &middleware.ToolResult{}, nil
	})
	if _, err := tool.Do(k.ctx, "", "x"); err != nil || len(k.rec.decisions()) > 0 {
		t.Errorf("got %v, %v", err, k.rec.verdicts())
	}
}
