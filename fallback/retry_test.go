package fallback_test

import (
	"context"
	"errors"
	"io"
	"net/http"
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
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// How often the same candidate is asked, by class, and after which waits: full jitter of 250 ms, doubled each time.
func TestSameAgain(t *testing.T) {
	t.Parallel()
	const most = 0.75 // of each step
	first, second := 187500*time.Microsecond, 375*time.Millisecond
	for name, tc := range map[string]struct {
		err   error
		calls int64
		took  time.Duration
	}{
		"rate_limited":    {status(429), 3, first + second},
		"overloaded":      {status(503), 2, first},
		"conflict":        {status(409), 2, first},
		"network":         {io.ErrUnexpectedEOF, 2, first},
		"bad_response":    {middleware.ReasonBadResponse, 2, first},
		"timeout":         {context.DeadlineExceeded, 1, 0},
		"quota":           {status(402), 1, 0},
		"not_found":       {status(404), 1, 0},
		"unknown":         {errSecret, 1, 0},
		"auth":            {status(401), 1, 0},
		"invalid_request": {status(422), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				primary := does(fails(tc.err))
				cfg := fallback.Config{Candidates: list(primary, does(says("b"))), Rand: func() float64 { return most }}
				begin := time.Now()
				_, err := text(t.Context(), build(t, cfg))
				if n := primary.calls.Load(); n != tc.calls || time.Since(begin) != tc.took {
					t.Errorf("asked %d times in %v, want %d in %v: %v", n, time.Since(begin), tc.calls, tc.took, err)
				}
				cfg.NoRetry = true
				_, _ = text(t.Context(), build(t, cfg))
				if n := primary.calls.Load() - tc.calls; n != 1 {
					t.Errorf("NoRetry: asked %d times", n)
				}
			})
		})
	}
}

// A mixture of failures never asks more often than the last one permits.
func TestMixedFailures(t *testing.T) {
	t.Parallel()
	primary := does(fails(status(429)), fails(status(503)), says("late"))
	m := build(t, fallback.Config{Candidates: list(primary, does(says("b"))), Rand: func() float64 { return 0 }})
	want(t, m, "b")
	if n := primary.calls.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestSingleCandidateIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		f := does(fails(status(503)), says("back"), fails(status(503)))
		m := build(t, fallback.Config{Candidates: list(f), Observer: rec, Rand: func() float64 { return 0.5 }})
		want(t, m, "back")
		if got := strings.Join(rec.lines(), "\n"); got != `allow proceed primary overloaded #1 error
modify wait primary overloaded #2
allow proceed primary ok #2 success` {
			t.Errorf("decisions:\n%s", got)
		}
		_, err := text(t.Context(), m)
		e, ok := errors.AsType[*fallback.ExhaustedError](err)
		if !ok || len(e.Attempts()) != 2 || !errors.Is(err, status(503)) {
			t.Errorf("got %v", err)
		}
		contentFree(t, err)
	})
}

// One attempt is kept for each candidate that was not asked yet.
func TestAttemptsAreKept(t *testing.T) {
	t.Parallel()
	for n, expect := range map[int]string{6: "1 1 1 1 1 1", 5: "2 1 1 1 1", 3: "3 2 1", 2: "3 3"} {
		synctest.Test(t, func(t *testing.T) {
			var l []fallback.Candidate
			var fakes []*fake
			for i := range n {
				fakes = append(fakes, does(fails(status(429))))
				l = append(l, fallback.Candidate{
					Label: ident.MustLabel(string(rune('a' + i))), Provider: fallback.ProviderOther, ModelName: "m", Model: fakes[i],
				})
			}
			_, err := text(t.Context(), build(t, fallback.Config{Candidates: l}))
			reasonIs(t, err, middleware.ReasonExhausted)
			var calls []string
			for _, f := range fakes {
				calls = append(calls, string(rune('0'+f.calls.Load())))
			}
			if got := strings.Join(calls, " "); got != expect {
				t.Errorf("%d candidates: asked %s, want %s", n, got, expect)
			}
		})
	}
}

// waits is an error of a client that keeps the header, as googleapi's does.
type waits struct {
	Header http.Header
}

func (*waits) Error() string { return "x" }
func (*waits) HTTPCode() int { return 429 }

// hints is one that says it by a method.
type hints struct{ time.Duration }

