package peers

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	fsfallback "github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/fake"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/fallback"
)

// response is what all calls of models return here.
type response = *llms.ContentResponse

// What the answers of the two models begin with.
const (
	ofPrimary = "primary "
	ofBackup  = "backup "
)

// scene is two models and what has to come of a call.
type scene struct {
	primary, backup *fixture.Model
	want            string
	asked           uint64 // how often the primary is asked in a call
	hours           atomic.Int64
	begin           time.Time
}

// now is a clock that stands still, but for hours.
func (s *scene) now() time.Time { return s.begin.Add(time.Duration(s.hours.Load()) * time.Hour) }

// condition is what is the matter with the primary.
type condition uint8

const (
	well condition = iota
	// open: it is down, and its breaker or bench keeps calls away.
	open
	// down: it is asked in each call and fails.
	down
)

func newScene(c condition) *scene {
	s := &scene{
		primary: fixture.NewModel(ofPrimary), backup: fixture.NewModel(ofBackup), want: ofPrimary, asked: 1, begin: time.Now(),
	}
	if c != well {
		s.primary.SetDown(true)
		s.want = ofBackup
	}
	if c == open {
		s.asked = 0
	}

	return s
}

// asker makes calls in a scene, ready for its condition.
type asker func(s *scene, c condition) (ask func(context.Context) (response, error), end func(), err error)

func healthy() []row.Row {
	const bare = "peers/healthy/bare"

	return []row.Row{
		modelRow(bare, "", "a model that answers, called directly", well, direct),
		modelRow("peers/healthy/langchaingo-fake", bare, "langchaingo's own fake model", well, fakeModel),
		modelRow("peers/healthy/gobreaker", bare, "the same behind gobreaker", well, guardedByGobreaker),
		modelRow("peers/healthy/failsafe-breaker", bare, "the same behind failsafe-go's breaker", well, failsafeBreaker),
		modelRow("peers/healthy/failsafe-fallback", bare, "the same behind failsafe-go's fallback", well, failsafeFallback),
		modelRow("peers/healthy/failsafe-four-policies", bare,
			"the same behind failsafe-go's fallback, retry, breaker and timeout", well, failsafeFour),
		modelRow("peers/healthy/interlock-fallback", bare,
			"the same behind our fallback: two candidates, limits, retries, benches", well, ourFallback),
		modelRow("peers/healthy/interlock-guarded", bare, "the same behind the whole guard, no-op telemetry", well, ourGuard),
	}
}

func outage() []row.Row {
	const ours = "peers/outage/interlock-guarded"

	return []row.Row{
		modelRow("peers/outage/gobreaker", ours,
			"the primary is down and its gobreaker open: refused, the backup is asked by hand", open, guardedByGobreaker),
		modelRow("peers/outage/failsafe-fallback", ours,
			"the primary's breaker is open: failsafe-go's fallback asks the backup", open, failsafeOpen),
		modelRow("peers/outage/failsafe-four-policies", ours,
			"the same with failsafe-go's fallback, retry, breaker and timeout", open, failsafeFour),
		modelRow("peers/outage/failsafe-four-policies-each", ours,
			"the same with the backup behind a retry, breaker and timeout of its own, as ours is", open, failsafeEach),
		modelRow("peers/outage/interlock-fallback", ours, "the primary is benched: our fallback asks the backup", open, ourFallback),
		modelRow(ours, "peers/healthy/bare", "the same in the whole guard, no-op telemetry", open, ourGuard),
	}
}

func failing() []row.Row {
	const ours = "peers/failing/interlock-guarded"

	return []row.Row{
		modelRow("peers/failing/failsafe-fallback", ours,
			"the primary is asked and fails: failsafe-go's fallback asks the backup", down, failsafeFallback),
		modelRow("peers/failing/failsafe-four-policies", ours,
			"the same with failsafe-go's fallback, retry (of one attempt), breaker and timeout", down, failsafeFour),
		modelRow("peers/failing/failsafe-four-policies-each", ours,
			"the same with the backup behind a retry, breaker and timeout of its own, as ours is", down, failsafeEach),
		modelRow("peers/failing/interlock-fallback", ours,
			"the primary's bench is over in each call: our fallback probes it, it fails, the backup is asked", down, ourFallback),
		modelRow(ours, "peers/healthy/bare", "the same in the whole guard, no-op telemetry", down, ourGuard),
	}
}

// modelRow is calls in a scene, each of which has to be answered by the right
// model after the right number of attempts.
func modelRow(name, to, about string, c condition, how asker) row.Row {
	return row.Row{Name: name, RatioTo: to, About: about, Prepare: func() (*row.Work, error) {
		s := newScene(c)
		ask, end, err := how(s, c)
		if err != nil {
			return nil, err
		}
		ctx := context.Background()

		return &row.Work{Close: end, Run: func(n int) error {
			before := s.primary.Calls()
			for range n {
				if c == down {
					s.hours.Add(1)
				}
				resp, err := ask(ctx)
				if err := fixture.Answered(resp, err, s.want); err != nil {
					return err
				}
			}
			if s.primary.Calls()-before != s.asked*uint64(n) { //nolint:gosec // n is not negative
				return fixture.ErrWork
			}

			return nil
		}}, nil
	}}
}

