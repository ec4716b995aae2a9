package escalation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

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

// Each test here runs langchaingo's own agents through its own clients against a
// server that refuses what the vendor would refuse.

func eachVendor(t *testing.T, f func(t *testing.T, p fallback.Provider)) {
	t.Helper()
	for _, p := range []fallback.Provider{fallback.ProviderOpenAI, fallback.ProviderAnthropic} {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

// vendorModel is a limiter before the fallback before a vendor's client.
func vendorModel(
	t *testing.T, p fallback.Provider, l *escalation.ContextLimiter, script misbehave.Script,
) (llms.Model, *misbehave.Server) {
	t.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	c := fallback.Candidate{Label: ident.MustLabel(p.String()), Provider: p}
	if p == fallback.ProviderOpenAI {
		c.ModelName = "gpt-4o"
		c.Model, err = openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithHTTPClient(client))
	} else {
		c.ModelName = "claude-sonnet-4"
		c.Model, err = anthropic.New(anthropic.WithBaseURL(srv.URL()+"/v1"), anthropic.WithToken("t"), anthropic.WithHTTPClient(client))
	}
	if err != nil {
		t.Fatal(err)
	}
	fall, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{c}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := middleware.NewModel(fall.Handle, middleware.ModelConfig{Chain: l.Model()})
	if err != nil {
		t.Fatal(err)
	}

	return m, srv
}

// reader is a tool with long results.
type reader struct{ calls int }

func (*reader) Name() string        { return "read" }
func (*reader) Description() string { return "reads a page" }
func (r *reader) Call(_ context.Context, page string) (string, error) {
	r.calls++

	return "page " + page + ": " + strings.Repeat("lorem ipsum ", 40), nil
}

func noViolations(t *testing.T, srv *misbehave.Server) {
	t.Helper()
	for _, r := range srv.Requests() {
		if r.Violation != misbehave.NoViolation {
			t.Errorf("%s request %d: %s", r.Vendor, r.Index, r.Violation)
		}
	}
}

// The functions agent: many turns, some with parallel calls, some with equal ones.
func TestContextFunctionsAgent(t *testing.T) {
	t.Parallel()
	eachVendor(t, func(t *testing.T, p fallback.Provider) {
		t.Helper()
		log := &log{}
		l := limiter(t, escalation.ContextConfig{
			Window: 4000, Observer: log, Summary: func(_ context.Context, dropped []llms.MessageContent) (string, error) {
				return fmt.Sprintf("read %d messages", len(dropped)), nil
			},
		})
		turns := 0
		m, srv := vendorModel(t, p, l, misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply {
			turns++
			page := func(n int) misbehave.Call {
				return misbehave.Call{Name: "read", Arguments: fmt.Sprintf(`{"__arg1":"%d"}`, n)}
			}
			switch {
			case turns == 25:
				return misbehave.Reply{Text: "All read."}
			case turns%5 == 0:
				return misbehave.Reply{Text: "Three more.", Calls: []misbehave.Call{page(turns), page(100 + turns), page(200 + turns)}}
			case turns%7 < 2:
				return misbehave.Reply{Calls: []misbehave.Call{page(7)}}
			default:
				return misbehave.Reply{Calls: []misbehave.Call{page(turns)}}
			}
		}))
		ctx, run := newBench(t, nil).start(t, t.Context())
		r := &reader{}
		agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(m, []tools.Tool{r}), agents.WithMaxIterations(30))
		out, err := chains.Run(ctx, agent, "Read all pages of the book.")
		if err != nil || out != "All read." || r.calls != 20+4*3 {
			t.Fatalf("%q, %v after %d calls", out, err, r.calls)
		}
		noViolations(t, srv)
		told := false
		for _, req := range srv.Requests() {
			if len(req.Raw()) > 7000 || len(req.Tools) != 1 {
				t.Errorf("request %d has %d bytes and the tools %v", req.Index, len(req.Raw()), req.Tools)
			}
			if req.Messages[0].Role != "system" || req.Messages[1].Text != "Read all pages of the book." {
				t.Errorf("request %d begins with %+v", req.Index, req.Messages[:2])
			}
			told = told || len(req.Messages) > 2 && strings.HasPrefix(req.Messages[2].Text, lead+"read ")
			if results := req.Results(); req.Index > 0 && len(results) == 0 {
				t.Errorf("request %d has no result", req.Index)
			}
		}
		if n := l.Chunks(run); !told || n.Cut == 0 || n.Triggered == 0 || log.count(middleware.ReasonContextFull) < 2 {
			t.Errorf("a summary was sent: %t; %+v", told, n)
		}
		contentFree(t, log.all())
	})
}

// The textual agent holds its history inside of one text: it is left as it is,
// and each call past the limit is reported.
func TestContextTextualAgent(t *testing.T) {
	t.Parallel()
	eachVendor(t, func(t *testing.T, p fallback.Provider) {
		t.Helper()
		log := &log{}
		l := limiter(t, escalation.ContextConfig{Window: 1000, Observer: log})
		m, srv := vendorModel(t, p, l, misbehave.ScriptFunc(func(r misbehave.Request) misbehave.Reply {
			if strings.Count(r.Last().Text, "lorem") < 4*40 {
				return misbehave.Reply{Text: "Thought: read on.\nAction: read\nAction Input: 1"}
			}

			return misbehave.Reply{Text: "Final Answer: done"}
		}))
		ctx, run := newBench(t, nil).start(t, t.Context())
		out, err := chains.Run(ctx, agents.NewExecutor(agents.NewOneShotAgent(m, []tools.Tool{&reader{}}), agents.WithMaxIterations(9)), "Read.")
		if err != nil || strings.TrimSpace(out) != "done" {
			t.Fatalf("%q, %v", out, err)
		}
		noViolations(t, srv)
		if n := log.count(middleware.ReasonContextFull); n == 0 || l.Chunks(run) != (escalation.ChunkCounts{}) {
			t.Errorf("%d calls past the limit; %+v", n, l.Chunks(run))
		}
		for _, d := range log.all() {
			if d.Verdict != middleware.VerdictAllow || d.Count != 0 {
				t.Errorf("%+v", d)
			}
		}
	})
}

// Histories of every shape, as callers of other kinds keep them.
func TestContextHistoriesOnTheWire(t *testing.T) {
	t.Parallel()
	eachVendor(t, func(t *testing.T, p fallback.Provider) {
		t.Helper()
		l := limiter(t, escalation.ContextConfig{Window: 600, Summary: brief})
		m, srv := vendorModel(t, p, l, nil)
		ctx, run := newBench(t, nil).start(t, t.Context())
		random := rand.New(rand.NewPCG(3, 4))
		cut := 0
		for range 8 {
			data := make([]byte, 200)
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			w := &writer{data: data, plain: true}
			w.start()
			for len(w.data) > 0 {
				w.step()
				_, err := m.GenerateContent(ctx, w.history, llms.WithTools([]llms.Tool{{
					Type: "function", Function: &llms.FunctionDefinition{Name: "lookup", Parameters: map[string]any{"type": "object"}},
				}}))
				if err != nil {
					t.Fatalf("%s: %v", sketch(w.history), err)
				}
			}
			cut = l.Chunks(run).Cut
		}
		noViolations(t, srv)
		if cut < 20 {
			t.Errorf("only %d chunks were left out", cut)
		}
	})
}