func (hints) Error() string               { return "x" }
func (hints) HTTPCode() int               { return 503 }
func (h hints) RetryAfter() time.Duration { return h.Duration }
func header(seconds string) *waits        { return &waits{http.Header{"Retry-After": {seconds}}} }
func wrapped(err error) error             { return &outer{err} }
func (o *outer) Error() string            { return "outer" }
func (o *outer) Unwrap() error            { return o.error }
func noJitter() float64                   { return 0 }
func soon(t *testing.T) context.Context   { t.Helper(); ctx, _ := deadline(t, 5*time.Second); return ctx }
func deadline(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)

	return ctx, cancel
}

type outer struct{ error }

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		alone  bool // no other candidate
		hurry  bool // 5 s are left
		answer string
		took   time.Duration
	}{
		"header":                {header("3"), false, false, "back", 3 * time.Second},
		"wrapped":               {wrapped(header("3")), false, false, "back", 3 * time.Second},
		"method":                {hints{3 * time.Second}, false, false, "back", 3 * time.Second},
		"negative":              {hints{-3 * time.Second}, false, false, "back", 0},
		"fits":                  {header("4"), false, true, "back", 4 * time.Second},
		"does not fit":          {header("6"), false, true, "backup", 0},
		"too long, somebody":    {header("20"), false, false, "backup", 0},
		"too long, nobody":      {header("20"), true, false, "back", 20 * time.Second},
		"much too long, nobody": {header("300"), true, false, "", 0},
		"does not fit, nobody":  {header("20"), true, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := list(does(fails(tc.err), says("back")), does(says("backup")))
				if tc.alone {
					l = l[:1]
				}
				ctx := t.Context()
				if tc.hurry {
					ctx = soon(t)
				}
				begin := time.Now()
				got, err := text(ctx, build(t, fallback.Config{Candidates: l, Rand: noJitter}))
				if got != tc.answer || (err == nil) != (tc.answer != "") || time.Since(begin) != tc.took {
					t.Errorf("got %q, %v after %v", got, err, time.Since(begin))
				}
			})
		})
	}
}

func TestCallerLeavesDuringTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		second := does(says("b"))
		m := build(t, fallback.Config{Candidates: list(does(fails(header("5"))), second), Rand: noJitter})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := text(ctx, m)
		reasonIs(t, err, middleware.ReasonCanceled)
		if !errors.Is(err, context.Canceled) || second.calls.Load() != 0 || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		if m.Active().String() != "primary" {
			t.Error("a caller who left benches")
		}
	})
}

func TestRandIsNotTrusted(t *testing.T) {
	t.Parallel()
	for _, f := range []func() float64{func() float64 { panic(secret) }, func() float64 { return 7 }, func() float64 { return -1 }} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			want(t, build(t, fallback.Config{Candidates: list(does(fails(status(500)), says("a"))), Rand: f}), "a")
			if took := time.Since(begin); took > 250*time.Millisecond {
				t.Errorf("waited %v", took)
			}
		})
	}
}

// Three failures in a row bench a candidate, although each of its calls would rather ask again: those that wait find out.
func TestBreakerOpensAcrossCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		primary := does(fails(status(503)))
		m := build(t, fallback.Config{Candidates: list(primary, does(says("backup"))), Rand: func() float64 { return 0.9 }})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { want(t, m, "backup") })
		}
		synctest.Wait() // two wait, the third has moved on
		if circuits(m) != "open, closed" {
			t.Errorf("after three failures: %s", circuits(m))
		}
		wg.Wait()
		if n := primary.calls.Load(); n != 3 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Where nobody is benched, an open breaker ends the retries; a success closes it.
func TestBreakerOfASingleCandidate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky("up", status(503))
		f.down.Store(true)
		m := build(t, fallback.Config{Candidates: list(f)})
		for i, expect := range []int64{2, 1, 1} {
			before := f.calls.Load()
			_, err := text(t.Context(), m)
			if n := f.calls.Load() - before; err == nil || n != expect {
				t.Errorf("call %d: asked %d times, %v", i, n, err)
			}
			pass(time.Millisecond)
		}
		f.down.Store(false)
		want(t, m, "up")
		f.down.Store(true)
		before := f.calls.Load()
		_, _ = text(t.Context(), m)
		if n := f.calls.Load() - before; n != 2 {
			t.Errorf("after a success: asked %d times", n)
		}
	})
}

