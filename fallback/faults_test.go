//nolint:thelper // the rows are tests: a failure shows their own line
package fallback_test

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

var full = flag.Bool("full", false, "wait as long as the specification says, instead of a twentieth of it")

// scaled is how long a wait of the specification is in this run.
func scaled(d time.Duration) time.Duration { return d / factor() }

func factor() time.Duration {
	if *full {
		return 1
	}

	return 20
}

// sixty words, as the specification counts them.
var sixty = strings.TrimSpace(strings.Repeat("word ", 59)) + " end"

// pair is a chain of two real clients in front of two misbehaving providers.
type pair struct {
	*fallback.Model

	first, second fallback.Candidate
	a, b          *misbehave.Server
}

func newPair(t *testing.T, p fallback.Provider, cfg fallback.Config, script, spare misbehave.Script) *pair {
	t.Helper()
	x := &pair{}
	x.first, x.a = provider(t, p, true, script)
	x.second, x.b = provider(t, other(p), true, spare)
	x.first.Watched, x.second.Watched = true, true
	x.first.Window, x.second.Window = 8000, 200_000
	cfg.Candidates = []fallback.Candidate{x.first, x.second}
	cfg.AttemptTimeout, cfg.FirstToken, cfg.Idle = scaled(60*time.Second), scaled(10*time.Second), scaled(10*time.Second)
	var err error
	if x.Model, err = fallback.NewScaled(cfg, factor()); err != nil {
		t.Fatal(err)
	}

	return x
}

// got is what a caller has of a call.
type got struct {
	res    *middleware.ModelResult
	text   string
	chunks []string
	err    error
	took   time.Duration
}

func (x *pair) ask(ctx context.Context, streamed bool) (g got) {
	var options []llms.CallOption
	if streamed {
		options = append(options, collect(&g.chunks))
	}
	begin := time.Now()
	g.res, g.err = x.Handle(ctx, middleware.NewModelCall(hello(), options...))
	g.took = time.Since(begin)
	if g.err == nil {
		g.text = strings.TrimSpace(g.res.Response.Choices[0].Content)
	}

	return g
}

// answered fails the test unless the answer came, whole.
func (g *got) answered(t *testing.T, text string) {
	t.Helper()
	if g.err != nil || g.text != text {
		t.Fatalf("got %q, %v; want %q", g.text, g.err, text)
	}
	if g.chunks != nil && strings.TrimSpace(strings.Join(g.chunks, "")) != text {
		t.Errorf("the chunks are %q", g.chunks)
	}
}

// interrupted fails the test unless the answer broke off, and says so.
func (g *got) interrupted(t *testing.T, words int) {
	t.Helper()
	e, ok := errors.AsType[*fallback.InterruptedError](g.err)
	if !ok || len(strings.Fields(e.Text())) != words || e.Text() != strings.Join(g.chunks, "") || e.Bytes() != len(e.Text()) {
		t.Fatalf("got %q, %v, %d chunks", g.text, g.err, len(g.chunks))
	}
	contentFree(t, g.err)
}

func (g *got) within(t *testing.T, limit time.Duration) {
	t.Helper()
	if slack := time.Second; g.took > scaled(limit)+slack {
		t.Errorf("took %v, at most %v", g.took, scaled(limit))
	}
}

func tries(t *testing.T, s *misbehave.Server, least, most int) {
	t.Helper()
	if n := s.Count(); n < least || n > most {
		t.Errorf("the provider saw %d tries, want %d to %d", n, least, most)
	}
}

const rescue = "the whole answer of the other one"

func fine(text string) misbehave.Script { return replies(misbehave.Reply{Text: text}) }

func seconds(d time.Duration) map[string]string {
	return map[string]string{"Retry-After": strconv.FormatFloat(scaled(d).Seconds(), 'f', -1, 64)}
}

