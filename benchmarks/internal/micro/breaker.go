package micro

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// breakers are the states of the breaker underneath, and of the fallback's
// bench, which stands around one.
func breakers() []row.Row {
	const bare, closed = "micro/breaker/gobreaker-closed", "micro/fallback/closed"

	return []row.Row{
		{Name: bare, RatioTo: Getppid, About: "gobreaker's Execute, closed", Prepare: func() (*row.Work, error) {
			return executing(gobreaker.Settings{}, gobreaker.StateClosed)
		}},
		{Name: "micro/breaker/gobreaker-open", RatioTo: bare, About: "gobreaker's Execute, open: refused", Prepare: func() (*row.Work, error) {
			return executing(gobreaker.Settings{Timeout: time.Hour}, gobreaker.StateOpen)
		}},
		{
			Name: "micro/breaker/gobreaker-half-open", RatioTo: bare,
			About: "gobreaker's Execute, half-open: a trial that succeeds",
			Prepare: func() (*row.Work, error) {
				return executing(gobreaker.Settings{Timeout: 1, MaxRequests: math.MaxUint32}, gobreaker.StateHalfOpen)
			},
		},
		{
			Name: closed, RatioTo: bareModel,
			About:   "the fallback, its primary at work",
			Prepare: func() (*row.Work, error) { return benched(closedBench) },
		},
		{
			Name: "micro/fallback/open", RatioTo: closed,
			About: "the fallback, its primary benched: the backup answers",
			Prepare: func() (*row.Work, error) {
				return benched(openBench)
			},
		},
		{
			Name: "micro/fallback/half-open", RatioTo: closed,
			About: "the fallback, the bench over: a probe of the primary fails, the backup answers",
			Prepare: func() (*row.Work, error) {
				return benched(halfOpenBench)
			},
		},
	}
}

// executing is calls of a gobreaker that is brought into a state.
func executing(s gobreaker.Settings, want gobreaker.State) (*row.Work, error) {
	s.ReadyToTrip = func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > 0 }
	cb := gobreaker.NewCircuitBreaker[int](s)
	if want != gobreaker.StateClosed {
		if _, err := cb.Execute(func() (int, error) { return 0, fixture.ErrDown }); !errors.Is(err, fixture.ErrDown) {
			return nil, fixture.ErrWork
		}
	}
	work := func() (int, error) { return 1, nil }

	return &row.Work{Run: func(n int) error {
		for range n {
			got, err := cb.Execute(work)
			if refused := errors.Is(err, gobreaker.ErrOpenState); refused != (want == gobreaker.StateOpen) || (got == 1) == refused {
				return fixture.ErrWork
			}
		}
		if n > 0 && cb.State() != want {
			return fixture.ErrWork
		}

		return nil
	}}, nil
}

type benchState uint8

const (
	closedBench benchState = iota
	openBench
	halfOpenBench
)

// benched is calls of a fallback whose primary is in a state. Its clock jumps by
// an hour before each call where the bench has to be over.
func benched(s benchState) (*row.Work, error) {
	primary, backup := fixture.NewModel("primary "), fixture.NewModel("backup ")
	var hours atomic.Int64
	begin := time.Now()
	m, err := fallback.New(fallback.Config{
		Candidates: fixture.Candidates(primary, backup), NoRetry: true,
		Now: func() time.Time { return begin.Add(time.Duration(hours.Load()) * time.Hour) },
	})
	if err != nil {
		return nil, err
	}
	ctx, messages, options := context.Background(), fixture.Messages(talk), fixture.Options()
	want, asked := "primary ", uint64(1)
	if s != closedBench {
		primary.SetDown(true)
		want = "backup "
		resp, err := m.GenerateContent(ctx, messages, options...)
		if err := fixture.Answered(resp, err, want); err != nil {
			return nil, err
		}
	}
	if s == openBench {
		asked = 0
	}

	return &row.Work{Run: func(n int) error {
		before := primary.Calls()
		for range n {
			if s == halfOpenBench {
				hours.Add(1)
			}
			resp, err := m.GenerateContent(ctx, messages, options...)
			if err := fixture.Answered(resp, err, want); err != nil {
				return err
			}
		}
		if primary.Calls()-before != asked*uint64(n) { //nolint:gosec // n is not negative
			return fixture.ErrWork
		}

		return nil
	}}, nil
}

// startRun begins a run that has nothing but a name.
func startRun() (context.Context, func(), error) {
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: fixture.TheNames().Workflow})
	if err != nil {
		return nil, nil, err
	}

	return ctx, func() { run.End() }, nil
}
