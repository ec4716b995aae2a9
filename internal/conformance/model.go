//nolint:thelper // the cases are tests: a failure shows their own line
package conformance

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// ModelSuite says what is tested.
type ModelSuite struct {
	// New makes the middleware, once per case. Required.
	New func(t *testing.T) middleware.ModelMiddleware
	// Run gives the configuration of the run. nil: a plain run.
	Run func(t *testing.T) middleware.RunConfig
	// MaxAttempts is how often next may be called for one call. Default 1.
	MaxAttempts int
}

type modelCase struct {
	ModelSuite

	calls atomic.Int64
	model llms.Model
}

func (s ModelSuite) on(t *testing.T, next middleware.ModelHandler) *modelCase {
	t.Helper()
	if s.MaxAttempts == 0 {
		s.MaxAttempts = 1
	}
	c := &modelCase{ModelSuite: s}
	model, err := middleware.NewModel(
		func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			c.calls.Add(1)

			return next(ctx, call)
		}, middleware.ModelConfig{Chain: s.New(t)})
	if err != nil {
		t.Fatalf("NewModel: %v", err)
	}
	c.model = model

	return c
}

func (c *modelCase) ask(ctx context.Context, prompt string) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, c.model, prompt) //nolint:wrapcheck // looked at by the cases
}

func (c *modelCase) refused(ctx context.Context, t *testing.T, want error) {
	t.Helper()
	out, err := c.ask(ctx, Secret)
	if err == nil || out != "" {
		t.Fatalf("got %q, %v; want a refusal", out, err)
	}
	if !errors.Is(err, want) {
		t.Errorf("errors.Is(%v, %v) is false", err, want)
	}
	if n := c.calls.Load(); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	contentFree(t, err)
}

func answer(_ context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
	text, _ := call.Messages()[0].Parts[0].(llms.TextContent)

	return &middleware.ModelResult{Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{
		Content: "out " + text.Text, StopReason: "stop",
	}}}}, nil
}

// Model runs the suite against a model middleware.
func Model(t *testing.T, s ModelSuite) {
	t.Helper()
	for name, f := range map[string]func(*testing.T, ModelSuite){
		"success":        modelSuccess,
		"error":          modelError,
		"concurrent":     modelConcurrent,
		"panic":          modelPanic,
		"goexit":         modelGoexit,
		"cancel before":  modelCancelBefore,
		"cancel inside":  modelCancelInside,
		"broken results": modelBroken,
		"nil next":       modelNilNext,
		"no run":         modelNoRun,
		"run ended":      modelRunEnded,
		"run halted":     modelRunHalted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, s)
		})
	}
}

func modelSuccess(t *testing.T, s ModelSuite) {
	c := s.on(t, answer)
	ctx, _ := start(t.Context(), t, s.Run)
	if out, err := c.ask(ctx, "a"); err != nil || out != "out a" {
		t.Fatalf("got %q, %v", out, err)
	}
	if n := c.calls.Load(); n != 1 {
		t.Errorf("the model was called %d times for a success", n)
	}
}

func modelError(t *testing.T, s ModelSuite) {
	c := s.on(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, errTool })
	ctx, _ := start(t.Context(), t, s.Run)
	out, err := c.ask(ctx, Secret)
	if out != "" || !errors.Is(err, errTool) {
		t.Fatalf("got %q, %v; want the model's error", out, err)
	}
	if n := c.calls.Load(); n < 1 || n > int64(c.MaxAttempts) {
		t.Errorf("the model was called %d times, at most %d allowed", n, c.MaxAttempts)
	}
	contentFree(t, err)
}

func modelConcurrent(t *testing.T, s ModelSuite) {
	c := s.on(t, answer)
	ctx, _ := start(t.Context(), t, s.Run)
	together(callers, func(i int) {
		in := "prompt " + strconv.Itoa(i)
		if out, err := c.ask(ctx, in); err != nil || out != "out "+in {
			t.Errorf("%s: got %q, %v", in, out, err)
		}
	})
}

