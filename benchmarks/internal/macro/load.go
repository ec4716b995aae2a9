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

// shared makes batches for several rows: each takes one figure from each batch,
// and the first who needs the next batch has it made.
type shared struct {
	make func() (batch, error)

	mu      sync.Mutex
	batches []batch
}

var errNoRuns = errors.New("a batch without runs")

// reader returns the Measure of a row.
func (s *shared) reader(figure func(*batch) float64) func() (float64, error) {
	taken := 0

	return func() (float64, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if taken == len(s.batches) {
			b, err := s.make()
			if err != nil {
				return 0, err
			}
			if len(b.latencies) == 0 {
				return 0, errNoRuns
			}
			s.batches = append(s.batches, b)
		}
		b := &s.batches[taken]
		taken++

		return figure(b), nil
	}
}
