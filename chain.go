package interlock

import (
	"context"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Chain returns c with every Call as a run of its own: also each input of
// chains.Apply, which would otherwise share one loop state. A Call inside of a
// run is a nested run, and the enclosing stall clock pauses meanwhile.
//
// An error of the guard comes out as it is; any other error of c, whose text
// often quotes the model, comes out as agent_failed, with the original by
// errors.Is, errors.As and errors.Unwrap. An unregistered workflow, and a chain
// that a guard wrapped already or that is nil, is refused at each Call.
func (g *Guard) Chain(workflow ident.WorkflowID, c chains.Chain) chains.Chain {
	if c == nil {
		c = noChain{}
	}

	return &runChain{guard: g, workflow: workflow, Chain: c}
}

type runChain struct {
	chains.Chain

	guard    *Guard
	workflow ident.WorkflowID
}

var (
	_ chains.Chain           = (*runChain)(nil)
	_ callbacks.HandlerHaver = (*runChain)(nil)
)

// Call runs the chain as one run.
func (c *runChain) Call(
	ctx context.Context, inputs map[string]any, options ...chains.ChainCallOption,
) (map[string]any, error) {
	if _, twice := c.Chain.(*runChain); twice {
		return nil, middleware.NewFailure(middleware.ComponentRun, middleware.ReasonAlreadyWrapped, ident.Label{})
	}
	var out map[string]any
	err := c.guard.Do(ctx, c.workflow, func(ctx context.Context) error {
		var err error
		out, err = c.Chain.Call(ctx, inputs, options...)

		return agentError(ctx, err)
	})

	return out, err
}

// agentError gives an error of langchaingo a content-free form.
func agentError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := err.(middleware.Reasoned); ours { //nolint:errorlint // only the outermost error's text is printed
		return err
	}
	if ctx.Err() != nil {
		return middleware.NewCanceled(ctx, middleware.ComponentRun, ident.Label{}, err)
	}

	return middleware.NewFailure(middleware.ComponentRun, middleware.ReasonAgentFailed, ident.Label{}, err)
}

// GetCallbackHandler forwards the handler of the wrapped chain, so that
// chains.Call finds it as before.
func (c *runChain) GetCallbackHandler() callbacks.Handler { //nolint:ireturn // langchaingo's interface
	if h, ok := c.Chain.(callbacks.HandlerHaver); ok {
		return h.GetCallbackHandler()
	}

	return nil
}

// GetMemory forwards; a chain without memory gets one that keeps nothing, since
// chains.Call asks without looking.
func (c *runChain) GetMemory() schema.Memory { //nolint:ireturn // langchaingo's interface
	if m := c.Chain.GetMemory(); m != nil {
		return m
	}

	return memory.NewSimple()
}

// noChain stands for a nil chain: it refuses.
type noChain struct{}

func (noChain) Call(context.Context, map[string]any, ...chains.ChainCallOption) (map[string]any, error) {
	return nil, middleware.NewFailure(middleware.ComponentRun, middleware.ReasonInvalidConfig, ident.Label{})
}

func (noChain) GetMemory() schema.Memory { return memory.NewSimple() } //nolint:ireturn // langchaingo's interface
func (noChain) GetInputKeys() []string   { return []string{"input"} }
func (noChain) GetOutputKeys() []string  { return []string{"output"} }
