package watchdog

import (
	"context"
	"sync"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// RunnerConfig says what a [Runner] owns.
type RunnerConfig struct {
	// Watchdog whose detectors and hook they are: one of [New], or a guard's.
	// Required.
	Watchdog *Watchdog
	// Model builds the fallback model of a run. Default nil: none.
	Model func() (llms.Model, error)
}

// Runner watches one run from its start to its end: it polls the detectors that
// compute on demand, and holds the fallback model of the run. It is safe for
// concurrent use.
//
//	state     event   next
//	new       Start   running: the model is built, the polling begins
//	new       Stop    stopped
//	running   Start   running, nothing happens
//	running   Stop    stopped: returns when the polling has ended
//	stopped   Start   refused, run_ended
//	stopped   Stop    stopped, nothing happens
//
// A Start that fails leaves it as it was.
type Runner struct {
	cfg     RunnerConfig
	pollers []poller

	mu      sync.Mutex
	stopped bool
	cancel  context.CancelFunc // while running
	done    chan struct{}      // closed when the polling has ended
	model   llms.Model
}

// poller is a detector that is polled, and its number in the watchdog.
type poller struct {
	Poller

	detector int
}

// NewRunner returns a runner, or a [ConfigError] that names the field.
func NewRunner(cfg RunnerConfig) (*Runner, error) {
	if cfg.Watchdog == nil {
		return nil, refuse("Watchdog", "not nil")
	}
	r := &Runner{cfg: cfg}
	for i, det := range cfg.Watchdog.detectors {
		if p, ok := det.(Poller); ok {
			r.pollers = append(r.pollers, poller{Poller: p, detector: i})
		}
	}

	return r, nil
}

// Watchdog returns the watchdog that the runner was made with.
func (r *Runner) Watchdog() *Watchdog { return r.cfg.Watchdog }

// Start begins to watch the run in ctx, until ctx is done, the run ends or Stop
// is called. It fails without a run that can go on, and if the fallback model
// cannot be built (model_failed, or the reason of its error): a run that counts
// on it does not begin.
func (r *Runner) Start(ctx context.Context) error {
	run := middleware.RunFrom(ctx)
	if err := middleware.CheckRun(ctx); err != nil {
		return err //nolint:wrapcheck // a denial or failure of the library
	}
	state, err := r.cfg.Watchdog.runs.Get(run)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	if started, err := r.started(run); started || err != nil {
		return err
	}
	model, err := r.build() // outside of the lock: it is the user's function
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.cancel != nil { // another Start or Stop was faster
		return r.refusal(run)
	}
	r.model, r.done = model, make(chan struct{})
	ctx, r.cancel = context.WithCancel(ctx)
	go r.poll(ctx, run, state, r.done)

	return nil
}

func (r *Runner) started(run *middleware.Run) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.cancel != nil, r.refusal(run)
}

// refusal is for a Start after Stop. The caller holds the lock.
func (r *Runner) refusal(run *middleware.Run) error {
	if !r.stopped {
		return nil
	}

	return middleware.NewDenial(middleware.Refusal{
		Run: run.ID(), Component: middleware.ComponentWatchdog, Reason: middleware.ReasonRunEnded,
	})
}

// build makes the fallback model and contains its maker.
func (r *Runner) build() (m llms.Model, err error) {
	if r.cfg.Model == nil {
		return nil, nil //nolint:nilnil // none was asked for
	}
	defer func() {
		if v := recover(); v != nil {
			m, err = nil, middleware.NewPanicError(v, nil)
		}
	}()
	m, err = r.cfg.Model()
	if err != nil || m == nil {
		reason := middleware.FailureReason(err, middleware.ReasonModelFailed)
		if err == nil {
			reason = middleware.ReasonModelFailed
		}

		return nil, middleware.NewFailure(middleware.ComponentWatchdog, reason, ident.Label{}, err)
	}
	if middleware.IsWrapped(m) {
		return m, nil // a guard's, which is watched already
	}

	return middleware.WrapModel(m, middleware.ModelConfig{ //nolint:wrapcheck // content-free
		Chain: r.cfg.Watchdog.Model(), Observer: r.cfg.Watchdog.cfg.Observer,
	})
}

// Model returns the fallback model of the run behind the response watch, nil
// before Start or if none was asked for.
func (r *Runner) Model() llms.Model {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.model
}

// Stop ends the watching and returns when its goroutine has ended; a detector
// that is being asked is waited for, so a detector must not call it. Twice is
// harmless.
func (r *Runner) Stop() {
	r.mu.Lock()
	cancel, done := r.cancel, r.done
	r.stopped = true
	r.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
}

// poll asks the detectors at each interval. Its end is Stop, the context's or
// the run's.
func (r *Runner) poll(ctx context.Context, run *middleware.Run, state *runState, done chan<- struct{}) {
	defer close(done)
	if len(r.pollers) == 0 {
		return
	}
	tick := time.NewTicker(r.cfg.Watchdog.cfg.PollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if run.Check() != nil {
			return
		}
		for _, p := range r.pollers {
			if ctx.Err() != nil {
				return
			}
			r.ask(ctx, run, state, p)
		}
	}
}

// ask polls one detector, on a goroutine of its own so that one that calls
// runtime.Goexit ends nothing else.
func (r *Runner) ask(ctx context.Context, run *middleware.Run, state *runState, p poller) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w := r.cfg.Watchdog
		d, fired, err := pollOnce(ctx, run, p)
		switch {
		case err != nil:
			w.pollFailed(ctx, run, state, err)
		case fired:
			w.later(ctx, run, state, where{turn: run.Turn()}, p.detector, d)
		}
	}()
	<-ended
}

func pollOnce(ctx context.Context, run *middleware.Run, p poller) (d Detection, fired bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewPanicError(v, nil)
		}
	}()

	return p.Poll(ctx, run)
}

// pollFailed follows Config.FailMode: closed, the run's next call is refused.
func (w *Watchdog) pollFailed(ctx context.Context, run *middleware.Run, state *runState, err error) {
	r := w.failed(err)
	if r.blocks() {
		state.owed.Store(uint32(middleware.ReasonDetectorFailed))
	}
	f := finding{seq: w.seq.Add(1), failed: true, cause: err}
	w.reportFinding(ctx, run, where{turn: run.Turn()}, f, r, true)
}
