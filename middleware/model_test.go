package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// reasoner is a model that says whether it reasons.
type reasoner struct {
	fakeModel

	reasons bool
}

func (r reasoner) SupportsReasoning() bool { return r.reasons }

func answering(resp *llms.ContentResponse, err error) fakeModel {
	return func(context.Context, []llms.MessageContent, []llms.CallOption) (*llms.ContentResponse, error) {
		return resp, err
	}
}

func TestWrapModel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		model   llms.Model
		reasons bool
	}{
		{"plain", answering(saying("a"), nil), false},
		{"reasoning", reasoner{answering(saying("a"), nil), true}, true},
		{"could, but does not", reasoner{answering(saying("a"), nil), false}, false},
	} {
		// What the caller says of it does not count.
		w := wrapModel(t, tc.model, middleware.ModelConfig{Reasoning: !tc.reasons})
		r, ok := w.(llms.ReasoningModel)
		if ok != tc.reasons || (ok && !r.SupportsReasoning()) {
			t.Errorf("%s: a reasoning model: %v", tc.name, ok)
		}
		ctx, _ := start(t, middleware.RunConfig{})
		if out, err := w.Call(ctx, "q"); err != nil || out != "a" { //nolint:staticcheck // older programs use it
			t.Errorf("%s: got %q, %v", tc.name, out, err)
		}
		if again, err := middleware.WrapModel(w, middleware.ModelConfig{}); again != nil || !errors.Is(err, middleware.ReasonAlreadyWrapped) {
			t.Errorf("%s: wrapped twice: %v", tc.name, err)
		}
		type embedding struct{ llms.Model }
		if _, err := middleware.WrapModel(embedding{w}, middleware.ModelConfig{}); err != nil {
			t.Errorf("%s: an interface hides what it holds: %v", tc.name, err)
		}
	}
	_, err := middleware.WrapModel(nil, middleware.ModelConfig{Label: ident.MustLabel("m")})
	wantReason(t, err, middleware.ReasonInvalidConfig)
	_, err = middleware.NewModel(nil, middleware.ModelConfig{})
	wantReason(t, err, middleware.ReasonInvalidConfig)
	ctx, _ := start(t, middleware.RunConfig{})
	_, err = middleware.ModelHandlerOf(nil, ident.Label{})(ctx, middleware.NewModelCall(nil))
	wantReason(t, err, middleware.ReasonNilHandler)
}

func TestModelHandlerOf(t *testing.T) {
	t.Parallel()
	var got llms.CallOptions
	var asked []llms.MessageContent
	label := ident.MustLabel("primary")
	h := middleware.ModelHandlerOf(fakeModel(func(_ context.Context, m []llms.MessageContent, o []llms.CallOption) (*llms.ContentResponse, error) {
		asked, got = m, resolve(o)

		return saying("a"), nil
	}), label)
	res, err := h(t.Context(), middleware.NewModelCall(prompt("q"), llms.WithTemperature(0.5)).Append(llms.WithModel("m")))
	if err != nil || res.Candidate != label || res.Response.Choices[0].Content != "a" || got.Model != "m" || got.Temperature != 0.5 || len(asked) != 1 {
		t.Errorf("got %+v, %v, asked %v with %+v", res, err, asked, got)
	}
}

func TestModelAnswers(t *testing.T) {
	t.Parallel()
	exhausted := middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonExhausted, ident.MustLabel("primary"), errSecret)
	soft := middleware.NewDenial(middleware.Refusal{Verdict: middleware.VerdictModify, Reason: middleware.ReasonLoop, Component: middleware.ComponentWatchdog})
	for _, tc := range []struct {
		name string
		resp *llms.ContentResponse
		err  error
		want middleware.Reason
	}{
		{"text", saying("a"), nil, 0},
		{"calls", saying("", calling("1", "a")), nil, 0},
		{"empty text", saying(""), nil, 0},
		{"nil", nil, nil, middleware.ReasonBadResponse},
		{"no choices", &llms.ContentResponse{}, nil, middleware.ReasonBadResponse},
		{"nil choice", &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "a"}, nil}}, nil, middleware.ReasonBadResponse},
		{"call without function", saying("", calling("1", "a"), llms.ToolCall{ID: "2"}), nil, middleware.ReasonBadResponse},
		{"error", nil, errSecret, middleware.ReasonModelFailed},
		{"error beside an answer", saying("half"), errSecret, middleware.ReasonModelFailed},
		{"an error of the library", nil, exhausted, middleware.ReasonExhausted},
		{"a denial", nil, soft, middleware.ReasonLoop}, // a model's seam has nobody to tell: also a soft one is an error
	} {
		w := wrapModel(t, answering(tc.resp, tc.err), middleware.ModelConfig{Label: ident.MustLabel("model")})
		ctx, r := start(t, middleware.RunConfig{})
		resp, err := w.GenerateContent(ctx, prompt(secret))
		if (resp == nil) != (err != nil) || (err == nil) != (tc.want == 0) || (tc.want == 0) != (r.Turn() == 1) {
			t.Errorf("%s: got %v, %v, turn %d", tc.name, resp, err, r.Turn())
		}
		if tc.want == 0 {
			continue
		}
		wantReason(t, err, tc.want)
		if tc.err != nil && !errors.Is(err, tc.err) {
			t.Errorf("%s: the model's error is not in the chain", tc.name)
		}
		if middleware.ValidResponse(tc.resp) != (tc.err != nil && tc.resp != nil) {
			t.Errorf("%s: ValidResponse", tc.name)
		}
	}
}

