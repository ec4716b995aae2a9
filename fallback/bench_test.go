package fallback_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// flaky fails while down is set.
type flaky struct {
	fake

	down atomic.Bool
	err  error
}

func newFlaky(name string, err error) *flaky {
	f := &flaky{err: err}
	f.answers = []ask{func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
		if f.down.Load() {
			return nil, f.err
		}

		return says(name)(context.Background(), nil, nil)
	}}

	return f
}

func circuits(m *fallback.Model) string {
	var out []string
	for _, g := range m.Gauges() {
		out = append(out, g.Circuit.String())
	}

	return strings.Join(out, ", ")
}

// The conformance row: down for 60 s, a call every 4 s, about one probe per bench, back within bench + one interval.
func TestPrimaryComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary := newFlaky("primary", status(503))
		primary.down.Store(true)
		m := build(t, fallback.Config{Candidates: list(primary, does(says("backup")))})
		begin := time.Now()
		var back time.Duration
		for back == 0 {
			if time.Since(begin) >= time.Minute {
				primary.down.Store(false)
			}
			got, err := text(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if got == "primary" {
				back = time.Since(begin) - time.Minute
			}
			pass(4 * time.Second)
		}
		if back > 34*time.Second {
			t.Errorf("primary again %v after its recovery", back)
		}
		if n := primary.calls.Load(); n > 4 {
			t.Errorf("the primary was asked %d times", n)
		}
	})
}

func TestLengthOfTheBench(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		bench time.Duration
	}{
		"overloaded": {status(503), 30 * time.Second},
		"quota":      {status(402), 10 * time.Minute},
		"not found":  {status(404), 10 * time.Minute},
		"auth":       {status(401), 10 * time.Minute},
		"unknown":    {errSecret, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				primary := newFlaky("primary", tc.err)
				primary.down.Store(true)
				m := build(t, fallback.Config{
					Candidates: list(primary, does(says("backup"))), OnAuth: fallback.AuthNext,
				})
				want(t, m, "backup")
				primary.down.Store(false)
				pass(tc.bench - time.Nanosecond)
				if got := circuits(m); got != "open, closed" || m.Active().String() != "backup" {
					t.Errorf("before the end: %s, active %v", got, m.Active())
				}
				want(t, m, "backup")
				pass(time.Nanosecond)
				if got := circuits(m); got != "half_open, closed" || m.Active().String() != "primary" {
					t.Errorf("after the end: %s, active %v", got, m.Active())
				}
				want(t, m, "primary")
				if got := circuits(m); got != "closed, closed" {
					t.Errorf("after success: %s", got)
				}
			})
		})
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newFlaky("primary", status(503)), newFlaky("backup", status(503))
		primary.down.Store(true)
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, backup), Pinned: true})
		want(t, m, "backup")
		primary.down.Store(false)
		pass(1000 * time.Hour)
		want(t, m, "backup")
		backup.down.Store(true)
		if _, err := text(t.Context(), m); !errors.Is(err, middleware.ReasonExhausted) {
			t.Errorf("got %v", err)
		}
		backup.down.Store(false)
		want(t, m, "backup")
		if n := primary.calls.Load(); n != 1 {
			t.Errorf("the primary was asked %d times", n)
		}
	})
}

// With every candidate benched, the one whose bench ends soonest is asked.
func TestAllBenched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		primary, backup := newFlaky("primary", status(404)), newFlaky("backup", status(503))
		primary.down.Store(true)
		backup.down.Store(true)
		m := build(t, fallback.Config{Candidates: list(primary, backup), Observer: rec})
		if _, err := text(t.Context(), m); !errors.Is(err, middleware.ReasonExhausted) {
			t.Fatal(err)
		}
		if m.Active().String() != "backup" || circuits(m) != "open, open" {
			t.Errorf("active %v, %s", m.Active(), circuits(m))
		}
		rec.lines()
		_, err := text(t.Context(), m)
		e, ok := errors.AsType[*fallback.ExhaustedError](err)
		if !ok || len(e.Attempts()) != 1 || e.Attempts()[0].Candidate.String() != "backup" {
			t.Fatalf("got %v", err)
		}
		got := strings.Join(rec.lines(), "\n")
		if got != `abstain proceed primary benched skipped
allow proceed backup probe half_open
allow proceed backup overloaded #1 error
deny block backup overloaded open
deny block  exhausted` {
			t.Errorf("decisions:\n%s", got)
		}
		backup.down.Store(false)
		want(t, m, "backup")
		if circuits(m) != "open, closed" {
			t.Errorf("%s", circuits(m))
		}
	})
}

// pass lets time go by in a bubble.
func pass(d time.Duration) { <-time.After(d) }

// gated hands every call to the test, which says what comes of it.
type gated struct {
	fake

	calls chan chan ask
}

func newGated() *gated {
	g := &gated{calls: make(chan chan ask, 100)}
	g.answers = []ask{func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		answer := make(chan ask, 1)
		g.calls <- answer
		select {
		case what := <-answer:
			return what(ctx, m, o)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}

	return g
}

// fail benches the candidate by one failed call.
func (g *gated) fail(t *testing.T, m llms.Model) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = text(t.Context(), m)
	}()
	<-g.calls <- fails(status(503))
	<-done
}

