package watchdog

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/middleware"
)

// Watchdog is the hook: it asks detectors and policy, and makes happen what
// they say.
type Watchdog struct {
	cfg        Config
	detectors  []Detector
	progress   *progress   // among the detectors; nil if another one watches for loops
	regression *regression // among the detectors, or nil
	runs       middleware.PerRun[runState]
	seq        atomic.Uint64
	abandoned  atomic.Int64
	lost       counter
}

// counter counts events that could not be: ends without a beginning, say.
type counter struct{ n atomic.Uint64 }

func (c *counter) add() { c.n.Add(1) }

// actor is a detector that is told what became of the call that it fired at.
type actor interface {
	acted(ctx context.Context, call *middleware.ToolCall, blocked bool)
}

// New returns a watchdog, or a [ConfigError] that names field and bound.
func New(cfg Config) (*Watchdog, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	w := &Watchdog{cfg: cfg}
	switch {
	case cfg.DisableLoop:
	case cfg.Loop == LoopRepeat:
		w.detectors = append(w.detectors, newRepeat(cfg.LoopThreshold, cfg.LoopWindow))
	default:
		w.progress = newProgress(cfg.Fuse, &w.lost)
		w.detectors = append(w.detectors, w.progress)
	}
	if cfg.Regression {
		w.regression = newRegression(cfg.RegressionWindow, cfg.RegressionDrop)
		w.detectors = append(w.detectors, w.regression)
	}
	w.detectors = append(w.detectors, cfg.Detectors...)
	w.runs = middleware.PerRun[runState]{
		New: func(*middleware.Run) (*runState, error) {
			return &runState{alarm: alarm{timeout: cfg.StallTimeout}}, nil
		},
		End: func(s *runState) { s.alarm.end() },
	}

	return w, nil
}

// Abandoned returns how many tools that were detached from are still running.
func (w *Watchdog) Abandoned() int { return int(w.abandoned.Load()) }

// Tool returns the hook for tool calls.
func (w *Watchdog) Tool() middleware.ToolMiddleware {
	return middleware.At(middleware.StageWatchdog, func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if err := middleware.CheckRun(ctx); err != nil {
				return nil, err //nolint:wrapcheck // a denial or failure of the library
			}
			run := middleware.RunFrom(ctx)
			state, err := w.runs.Get(run)
			if err != nil {
				return nil, err //nolint:wrapcheck // as above
			}
			var v visit
			if err := w.judge(ctx, run, state, call, &v); err != nil {
				if v.open {
					v.blocked()
					w.progress.leave(call, &v, endRefused, nil, err)
				}

				return nil, err
			}
			if v.open {
				return w.followed(ctx, run, state, call, next, &v)
			}

			return w.make(ctx, run, state, call, next)
		}
	})
}

func (w *Watchdog) make(
	ctx context.Context, run *middleware.Run, state *runState, call *middleware.ToolCall, next middleware.ToolHandler,
) (*middleware.ToolResult, error) {
	if w.cfg.DisableStall {
		return next(ctx, call)
	}

	return w.timed(ctx, run, state, call, next)
}

// followed makes a call and tells the loop detector what came of it.
func (w *Watchdog) followed(
	ctx context.Context, run *middleware.Run, state *runState, call *middleware.ToolCall, next middleware.ToolHandler, v *visit,
) (res *middleware.ToolResult, err error) {
	v.observed()
	end := endLost
	defer func() { w.progress.leave(call, v, end, res, err) }()
	res, err = w.make(ctx, run, state, call, next)
	end = endMade

	return res, err
}

// Ignored returns how many events were ignored because they could not be.
func (w *Watchdog) Ignored() uint64 { return w.lost.n.Load() }

// runState is what the hook keeps for a run.
type runState struct {
	alarm alarm
	// owed is the reason of an Escalate that found no call to refuse, of a call
	// that went well all the same or between calls: the run's next call gets the
	// denial. nudge is the reason of a Nudge that the next request carries.
	owed, nudge atomic.Uint32
	// read is set once the run's first request was.
	read atomic.Bool

	mu      sync.Mutex
	strikes map[strikeKey]int
}

func (s *runState) takeOwed() middleware.Reason { return take(&s.owed) }

// owedRuling is what follows from an owed reason: of a detector that failed no
// handoff.
func owedRuling(reason middleware.Reason) ruling {
	if reason == middleware.ReasonDetectorFailed {
		return ruling{action: Abort, failed: true}
	}

	return ruling{action: Escalate}
}

func (s *runState) takeNudge() middleware.Reason { return take(&s.nudge) }

func take(a *atomic.Uint32) middleware.Reason {
	if a.Load() == 0 {
		return 0
	}

	return middleware.Reason(a.Swap(0)) //nolint:gosec // a Reason was stored
}

// stall is the number of the stall detector among the strikes.
const stall = -1

// strike counts a detection of a detector, and gives it its place among the
// decisions.
func (w *Watchdog) strike(s *runState, detector int, reason middleware.Reason) (strikes, again int, seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strikes == nil {
		s.strikes = make(map[strikeKey]int, 2)
	}
	s.strikes[strikeKey{detector: detector}]++
	s.strikes[strikeKey{detector: detector, reason: reason}]++

	return s.strikes[strikeKey{detector: detector}], s.strikes[strikeKey{detector: detector, reason: reason}] - 1, w.seq.Add(1)
}

// strikeKey is a detector, and one of its reasons or all of them.
type strikeKey struct {
	detector int
	reason   middleware.Reason
}
