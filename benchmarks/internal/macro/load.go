package macro

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// batch is what was seen of some number of runs.
type batch struct {
	latencies []time.Duration // of the runs, sorted
	took      time.Duration   // all together
	requests  int64           // that the first provider got
}

// quantile returns the latency below which the share q of the runs lies.
func (b *batch) quantile(q float64) float64 {
	return float64(b.latencies[int(q*float64(len(b.latencies)-1))])
}

// perSecond returns how many runs ended in a second.
func (b *batch) perSecond() float64 { return float64(len(b.latencies)) / b.took.Seconds() }

// drive does runs, concurrent at a time. The first error ends it.
func drive(runs, concurrent int, ask func(context.Context) error) (batch, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	b := batch{latencies: make([]time.Duration, runs)}
	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	begin := time.Now()
	for range concurrent {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= runs || ctx.Err() != nil {
					return
				}
				start := time.Now()
				if err := ask(ctx); err != nil {
					cancel(err)

					return
				}
				b.latencies[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	b.took = time.Since(begin)
	if err := context.Cause(ctx); err != nil {
		return batch{}, err
	}
	slices.Sort(b.latencies)

	return b, nil
}

// merge adds what was seen of further runs.
func (b *batch) merge(more batch) {
	b.latencies = append(b.latencies, more.latencies...)
	b.took += more.took
	b.requests += more.requests
}

// inTurns drives several askers by turns, a few runs each, until all have done
// theirs: a machine that is slow for a moment is slow for all of them.
func inTurns(runs, concurrent int, asks ...func(context.Context) error) ([]batch, error) {
	turn := min(runs, max(turnRuns, 2*concurrent))
	all := make([]batch, len(asks))
	for done := 0; done < runs; done += turn {
		for i, ask := range asks {
			b, err := drive(min(turn, runs-done), concurrent, ask)
			if err != nil {
				return nil, err
			}
			all[i].merge(b)
		}
	}
	for i := range all {
		slices.Sort(all[i].latencies)
	}

	return all, nil
}

// turnRuns is how many runs a turn has at least.
const turnRuns = 5

// shared makes batches for several rows, one for each of those that are compared:
// each row takes one figure from each round, and the first who needs the next
// round has it made.
type shared struct {
	make func() ([]batch, error)

	mu     sync.Mutex
	rounds [][]batch
}

var errNoRuns = errors.New("a batch without runs")

// reader returns the Measure of a row, which is about the batch of that place.
func (s *shared) reader(place int, figure func(*batch) float64) func() (float64, error) {
	taken := 0

	return func() (float64, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if taken == len(s.rounds) {
			round, err := s.make()
			if err != nil {
				return 0, err
			}
			s.rounds = append(s.rounds, round)
		}
		round := s.rounds[taken]
		taken++
		if place >= len(round) || len(round[place].latencies) == 0 {
			return 0, errNoRuns
		}

		return figure(&round[place]), nil
	}
}