func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newGated(), does(says("backup"))
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, backup)})
		primary.fail(t, m)
		pass(31 * time.Second)
		done := make(chan string)
		go func() {
			got, _ := text(t.Context(), m)
			done <- got
		}()
		probe := <-primary.calls
		if circuits(m) != "half_open, closed" || m.Active().String() != "backup" {
			t.Errorf("while probing: %s, active %v", circuits(m), m.Active())
		}
		for range 5 {
			want(t, m, "backup") // the others go down the chain
		}
		probe <- says("primary")
		if got := <-done; got != "primary" || circuits(m) != "closed, closed" {
			t.Errorf("probe got %q, %s", got, circuits(m))
		}
	})
}

func TestWaitingCallsShareTheProbe(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		probe ask
		check func(t *testing.T, got string, err error)
		calls int64
	}{
		"success": {says("back"), func(t *testing.T, got string, err error) {
			t.Helper()
			if err != nil || got != "back" {
				t.Errorf("got %q, %v", got, err)
			}
		}, 4},
		"failure": {fails(status(503)), func(t *testing.T, got string, err error) {
			t.Helper()
			e, ok := errors.AsType[*fallback.ExhaustedError](err)
			if !ok || len(e.Attempts()) != 1 || e.Attempts()[0].Class != fallback.ClassOverloaded {
				t.Errorf("got %q, %v", got, err)
			}
			if e.Attempts()[0].Shared && errors.Is(err, status(503)) {
				t.Error("the cause of another caller's failure is shared")
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				primary, backup := newGated(), newFlaky("backup", status(404))
				backup.down.Store(true)
				m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, backup)})
				primary.fail(t, m)
				before := primary.fake.calls.Load()
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						got, err := text(t.Context(), m)
						tc.check(t, got, err)
					})
				}
				probe := <-primary.calls
				synctest.Wait() // the other three wait
				if n := primary.fake.calls.Load() - before; n != 1 {
					t.Errorf("%d probes at once", n)
				}
				probe <- tc.probe
				for range tc.calls - 1 {
					<-primary.calls <- tc.probe
				}
				wg.Wait()
				if n := primary.fake.calls.Load() - before; n != tc.calls {
					t.Errorf("asked %d times, want %d", n, tc.calls)
				}
			})
		})
	}
}

func TestWaitEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		primary, backup := newGated(), newFlaky("backup", status(404))
		backup.down.Store(true)
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, backup), Observer: rec})
		primary.fail(t, m)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { // the probe, whose caller leaves: it decides nothing
			if _, err := text(ctx, m); !errors.Is(err, context.Canceled) {
				t.Errorf("probe: %v", err)
			}
		})
		<-primary.calls
		short, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		if _, err := text(short, m); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, middleware.ReasonCanceled) {
			t.Errorf("waiting: %v", err)
		}
		var got string
		wg.Go(func() { got, _ = text(t.Context(), m) })
		synctest.Wait()
		cancel()
		<-primary.calls <- says("primary") // the one that waited is the next probe
		wg.Wait()
		if got != "primary" {
			t.Errorf("got %q", got)
		}
		lines := rec.lines()
		for _, line := range []string{"abstain wait primary probe", "deny block primary canceled open", "allow proceed primary recovered closed"} {
			if !slices.Contains(lines, line) {
				t.Errorf("no decision %q in\n%s", line, strings.Join(lines, "\n"))
			}
		}
	})
}

// A probe that never returns must not wedge the candidate.
func TestProbeIsReleased(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]ask{
		"panic": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			panic("x")
		},
		"goexit": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			runtime.Goexit()

			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				primary := newGated()
				m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, does(says("backup"))), Tracer: rec, Observer: rec})
				primary.fail(t, m)
				pass(31 * time.Second)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = text(t.Context(), m)
				}()
				<-primary.calls <- what
				<-done
				if circuits(m) != "open, closed" || rec.open != 0 {
					t.Errorf("%s, %d spans open", circuits(m), rec.open)
				}
				pass(31 * time.Second)
				go func() { <-primary.calls <- says("primary") }()
				want(t, m, "primary")
			})
		})
	}
}

// An attempt that began before the bench says nothing about what is now.
func TestLateNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary := newGated()
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, does(says("backup")))})
		var wg sync.WaitGroup
		begin := func() chan ask {
			wg.Go(func() { _, _ = text(t.Context(), m) })

			return <-primary.calls
		}
		succeeds, fails503 := begin(), begin()
		primary.fail(t, m)
		pass(10 * time.Second)
		succeeds <- says("late")
		synctest.Wait()
		if circuits(m) != "open, closed" {
			t.Errorf("a late success ended the bench: %s", circuits(m))
		}
		pass(21 * time.Second)
		go func() { <-primary.calls <- says("probe") }()
		want(t, m, "probe")
		fails503 <- fails(status(503))
		wg.Wait()
		if circuits(m) != "closed, closed" {
			t.Errorf("a late failure benched: %s", circuits(m))
		}
	})
}