// The table of the specification, row by row, with the real clients over real sockets, as the caller and as the provider
// see it. Every row runs with openai as primary and, where the fault exists there, with anthropic.
func TestConformanceOfFaults(t *testing.T) {
	t.Parallel()
	buffered := fallback.Config{Stream: fallback.Buffered{}}
	for name, row := range map[string]func(t *testing.T, p fallback.Provider){
		"429 once with Retry-After": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(
				misbehave.Reply{Status: 429, Headers: seconds(2 * time.Second)}, misbehave.Reply{Text: sixty}), fine(sixty))
			g := x.ask(t.Context(), false)
			g.answered(t, sixty)
			if r := x.a.Requests(); len(r) > 1 && r[1].At-r[0].At < scaled(1800*time.Millisecond) {
				t.Errorf("the second try came after %v", r[1].At-r[0].At)
			} else if len(r) == 1 {
				tries(t, x.b, 1, 1)
			}
		},
		"429 always": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Status: 429}), fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, rescue)
			early := 0
			for _, r := range x.a.Requests() {
				if r.At < scaled(3*time.Second) {
					early++
				}
			}
			if early > 4 {
				t.Errorf("%d tries in the first three seconds", early)
			}
			tries(t, x.a, 1, 6)
		},
		"500 once": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Status: 500}, misbehave.Reply{Text: sixty}), fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, sixty)
			tries(t, x.a, 2, 2)
			tries(t, x.b, 0, 0)
		},
		"503 always": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Status: 503}), fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, rescue)
			tries(t, x.a, 1, 6)
		},
		"reset before headers once": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(
				misbehave.Reply{Fault: misbehave.FaultResetBeforeHeaders}, misbehave.Reply{Text: sixty}), fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, sixty)
		},
		"never answers": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Fault: misbehave.FaultHang}), fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, rescue)
			g.within(t, time.Minute)
			tries(t, x.a, 1, 1)
		},
		"first token after 20 s": func(t *testing.T, p fallback.Provider) {
			for _, streamed := range []bool{false, true} {
				x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Text: sixty, DelayFirst: scaled(20 * time.Second)}), fine(rescue))
				g := x.ask(t.Context(), streamed)
				g.answered(t, rescue)
				g.within(t, 15*time.Second)
				if g.took < scaled(10*time.Second) {
					t.Errorf("gave up after %v", g.took)
				}
			}
		},
		"stream cut after 40 of 60 words": func(t *testing.T, p fallback.Provider) {
			cut := replies(misbehave.Reply{Text: sixty, Fault: misbehave.FaultCut, At: 40})
			x := newPair(t, p, buffered, cut, fine(rescue))
			g := x.ask(t.Context(), true)
			g.answered(t, rescue)
			x = newPair(t, p, fallback.Config{}, cut, fine(rescue))
			g = x.ask(t.Context(), true)
			g.interrupted(t, 40)
			tries(t, x.a, 1, 1)
			tries(t, x.b, 0, 0)
		},
		"stream silent after 20 words": func(t *testing.T, p fallback.Provider) {
			stall := replies(misbehave.Reply{Text: sixty, Fault: misbehave.FaultStall, At: 20})
			x := newPair(t, p, buffered, stall, fine(rescue))
			g := x.ask(t.Context(), true)
			g.answered(t, rescue)
			g.within(t, 10*time.Second)
			tries(t, x.a, 1, 1)
			x = newPair(t, p, fallback.Config{}, stall, fine(rescue))
			g = x.ask(t.Context(), true)
			g.interrupted(t, 20)
			g.within(t, 10*time.Second)
			g = x.ask(t.Context(), true) // healthy afterwards
			g.answered(t, rescue)
			if err := x.a.AwaitIdle(t.Context()); err != nil || !x.a.Requests()[0].Gone {
				t.Errorf("the attempt was not cancelled: %v", err)
			}
		},
		"one malformed event": func(t *testing.T, p fallback.Provider) {
			for _, streamed := range []bool{false, true} {
				for _, cfg := range []fallback.Config{{}, buffered} {
					x := newPair(t, p, cfg, replies(
						misbehave.Reply{Text: sixty, Fault: misbehave.FaultMalformedEvent, At: 30}), fine(sixty))
					g := x.ask(t.Context(), streamed)
					if g.err == nil {
						g.answered(t, sixty)
					} else if whole := strings.Join(g.chunks, ""); cfg.Stream != nil || !streamed || !strings.HasPrefix(sixty, whole) {
						t.Errorf("got %v after %q", g.err, whole)
					}
				}
			}
		},
		"no [DONE]": func(t *testing.T, p fallback.Provider) {
			if p != fallback.ProviderOpenAI { // anthropic's client takes no stream without its last event for an answer
				return
			}
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{
				Text: sixty, Fault: misbehave.FaultNoTerminal, Usage: &misbehave.Usage{Prompt: 7, Completion: 60},
			}), fine(rescue))
			g := x.ask(t.Context(), true)
			g.answered(t, sixty)
			g.within(t, time.Second)
			if g.res.InputTokens != 7 || g.res.OutputTokens != 60 {
				t.Errorf("usage %d, %d", g.res.InputTokens, g.res.OutputTokens)
			}
			tries(t, x.a, 1, 1)
		},
		"context_length_exceeded": func(t *testing.T, p fallback.Provider) {
			long := replies(misbehave.Reply{Status: 400, Error: &misbehave.APIError{
				Code: "context_length_exceeded", Message: tooLong[p],
			}})
			x := newPair(t, p, fallback.Config{}, long, fine(rescue))
			g := x.ask(t.Context(), false)
			g.answered(t, rescue)
			tries(t, x.a, 1, 1)
			x = newPair(t, p, fallback.Config{}, long, replies(misbehave.Reply{Status: 400, Error: &misbehave.APIError{
				Code: "context_length_exceeded", Message: tooLong[other(p)],
			}}))
			g = x.ask(t.Context(), false)
			if classOf(t, g.err) != fallback.ClassContextLength {
				t.Errorf("got %v", g.err)
			}
			contentFree(t, g.err)
			tries(t, x.a, 1, 1)
		},
		"content_policy_violation": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Status: 400, Error: &misbehave.APIError{
				Code: "content_policy_violation", Message: filtered[p],
			}}), fine(rescue))
			g := x.ask(t.Context(), false)
			if classOf(t, g.err) != fallback.ClassContentFilter {
				t.Errorf("got %v", g.err)
			}
			contentFree(t, g.err)
			tries(t, x.a, 1, 1)
			tries(t, x.b, 0, 0)
		},
		"cut stream, no prefill": func(t *testing.T, p fallback.Provider) {
			refuses := misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
				if r.Last().Role == "assistant" {
					return misbehave.Reply{Status: 400, Error: &misbehave.APIError{Message: "prefill is not supported"}}
				}

				return misbehave.Reply{Text: rescue}
			})
			cut := replies(misbehave.Reply{Text: sixty, Fault: misbehave.FaultCut, At: 40})
			x := newPair(t, p, buffered, cut, refuses)
			g := x.ask(t.Context(), true)
			g.answered(t, rescue)
			x = newPair(t, p, fallback.Config{}, cut, refuses)
			g = x.ask(t.Context(), true)
			g.interrupted(t, 40)
			tries(t, x.b, 0, 0)
		},
		"down for 60 s, a call every 4 s": down,
		"503 always, account": func(t *testing.T, p fallback.Provider) {
			x := newPair(t, p, fallback.Config{}, replies(misbehave.Reply{Status: 503}),
				replies(misbehave.Reply{Text: rescue, Usage: &misbehave.Usage{Prompt: 11, Completion: 6}}))
			var report fallback.Report
			g := x.ask(fallback.WithReport(t.Context(), &report), false)
			g.answered(t, rescue)
			if g.res.Candidate != x.second.Label || g.res.InputTokens != 11 || g.res.OutputTokens != 6 {
				t.Errorf("the result says %v, %d, %d", g.res.Candidate, g.res.InputTokens, g.res.OutputTokens)
			}
			if report.Candidate() != x.second.Label ||
				report.Usage(other(p)) != (fallback.Usage{Attempts: 1, InputTokens: 11, OutputTokens: 6}) {
				t.Errorf("the report says %v, %+v", report.Candidate(), report.Usage(other(p)))
			}
		},
	} {
		for _, p := range both() {
			t.Run(name+" "+p.String(), func(t *testing.T) {
				t.Parallel()
				row(t, p)
			})
		}
	}
}

