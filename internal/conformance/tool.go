//nolint:thelper // the cases are tests: a failure shows their own line
package conformance

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

// ToolSuite says what is tested.
type ToolSuite struct {
	// New makes the middleware, once per case. Required.
	New func(t *testing.T) middleware.ToolMiddleware
	// Run gives the configuration of the run (its previewer, receivers). nil: a
	// plain run of a workflow of the suite.
	Run func(t *testing.T) middleware.RunConfig
	// Effect of the tool. Default: Effectful.
	Effect middleware.Effect
	// MaxAttempts is how often next may be called for one call. Default 1.
	MaxAttempts int
}

type toolCase struct {
	ToolSuite

	calls atomic.Int64
	tool  *middleware.GuardedTool
}

func (s ToolSuite) on(t *testing.T, next middleware.ToolHandler) *toolCase {
	t.Helper()
	if s.MaxAttempts == 0 {
		s.MaxAttempts = 1
	}
	c := &toolCase{ToolSuite: s}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "probe", Effect: s.Effect, Chain: s.New(t)},
		func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			c.calls.Add(1)

			return next(ctx, call)
		})
	if err != nil {
		t.Fatalf("NewTool: %v", err)
	}
	c.tool = tool

	return c
}

// refused checks that the call gave a content-free error and did nothing.
func (c *toolCase) refused(ctx context.Context, t *testing.T, want error) {
	t.Helper()
	res, err := c.tool.Do(ctx, "", Secret)
	if err == nil || res != nil {
		t.Fatalf("got %v, %v; want a refusal", res, err)
	}
	if !errors.Is(err, want) {
		t.Errorf("errors.Is(%v, %v) is false", err, want)
	}
	if n := c.calls.Load(); n != 0 {
		t.Errorf("the tool was called %d times", n)
	}
	contentFree(t, err)
}

func echo(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
	return &middleware.ToolResult{Output: "out " + call.Input()}, nil
}

// Tool runs the suite against a tool middleware.
func Tool(t *testing.T, s ToolSuite) { //nolint:funlen // the table of cases
	t.Helper()
	for name, f := range map[string]func(*testing.T, ToolSuite){
		"success":       toolSuccess,
		"error":         toolError,
		"concurrent":    toolConcurrent,
		"panic":         toolPanic,
		"goexit":        toolGoexit,
		"cancel before": toolCancelBefore,
		"cancel inside": toolCancelInside,
		"nil result":    toolNilResult,
		"nil next":      toolNilNext,
		"no run":        toolNoRun,
		"run ended":     toolRunEnded,
		"run halted":    toolRunHalted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, s)
		})
	}
}

func toolSuccess(t *testing.T, s ToolSuite) {
	c := s.on(t, echo)
	ctx, _ := start(t.Context(), t, s.Run)
	res, err := c.tool.Do(ctx, "", "a")
	if err != nil || res == nil || res.Output != "out a" {
		t.Fatalf("got %+v, %v", res, err)
	}
	if n := c.calls.Load(); n != 1 {
		t.Errorf("the tool was called %d times for a success", n)
	}
}

func toolError(t *testing.T, s ToolSuite) {
	c := s.on(t, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, errTool })
	ctx, _ := start(t.Context(), t, s.Run)
	res, err := c.tool.Do(ctx, "", Secret)
	if err == nil || res != nil {
		t.Fatalf("got %v, %v; want an error", res, err)
	}
	if n := c.calls.Load(); n < 1 || n > int64(c.MaxAttempts) {
		t.Errorf("the tool was called %d times, at most %d allowed", n, c.MaxAttempts)
	}
	if !errors.Is(err, errTool) {
		t.Errorf("the tool's error is not in the chain of %v", err)
	}
	contentFree(t, err)
}

func toolConcurrent(t *testing.T, s ToolSuite) {
	c := s.on(t, echo)
	ctx := t.Context()
	together(callers, func(i int) {
		ctx, r, err := middleware.StartRun(ctx, s.config(t))
		if err != nil {
			t.Errorf("StartRun: %v", err)

			return
		}
		defer r.End()
		in := "input " + strconv.Itoa(i)
		if res, err := c.tool.Do(ctx, "", in); err != nil || res.Output != "out "+in {
			t.Errorf("%s: got %+v, %v", in, res, err)
		}
	})
	if n := c.calls.Load(); n != callers {
		t.Errorf("the tool was called %d times for %d calls", n, callers)
	}
}

