package watchdog_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "SECRET-argument"

var errTool = errors.New("the tool failed with " + secret)

// recorder is an observer that remembers.
type recorder struct {
	mu   sync.Mutex
	seen []middleware.Decision
}

func (r *recorder) Observe(_ context.Context, d middleware.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, d)
}

func (r *recorder) decisions() []middleware.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()

	return append([]middleware.Decision(nil), r.seen...)
}

// verdicts renders the decisions as "reason/verdict/action".
func (r *recorder) verdicts() []string {
	var all []string
	for _, d := range r.decisions() {
		all = append(all, d.Reason.String()+"/"+d.Verdict.String()+"/"+d.Action.String())
	}

	return all
}

func newDog(tb testing.TB, cfg watchdog.Config) *watchdog.Watchdog {
	tb.Helper()
	dog, err := watchdog.New(cfg)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}

	return dog
}

func startRun(ctx context.Context, tb testing.TB) (context.Context, *middleware.Run) {
	tb.Helper()
	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/test"),
	})
	if err != nil {
		tb.Fatalf("StartRun: %v", err)
	}
	tb.Cleanup(func() { run.End() })

	return ctx, run
}

// toolOf registers fn as a tool behind the layers.
func toolOf(
	tb testing.TB, name string, effect middleware.Effect, fn middleware.ToolHandler, layers ...middleware.ToolMiddleware,
) *middleware.GuardedTool {
	tb.Helper()
	tool, err := middleware.NewTool(middleware.ToolConfig{
		Name: name, Effect: effect, Chain: middleware.Chain(layers...),
	}, fn)
	if err != nil {
		tb.Fatalf("NewTool: %v", err)
	}

	return tool
}

func echo(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
	return &middleware.ToolResult{Output: "out " + call.Input()}, nil
}

func always(a watchdog.Action) watchdog.Policy {
	return func(watchdog.Detection) watchdog.Action { return a }
}

// soft reports whether an agent would go on after err.
func soft(tb testing.TB, err error) bool {
	tb.Helper()
	d, ok := errors.AsType[*middleware.Denial](err)
	if !ok {
		tb.Fatalf("got %v, want a denial", err)
	}

	return d.Soft()
}

// openTurn lets a guarded model answer once, which begins a turn.
func openTurn(ctx context.Context, tb testing.TB) {
	tb.Helper()
	model, err := middleware.NewModel(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
		return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "next"}}}}, nil
	}, middleware.ModelConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := model.GenerateContent(ctx, nil); err != nil && middleware.RunFrom(ctx).Check() == nil {
		tb.Fatal(err)
	}
}
