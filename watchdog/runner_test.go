package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// oracle is a detector that is asked on demand.
type oracle struct {
	asked atomic.Int64
	poll  func(n int64) (watchdog.Detection, bool, error)
}

func (o *oracle) Check(context.Context, *middleware.ToolCall) (watchdog.Detection, bool, error) {
	return watchdog.Detection{}, false, nil
}

func (o *oracle) Poll(context.Context, *middleware.Run) (watchdog.Detection, bool, error) {
	return o.poll(o.asked.Add(1))
}

var _ watchdog.Poller = (*oracle)(nil)

func newRunner(tb testing.TB, cfg watchdog.RunnerConfig) *watchdog.Runner {
	tb.Helper()
	r, err := watchdog.NewRunner(cfg)
	if err != nil {
		tb.Fatal(err)
	}

	return r
}

// TestRunnerPolls: at the interval, from start to stop, and what follows happens
// at the next call.
func TestRunnerPolls(t *testing.T) {
	t.Parallel()
	third := func(n int64) (watchdog.Detection, bool, error) { return watchdog.Detection{Count: int(n)}, n == 3, nil }
	fail := func(n int64) (watchdog.Detection, bool, error) { return watchdog.Detection{}, true, errTool }
	for name, tc := range map[string]struct {
		poll    func(int64) (watchdog.Detection, bool, error)
		action  watchdog.Action
		mode    middleware.FailMode
		verdict middleware.Verdict // of the next call's denial; 0 is none
		reason  middleware.Reason
		halted  bool
		first   string // decision
	}{
		"nudge":    {third, watchdog.Nudge, 0, 0, 0, false, "custom/modify/proceed"},
		"abort":    {third, watchdog.Abort, 0, middleware.VerdictDeny, middleware.ReasonCustomDetector, true, "custom/deny/block"},
		"escalate": {third, watchdog.Escalate, 0, middleware.VerdictEscalate, middleware.ReasonCustomDetector, false, "custom/escalate/block"},
		"observe":  {third, watchdog.Observe, 0, 0, 0, false, "custom/abstain/proceed"},
		"fails":    {fail, watchdog.Observe, 0, middleware.VerdictDeny, middleware.ReasonDetectorFailed, false, "detector_failed/deny/block"},
		"fails, open": {fail, watchdog.Observe, middleware.FailOpen, 0, 0, false,
			"detector_failed/abstain/proceed"},
		"panics": {func(int64) (watchdog.Detection, bool, error) { panic(secret) }, watchdog.Observe, 0, middleware.VerdictDeny,
			middleware.ReasonDetectorFailed, false, "detector_failed/deny/block"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o, rec := &oracle{poll: tc.poll}, &recorder{}
				dog := newDog(t, watchdog.Config{
					Detectors: []watchdog.Detector{o}, Policy: always(tc.action), FailMode: tc.mode, Observer: rec,
					DisableStall: true, PollInterval: time.Second,
				})
				tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
				ctx, run := startRun(t.Context(), t)
				r := newRunner(t, watchdog.RunnerConfig{Watchdog: dog})
				if err := errors.Join(r.Start(ctx), r.Start(ctx)); err != nil {
					t.Fatal(err)
				}
				<-time.After(3500 * time.Millisecond)
				r.Stop()
				r.Stop()
				if n := o.asked.Load(); n != 3 {
					t.Errorf("asked %d times, want 3", n)
				}
				<-time.After(time.Hour)
				if n := o.asked.Load(); n != 3 {
					t.Errorf("asked after the stop: %d", n)
				}
				if got := rec.verdicts(); len(got) == 0 || got[0] != tc.first {
					t.Errorf("decisions %v", got)
				}
				_, err := tool.Do(ctx, "", "x")
				d, denied := errors.AsType[*middleware.Denial](err)
				if denied != (tc.verdict != 0) || denied && (d.Verdict() != tc.verdict || d.Reason() != tc.reason) {
					t.Errorf("the next call: %v", err)
				}
				if _, _, halted := run.Halted(); halted != tc.halted {
					t.Errorf("halted: %v", halted)
				}
				if err := r.Start(ctx); err == nil {
					t.Error("started again after the stop")
				}
				if s := fmt.Sprintf("%v %#v", rec.decisions(), err); strings.Contains(s, "SECRET") {
					t.Errorf("content: %s", s)
				}
			})
		})
	}
}

