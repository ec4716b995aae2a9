package fallback_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/misbehave"
)

// Each test here runs langchaingo's own agents through its own clients against a server that refuses what the vendor
// would refuse.

type seeker struct {
	inputs []string
	after  func(input string)
}

func (*seeker) Name() string        { return "lookup" }
func (*seeker) Description() string { return "looks a city up" }
func (s *seeker) Call(_ context.Context, input string) (string, error) {
	s.inputs = append(s.inputs, input)
	if s.after != nil {
		s.after(input)
	}

	return "weather in " + input, nil
}

// modes are a call without and with a StreamingFunc; chunks of a stream go nowhere.
func modes(t *testing.T, each func(t *testing.T, options ...chains.ChainCallOption)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		each(t)
	})
	t.Run("streamed", func(t *testing.T) {
		t.Parallel()
		each(t, chains.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
	})
}

func runFunctions(t *testing.T, m llms.Model, s *seeker, options ...chains.ChainCallOption) (string, error) {
	t.Helper()
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(m, []tools.Tool{s}), agents.WithMaxIterations(8))

	return chains.Run(t.Context(), agent, "Which weather?", options...)
}

// clock is a time that a test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// From one vendor to the other in the middle of a run, and back again when the first one has recovered: text beside two
// parallel calls, results and all.
func TestFunctionsAgentThereAndBack(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			modes(t, func(t *testing.T, options ...chains.ChainCallOption) {
				t.Helper()
				first, a := provider(t, p, true, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
					switch len(r.Results()) {
					case 0:
						return misbehave.Reply{Text: "Let me check.", Calls: []misbehave.Call{city("Oslo")}}
					case 1:
						return misbehave.Reply{Status: 503}
					default:
						return misbehave.Reply{Text: "All three."}
					}
				}))
				second, b := provider(t, other(p), true, replies(
					misbehave.Reply{Text: "Two more.", Calls: []misbehave.Call{city("Bergen"), city("5")}},
				))
				now := &clock{now: time.Now()}
				m := build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}, Now: now.Now})
				s := &seeker{after: func(input string) {
					if input == "5" {
						now.now = now.now.Add(time.Minute)
					}
				}}
				out, err := runFunctions(t, m, s, options...)
				if err != nil || out != "All three." || strings.Join(s.inputs, " ") != "Oslo Bergen 5" {
					t.Fatalf("%q, %q, %v", out, s.inputs, err)
				}
				noViolations(t, a, b)
				last := a.Requests()[a.Count()-1]
				want := []string{"weather in Oslo", "weather in Bergen", "weather in 5"}
				var got []string
				for _, r := range last.Results() {
					got = append(got, r.Text)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
				if b.Count() != 1 || !slices.Equal(b.Requests()[0].Tools, []string{"lookup"}) {
					t.Errorf("the other vendor saw %d requests", b.Count())
				}
			})
		})
	}
}

// Identical successive calls, which the agent puts into one assistant message.
func TestFunctionsAgentIdenticalCalls(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		first, a := provider(t, p, true, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if len(r.Results()) < 2 {
				return misbehave.Reply{Calls: []misbehave.Call{city("Oslo")}}
			}

			return misbehave.Reply{Status: 503}
		}))
		second, b := provider(t, other(p), true, replies(misbehave.Reply{Text: "Twice the same."}))
		s := &seeker{}
		out, err := runFunctions(t, build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}}), s)
		if err != nil || out != "Twice the same." || strings.Join(s.inputs, " ") != "Oslo Oslo" {
			t.Errorf("%v: %q, %q, %v", p, out, s.inputs, err)
		}
		noViolations(t, a, b)
		if n := len(b.Requests()[0].Results()); n != 2 {
			t.Errorf("%v: the other vendor saw %d results", p, n)
		}
	}
}

// A call whose arguments are cut never reaches a tool.
func TestCutCallsNeverReachATool(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		for name, reply := range map[string]misbehave.Reply{
			"at the limit": {Calls: []misbehave.Call{{Name: "lookup", Arguments: `{"__arg1":"rm -rf /tm`}}, Finish: misbehave.FinishLength},
			"cut stream":   {Calls: []misbehave.Call{city("a city with a name that needs more than one piece")}, Fault: misbehave.FaultCut, At: 2},
			"ends early":   {Calls: []misbehave.Call{city("a city with a name that needs more than one piece")}, Fault: misbehave.FaultEndEarly, At: 2},
		} {
			t.Run(p.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				modes(t, func(t *testing.T, options ...chains.ChainCallOption) {
					t.Helper()
					c, _ := provider(t, p, true, replies(reply))
					s := &seeker{}
					out, err := runFunctions(t, build(t, fallback.Config{Candidates: []fallback.Candidate{c}}), s, options...)
					if err == nil || out != "" || len(s.inputs) != 0 {
						t.Errorf("%q, %v; the tool was called with %q", out, err, s.inputs)
					}
				})
			})
		}
	}
}