func TestLateFailureMayLengthenTheBench(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary := newGated()
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(primary, does(says("backup")))})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = text(t.Context(), m) })
		early := <-primary.calls
		primary.fail(t, m)
		early <- fails(status(404)) // 10 minutes
		wg.Wait()
		pass(time.Minute)
		if circuits(m) != "open, closed" {
			t.Errorf("%s", circuits(m))
		}
	})
}

func TestAttemptTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := build(t, fallback.Config{Candidates: list(does(hangs), does(says("backup")))})
		begin := time.Now()
		want(t, m, "backup")
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("took %v", took)
		}
		late := func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			pass(2 * time.Minute)

			return says("late")(context.Background(), nil, nil)
		}
		single := build(t, fallback.Config{Candidates: list(does(late)), AttemptTimeout: time.Second})
		_, err := text(t.Context(), single)
		if c := classOf(t, err); c != fallback.ClassTimeout {
			t.Errorf("a late success: %v", c)
		}
	})
}

func TestCallersDeadlineIsNoTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		second := does(says("backup"))
		m := build(t, fallback.Config{Candidates: list(does(hangs), second), AttemptTimeout: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the same instant
		defer cancel()
		_, err := text(ctx, m)
		if c := classOf(t, err); c != fallback.ClassCanceled || second.calls.Load() != 0 {
			t.Errorf("got %v, %d calls", err, second.calls.Load())
		}
	})
}

// slowTimer is a context whose deadline has come before its timer has fired.
type slowTimer struct {
	context.Context //nolint:containedctx // this is a context

	at time.Time
}

func (c slowTimer) Deadline() (time.Time, bool) { return c.at, true }

func TestCallersDeadlineWinsAgainstItsOwnTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		second := does(says("backup"))
		m := build(t, fallback.Config{Candidates: list(does(hangs), second), AttemptTimeout: time.Second})
		_, err := text(slowTimer{t.Context(), time.Now().Add(time.Second)}, m)
		if classOf(t, err) != fallback.ClassCanceled || !errors.Is(err, context.DeadlineExceeded) || second.calls.Load() != 0 {
			t.Errorf("got %v, %d calls", err, second.calls.Load())
		}
	})
}

// A client that ignores its context is left behind, and counted until it ends.
func TestDeafClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		release := make(chan struct{})
		var late atomic.Int64
		deaf := does(func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			<-release
			if o.StreamingFunc != nil && o.StreamingFunc(context.Background(), []byte("late")) == nil {
				late.Add(1)
			}

			return says("late")(ctx, nil, nil)
		})
		l := list(deaf, does(says("backup")))
		l[0].Provider = fallback.ProviderMistral
		m := build(t, fallback.Config{Candidates: l, AttemptTimeout: time.Second, Observer: rec})
		chunks := 0
		got, err := text(t.Context(), m, llms.WithStreamingFunc(func(context.Context, []byte) error {
			chunks++

			return nil
		}))
		if err != nil || got != "backup" || m.Abandoned() != 1 {
			t.Fatalf("got %q, %v, %d abandoned", got, err, m.Abandoned())
		}
		if lines := rec.lines(); !slices.Contains(lines, "deny cancel primary abandoned #1") {
			t.Errorf("decisions %v", lines)
		}
		ctx, cancel := context.WithCancel(t.Context())
		pass(31 * time.Second)
		go cancel()
		if _, err := text(ctx, m); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		close(release)
		synctest.Wait()
		if m.Abandoned() != 0 || chunks != 0 || late.Load() != 0 {
			t.Errorf("%d abandoned, %d late chunks", m.Abandoned(), chunks)
		}
	})
}

func TestDeafClientAnswersPanicsAndExits(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]ask{
		"panic": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			panic("x")
		},
		"goexit": func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			runtime.Goexit()

			return nil, nil
		},
	} {
		l := list(does(what, says("hi")))
		l[0].Deaf = true
		m := build(t, fallback.Config{NoRetry: true, Candidates: l})
		_, err := text(t.Context(), m)
		if c := classOf(t, err); c != fallback.ClassBadResponse {
			t.Errorf("%s: %v", name, c)
		}
		want(t, m, "hi")
		if m.Abandoned() != 0 {
			t.Errorf("%s: %d abandoned", name, m.Abandoned())
		}
	}
}

func TestAbandonedAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := does(func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			<-release

			return says("hi")(context.Background(), nil, nil)
		})
		l := list(deaf)
		l[0].Deaf = true
		m := build(t, fallback.Config{Candidates: l, AttemptTimeout: time.Second})
		for range 32 {
			_, _ = text(t.Context(), m)
		}
		_, err := text(t.Context(), m)
		reasonIs(t, err, middleware.ReasonNoCandidate)
		if deaf.calls.Load() != 32 || m.Abandoned() != 32 {
			t.Errorf("%d calls, %d abandoned", deaf.calls.Load(), m.Abandoned())
		}
		close(release)
		synctest.Wait()
		want(t, m, "hi")
	})
}