// The permit of the half-open breaker is given back however an attempt ends.
func TestPermitIsReleased(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]func(leave func()) ask{
		"panic": func(func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				panic("x")
			}
		},
		"goexit": func(func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				runtime.Goexit()

				return nil, nil
			}
		},
		"canceled": func(leave func()) ask {
			return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
				leave()

				return nil, errSecret
			}
		},
		"invalid": func(func()) ask { return fails(status(422)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				down := fails(status(429))
				primary := does(down, down, down, what(leave), says("primary")) // three open the breaker
				m := build(t, fallback.Config{Candidates: list(primary, does(says("backup")))})
				want(t, m, "backup")
				pass(31 * time.Second)
				done := make(chan struct{})
				go func() {
					defer close(done)
					_, _ = text(ctx, m)
				}()
				<-done
				pass(31 * time.Second)
				want(t, m, "primary")
				if circuits(m) != "closed, closed" || primary.calls.Load() != 5 {
					t.Errorf("%s after %d calls", circuits(m), primary.calls.Load())
				}
			})
		})
	}
}

// A thousand calls at once meet an outage: every one is answered, retries stay within their share, and once the
// candidate is benched there is one probe per bench.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 1000
		var together sync.WaitGroup // all of them are inside before the first one fails
		together.Add(calls)
		primary := does(first(calls, func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
			together.Done()
			together.Wait()

			return nil, status(503)
		}, fails(status(503))))
		backup := does(says("backup"))
		m := build(t, fallback.Config{Candidates: list(primary, backup)})
		burst := func() {
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() { want(t, m, "backup") })
			}
			wg.Wait()
		}
		burst()
		retries := primary.calls.Load() - calls
		if retries > 10+calls/5 || backup.calls.Load() != calls {
			t.Errorf("%d retries, %d answers", retries, backup.calls.Load())
		}
		for range 3 {
			before := primary.calls.Load()
			burst() // benched: nobody asks
			if n := primary.calls.Load() - before; n != 0 {
				t.Errorf("%d tries of a benched candidate", n)
			}
			pass(31 * time.Second)
			burst()
			if n := primary.calls.Load() - before; n != 1 {
				t.Errorf("%d probes", n)
			}
		}
	})
}

// first does one thing for the first n calls, and another thing afterwards.
func first(n int64, before, after ask) ask {
	var seen atomic.Int64

	return func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		if seen.Add(1) <= n {
			return before(ctx, m, o)
		}

		return after(ctx, m, o)
	}
}

// The share of retries is what bounds them where no breaker does: failures with a success between them.
func TestShareOfRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f := does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			if n++; n%2 == 1 {
				return nil, status(503)
			}

			return says("ok")(ctx, m, o)
		})
		m := build(t, fallback.Config{Candidates: list(f), Rand: noJitter})
		run := func(calls int) (retries int) {
			for range calls {
				before := n
				_, _ = text(t.Context(), m)
				retries += n - before - 1
			}

			return retries
		}
		if got := run(20); got > 14 || got < 10 {
			t.Errorf("%d retries of 20 calls", got)
		}
		if got := run(100); got > 10+24-10 {
			t.Errorf("%d retries of 100 further calls", got)
		}
		pass(12 * time.Second)
		if got := run(1); got != 1 && n%2 == 0 {
			t.Errorf("%d retries in a new window", got)
		}
	})
}

func TestRetriesOfManyCandidatesAreReported(t *testing.T) {
	t.Parallel()
	rec := &recorder{}
	m := build(t, fallback.Config{
		Candidates: list(does(fails(status(503))), does(fails(status(503)), says("b"))), Observer: rec, Rand: noJitter,
	})
	want(t, m, "b")
	if lines := rec.lines(); !slices.Equal(lines, []string{
		"allow proceed primary overloaded #1 error", "modify wait primary overloaded #2",
		"allow proceed primary overloaded #2 error", "deny block primary overloaded open",
		"modify substitute backup overloaded #3",
		"allow proceed backup overloaded #3 error", "modify wait backup overloaded #4", "allow proceed backup ok #4 success",
	}) {
		t.Errorf("decisions:\n%s", strings.Join(lines, "\n"))
	}
}
