package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	secret = "canary-SECRET"

	uncertainty = middleware.FailureUncertainty
	permission  = middleware.FailurePermissionDenial
	toolFailure = middleware.FailureTool
)

var (
	workflow = ident.MustWorkflowID("workflow:org.example/refunds@1.0.0")
	at       = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	errTool  = errors.New("the failure of " + secret)
)

// appendEnv makes the test binary a process that appends to a handoff file.
const appendEnv = "ESCALATION_TEST_APPEND"

// decideEnv makes it one that decides the handoffs of a file.
const decideEnv = "ESCALATION_TEST_DECIDE"

func TestMain(m *testing.M) {
	if path := os.Getenv(appendEnv); path != "" {
		if err := appendMany(path, appendLines); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(decideEnv); path != "" {
		n, err := decideMany(path, appendLines)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(strings.Repeat(".", n))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const appendLines = 25

// appendMany is what the helper processes do.
func appendMany(path string, n int) error {
	s, err := escalation.NewFileSink(path)
	if err != nil {
		return err
	}
	for i := range n {
		run, err := ident.NewRunID()
		if err != nil {
			return err
		}
		b, err := escalation.NewBreaker(escalation.BreakerConfig{Run: run, Workflow: workflow, Policy: escalation.DefaultPolicy()})
		if err != nil {
			return err
		}
		h, err := b.Trip(toolFailure, digest(i), at)
		if err != nil {
			return err
		}
		if err := s.Deliver(context.Background(), *h); err != nil {
			return err
		}
	}

	return nil
}

// decideMany decides the first handoffs of a file, and returns how many of them
// were not decided by somebody else.
func decideMany(path string, n int) (won int, err error) {
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: path, Now: func() time.Time { return at }})
	if err != nil {
		return 0, err
	}
	var ids []ident.Digest
	if _, err := q.List(context.Background(), func(e escalation.QueueEntry) error {
		ids = append(ids, e.Digest)

		return nil
	}); err != nil {
		return 0, err
	}
	for _, id := range ids[:n] {
		_, err := q.Decide(context.Background(), id, escalation.ReviewAbortRun, ident.MustLabel("night-desk"))
		switch middleware.ReasonOf(err) {
		case 0:
			won++
		case middleware.ReasonHandoffDecided:
		default:
			return won, err
		}
	}

	return won, nil
}

func runID(tb testing.TB, fill string) ident.RunID {
	tb.Helper()
	id, err := ident.ParseRunID("run_" + strings.Repeat(fill, 32/len(fill)))
	if err != nil {
		tb.Fatal(err)
	}

	return id
}

func digest(n int) string { return ident.DigestOf([]byte{byte(n)}).Hex() }

func newBreaker(tb testing.TB, p escalation.Policy) *escalation.Breaker {
	tb.Helper()
	b, err := escalation.NewBreaker(escalation.BreakerConfig{Run: runID(tb, "ab"), Workflow: workflow, Policy: p})
	if err != nil {
		tb.Fatal(err)
	}

	return b
}

// tripped returns a breaker that one failure of class c halted.
func tripped(tb testing.TB, c escalation.Class) (*escalation.Breaker, escalation.Handoff) {
	tb.Helper()
	b := newBreaker(tb, escalation.DefaultPolicy())
	h, err := b.Trip(c, digest(1), at)
	if err != nil || h == nil {
		tb.Fatalf("Trip: %v, %v", h, err)
	}

	return b, *h
}

// log keeps the decisions it hears.
type log struct {
	mu   sync.Mutex
	kept []middleware.Decision
}

func (l *log) Observe(_ context.Context, d middleware.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, d)
}

func (l *log) count(r middleware.Reason) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, d := range l.kept {
		if d.Reason == r {
			n++
		}
	}

	return n
}

func (l *log) all() []middleware.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()

	return append([]middleware.Decision(nil), l.kept...)
}

// bench is an Escalation with all that a test looks at.
type bench struct {
	*escalation.Escalation

	log  *log
	sink *escalation.MemorySink
}

func newBench(tb testing.TB, change func(*escalation.Config)) bench {
	tb.Helper()
	sink, err := escalation.NewMemorySink(1000)
	if err != nil {
		tb.Fatal(err)
	}
	b := bench{log: &log{}, sink: sink}
	cfg := escalation.Config{Observer: b.log, Sink: sink, Now: func() time.Time { return at }}
	if change != nil {
		change(&cfg)
	}
	if b.Escalation, err = escalation.New(cfg); err != nil {
		tb.Fatal(err)
	}

	return b
}

func (b bench) start(tb testing.TB, ctx context.Context) (context.Context, *middleware.Run) { //nolint:revive // tb first reads better here
	tb.Helper()
	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{
		Workflow: workflow, Label: ident.MustLabel("desk"),
		Receivers: []middleware.SignalReceiver{b}, Slots: []middleware.Slot{b.Slot()},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })

	return ctx, run
}

// tool registers a function behind the escalation alone: a custom executor.
func (b bench) tool(tb testing.TB, name string, effect middleware.Effect, fn middleware.ToolHandler) *middleware.GuardedTool {
	tb.Helper()

	return b.chained(tb, name, effect, b.Tool(), fn)
}

func (b bench) chained(
	tb testing.TB, name string, effect middleware.Effect, chain middleware.ToolMiddleware, fn middleware.ToolHandler,
) *middleware.GuardedTool {
	tb.Helper()
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: name, Effect: effect, Chain: chain}, fn)
	if err != nil {
		tb.Fatal(err)
	}

	return tool
}

func fails(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	return nil, errTool
}

func works(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	return &middleware.ToolResult{Output: "done"}, nil
}

// inside makes a middleware that returns err instead of calling the tool.
func inside(err func(ctx context.Context) error) middleware.ToolMiddleware {
	return func(middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, err(ctx)
		}
	}
}

func denial(run ident.RunID, c middleware.Component, r middleware.Reason, v middleware.Verdict) error {
	return middleware.NewDenial(middleware.Refusal{Run: run, Component: c, Reason: r, Verdict: v})
}

// contentFree fails if any form of printing shows the canary.
func contentFree(tb testing.TB, v any) {
	tb.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if s := fmt.Sprintf(verb, v); strings.Contains(s, "SECRET") || strings.Contains(s, "534543524554") {
			tb.Errorf("%s shows content: %s", verb, s)
		}
	}
}
