package escalation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// The context limiter keeps a history small and near its task.
//
// A history is a head (what stands before the first human message, and that
// message: the task), then chunks: an assistant message with the results of all
// its calls, or another message. System messages belong to no chunk. Chunks are
// dropped whole and oldest first, never the newest, so no call loses its result
// and no result its call. The head, all system messages and the last human
// message always stay. Nothing is put between what stays but one human message
// with the summary, right behind the task; both wire formats take human messages
// in a row. A history in one text (langchaingo's MRKL agent) has no chunks: it is
// left as it is, which is reported and told to the breaker.
//
// Executors send the whole history each time. A run therefore remembers, by
// keyed digests, the chunks of each of its conversations, how many of the oldest
// are cut, and the summary of those. A history that begins with the same chunks
// is cut in the same place; any other one is judged anew. What is cut is cut to
// three quarters of MaxFill, so that it happens once in a while and not at each
// call, and a provider's cache of the prompt stays useful in between.
//
//	size after the cut so far      chunks that go now
//	≤ MaxFill                      none
//	> MaxFill                      oldest, until ≤ ¾ MaxFill; of the four newest only what MaxFill
//	                               needs, the longest summary included
//	> MaxFill even with the newest all but the four newest, once four more have come;
//	chunk alone                    > Window: more, until ≤ Window or only the newest is left
//	drift > DriftLimit             all but the four newest, once four more have come
//
// Size is bytes/3, rounded up, of messages and tool definitions; an image counts
// as 1,600 tokens. When a provider counts a call that is no trifle (a sixteenth of
// the window), the ratio of its count to the estimate scales the estimates of the
// run from then on, in [1/3, 3]: tokens from a cache are counted in, and a lower
// ratio means that only a part was counted.

const (
	defaultMaxFill     = 0.4
	defaultDriftLimit  = 0.85
	defaultMaxSummary  = 4 << 10
	maxMaxSummary      = 64 << 10
	defaultUserTimeout = 30 * time.Second
	maxUserTimeout     = 5 * time.Minute
	maxWindow          = 1 << 30

	// recentTurns are what drift is measured over, and what a cut spares where it can.
	recentTurns = 4
	// cutTo is the share of MaxFill that a cut leaves.
	cutTo = 0.75
	// maxConversations of one run are remembered.
	maxConversations = 16
)

// ContextConfig of a [ContextLimiter].
type ContextConfig struct {
	// Window of the model, the smallest of those that may answer, in tokens.
	// Required; [1, 2³⁰].
	Window int
	// MaxFill is the share of the window past which history is shortened. Default
	// 0.4; (0, 1].
	MaxFill float64
	// DriftLimit is the drift past which history is shortened. Default 0.85; (0, 1].
	DriftLimit float64
	// Drift measures how far the last four turns are from the task. It is asked
	// from the fourth turn on. Default nil: 1 − the cosine of hashed term vectors;
	// see also [EmbeddingDrift]. One that fails is read as drift 1.
	Drift DriftFunc
	// Summary says in few words what is left out. Default nil: no summary.
	Summary SummaryFunc
	// MaxSummary bounds a summary, in bytes. Default 4,096; [1, 65,536]. It is
	// never longer than what it stands for, nor than a quarter of MaxFill.
	MaxSummary int
	// Timeout bounds a call of Drift or Summary by the context that it gets.
	// Default 30 s; (0, 5 min].
	Timeout time.Duration
	// Breaker is told of each call past a limit, once, of both limits context_full
	// first. Default nil: nobody.
	Breaker *ActionBreaker
	// Observer hears the decisions. Default nil: nobody.
	Observer middleware.Observer
}