func (c *modelCase) again(t *testing.T, healthy *atomic.Bool) {
	t.Helper()
	healthy.Store(true)
	for range 3 {
		ctx, _ := start(t.Context(), t, c.Run)
		if out, err := c.ask(ctx, "again"); (err == nil) == (out == "") {
			t.Errorf("got %q, %v", out, err)
		}
	}
}

func modelPanic(t *testing.T, s ModelSuite) {
	var healthy atomic.Bool
	c := s.on(t, func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		if healthy.Load() {
			return answer(ctx, call)
		}
		panic(Secret)
	})
	ctx, _ := start(t.Context(), t, s.Run)
	out, err := c.ask(ctx, "a")
	if out != "" || !errors.Is(err, middleware.ReasonPanic) {
		t.Fatalf("got %q, %v; want a panic as error", out, err)
	}
	contentFree(t, err)
	c.again(t, &healthy)
}

func modelGoexit(t *testing.T, s ModelSuite) {
	var healthy atomic.Bool
	c := s.on(t, func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		if healthy.Load() {
			return answer(ctx, call)
		}
		runtime.Goexit()

		return nil, nil //nolint:nilnil // not reached
	})
	ctx, _ := start(t.Context(), t, s.Run)
	apart(func() { _, _ = c.ask(ctx, "a") })
	c.again(t, &healthy)
}

func modelCancelBefore(t *testing.T, s ModelSuite) {
	ctx, _ := start(t.Context(), t, s.Run)
	cause := errors.New("cause with " + Secret)
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	c := s.on(t, answer)
	c.refused(ctx, t, context.Canceled)
	c.refused(ctx, t, cause)
}

// A client that returns half an answer with a nil error when its context ends
// must not look like one that answered.
func modelCancelInside(t *testing.T, s ModelSuite) {
	ctx, _ := start(t.Context(), t, s.Run)
	ctx, cancel := context.WithCancel(ctx)
	c := s.on(t, func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		cancel()

		return answer(ctx, call)
	})
	out, err := c.ask(ctx, "half")
	if out != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("got %q, %v; want canceled", out, err)
	}
}

func modelBroken(t *testing.T, s ModelSuite) {
	for name, res := range map[string]*middleware.ModelResult{
		"nil":         nil,
		"no response": {},
		"no choices":  {Response: &llms.ContentResponse{}},
		"nil choice":  {Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{nil}}},
		"nil function": {Response: &llms.ContentResponse{Choices: []*llms.ContentChoice{{
			StopReason: "tool_calls", ToolCalls: []llms.ToolCall{{ID: "x"}},
		}}}},
	} {
		c := s.on(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return res, nil })
		ctx, _ := start(t.Context(), t, s.Run)
		if resp, err := c.model.GenerateContent(ctx, prompt("a")); err == nil || resp != nil {
			t.Errorf("%s: got %v, %v; want an error", name, resp, err)
		}
	}
}

func prompt(text string) []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, text)}
}

func modelNilNext(t *testing.T, s ModelSuite) {
	h := s.New(t)(nil)
	if h == nil {
		t.Fatal("a nil next gave a nil handler")
	}
	c := s.on(t, func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		return h(ctx, call)
	})
	ctx, _ := start(t.Context(), t, s.Run)
	if out, err := c.ask(ctx, "a"); err == nil || out != "" {
		t.Errorf("a chain without an end answered: %q, %v", out, err)
	}
}

func modelNoRun(t *testing.T, s ModelSuite) {
	s.on(t, answer).refused(t.Context(), t, middleware.ReasonNoRun)
}

func modelRunEnded(t *testing.T, s ModelSuite) {
	ctx, r := start(t.Context(), t, s.Run)
	r.End()
	s.on(t, answer).refused(ctx, t, middleware.ReasonRunEnded)
}

func modelRunHalted(t *testing.T, s ModelSuite) {
	ctx, r := start(t.Context(), t, s.Run)
	r.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	s.on(t, answer).refused(ctx, t, middleware.ReasonCircuitOpen)
}
