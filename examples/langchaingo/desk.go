package main

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/tools"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/interlock-go/interlock"
)

//go:embed orders.csv
var ordersCSV string

// desk is what the agent works on: a small orders database and an outbox file,
// both in the act's temporary folder.
type desk struct {
	db     *sql.DB
	outbox string
	ran    func(toolName string, took time.Duration) // hears of each tool that really ran

	// Faults that acts switch on, while tools that were left behind still run.
	lookupHangs, refundHangs, refundTimesOut, notifyFails atomic.Bool

	gone  chan struct{}  // hanging tools wait for it, whatever their contexts say
	mu    sync.Mutex     // orders the first Add before the Wait
	hangs sync.WaitGroup // and are waited for
	asked atomic.Int64   // for the state of a refund
}

// arrived is what the bank says in the end, patience how often it is asked before.
const (
	arrived  = "arrived"
	patience = 11
)

// hang prepares tools that ignore their contexts. release ends them, and returns
// when they have.
func (d *desk) hang() (release func()) {
	d.gone = make(chan struct{})

	return func() {
		d.mu.Lock()
		close(d.gone)
		d.mu.Unlock()
		d.hangs.Wait()
	}
}

func (d *desk) deaf() error {
	d.mu.Lock()
	d.hangs.Add(1)
	d.mu.Unlock()
	defer d.hangs.Done()
	<-d.gone

	return errors.New("the desk was closed")
}

func openDesk(ctx context.Context, dir string, ran func(string, time.Duration)) (*desk, error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "orders.db"))
	if err != nil {
		return nil, fmt.Errorf("orders database: %w", err)
	}
	db.SetMaxOpenConns(1)
	d := &desk{db: db, outbox: filepath.Join(dir, "outbox.txt"), ran: ran}
	if err := d.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("orders database: %w", err), db.Close())
	}

	return d, nil
}

func (d *desk) load(ctx context.Context) error {
	_, err := d.db.ExecContext(ctx, `
		CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, amount_cents INTEGER NOT NULL, status TEXT NOT NULL);
		CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id TEXT NOT NULL UNIQUE REFERENCES orders(id), amount_cents INTEGER NOT NULL)`)
	if err != nil {
		return err //nolint:wrapcheck // wrapped once by openDesk
	}
	rows, err := csv.NewReader(strings.NewReader(ordersCSV)).ReadAll()
	if err != nil {
		return err //nolint:wrapcheck // wrapped once by openDesk
	}
	for _, r := range rows[1:] {
		if _, err := d.db.ExecContext(ctx, `INSERT INTO orders VALUES (?, ?, ?, ?)`, r[0], r[1], r[2], r[3]); err != nil {
			return err //nolint:wrapcheck // wrapped once by openDesk
		}
	}

	return nil
}

func (d *desk) close() error { return d.db.Close() }

// effects counts what was really written: refunds and messages.
func (d *desk) effects(ctx context.Context) (int, error) {
	var refunds int
	if err := d.db.QueryRowContext(ctx, `SELECT count(*) FROM refunds`).Scan(&refunds); err != nil {
		return 0, fmt.Errorf("orders database: %w", err)
	}
	sent, err := os.ReadFile(d.outbox)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("outbox: %w", err)
	}

	return refunds + strings.Count(string(sent), "\n"), nil
}

// tools gives the agent's tools with what the desk declares of them: the
// look-up and the state of a refund are read-only, the other two need admission.
func (d *desk) tools() []tools.Tool {
	return []tools.Tool{
		interlock.ReadOnly(tool{
			d, "lookup_order", "Shows an order. The input is the order's number.", d.lookup,
		}),
		interlock.Polling(tool{
			d, "refund_status", "Says whether a refund has arrived. The input is the order's number.", d.status,
		}),
		tool{d, "issue_refund", "Refunds an order in full. The input is the order's number.", d.refund},
		tool{d, "notify_customer", "Writes to the customer of an order. The input is the order's number.", d.notify},
	}
}

// tool is a function as a langchaingo tool.
type tool struct {
	desk              *desk
	name, description string
	call              func(ctx context.Context, input string) (string, error)
}

func (t tool) Name() string        { return t.name }
func (t tool) Description() string { return t.description }
func (t tool) Call(ctx context.Context, input string) (string, error) {
	begin := time.Now()
	defer func() { t.desk.ran(t.name, time.Since(begin)) }()

	return t.call(ctx, strings.Trim(strings.TrimSpace(input), `"`))
}

func (d *desk) lookup(ctx context.Context, id string) (string, error) {
	if d.lookupHangs.Load() {
		return "", d.deaf()
	}
	var (
		customer, status string
		cents            int
	)
	err := d.db.QueryRowContext(ctx, `SELECT customer, amount_cents, status FROM orders WHERE id = ?`, id).
		Scan(&customer, &cents, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return "There is no such order.", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up: %w", err)
	}

	return fmt.Sprintf("Order %s of %s: %d.%02d EUR, %s.", id, customer, cents/100, cents%100, status), nil
}

func (d *desk) refund(ctx context.Context, id string) (string, error) {
	if d.refundHangs.Load() {
		return "", d.deaf()
	}
	if d.refundTimesOut.Load() {
		return "", fmt.Errorf("the bank: %w", context.DeadlineExceeded)
	}
	res, err := d.db.ExecContext(ctx,
		`INSERT INTO refunds (order_id, amount_cents) SELECT id, amount_cents FROM orders WHERE id = ?`, id)
	if err != nil {
		return "", fmt.Errorf("refund: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return "There is no such order.", err //nolint:wrapcheck // the adapter gives it its form
	}

	return "Refunded order " + id + ".", nil
}

// status asks the bank.
func (d *desk) status(context.Context, string) (string, error) {
	if d.asked.Add(1) <= patience {
		return "The refund is on its way.", nil
	}

	return "The refund has " + arrived + ".", nil
}

func (d *desk) notify(_ context.Context, id string) (string, error) {
	if d.notifyFails.Load() {
		return "", errors.New("outbox: no route to the mail relay")
	}
	f, err := os.OpenFile(d.outbox, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	_, err = fmt.Fprintf(f, "%s order %s was refunded\n", time.Now().UTC().Format(time.RFC3339), id)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}

	return "The customer of order " + id + " was told.", nil
}