func TestModelPanics(t *testing.T) {
	t.Parallel()
	w := wrapModel(t, fakeModel(func(context.Context, []llms.MessageContent, []llms.CallOption) (*llms.ContentResponse, error) {
		panic(secret)
	}), middleware.ModelConfig{})
	ctx, _ := start(t, middleware.RunConfig{})
	out, err := llms.GenerateFromSinglePrompt(ctx, w, "q")
	if out != "" {
		t.Errorf("got %q", out)
	}
	wantReason(t, err, middleware.ReasonPanic)
}

// A call under a dead context is canceled, whatever came back: the context's
// error, its cause and the client's error are in the chain.
func TestModelCanceled(t *testing.T) {
	t.Parallel()
	client := errors.New("network error: failed to reach " + secret)
	for _, tc := range []struct {
		name string
		resp *llms.ContentResponse
		err  error
	}{{"an answer", saying("half"), nil}, {"an error", nil, client}, {"nothing", nil, nil}} {
		ctx, r := start(t, middleware.RunConfig{})
		ctx, cancel := context.WithCancelCause(ctx)
		w := wrapModel(t, fakeModel(func(context.Context, []llms.MessageContent, []llms.CallOption) (*llms.ContentResponse, error) {
			cancel(errSecret)

			return tc.resp, tc.err
		}), middleware.ModelConfig{})
		resp, err := w.GenerateContent(ctx, prompt("q"))
		wantReason(t, err, middleware.ReasonCanceled)
		if resp != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, errSecret) || (tc.err != nil && !errors.Is(err, tc.err)) || r.Turn() != 0 {
			t.Errorf("%s: got %v, %v", tc.name, resp, err)
		}
		// and is not made at all the next time.
		_, err = w.GenerateContent(ctx, prompt("q"))
		wantReason(t, err, middleware.ReasonCanceled)
	}
}

func TestModelChain(t *testing.T) {
	t.Parallel()
	var order []string
	named := func(name string) middleware.ModelMiddleware {
		return func(next middleware.ModelHandler) middleware.ModelHandler {
			return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
				order = append(order, name)
				if middleware.RunFrom(ctx) == nil {
					t.Error("no run in the context")
				}

				return next(ctx, call.Append(llms.WithModel(name)))
			}
		}
	}
	var model string
	w := wrapModel(t, fakeModel(func(_ context.Context, _ []llms.MessageContent, o []llms.CallOption) (*llms.ContentResponse, error) {
		model = resolve(o).Model

		return saying("a"), nil
	}), middleware.ModelConfig{Chain: middleware.Chain(named("a"), named("b"))})
	ctx, _ := start(t, middleware.RunConfig{})
	if _, err := w.GenerateContent(ctx, prompt("q"), llms.WithModel("caller")); err != nil || model != "b" || len(order) != 2 || order[0] != "a" {
		t.Errorf("got %v, model %s, order %v", err, model, order)
	}
	wrong := wrapModel(t, answering(saying("a"), nil), middleware.ModelConfig{
		Chain: middleware.Chain(middleware.At(middleware.StageFallback, passModel), middleware.At(middleware.StageBudget, passModel)),
	})
	_, err := wrong.GenerateContent(ctx, prompt("q"))
	wantReason(t, err, middleware.ReasonUnsafeOrder)
}
