package admission

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// extraSync is what PRAGMA synchronous answers for EXTRA: the folder is synced
// too, after a journal was removed. That makes a commit durable.
const extraSync = 3

var (
	errSync    = errors.New("synchronous=EXTRA was not taken")
	errJournal = errors.New("not a rollback journal")
	errOpen    = errors.New("a transaction that does not end")
	errWait    = errors.New("somebody else is verifying")
)

// access is how a file is opened. None of them creates one.
type access string

const (
	accessReadOnly access = "ro"
	accessWrite    access = "rw"
)

// conn is one connection to both files, for one caller at a time. Nothing is interrupted in it: waiting happens outside, between attempts.
type conn struct {
	db *sql.DB
	c  *sql.Conn
}

// dsn makes a URI of a path, in which SQLite finds no parameter but ours.
func dsn(path string, a access, driver bool) string {
	q := url.Values{"mode": {string(a)}}
	if driver {
		q.Set("_defensive", "1")
		q.Set("_dqs", "0")
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: q.Encode()}

	return u.String()
}

// open opens one file as the main database.
func open(ctx context.Context, path string, a access) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(path, a, true))
	if err != nil {
		return nil, err
	}
	held.connected(1)
	db := sql.OpenDB(connector)
	c, err := db.Conn(context.WithoutCancel(ctx))
	if err != nil {
		_ = db.Close()
		held.connected(-1)

		return nil, err
	}
	k := &conn{db: db, c: c}
	for _, pragma := range [...]string{
		"PRAGMA busy_timeout=0", // retry waits, and looks at the context
		"PRAGMA trusted_schema=OFF",
		"PRAGMA cell_size_check=ON",
		"PRAGMA temp_store=MEMORY",
		"PRAGMA mmap_size=0",
	} {
		if err := k.exec(ctx, pragma); err != nil {
			k.close()

			return nil, err
		}
	}

	return k, nil
}

// openBoth opens the ledger as main and the anchor beside it.
func openBoth(ctx context.Context, f files, a access) (*conn, error) {
	k, err := open(ctx, f.ledger, a)
	if err != nil {
		return nil, err
	}
	if err := k.exec(ctx, "ATTACH DATABASE ? AS anchor", dsn(f.anchor, a, false)); err != nil {
		k.close()

		return nil, err
	}

	return k, nil
}

// syncExtra sets synchronous for both files, each by its name (without a name
// it is set for main alone), and reads it back. Not inside of a transaction,
// where it would have no effect.
func (k *conn) syncExtra(ctx context.Context) error {
	for _, schema := range [...]string{"main", "anchor"} {
		if err := k.exec(ctx, "PRAGMA "+schema+".synchronous=EXTRA"); err != nil {
			return err
		}
		var level int
		if err := k.row(ctx, "PRAGMA "+schema+".synchronous").Scan(&level); err != nil {
			return err
		}
		if level != extraSync {
			return errSync
		}
	}

	return nil
}

// rollbackJournal refuses every journal mode that does not commit both files at
// once. It is asked for inside of a transaction: before the first read SQLite
// does not know.
func (k *conn) rollbackJournal(ctx context.Context, schema string) error {
	var mode string
	if err := k.row(ctx, "PRAGMA "+schema+".journal_mode").Scan(&mode); err != nil {
		return err
	}
	switch mode {
	case "delete", "truncate", "persist":
		return nil
	default:
		return errJournal
	}
}

func (k *conn) exec(ctx context.Context, query string, args ...any) error {
	_, err := k.c.ExecContext(context.WithoutCancel(ctx), query, args...)

	return err
}

func (k *conn) row(ctx context.Context, query string) *sql.Row {
	return k.c.QueryRowContext(context.WithoutCancel(ctx), query)
}

func (k *conn) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return k.c.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (k *conn) close() {
	_ = k.c.Close()
	_ = k.db.Close()
	held.connected(-1)
}

// reading calls f in a read transaction: what f reads in both files is of one
// moment. The locks are taken when f first reads a file, and let go with the
// transaction.
func (k *conn) reading(ctx context.Context, f func() error) error {
	if err := k.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	err := f()
	if end := k.exec(ctx, "ROLLBACK"); end != nil && (err == nil || isBusy(err)) {
		return errOpen // a lock that stays would be worse than any error
	}

	return err
}

// isBusy reports whether err says that somebody else holds a lock.
func isBusy(err error) bool {
	if errors.Is(err, errWait) || errors.Is(err, errAgain) {
		return true
	}
	e, ok := errors.AsType[*sqlite.Error](err)

	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func sameFile(path string, other os.FileInfo) bool {
	info, err := os.Lstat(path)

	return err == nil && os.SameFile(info, other)
}