func (s ToolSuite) config(t *testing.T) middleware.RunConfig {
	t.Helper()
	var cfg middleware.RunConfig
	if s.Run != nil {
		cfg = s.Run(t)
	}
	if cfg.Workflow.IsZero() {
		cfg.Workflow = workflow()
	}

	return cfg
}

// again proves that nothing was left behind: further calls come back.
func (c *toolCase) again(t *testing.T, healthy *atomic.Bool) {
	t.Helper()
	healthy.Store(true)
	for range 3 {
		ctx, _ := start(t.Context(), t, c.Run)
		res, err := c.tool.Do(ctx, "", "again")
		if (err == nil) == (res == nil) {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

func toolPanic(t *testing.T, s ToolSuite) {
	var healthy atomic.Bool
	c := s.on(t, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		if healthy.Load() {
			return echo(ctx, call)
		}
		panic(Secret)
	})
	ctx, _ := start(t.Context(), t, s.Run)
	res, err := c.tool.Do(ctx, "", "a")
	if res != nil || !errors.Is(err, middleware.ReasonPanic) {
		t.Fatalf("got %v, %v; want a panic as error", res, err)
	}
	contentFree(t, err)
	c.again(t, &healthy)
}

func toolGoexit(t *testing.T, s ToolSuite) {
	var healthy atomic.Bool
	c := s.on(t, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		if healthy.Load() {
			return echo(ctx, call)
		}
		runtime.Goexit()

		return nil, nil //nolint:nilnil // not reached
	})
	ctx, _ := start(t.Context(), t, s.Run)
	apart(func() { _, _ = c.tool.Do(ctx, "", "a") })
	c.again(t, &healthy)
}

func toolCancelBefore(t *testing.T, s ToolSuite) {
	c := s.on(t, echo)
	ctx, _ := start(t.Context(), t, s.Run)
	cause := errors.New("cause with " + Secret)
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(cause)
	c.refused(ctx, t, context.Canceled)
	c.refused(ctx, t, cause)
}

func toolCancelInside(t *testing.T, s ToolSuite) {
	var cancel context.CancelFunc
	c := s.on(t, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		cancel()
		if call.Input() == "fails" {
			return nil, errTool
		}

		return echo(ctx, call)
	})
	run, _ := start(t.Context(), t, s.Run)
	ctx, stop := context.WithCancel(run)
	cancel = stop
	res, err := c.tool.Do(ctx, "", "works")
	if err != nil || res == nil {
		t.Errorf("an effect that happened was lost: %v, %v", res, err)
	}
	run, _ = start(t.Context(), t, s.Run)
	ctx, stop = context.WithCancel(run)
	defer stop()
	cancel = stop
	res, err = c.tool.Do(ctx, "", "fails")
	if res != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, errTool) {
		t.Errorf("got %v, %v; want canceled with the tool's error", res, err)
	}
	if _, told := c.tool.Observation(ctx, err); told {
		t.Errorf("a canceled run goes on")
	}
	contentFree(t, err)
}

func toolNilResult(t *testing.T, s ToolSuite) {
	c := s.on(t, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, nil //nolint:nilnil // the case
	})
	ctx, _ := start(t.Context(), t, s.Run)
	if res, err := c.tool.Do(ctx, "", "a"); err == nil || res != nil {
		t.Errorf("got %v, %v; want an error", res, err)
	}
}

func toolNilNext(t *testing.T, s ToolSuite) {
	h := s.New(t)(nil)
	if h == nil {
		t.Fatal("a nil next gave a nil handler")
	}
	c := s.on(t, func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		return h(ctx, call)
	})
	ctx, _ := start(t.Context(), t, s.Run)
	if res, err := c.tool.Do(ctx, "", "a"); err == nil || res != nil {
		t.Errorf("a chain without an end let the call pass: %v, %v", res, err)
	}
}

func toolNoRun(t *testing.T, s ToolSuite) {
	s.on(t, echo).refused(t.Context(), t, middleware.ReasonNoRun)
}

func toolRunEnded(t *testing.T, s ToolSuite) {
	ctx, r := start(t.Context(), t, s.Run)
	r.End()
	s.on(t, echo).refused(ctx, t, middleware.ReasonRunEnded)
}

func toolRunHalted(t *testing.T, s ToolSuite) {
	ctx, r := start(t.Context(), t, s.Run)
	r.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen)
	s.on(t, echo).refused(ctx, t, middleware.ReasonCircuitOpen)
}
