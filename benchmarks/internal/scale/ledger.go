package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/micro"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

const (
	// longLedger is the length from which making a ledger takes its time.
	longLedger = 100_000
	// transitions are how many new receipts one figure is the median of.
	transitions = 15
)

func ledgers(l *fixture.Ledgers) []row.Row {
	var rows []row.Row
	for _, n := range micro.Lengths() {
		x, slow := float64(n), n >= longLedger
		rows = append(rows,
			row.Row{
				Series: receipts, X: x, Slow: slow, About: fmt.Sprintf("the strict check of a ledger of %d receipts", n),
				Prepare: func() (*row.Work, error) { return micro.Check(l, n) },
			},
			row.Row{
				Series: newReceipt, X: x, Slow: true,
				About:   fmt.Sprintf("the first check after a transition, at %d receipts; without the transition itself", n),
				Measure: func() (float64, error) { return afterTransition(n) },
			},
			row.Row{
				Series: start, X: x, Slow: n > 100, About: fmt.Sprintf("opening a store of %d receipts, closing included", n),
				Prepare: func() (*row.Work, error) { return opening(l, n) },
			})
	}

	return rows
}

// opening is stores that are opened, which verifies them, and closed.
func opening(l *fixture.Ledgers, n uint64) (*row.Work, error) {
	ledger, err := l.Get(n)
	if err != nil {
		return nil, err
	}

	return &row.Work{Close: ledger.Release, Run: row.Loop(func() error {
		s, err := ledger.Store()
		if err != nil {
			return err
		}
		head, err := s.Head(context.Background())
		if err == nil && head.Generation != n {
			err = fixture.ErrWork
		}

		return errors.Join(err, s.Close())
	})}, nil
}

// afterTransition is the median time of the first check after a transition that
// another one recorded. The ledger is its own: it grows.
func afterTransition(n uint64) (_ float64, err error) {
	ledger, err := fixture.NewLedgers().Get(n)
	if err != nil {
		return 0, err
	}
	defer ledger.Release()
	ctx, workflow := context.Background(), fixture.TheNames().Workflow
	var both [2]*admission.Controller // who writes, who checks
	for i := range both {
		store, err := ledger.Store()
		if err != nil {
			return 0, err
		}
		defer func() { _ = store.Close() }()
		if both[i], err = admission.New(admission.Config{Store: store}); err != nil {
			return 0, err
		}
	}
	if _, err := both[1].Preview(ctx, workflow); err != nil {
		return 0, err
	}
	figures := make([]time.Duration, transitions)
	for i := range figures {
		if _, err := both[0].Stop(ctx, admission.Transition{Scope: admission.Workflow(fixture.TheNames().Other)}); err != nil {
			return 0, err
		}
		from := time.Now()
		p, err := both[1].Preview(ctx, workflow)
		figures[i] = time.Since(from)
		if err != nil {
			return 0, err
		}
		if p.Generation() != n+uint64(i)+1 {
			return 0, fixture.ErrWork
		}
	}
	slices.Sort(figures)

	return float64(figures[len(figures)/2].Nanoseconds()), nil
}
