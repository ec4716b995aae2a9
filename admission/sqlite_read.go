package admission

import (
	"context"
	"database/sql"
	"errors"

	"github.com/interlock-go/interlock/ident"
)

// The schema, which is compared word by word: a trigger, view, index or other
// table is none of ours.
const (
	ledgerSchema = `CREATE TABLE receipts(generation INTEGER PRIMARY KEY, document TEXT NOT NULL)`
	anchorSchema = `CREATE TABLE head(id INTEGER PRIMARY KEY CHECK(id=1), generation INTEGER NOT NULL, ` +
		`digest TEXT NOT NULL, signature TEXT NOT NULL)`
)

var (
	errReplaced  = errors.New("a file was replaced while it was read")
	errSchema    = errors.New("not the schema of a store")
	errReceipt   = errors.New("not a receipt that may stand here")
	errSignature = errors.New("not signed with this key")
	errAnchor    = errors.New("the anchor is not that of this ledger")
	errPin       = errors.New("not the first receipt that was pinned")
)

// readAll verifies both files from the first byte on and returns what they
// amount to.
func (s *SQLiteStore) readAll(ctx context.Context) (*view, error) {
	var v *view
	err := s.reading(ctx, func(k *conn) (err error) {
		v, err = s.load(ctx, k, nil)

		return err
	})

	return v, err
}

func (s *SQLiteStore) readPage(ctx context.Context, after uint64, limit int) ([]Receipt, error) {
	var page []Receipt
	err := s.reading(ctx, func(k *conn) error {
		page = nil

		return s.receipts(ctx, k, after, limit, func(r Receipt) error {
			page = append(page, r)

			return nil
		})
	})

	return page, err
}

// reading calls f in a read transaction on a fresh connection, between two looks
// at the paths: what was read is what the paths name, and lies where it may.
func (s *SQLiteStore) reading(ctx context.Context, f func(k *conn) error) error {
	before, err := s.files.check()
	if err != nil {
		return err
	}
	// Playing back a journal that a dead process left needs write access.
	mode := accessWrite
	if s.readOnly {
		mode = accessReadOnly
	}
	k, err := openBoth(ctx, s.files, mode)
	if err != nil {
		return err
	}
	defer k.close()
	for _, statement := range [...]string{"PRAGMA query_only=ON", "BEGIN"} {
		if err := k.exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := f(k); err != nil {
		return err
	}
	after, err := s.files.check()
	if err != nil {
		return err
	}
	if !before.same(after) {
		return errReplaced
	}

	return nil
}

// load verifies everything that a connection sees in its transaction: schema and
// journal mode of both files, every receipt in its place, and last the anchor.
// seen, unless it is nil, is told of every head on the way.
func (s *SQLiteStore) load(ctx context.Context, k *conn, seen func(Head)) (*view, error) {
	if err := k.checkSchema(ctx, "main", "receipts", ledgerSchema); err != nil {
		return nil, err
	}
	if err := k.checkSchema(ctx, "anchor", "head", anchorSchema); err != nil {
		return nil, err
	}
	v := new(view)
	err := s.receipts(ctx, k, 0, -1, func(r Receipt) error {
		if !v.apply(r) {
			return errReceipt
		}
		if r.Generation == 1 && !s.pin.IsZero() && v.head.Digest != s.pin {
			return errPin
		}
		if seen != nil {
			seen(v.head)
		}

		return nil
	})
	if err != nil {
		return nil, err
	}
	anchor, err := k.anchorHead(ctx, "anchor.head", s.key)
	if err != nil {
		return nil, err
	}
	if v.head.Generation == 0 || anchor != v.head {
		return nil, errAnchor
	}

	return v, nil
}

func (k *conn) checkSchema(ctx context.Context, schema, table, text string) error {
	rows, err := k.query(ctx, "SELECT type, name, tbl_name, coalesce(sql, '') FROM "+schema+".sqlite_schema")
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var kind, name, tableName, create string
		if err := rows.Scan(&kind, &name, &tableName, &create); err != nil {
			return err
		}
		if n > 0 || kind != "table" || name != table || tableName != table || create != text {
			return errSchema
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != 1 {
		return errSchema
	}

	return k.rollbackJournal(ctx, schema)
}

// receipts gives the receipts after a generation to yield, one by one, their
// form and signature verified. A document that is too large is never loaded. A
// negative limit is none.
func (s *SQLiteStore) receipts(ctx context.Context, k *conn, after uint64, limit int, yield func(Receipt) error) error {
	rows, err := k.query(ctx, `SELECT generation, typeof(document), `+
		`CASE WHEN octet_length(document) <= ? THEN CAST(document AS BLOB) END `+
		`FROM main.receipts WHERE generation > ? ORDER BY generation LIMIT ?`, maxReceipt, int64(min(after, maxGeneration)), limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	sign := newSigner(s.key)
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var generation uint64
		var kind string
		var document sql.RawBytes
		if err := rows.Scan(&generation, &kind, &document); err != nil {
			return err
		}
		r, ok := parseReceipt(string(document))
		if kind != "text" || !ok || !r.valid() || string(r.Document()) != string(document) || r.Generation != generation {
			return errReceipt
		}
		if !sign.verify(r) {
			return errSignature
		}
		if err := yield(r); err != nil {
			return err
		}
	}

	return rows.Err()
}

// anchorHead reads the one row of an anchor and verifies its signature.
func (k *conn) anchorHead(ctx context.Context, table string, key Key) (Head, error) {
	var h Head
	var rows, generation uint64
	var digest, signature string
	if err := k.row(ctx, "SELECT count(*) FROM "+table).Scan(&rows); err != nil {
		return h, err
	}
	err := k.row(ctx, "SELECT generation, digest, signature FROM "+table+
		" WHERE id = 1 AND typeof(generation) = 'integer' AND typeof(digest) = 'text' AND typeof(signature) = 'text'"+
		" AND octet_length(digest) < 100 AND octet_length(signature) < 100").Scan(&generation, &digest, &signature)
	if err != nil {
		return h, err
	}
	if rows != 1 || generation == 0 {
		return h, errAnchor
	}
	h.Generation = generation
	if h.Digest, err = ident.ParseDigest(digest); err != nil {
		return Head{}, err
	}
	if !newSigner(key).verifyAnchor(h, signature) {
		return Head{}, errSignature
	}

	return h, nil
}

// anchorAlone returns what a surviving, correctly signed anchor says, for the
// case that the two files together cannot be trusted; zero if it does not.
func (s *SQLiteStore) anchorAlone(ctx context.Context) Head {
	if checkPlace(s.files.anchor) != nil {
		return Head{}
	}
	if _, err := checkFile(s.files.anchor); err != nil {
		return Head{}
	}
	k, err := open(ctx, s.files.anchor, accessReadOnly)
	if err != nil {
		return Head{}
	}
	defer k.close()
	if k.exec(ctx, "BEGIN") != nil || k.checkSchema(ctx, "main", "head", anchorSchema) != nil {
		return Head{}
	}
	h, err := k.anchorHead(ctx, "main.head", s.key)
	if err != nil {
		return Head{}
	}

	return h
}
