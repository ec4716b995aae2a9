package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret stands in whatever is content. It must not be found in what leaves.
const secret = "canary-SECRET-4711"

var errSecret = errors.New("the failure of " + secret)

type (
	toolHandler = middleware.ToolHandler
	toolCall    = middleware.ToolCall
	toolResult  = middleware.ToolResult
)

func workflow() ident.WorkflowID { return ident.MustWorkflowID("workflow:org.example/refunds@1.0.0") }

func start(tb testing.TB, cfg middleware.RunConfig) (context.Context, *middleware.Run) {
	tb.Helper()

	return startIn(tb.Context(), tb, cfg)
}

func startIn(ctx context.Context, tb testing.TB, cfg middleware.RunConfig) (context.Context, *middleware.Run) {
	tb.Helper()
	if cfg.Workflow.IsZero() {
		cfg.Workflow = workflow()
	}
	ctx, r, err := middleware.StartRun(ctx, cfg)
	if err != nil {
		tb.Fatalf("StartRun: %v", err)
	}
	tb.Cleanup(func() { r.End() })

	return ctx, r
}

func newTool(tb testing.TB, cfg middleware.ToolConfig, fn toolHandler) *middleware.GuardedTool {
	tb.Helper()
	if cfg.Name == "" {
		cfg.Name = "probe"
	}
	tool, err := middleware.NewTool(cfg, fn)
	if err != nil {
		tb.Fatalf("NewTool: %v", err)
	}

	return tool
}

func echo(_ context.Context, call *toolCall) (*toolResult, error) {
	return &toolResult{Output: "out " + call.Input()}, nil
}

func failing(err error) toolHandler {
	return func(context.Context, *toolCall) (*toolResult, error) { return nil, err }
}

// capture gives the call that a registered tool makes.
func capture(tb testing.TB, cfg middleware.ToolConfig, input string) *toolCall {
	tb.Helper()
	var got *toolCall
	ctx, _ := start(tb, middleware.RunConfig{})
	if _, err := newTool(tb, cfg, func(_ context.Context, call *toolCall) (*toolResult, error) {
		got = call

		return &toolResult{}, nil
	}).Do(ctx, "id", input); err != nil {
		tb.Fatalf("Do: %v", err)
	}

	return got
}

// plainTool is a tool as langchaingo knows it.
type plainTool struct {
	name string
	fn   func(ctx context.Context, input string) (string, error)
}

func (p plainTool) Name() string        { return p.name }
func (p plainTool) Description() string { return "describes " + p.name }
func (p plainTool) Call(ctx context.Context, input string) (string, error) {
	if p.fn == nil {
		return "out " + input, nil
	}

	return p.fn(ctx, input)
}

type fakeModel func(ctx context.Context, messages []llms.MessageContent, options []llms.CallOption) (*llms.ContentResponse, error)

func (f fakeModel) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	return f(ctx, messages, options)
}

func (f fakeModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func saying(text string, calls ...llms.ToolCall) *llms.ContentResponse {
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, ToolCalls: calls}}}
}

func calling(id, name string) llms.ToolCall {
	return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: "{}"}}
}

func prompt(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func wrapModel(tb testing.TB, m llms.Model, cfg middleware.ModelConfig) llms.Model {
	tb.Helper()
	w, err := middleware.WrapModel(m, cfg)
	if err != nil {
		tb.Fatalf("WrapModel: %v", err)
	}

	return w
}

// recorder is an observer that keeps what it hears.
type recorder struct {
	mu    sync.Mutex
	heard []middleware.Decision
}

func (r *recorder) Observe(_ context.Context, d middleware.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard = append(r.heard, d)
}

func (r *recorder) all() []middleware.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()

	return append([]middleware.Decision(nil), r.heard...)
}

func verbs() []string { return []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%T%v"} }

// contentFree fails the test if err shows the secret in any form of printing.
func contentFree(tb testing.TB, err error) {
	tb.Helper()
	for _, verb := range verbs() {
		args := []any{err}
		if verb == "%T%v" {
			args = append(args, err)
		}
		if s := fmt.Sprintf(verb, args...); strings.Contains(s, "SECRET") {
			tb.Errorf("%s shows content: %s", verb, s)
		}
	}
}

func wantReason(tb testing.TB, err error, want middleware.Reason) {
	tb.Helper()
	if !errors.Is(err, want) || middleware.ReasonOf(err) != want {
		tb.Errorf("got %v (reason %v), want %v", err, middleware.ReasonOf(err), want)
	}
	contentFree(tb, err)
}

// apart runs f on a goroutine of its own, so that a Goexit in f ends only that.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
