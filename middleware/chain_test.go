package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

func pass(next toolHandler) toolHandler {
	return func(ctx context.Context, call *toolCall) (*toolResult, error) { return next(ctx, call) }
}

func TestChainRefusesWhatIsMissing(t *testing.T) {
	t.Parallel()
	lost := func(toolHandler) toolHandler { return nil }
	for name, layers := range map[string][]middleware.ToolMiddleware{
		"nil alone": {nil}, "nil first": {nil, pass}, "nil between": {pass, nil, pass}, "nil last": {pass, nil},
		"layer that returns nil": {pass, lost, pass}, "only such a layer": {lost}, "such a layer first": {lost, pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := false
			h := middleware.Chain(layers...)(func(context.Context, *toolCall) (*toolResult, error) {
				called = true

				return &toolResult{}, nil
			})
			ctx, r := start(t, middleware.RunConfig{})
			res, err := h(ctx, nil)
			wantReason(t, err, middleware.ReasonNilHandler)
			if res != nil || called {
				t.Errorf("res %v, tool called: %v", res, called)
			}
			if d, ok := errors.AsType[*middleware.Denial](err); !ok || d.Soft() || d.Component() != middleware.ComponentChain || d.Run() != r.ID() {
				t.Errorf("not a hard denial of the chain in this run: %+v", d)
			}
		})
	}
	for name, h := range map[string]toolHandler{
		"no layer":   middleware.Chain[*toolCall, *toolResult]()(nil),
		"a layer":    middleware.Chain(pass)(nil),
		"Recover":    middleware.Recover[*toolCall, *toolResult](nil),
		"RequireRun": middleware.RequireRun[*toolCall, *toolResult](nil),
		"Settle":     middleware.Settle(nil),
		"TraceTool":  middleware.TraceTool(nil)(nil),
		"At":         middleware.At(middleware.StageGate, panicsOnNil)(nil),
	} {
		if h == nil {
			t.Errorf("%s: a nil handler stayed nil", name)

			continue
		}
		if res, err := h(t.Context(), nil); res != nil || !errors.Is(err, middleware.ReasonNilHandler) {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
	}
}

// panicsOnNil is a middleware as users write them: it does not look at next.
func panicsOnNil(next toolHandler) toolHandler {
	if next == nil {
		panic("nil next")
	}

	return next
}

func TestChainKeepsItsLayers(t *testing.T) {
	t.Parallel()
	layers := []middleware.ToolMiddleware{pass}
	chain := middleware.Chain(layers...)
	layers[0] = nil
	if _, err := chain(echo)(t.Context(), &toolCall{}); err != nil {
		t.Errorf("a write to the caller's slice changed the chain: %v", err)
	}
}

// That these lines compile is the test: no type argument is written.
func TestChainInfers(t *testing.T) {
	t.Parallel()
	gate := func(next toolHandler) toolHandler { return next }
	var typed middleware.ToolMiddleware = middleware.Recover
	for _, mw := range []middleware.ToolMiddleware{
		middleware.Chain(middleware.Recover, gate),
		middleware.Chain(gate, middleware.RequireRun),
		middleware.Chain(middleware.Chain(gate), middleware.Settle),
		middleware.Chain([]middleware.ToolMiddleware{typed}...),
	} {
		ctx, _ := start(t, middleware.RunConfig{})
		if res, err := mw(echo)(ctx, &toolCall{}); err != nil || res.Output != "out " {
			t.Errorf("got %v, %v", res, err)
		}
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	h := middleware.Recover(func(context.Context, int) (string, error) { panic(errSecret) })
	out, err := h(t.Context(), 1)
	wantReason(t, err, middleware.ReasonPanic)
	p, ok := err.(*middleware.PanicError)
	if out != "" || !ok || p.Value() != errSecret || len(p.Stack()) == 0 || !errors.Is(err, errSecret) {
		t.Errorf("got %q, %#v", out, err)
	}
	exited := true
	apart(func() {
		_, _ = middleware.Recover(func(context.Context, int) (string, error) { runtimeGoexit(); return "", nil })(t.Context(), 1)
		exited = false
	})
	if !exited {
		t.Error("a Goexit came back as a return")
	}
}

func TestRequireRun(t *testing.T) {
	t.Parallel()
	h := middleware.RequireRun(toolHandler(echo))
	_, err := h(t.Context(), &toolCall{})
	wantReason(t, err, middleware.ReasonNoRun)

	ctx, r := start(t, middleware.RunConfig{})
	if _, err := h(ctx, &toolCall{}); err != nil {
		t.Errorf("refused in a run: %v", err)
	}
	dead, cancel := context.WithCancelCause(ctx)
	cancel(errSecret)
	_, err = h(dead, &toolCall{})
	wantReason(t, err, middleware.ReasonCanceled)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, errSecret) {
		t.Errorf("context error or cause is not in %v", err)
	}
	r.End()
	_, err = h(ctx, &toolCall{})
	wantReason(t, err, middleware.ReasonRunEnded)
}