// TestRunnerEnds: the goroutine ends with the context and with the run, without
// a Stop; and a detector that ends its goroutine ends nothing else.
func TestRunnerEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.CancelFunc, *middleware.Run){
		"context": func(cancel context.CancelFunc, _ *middleware.Run) { cancel() },
		"run":     func(_ context.CancelFunc, run *middleware.Run) { run.End() },
		"halt": func(_ context.CancelFunc, run *middleware.Run) {
			run.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &oracle{poll: func(int64) (watchdog.Detection, bool, error) {
					runtime.Goexit()

					return watchdog.Detection{}, false, nil
				}}
				dog := newDog(t, watchdog.Config{Detectors: []watchdog.Detector{o}})
				ctx, run := startRun(t.Context(), t)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				r := newRunner(t, watchdog.RunnerConfig{Watchdog: dog})
				if err := r.Start(ctx); err != nil {
					t.Fatal(err)
				}
				<-time.After(2500 * time.Millisecond)
				if n := o.asked.Load(); n != 2 {
					t.Errorf("asked %d times, want 2", n)
				}
				end(cancel, run)
				<-time.After(time.Hour)
				if n := o.asked.Load(); n != 2 {
					t.Errorf("asked after the end: %d", n)
				}
				r.Stop()
			})
		})
	}
}

// fakeModel answers with its name.
type fakeModel string

func (m fakeModel) GenerateContent(context.Context, []llms.MessageContent, ...llms.CallOption) (*llms.ContentResponse, error) {
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: string(m)}}}, nil
}

func (m fakeModel) Call(ctx context.Context, prompt string, o ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, o...)
}

func TestRunnerModel(t *testing.T) {
	t.Parallel()
	if _, err := watchdog.NewRunner(watchdog.RunnerConfig{}); !errors.Is(err, watchdog.ErrInvalidConfig) {
		t.Errorf("without a watchdog: %v", err)
	}
	dog := newDog(t, watchdog.Config{Policy: always(watchdog.Abort)})
	wrapped, err := middleware.WrapModel(fakeModel("w"), middleware.ModelConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		build  func() (llms.Model, error)
		reason middleware.Reason // of Start's error
		same   llms.Model
	}{
		"none":    {nil, 0, nil},
		"nil":     {func() (llms.Model, error) { return nil, nil }, middleware.ReasonModelFailed, nil},
		"error":   {func() (llms.Model, error) { return nil, errTool }, middleware.ReasonModelFailed, nil},
		"reason":  {func() (llms.Model, error) { return nil, middleware.ReasonUnknownProvider }, middleware.ReasonUnknownProvider, nil},
		"panic":   {func() (llms.Model, error) { panic(secret) }, middleware.ReasonPanic, nil},
		"wrapped": {func() (llms.Model, error) { return wrapped, nil }, 0, wrapped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, _ := startRun(t.Context(), t)
			r := newRunner(t, watchdog.RunnerConfig{Watchdog: dog, Model: tc.build})
			err := r.Start(ctx)
			if middleware.ReasonOf(err) != tc.reason || (err == nil) != (tc.reason == 0) {
				t.Errorf("got %v", err)
			}
			if s := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(s, "SECRET") {
				t.Errorf("content: %s", s)
			}
			if r.Model() != tc.same {
				t.Errorf("the model is %v", r.Model())
			}
			r.Stop()
		})
	}
	r := newRunner(t, watchdog.RunnerConfig{Watchdog: dog, Model: func() (llms.Model, error) { return fakeModel("same"), nil }})
	if err := r.Start(t.Context()); !errors.Is(err, middleware.ReasonNoRun) {
		t.Errorf("without a run: %v", err)
	}
	ctx, _ := startRun(t.Context(), t)
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	if r.Watchdog() != dog {
		t.Error("another watchdog")
	}
	for i := range 3 { // it is watched
		_, err := r.Model().GenerateContent(ctx, chat("x"), offers)
		if errors.Is(err, middleware.ReasonAnswerLoop) != (i == 2) {
			t.Errorf("%d: got %v", i, err)
		}
	}
}
