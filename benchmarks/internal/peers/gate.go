package peers

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/micro"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// naiveLengths are the lengths that opening and verifying everything is measured
// at.
func naiveLengths() []uint64 { return []uint64{10, 1_000, 10_000} }

// longLength is the length from which a naive check takes more than a moment.
const longLength = 10_000

// gates are the naive check, by hand and by our own store, beside the strict
// one.
func gates(l *fixture.Ledgers) []row.Row {
	var rows []row.Row
	for _, n := range naiveLengths() {
		ours := fmt.Sprintf("peers/gate/interlock-%d", n)
		rows = append(rows,
			row.Row{
				Name: ours, RatioTo: micro.Syscalls, About: fmt.Sprintf("our strict check of %d receipts", n),
				Prepare: func() (*row.Work, error) { return micro.Check(l, n) },
			},
			row.Row{
				Name: fmt.Sprintf("peers/gate/naive-%d", n), RatioTo: ours, Slow: true,
				About:   fmt.Sprintf("for each call: open both databases, verify %d receipts and the anchor, close", n),
				Prepare: func() (*row.Work, error) { return Naive(l, n) },
			},
			row.Row{
				Name: fmt.Sprintf("peers/gate/reopened-%d", n), RatioTo: ours, Slow: n >= longLength,
				About:   fmt.Sprintf("for each call: open our own store of %d receipts, which verifies it in its own way, and close it", n),
				Prepare: func() (*row.Work, error) { return reopened(l, n) },
			})
	}

	return rows
}

// errRefused is what the naive gate says to an effect that is not admitted.
var errRefused = errors.New("not admitted")

// Naive is checks as one would write them first: everything is opened, read and
// verified for each of them.
func Naive(l *fixture.Ledgers, n uint64) (*row.Work, error) {
	ledger, err := l.Get(n)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()

	return &row.Work{Run: row.Loop(func() error { return naive(ctx, ledger) }), Close: ledger.Release}, nil
}

func naive(ctx context.Context, l *fixture.Ledger) error {
	head, state, err := verifyAll(ctx, l)
	if err != nil {
		return err
	}
	if err := verifyAnchor(ctx, l, head); err != nil {
		return err
	}
	if state != admission.Enabled {
		return errRefused
	}

	return nil
}

// verifyAll reads every receipt, checks its signature and its place in the
// chain, and returns the last one and the state of the workflow.
func verifyAll(ctx context.Context, l *fixture.Ledger) (head admission.Head, state admission.State, err error) {
	db, err := sql.Open("sqlite", "file:"+l.StoreConfig.Ledger+"?mode=ro")
	if err != nil {
		return head, state, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT generation, document FROM receipts ORDER BY generation")
	if err != nil {
		return head, state, err
	}
	defer func() { err = errors.Join(err, rows.Close(), rows.Err()) }()
	workflow := admission.Workflow(fixture.TheNames().Workflow)
	for rows.Next() {
		var generation uint64
		var document string
		if err := rows.Scan(&generation, &document); err != nil {
			return head, state, err
		}
		r, err := admission.ParseReceipt(document)
		if err != nil {
			return head, state, err
		}
		if r.Generation != generation || generation != head.Generation+1 || r.Previous != head.Digest || !l.StoreConfig.Key.Verify(r) {
			return head, state, errRefused
		}
		head = admission.Head{Generation: generation, Digest: r.Digest()}
		if r.Scope == admission.Global() || r.Scope == workflow {
			state = r.State
		}
	}

	return head, state, nil
}

// verifyAnchor holds the other file's word of the last receipt against head.
func verifyAnchor(ctx context.Context, l *fixture.Ledger, head admission.Head) (err error) {
	db, err := sql.Open("sqlite", "file:"+l.StoreConfig.Anchor+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var generation uint64
	var digest, signature string
	if err := db.QueryRowContext(ctx, "SELECT generation, digest, signature FROM head").Scan(&generation, &digest, &signature); err != nil {
		return err
	}
	if generation != head.Generation || digest != head.Digest.String() ||
		!hmac.Equal([]byte(signature), []byte(l.AnchorSignature(head))) {
		return errRefused
	}

	return nil
}

// reopened is the same by our own store: what is won there is won by verifying
// faster, not by verifying less.
func reopened(l *fixture.Ledgers, n uint64) (*row.Work, error) {
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