// The textual agent needs its stop words at every vendor.
func TestTextualAgentAcrossVendors(t *testing.T) {
	t.Parallel()
	for _, p := range both() {
		first, a := provider(t, p, true, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if !strings.Contains(r.Last().Text, "weather in Oslo") {
				return misbehave.Reply{Text: "Thought: look.\nAction: lookup\nAction Input: Oslo"}
			}

			return misbehave.Reply{Status: 503}
		}))
		second, b := provider(t, other(p), true, replies(misbehave.Reply{Text: "Final Answer: rain"}))
		s := &seeker{}
		m := build(t, fallback.Config{Candidates: []fallback.Candidate{first, second}, Requires: fallback.CapStopWords})
		agent := agents.NewExecutor(agents.NewOneShotAgent(m, []tools.Tool{s}))
		out, err := chains.Run(t.Context(), agent, "Which weather?")
		if err != nil || strings.TrimSpace(out) != "rain" || strings.Join(s.inputs, " ") != "Oslo" {
			t.Errorf("%v: %q, %q, %v", p, out, s.inputs, err)
		}
		noViolations(t, a, b)
		for _, srv := range []*misbehave.Server{a, b} {
			for _, r := range srv.Requests() {
				if len(r.Stop) == 0 {
					t.Errorf("%s request %d has no stop words", r.Vendor, r.Index)
				}
			}
		}
	}
}

// A final answer without tools, of a history that holds calls.
func TestFinalAnswerWithoutTools(t *testing.T) {
	t.Parallel()
	history := []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "Be brief.", "Be kind."),
		llms.TextParts(llms.ChatMessageTypeHuman, "Which weather?"),
		{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
			llms.TextContent{Text: "Two cities."}, called("a", "Oslo"), called("b", "Bergen"),
		}},
		resulted("b", "rain"),
		resulted("a", "sun"),
		llms.TextParts(llms.ChatMessageTypeHuman, "Sum up."),
	}
	for name, options := range map[string][]llms.CallOption{
		"no tools":   nil,
		"none taken": {offered(), llms.WithToolChoice("none")},
		"older form": {llms.WithFunctions([]llms.FunctionDefinition{{Name: "lookup"}}), llms.WithFunctionCallBehavior(llms.FunctionCallBehaviorNone)},
		"choice":     {llms.WithToolChoice("none")},
	} {
		for _, p := range both() {
			c, srv := provider(t, p, true, replies(misbehave.Reply{Text: "Mixed."}))
			m := build(t, fallback.Config{Candidates: []fallback.Candidate{c}})
			resp, err := m.GenerateContent(t.Context(), history, options...)
			if err != nil || resp.Choices[0].Content != "Mixed." {
				t.Fatalf("%s, %v: %v", name, p, err)
			}
			noViolations(t, srv)
			r := srv.Requests()[0]
			if p == fallback.ProviderOpenAI {
				continue
			}
			if len(r.Tools) != 0 || len(r.Results()) != 0 {
				t.Errorf("%s: tools %v, results %v", name, r.Tools, r.Results())
			}
			var all strings.Builder
			for _, m := range r.Messages {
				all.WriteString(m.Role + ": " + m.Text + "\n")
			}
			const want = "system: Be brief.\nBe kind.\n" +
				"user: Which weather?\n" +
				"assistant: Two cities.\n[called the tool lookup with {\"__arg1\":\"Oslo\"}]\n[called the tool lookup with {\"__arg1\":\"Bergen\"}]\n" +
				"user: [the tool lookup returned: rain]\n[the tool lookup returned: sun]\n" +
				"user: Sum up.\n"
			if d := cmp.Diff(want, all.String()); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

func called(id, name string) llms.ToolCall {
	return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: "lookup", Arguments: city(name).Arguments}}
}

func resulted(id, text string) llms.MessageContent {
	return llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: id, Content: text}}}
}
