package micro

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Lengths are the lengths of the ledgers that a check is measured at.
func Lengths() []uint64 { return []uint64{10, 100, 1_000, 10_000, 100_000} }

// slowLength is the length from which making a ledger takes its time.
const slowLength = 100_000

func admissions(l *fixture.Ledgers) []row.Row {
	rows := make([]row.Row, 0, len(Lengths()))
	for _, n := range Lengths() {
		rows = append(rows, row.Row{
			Name: fmt.Sprintf("micro/admission/check-%d", n), RatioTo: Syscalls, Slow: n >= slowLength,
			About:   fmt.Sprintf("the strict check of a ledger of %d receipts", n),
			Prepare: func() (*row.Work, error) { return Check(l, n) },
		})
	}

	return rows
}

// Check is strict checks of a ledger of n receipts.
func Check(l *fixture.Ledgers, n uint64) (*row.Work, error) {
	ledger, err := l.Get(n)
	if err != nil {
		return nil, err
	}
	store, err := ledger.Store()
	if err != nil {
		ledger.Release()

		return nil, err
	}
	end := func() { _ = store.Close(); ledger.Release() }
	ctx := context.Background()
	c, err := admission.New(admission.Config{Store: store})
	if err != nil {
		end()

		return nil, err
	}
	preview, err := c.Preview(ctx, fixture.TheNames().Workflow)
	if err != nil {
		end()

		return nil, err
	}

	return &row.Work{Run: row.Loop(func() error { return c.Check(ctx, preview) }), Close: end}, nil
}