// ContextLimiter is a model middleware that measures each request of a run, by
// its share of the context window and its drift from the task, and shortens the
// history of one that is past a limit. A shortened history keeps the system
// messages, the first and the last human message, the newest turns, and calls
// together with their results. The caller's messages are never changed.
//
// Every call is a decision with Fill and Drift: allow; or modify, with the
// number of chunks left out as Count. Its reason is ok, or context_full or
// context_drift for one past a limit; allow with one of these means that there
// was nothing that could be left out. A summary that failed is a decision with
// summary_failed, a drift that could not be measured one with detector_failed;
// Count is how many there were in the run.
//
// It is safe for concurrent use by any number of runs; user functions, observer
// and breaker are called outside of all locks. Its cost is linear in the
// messages of the call: about one SHA-256 of each message (BenchmarkContextLimiter,
// on an idle 2-core virtual machine: 4 µs for 10 short messages, 23 µs for 100,
// 0.2 ms for 1,000). The zero value and nil make chains that refuse every call.
type ContextLimiter struct {
	cfg      ContextConfig
	keys     callkey.Keyer
	seq      atomic.Uint64
	slot     middleware.PerRun[contextState]
	layouts  sync.Pool // of *layout
	vectors  sync.Pool // of *termVectors
	maxBytes int       // of a summary; none fits into a window of a few dozen tokens
}

// NewContextLimiter returns a limiter. It fails with a [ConfigError] that names
// the first field out of bounds.
func NewContextLimiter(cfg ContextConfig) (*ContextLimiter, error) {
	if cfg.MaxFill == 0 {
		cfg.MaxFill = defaultMaxFill
	}
	if cfg.DriftLimit == 0 {
		cfg.DriftLimit = defaultDriftLimit
	}
	if cfg.MaxSummary == 0 {
		cfg.MaxSummary = defaultMaxSummary
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultUserTimeout
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &ContextLimiter{
		cfg: cfg, keys: callkey.New(),
		layouts: sync.Pool{New: func() any { return new(layout) }},
		vectors: sync.Pool{New: func() any { return new(termVectors) }},
	}
	quarter := (1 - cutTo) * cfg.MaxFill * float64(cfg.Window) * bytesPerToken
	l.maxBytes = min(cfg.MaxSummary, int(quarter)-len(summaryLead))
	l.slot = middleware.PerRun[contextState]{New: func(*middleware.Run) (*contextState, error) { return &contextState{}, nil }}

	return l, nil
}

func (c *ContextConfig) validate() error {
	for _, check := range []struct {
		ok           bool
		field, bound string
		reason       middleware.Reason
	}{
		{c.Window > 0 && c.Window <= maxWindow, "Window", "in [1, 2^30]", middleware.ReasonInvalidConfig},
		// written so that NaN is refused
		{c.MaxFill > 0 && c.MaxFill <= 1, "MaxFill", "in (0, 1]", middleware.ReasonInvalidThreshold},
		{c.DriftLimit > 0 && c.DriftLimit <= 1, "DriftLimit", "in (0, 1]", middleware.ReasonInvalidThreshold},
		{c.MaxSummary > 0 && c.MaxSummary <= maxMaxSummary, "MaxSummary", "in [1, 65536]", middleware.ReasonInvalidConfig},
		{c.Timeout > 0 && c.Timeout <= maxUserTimeout, "Timeout", "in (0, 5 min]", middleware.ReasonInvalidConfig},
	} {
		if !check.ok {
			return &ConfigError{reason: check.reason, field: check.field, bound: check.bound}
		}
	}

	return nil
}

// Model returns the middleware, which stands at [middleware.StageContext].
func (l *ContextLimiter) Model() middleware.ModelMiddleware {
	return middleware.At(middleware.StageContext, func(next middleware.ModelHandler) middleware.ModelHandler {
		if l == nil || l.slot.New == nil || next == nil {
			return nil // At makes a chain of it that refuses every call
		}

		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			return l.handle(ctx, call, next)
		}
	})
}

func (l *ContextLimiter) handle(
	ctx context.Context, call *middleware.ModelCall, next middleware.ModelHandler,
) (*middleware.ModelResult, error) {
	run := middleware.RunFrom(ctx)
	if err := run.Check(); err != nil {
		return nil, err // hand-made chains may lack the run check
	}
	if asking(ctx) {
		return next(ctx, call) // a summary that asks the same guarded model
	}
	state, err := l.slot.Get(run)
	if err != nil {
		return nil, err //nolint:wrapcheck // an error of the run's is content-free
	}
	limited, sent := l.limit(ctx, run, state, call)
	if ctx.Err() != nil { // while a user function was asked
		return nil, middleware.NewCanceled(ctx, middleware.ComponentContext, ident.Label{}, nil)
	}
	res, err := next(ctx, limited)
	if err == nil {
		state.calibrate(sent, inputTokens(res), l.cfg.Window)
	}

	return res, err
}

