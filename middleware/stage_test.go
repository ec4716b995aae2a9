package middleware_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

func runtimeGoexit() { runtime.Goexit() }

func at(s middleware.Stage) middleware.ToolMiddleware { return middleware.At(s, pass) }

// Every pair of stages: outer then inner is allowed exactly if inner is not the
// earlier one. User's own layers between them change nothing.
func TestStageOrder(t *testing.T) {
	t.Parallel()
	ctx, _ := start(t, middleware.RunConfig{})
	for _, outer := range middleware.Stages() {
		for _, inner := range middleware.Stages() {
			calls := 0
			tool := newTool(t, middleware.ToolConfig{Chain: middleware.Chain(pass, at(outer), pass, at(inner), pass)},
				func(context.Context, *toolCall) (*toolResult, error) {
					calls++

					return &toolResult{}, nil
				})
			for range 2 { // a refusal leaves no mark behind that would change the second
				_, err := tool.Do(ctx, "", "")
				if allowed := outer <= inner; allowed != (err == nil) {
					t.Errorf("%v outside of %v: %v", outer, inner, err)
				} else if !allowed {
					wantReason(t, err, middleware.ReasonUnsafeOrder)
				}
			}
			if want := 2; outer <= inner && calls != want || outer > inner && calls != 0 {
				t.Errorf("%v outside of %v: the tool was called %d times", outer, inner, calls)
			}
			mcall := middleware.NewModelCall(nil)
			model := middleware.At(outer, middleware.At(inner, passModel))(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) {
				return &middleware.ModelResult{}, nil
			})
			if _, err := model(ctx, mcall); (outer <= inner) != (err == nil) {
				t.Errorf("model: %v outside of %v: %v", outer, inner, err)
			}
		}
	}
}

func passModel(next middleware.ModelHandler) middleware.ModelHandler {
	return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
		return next(ctx, call)
	}
}

func TestStageIsLeft(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]toolHandler{
		"return": echo,
		"error":  failing(errSecret),
		"panic":  func(context.Context, *toolCall) (*toolResult, error) { panic(1) },
		"goexit": func(context.Context, *toolCall) (*toolResult, error) { runtime.Goexit(); return nil, nil },
	} {
		call := &toolCall{}
		apart(func() {
			_, _ = middleware.Recover(middleware.At(middleware.StageSpan, pass)(h))(t.Context(), call)
		})
		if before, ok := call.Enter(middleware.StageRun); !ok || before != 0 {
			t.Errorf("%s: stage %v is still marked", name, before)
		}
	}
}

func TestAtRefusesNil(t *testing.T) {
	t.Parallel()
	if mw := middleware.At[*toolCall, *toolResult](middleware.StageGate, nil); mw != nil {
		t.Error("a nil middleware became one that does something")
	}
	lost := middleware.At(middleware.StageGate, func(toolHandler) toolHandler { return nil })(echo)
	_, err := lost(t.Context(), &toolCall{})
	wantReason(t, err, middleware.ReasonNilHandler)
}

// A retry may call again with the same call, or with the next attempt.
func TestStageAllowsRetry(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*toolCall) *toolCall{
		"same call":    func(c *toolCall) *toolCall { return c },
		"next attempt": (*toolCall).NextAttempt,
	} {
		attempts := []int{}
		retry := func(next toolHandler) toolHandler {
			return func(ctx context.Context, call *toolCall) (*toolResult, error) {
				if _, err := next(ctx, call); err == nil {
					t.Error("the first attempt was to fail")
				}

				return next(ctx, again(call))
			}
		}
		tool := newTool(t, middleware.ToolConfig{
			Chain: middleware.Chain(middleware.At(middleware.StageRetry, retry), at(middleware.StageApproval), at(middleware.StageGate)),
		}, func(_ context.Context, call *toolCall) (*toolResult, error) {
			if attempts = append(attempts, call.Attempt()); len(attempts) == 1 {
				return nil, errSecret
			}

			return &toolResult{}, nil
		})
		ctx, _ := start(t, middleware.RunConfig{})
		if _, err := tool.Do(ctx, "", ""); err != nil || len(attempts) != 2 {
			t.Errorf("%s: %v after attempts %v", name, err, attempts)
		}
	}
}

// A wrong order stays refused inside of a retry, in each attempt: the copies
// carry the mark.
func TestStageIsCopied(t *testing.T) {
	t.Parallel()
	for name, derive := range map[string]func(*toolCall) *toolCall{
		"NextAttempt":  (*toolCall).NextAttempt,
		"Clone":        (*toolCall).Clone,
		"WithInput":    func(c *toolCall) *toolCall { return c.WithInput("x") },
		"WithApproval": func(c *toolCall) *toolCall { return c.WithApproval(middleware.Approval{}) },
	} {
		swap := func(next toolHandler) toolHandler {
			return func(ctx context.Context, call *toolCall) (*toolResult, error) { return next(ctx, derive(call)) }
		}
		tool := newTool(t, middleware.ToolConfig{
			Chain: middleware.Chain(at(middleware.StageGate), swap, at(middleware.StageApproval)),
		}, echo)
		ctx, _ := start(t, middleware.RunConfig{})
		if _, err := tool.Do(ctx, "", ""); !errors.Is(err, middleware.ReasonUnsafeOrder) {
			t.Errorf("%s washes the mark off: %v", name, err)
		}
	}
	call := middleware.NewModelCall(nil)
	call.Enter(middleware.StageGate)
	for name, d := range map[string]*middleware.ModelCall{
		"Append": call.Append(), "WithMessages": call.WithMessages(nil), "WithCandidate": call.WithCandidate(call.Candidate(), 2),
	} {
		if _, ok := d.Enter(middleware.StageRun); ok {
			t.Errorf("%s washes the mark off", name)
		}
	}
}

// Two attempts at once, with a copy each: no race, no false refusal.
func TestConcurrentHedge(t *testing.T) {
	t.Parallel()
	hedge := func(next toolHandler) toolHandler {
		return func(ctx context.Context, call *toolCall) (*toolResult, error) {
			var wg sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				own := call.NextAttempt()
				wg.Go(func() {
					for range 100 {
						if _, err := next(middleware.ContextWithToolCall(ctx, own), own); err != nil {
							errs[i] = err
						}
					}
				})
			}
			wg.Wait()

			return &toolResult{}, errors.Join(errs...)
		}
	}
	tool := newTool(t, middleware.ToolConfig{
		Effect: middleware.ReadOnly,
		Chain:  middleware.Chain(middleware.At(middleware.StageRetry, hedge), at(middleware.StageGate), at(middleware.StageSpan)),
	}, echo)
	ctx, _ := start(t, middleware.RunConfig{})
	if _, err := tool.Do(ctx, "", ""); err != nil {
		t.Error(err)
	}
}
