package interlock

import (
	"strconv"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// Candidate is a model that a guarded model may ask: label, provider and model
// name have to be said, because clients hide them.
type Candidate = fallback.Candidate

// Fallback is what all models of a guard share.
type Fallback struct {
	// AttemptTimeout is the limit of one attempt at one candidate. Default 0: 60 s.
	AttemptTimeout time.Duration
	// OnAuth says what follows a refused key. Default: the call fails.
	OnAuth fallback.AuthAction
	// Pinned makes a move to another candidate final. Default false.
	Pinned bool
	// FirstToken is how long the first token of an attempt may take. Default 0: 10 s.
	FirstToken time.Duration
	// Idle is how long the pause between two tokens may be. Default 0: 10 s.
	Idle time.Duration
	// Stream says when chunks reach the caller. Default nil: at once (fallback.Passthrough).
	Stream fallback.StreamMode
	// NoRetry moves on at once instead of asking a candidate again. Default false.
	NoRetry bool
	// RouteByWindow skips candidates whose Window is too small for a call. Default false.
	RouteByWindow bool
	// Checks may reject a response before it counts. Default none.
	Checks []fallback.ResponseCheck
	// Requires is what the agents of the guard need: Model refuses candidates of which none has all of it. Default none.
	Requires fallback.Capabilities
}

// Model returns a model over candidates, the first being the primary. A single
// candidate is bridged too: langchaingo's functions agent on anthropic alone
// would send no tools at all. It is an llms.ReasoningModel if all candidates
// support reasoning.
//
// It fails with a [ConfigError] that names the candidate's position and field.
func (g *Guard) Model(candidates ...Candidate) (llms.Model, error) {
	for i, c := range candidates {
		if middleware.IsWrapped(c.Model) {
			return nil, badConfig("Candidates["+strconv.Itoa(i)+"].Model", "a client, wrapped once", middleware.ReasonAlreadyWrapped)
		}
	}
	chain, err := fallback.New(fallback.Config{
		Candidates: candidates, AttemptTimeout: g.cfg.Fallback.AttemptTimeout, OnAuth: g.cfg.Fallback.OnAuth,
		Pinned: g.cfg.Fallback.Pinned, FirstToken: g.cfg.Fallback.FirstToken, Idle: g.cfg.Fallback.Idle,
		Stream: g.cfg.Fallback.Stream, NoRetry: g.cfg.Fallback.NoRetry, Requires: g.cfg.Fallback.Requires,
		RouteByWindow: g.cfg.Fallback.RouteByWindow, Checks: g.cfg.Fallback.Checks,
		Observer: g.cfg.Observer, Tracer: g.cfg.Tracer, Now: g.cfg.Now,
	})
	if err != nil {
		return nil, badConfig("Candidates", "as fallback.Config says", err)
	}
	handle, err := g.limited(chain.Handle, candidates)
	if err != nil {
		return nil, err
	}
	model, err := middleware.NewModel(handle, middleware.ModelConfig{
		Label: candidates[0].Label, Chain: g.modelChain, Observer: g.cfg.Observer, Reasoning: chain.SupportsReasoning(),
	})
	if err != nil {
		return nil, badConfig("Candidates", "as middleware.NewModel says", err)
	}
	g.mu.Lock()
	g.gauges = append(g.gauges, chain)
	g.mu.Unlock()

	return model, nil
}

// limited puts the context limiter around handle, if there is one. A request has
// to fit whoever may be asked, so the smallest window counts.
func (g *Guard) limited(handle middleware.ModelHandler, candidates []Candidate) (middleware.ModelHandler, error) {
	if g.cfg.Context == nil {
		return handle, nil
	}
	window := g.cfg.Context.Window
	for _, c := range candidates {
		if g.cfg.Context.Window == 0 && c.Window > 0 && (window == 0 || c.Window < window) {
			window = c.Window
		}
	}
	if window == 0 {
		return nil, badConfig("Candidates", "a Window of one of them, or Config.Context.Window", nil)
	}
	limiter, err := g.limiter(window)
	if err != nil {
		return nil, badConfig("Context", "as escalation.ContextConfig says", err)
	}

	return limiter.Model()(handle), nil
}
