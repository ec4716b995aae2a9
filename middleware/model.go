package middleware

import (
	"context"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
)

// ModelConfig says how a model is wrapped.
type ModelConfig struct {
	// Label of the model, for telemetry and errors. May be zero.
	Label ident.Label
	// Chain around the model. nil: none; the adapter's own checks remain.
	Chain ModelMiddleware
	// Observer hears refusals that belong to no other component. nil: nobody.
	Observer Observer
	// Reasoning makes the result of [NewModel] an llms.ReasoningModel.
	// [WrapModel] takes it from the model.
	Reasoning bool
}

type guardedModel struct {
	cfg     ModelConfig
	handler ModelHandler
}

// reasoningModel is the same model with the one more method.
type reasoningModel struct{ *guardedModel }

var (
	_ llms.Model          = (*guardedModel)(nil)
	_ llms.ReasoningModel = reasoningModel{}
)

// SupportsReasoning returns true.
func (reasoningModel) SupportsReasoning() bool { return true }

// isGuarded marks what NewModel returns, so that it is not wrapped twice.
func (*guardedModel) isGuarded() {}

// WrapModel returns m behind a chain. It stays an llms.ReasoningModel if it
// supports reasoning. CreateEmbedding, which is not part of llms.Model, is not
// kept. It fails with invalid_config for a nil m and already_wrapped for one
// that this package made.
func WrapModel(m llms.Model, cfg ModelConfig) (llms.Model, error) {
	if m == nil {
		return nil, NewFailure(ComponentModel, ReasonInvalidConfig, cfg.Label)
	}
	if IsWrapped(m) {
		return nil, NewFailure(ComponentModel, ReasonAlreadyWrapped, cfg.Label)
	}
	rm, ok := m.(llms.ReasoningModel)
	cfg.Reasoning = ok && rm.SupportsReasoning()

	return NewModel(ModelHandlerOf(m, cfg.Label), cfg)
}

// NewModel returns an llms.Model over a handler: the layers are, outermost
// first, recover, run check, cfg.Chain, h.
//
// It never returns nil with a nil error, a response without choices, a nil
// choice or a tool call without a function: agents panic on each of them. Every
// error is content-free; a call under a context that is done is canceled,
// whatever came back, because clients return half an answer with a nil error.
// The outermost guarded model of a run opens a turn with each response.
func NewModel(h ModelHandler, cfg ModelConfig) (llms.Model, error) {
	if h == nil {
		return nil, NewFailure(ComponentModel, ReasonInvalidConfig, cfg.Label)
	}
	if cfg.Chain != nil {
		h = Chain(cfg.Chain)(h)
	}
	g := &guardedModel{cfg: cfg, handler: Recover(h)}
	if cfg.Reasoning {
		return reasoningModel{g}, nil
	}

	return g, nil
}

// ModelHandlerOf returns the handler that asks m, with the options as they
// were given. A nil m refuses every call.
func ModelHandlerOf(m llms.Model, label ident.Label) ModelHandler {
	if m == nil {
		return refuseAll[*ModelCall, *ModelResult]
	}

	return func(ctx context.Context, call *ModelCall) (*ModelResult, error) {
		resp, err := m.GenerateContent(ctx, call.Messages(), call.CallOptions()...)
		if err != nil {
			return nil, err //nolint:wrapcheck // the adapter gives it its form
		}

		return &ModelResult{Response: resp, Candidate: label}, nil
	}
}

// GenerateContent asks the model through its chain.
func (g *guardedModel) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	s, _ := scopeFrom(ctx)
	if err := CheckRun(ctx); err != nil {
		reportRefusal(ctx, g.cfg.Observer, s.run, g.cfg.Label, err)

		return nil, err
	}
	opensTurn := s.tool == nil && !s.model
	s.model = true
	call := NewModelCall(messages, options...)
	call.stage.Store(uint32(StageRun))
	res, err := g.handler(withScope(ctx, s), call)
	resp, err := g.settle(ctx, res, err)
	if err != nil {
		reportOrder(ctx, g.cfg.Observer, s.run, g.cfg.Label, err)

		return nil, err
	}
	if opensTurn {
		s.run.openTurn(resp)
	}

	return resp, nil
}

// Call is the text-only form, by [llms.GenerateFromSinglePrompt].
func (g *guardedModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, g, prompt, options...) //nolint:wrapcheck // GenerateContent's own errors
}

func (g *guardedModel) settle(ctx context.Context, res *ModelResult, err error) (*llms.ContentResponse, error) {
	if d, ok := err.(*Denial); ok { //nolint:errorlint // the chain's own refusal
		return nil, d
	}
	if ctx.Err() != nil {
		return nil, NewCanceled(ctx, ComponentModel, g.cfg.Label, err)
	}
	if err != nil {
		if _, ok := err.(Reasoned); ok { //nolint:errorlint // only the outermost error's text is printed
			return nil, err
		}

		return nil, NewFailure(ComponentModel, ReasonModelFailed, g.cfg.Label, err)
	}
	if res == nil || !ValidResponse(res.Response) {
		return nil, NewFailure(ComponentModel, ReasonBadResponse, g.cfg.Label)
	}

	return res.Response, nil
}

// ValidResponse reports whether an agent can use resp without a panic: it is
// not nil, has choices, none of them nil, and no tool call lacks its function.
func ValidResponse(resp *llms.ContentResponse) bool {
	if resp == nil || len(resp.Choices) == 0 {
		return false
	}
	for _, c := range resp.Choices {
		if c == nil {
			return false
		}
		for i := range c.ToolCalls {
			if c.ToolCalls[i].FunctionCall == nil {
				return false
			}
		}
	}

	return true
}

// IsWrapped reports whether this package made m, so that wrapping it again
// would count and ask everything twice.
func IsWrapped(m llms.Model) bool {
	_, guarded := m.(interface{ isGuarded() })

	return guarded
}
