package middleware

import (
	"context"

	"github.com/interlock-go/interlock/ident"
)

// Tool is the shape of a tool that an agent calls with text. langchaingo's
// tools.Tool has it; it is named here so that this package does not pull in the
// packages behind that one.
type Tool interface {
	Name() string
	Description() string
	Call(ctx context.Context, input string) (string, error)
}

// ToolConfig is the registration of a tool.
type ToolConfig struct {
	// Name as the agent knows it. [WrapTool] takes it from the tool.
	Name string
	// Label for telemetry and digests. Zero: derived from Name by [LabelFor].
	Label ident.Label
	// Effect of a call. Zero: Effectful.
	Effect Effect
	// Chain around the tool. nil: none; the adapter's own checks remain.
	Chain ToolMiddleware
	// ErrorText releases the text of the tool's errors to the model, at most
	// 4 KiB without control characters. It goes to the provider and may hold a
	// password or a patient's name. Default: a fixed sentence with the class.
	ErrorText bool
	// Observer hears refusals that belong to no other component (no run, run
	// ended, halted, unsafe order). nil: nobody.
	Observer Observer
}

// GuardedTool is a registered tool of any executor. It is safe for concurrent
// use.
type GuardedTool struct {
	cfg     ToolConfig
	handler ToolHandler
}

// NewTool registers a function as a tool. It is how an executor that is not
// langchaingo's uses the library: no type of langchaingo is involved.
//
// The layers are, outermost first: recover, run check, cfg.Chain, [Settle],
// fn. It fails with invalid_config for an empty name or a nil fn and with
// invalid_label if no label can be derived.
func NewTool(cfg ToolConfig, fn ToolHandler) (*GuardedTool, error) {
	if cfg.Name == "" || fn == nil || cfg.Effect >= effectEnd {
		return nil, NewFailure(ComponentTool, ReasonInvalidConfig, cfg.Label)
	}
	if cfg.Label.IsZero() {
		label, err := LabelFor(cfg.Name)
		if err != nil {
			return nil, err
		}
		cfg.Label = label
	}
	handler := Settle(fn)
	if cfg.Chain != nil {
		handler = Chain(cfg.Chain)(handler)
	}

	return &GuardedTool{cfg: cfg, handler: Recover(handler)}, nil
}

// Label returns the tool's registered label.
func (t *GuardedTool) Label() ident.Label { return t.cfg.Label }

// Effect returns the tool's registered effect class.
func (t *GuardedTool) Effect() Effect { return t.cfg.Effect }

// Do calls the tool. id is the provider's identifier of the call; "" claims the
// one that the run's guarded model gave for a call of this name, or makes one.
//
// Every error is content-free: a [Denial], or a [Failure] or other [Reasoned]
// whose causes are reachable by Unwrap. [GuardedTool.Observation] says which of
// them an agent should be told of instead of ending its run.
func (t *GuardedTool) Do(ctx context.Context, id, input string) (*ToolResult, error) {
	s, _ := scopeFrom(ctx)
	if err := CheckRun(ctx); err != nil {
		reportRefusal(ctx, t.cfg.Observer, s.run, t.cfg.Label, err)

		return nil, err
	}
	call := &ToolCall{tool: &t.cfg, input: input, attempt: 1}
	s.run.claim(call, id)
	call.stage.Store(uint32(StageRun))
	s.tool = call
	res, err := t.handler(withScope(ctx, s), call)
	if err != nil {
		err = t.typed(ctx, call, err)
		reportOrder(ctx, t.cfg.Observer, s.run, t.cfg.Label, err)

		return nil, err
	}
	if res == nil {
		return nil, noResult(call) // a layer lost it
	}

	return res, nil
}

// typed gives an error of a layer or of the tool the form that may leave. What
// Settle says of a tool's error holds for a layer's too: a layer that gave up
// waiting does not know more of the effect.
func (t *GuardedTool) typed(ctx context.Context, call *ToolCall, err error) (out error) {
	defer func() { // errors have methods of the tool's author
		if v := recover(); v != nil {
			out = settlePanic(call, NewPanicError(v, nil))
		}
	}()
	p, ok := err.(*PanicError) //nolint:errorlint // only a panic of a layer itself arrives bare
	if ok && !call.Effect().Repeatable() {
		return UnknownOutcome(call, p) // the layer may have panicked after the effect
	}
	if _, ok := err.(Reasoned); ok { //nolint:errorlint // only the outermost error's text is printed
		return err
	}

	return ToolError(call.Label(), settleError(ctx, call, err))
}

// reportRefusal tells o that the run check refused a call: no component of the
// chain saw it. A halted run is reported with the component that halted it.
func reportRefusal(ctx context.Context, o Observer, run *Run, label ident.Label, err error) {
	d, ok := err.(*Denial) //nolint:errorlint // the refusal itself, not one further down
	if !ok || o == nil {
		return
	}
	Notify(ctx, o, Decision{
		Component: d.Component(), Verdict: d.Verdict(), Action: d.Action(), Reason: d.Reason(),
		Run: run.ID(), Workflow: run.Workflow(), Label: label, Turn: run.Turn(),
	})
}

// reportOrder tells o of the refusals that no component reports itself: those
// of the chain.
func reportOrder(ctx context.Context, o Observer, run *Run, label ident.Label, err error) {
	if d, ok := err.(*Denial); ok && d.Component() == ComponentChain { //nolint:errorlint // as above
		reportRefusal(ctx, o, run, label, err)
	}
}