// attempt returns calls of m.
func attempt(m llms.Model) func(ctx context.Context) (response, error) {
	messages, options := fixture.Messages(talk), fixture.Options()

	return func(ctx context.Context) (response, error) { return m.GenerateContent(ctx, messages, options...) }
}

func nothing() {}

func direct(s *scene, _ condition) (func(context.Context) (response, error), func(), error) {
	return attempt(s.primary), nothing, nil
}

// fakeModel counts its calls as the primary's.
func fakeModel(s *scene, _ condition) (func(context.Context) (response, error), func(), error) {
	ask := attempt(fake.NewFakeLLM([]string{ofPrimary + "1", ofPrimary + "2"}))
	s.asked = 0

	return ask, nothing, nil
}

func guardedByGobreaker(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	cb := gobreaker.NewCircuitBreaker[response](gobreaker.Settings{
		Timeout: time.Hour, ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures > 0 },
	})
	primary, backup := attempt(s.primary), attempt(s.backup)
	if c == open {
		_, _ = cb.Execute(func() (response, error) { return primary(context.Background()) })
	}

	return func(ctx context.Context) (response, error) {
		resp, err := cb.Execute(func() (response, error) { return primary(ctx) })
		if errors.Is(err, gobreaker.ErrOpenState) {
			return backup(ctx)
		}

		return resp, err
	}, nothing, nil
}

// breaker is failsafe-go's, in the state of a condition: it stays closed where
// the primary is to be asked in each call.
func breaker(c condition) circuitbreaker.CircuitBreaker[response] {
	b := circuitbreaker.NewBuilder[response]().WithFailureThreshold(1).WithDelay(time.Hour)
	if c == down {
		b = circuitbreaker.NewBuilder[response]().WithFailureThresholdPeriod(math.MaxUint32, time.Hour)
	}
	cb := b.Build()
	if c == open {
		cb.Open()
	}

	return cb
}

func executing(s *scene, policies ...failsafe.Policy[response]) func(context.Context) (response, error) {
	primary, executor := attempt(s.primary), failsafe.With(policies...)

	return func(ctx context.Context) (response, error) {
		//nolint:contextcheck // the execution's context comes from ctx
		return executor.WithContext(ctx).GetWithExecution(func(e failsafe.Execution[response]) (response, error) {
			return primary(e.Context()) // which is the given one, with the limit
		})
	}
}

// toBackup is failsafe-go's fallback.
func toBackup(s *scene) fsfallback.Fallback[response] {
	backup := attempt(s.backup)

	return fsfallback.NewWithFunc(func(e failsafe.Execution[response]) (response, error) { return backup(e.Context()) })
}

func failsafeBreaker(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	return executing(s, breaker(c)), nothing, nil
}

func failsafeFallback(s *scene, _ condition) (func(context.Context) (response, error), func(), error) {
	return executing(s, toBackup(s)), nothing, nil
}

func failsafeOpen(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	return executing(s, toBackup(s), breaker(c)), nothing, nil
}

// failsafeFour is the four-policy form. It waits nowhere, and tries the primary
// once, as a probe of our fallback does.
func failsafeFour(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	retry := retrypolicy.NewBuilder[response]().WithMaxAttempts(1).AbortOnErrors(circuitbreaker.ErrOpen).Build()

	return executing(s, toBackup(s), retry, breaker(c), timeout.New[response](time.Minute)), nothing, nil
}

// failsafeEach is the four-policy form for both models: what the fallback turns
// to is protected as the primary is, which is what ours does.
func failsafeEach(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	own := func(c condition) []failsafe.Policy[response] {
		return []failsafe.Policy[response]{
			retrypolicy.NewBuilder[response]().WithMaxAttempts(1).AbortOnErrors(circuitbreaker.ErrOpen).Build(),
			breaker(c), timeout.New[response](time.Minute),
		}
	}
	backup, second := attempt(s.backup), failsafe.With(own(well)...)
	turn := fsfallback.NewWithFunc(func(e failsafe.Execution[response]) (response, error) {
		return second.WithContext(e.Context()).GetWithExecution(func(e failsafe.Execution[response]) (response, error) {
			return backup(e.Context())
		})
	})

	return executing(s, append([]failsafe.Policy[response]{turn}, own(c)...)...), nothing, nil
}

func ourFallback(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	m, err := fallback.New(fallback.Config{
		Candidates: fixture.Candidates(s.primary, s.backup), NoRetry: true, Now: s.now,
	})
	if err != nil {
		return nil, nil, err
	}
	ask := attempt(m)

	return ask, nothing, bench(context.Background(), ask, c)
}

func ourGuard(s *scene, c condition) (func(context.Context) (response, error), func(), error) {
	st, err := fixture.Setup{
		Telemetry: fixture.NoOp, Primary: s.primary, Backup: s.backup, Now: s.now, NoRetry: true,
	}.Open()
	if err != nil {
		return nil, nil, err
	}
	ask := attempt(st.Model)
	if err := bench(st.Ctx, ask, c); err != nil {
		st.Close()

		return nil, nil, err
	}

	//nolint:contextcheck // calls are made under the context of their run
	return func(context.Context) (response, error) { return ask(st.Ctx) }, st.Close, nil
}

// bench has the primary fail once, so that it is benched.
func bench(ctx context.Context, ask func(context.Context) (response, error), c condition) error {
	if c == well {
		return nil
	}
	resp, err := ask(ctx)

	return fixture.Answered(resp, err, ofBackup)
}