var (
	tooLong = map[fallback.Provider]string{
		fallback.ProviderOpenAI:    "This model's maximum context length is 8192 tokens. " + secret,
		fallback.ProviderAnthropic: "prompt is too long: 215000 tokens > 200000 maximum " + secret,
	}
	filtered = map[fallback.Provider]string{
		fallback.ProviderOpenAI:    "Your request was rejected as a result of our safety system. " + secret,
		fallback.ProviderAnthropic: "Output blocked by content filtering policy " + secret,
	}
)

// down is the row about a primary that fails for a minute.
func down(t *testing.T, p fallback.Provider) {
	t.Helper()
	const every = 4 * time.Second
	begin := time.Now()
	recovery := scaled(time.Minute)
	x := newPair(t, p, fallback.Config{}, misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply {
		if time.Since(begin) < recovery {
			return misbehave.Reply{Status: 503}
		}

		return misbehave.Reply{Text: sixty}
	}), fine(rescue))
	tick := time.NewTicker(scaled(every))
	defer tick.Stop()
	for {
		g := x.ask(t.Context(), false)
		if g.err != nil {
			t.Fatalf("a call was not answered: %v", g.err)
		}
		since := time.Since(begin) - recovery
		if g.res.Candidate == x.first.Label {
			if since > scaled(34*time.Second)+time.Second {
				t.Errorf("back %v after the recovery", since)
			}

			break
		}
		if since > scaled(60*time.Second) {
			t.Fatal("the primary does not come back")
		}
		<-tick.C
	}
	// Two tries of the first call, a probe per bench of 30 s, and the answer.
	tries(t, x.a, 4, 6)
}