// limit measures a call, shortens it where it must, and reports. It returns the
// call to make and its size in bytes.
func (l *ContextLimiter) limit(
	ctx context.Context, run *middleware.Run, state *contextState, call *middleware.ModelCall,
) (limited *middleware.ModelCall, sent int) {
	h := l.layout(call)
	defer l.release(h)
	drift, driftErr := l.drift(ctx, h)
	if ctx.Err() != nil {
		return call, 0
	}
	p := state.plan(l, h, drift > l.cfg.DriftLimit)
	var summaryErr error
	if p.tell != nil {
		summaryErr = l.summarize(ctx, state, h, &p)
	}
	if p.dropped > 0 {
		call = call.WithMessages(h.shortened(&p))
	}
	l.report(ctx, run, state, report{plan: &p, drift: drift, driftErr: driftErr, summaryErr: summaryErr})

	return call, p.sent
}

// report is what is told of one call.
type report struct {
	plan                 *plan
	drift                float64
	driftErr, summaryErr error
}

func (l *ContextLimiter) report(ctx context.Context, run *middleware.Run, state *contextState, r report) {
	var reasons []middleware.Reason // most calls: none
	if r.plan.full {
		reasons = append(reasons, middleware.ReasonContextFull)
	}
	if r.plan.drifted {
		reasons = append(reasons, middleware.ReasonContextDrift)
	}
	if len(reasons) > 0 {
		l.cfg.Breaker.note(ctx, run, reasons[0]) // one failure per call, whatever it was
	}
	if l.cfg.Observer == nil {
		state.failed(r.driftErr, r.summaryErr)

		return
	}
	d := middleware.Decision{
		Component: middleware.ComponentContext, Verdict: middleware.VerdictAllow, Action: middleware.ActionProceed,
		Reason: middleware.ReasonOK, Run: run.ID(), Workflow: run.Workflow(), Turn: run.Turn(),
		Fill: r.plan.fill, Drift: r.drift, Count: r.plan.dropped,
	}
	if r.plan.dropped > 0 {
		d.Verdict, d.Action = middleware.VerdictModify, middleware.ActionSubstitute
	}
	if len(reasons) > 0 {
		d.Reason = reasons[0]
	}
	l.notify(ctx, d)
	d.Fill, d.Drift = 0, 0 // a reading is counted once
	if len(reasons) > 1 {
		d.Reason = reasons[1]
		l.notify(ctx, d)
	}
	drifts, summaries := state.failed(r.driftErr, r.summaryErr)
	if r.driftErr != nil {
		d.Reason, d.Count = middleware.ReasonDetectorFailed, drifts
		l.notify(ctx, d)
	}
	if r.summaryErr != nil {
		d.Reason, d.Count = middleware.ReasonSummaryFailed, summaries
		l.notify(ctx, d)
	}
}

func (l *ContextLimiter) notify(ctx context.Context, d middleware.Decision) {
	d.Seq = l.seq.Add(1)
	middleware.Notify(ctx, l.cfg.Observer, d)
}

// ChunkCounts says of how many chunks of a run something is known. A chunk is an
// assistant message with the results of its calls, or another message behind
// the task that is not a system message.
type ChunkCounts struct {
	// Known are all that the histories of the run hold.
	Known int
	// InWindow are those that the last call of their conversation was made with.
	InWindow int
	// Cut are those that it was made without.
	Cut int
	// Triggered are those with which a limit was passed: the newest at that call.
	Triggered int
}

// Chunks returns the counts of a run; nothing after its end.
func (l *ContextLimiter) Chunks(run *middleware.Run) ChunkCounts {
	if l == nil || l.slot.New == nil {
		return ChunkCounts{}
	}
	state, err := l.slot.Get(run)
	if err != nil {
		return ChunkCounts{}
	}

	return state.counts()
}
