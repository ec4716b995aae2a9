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
	errMoved     = errors.New("something else was written while it was read")
	errBack      = errors.New("less than was seen before, or something else")
	errSchema    = errors.New("not the schema of a store")
	errReceipt   = errors.New("not a receipt that may stand here")
	errSignature = errors.New("not signed with this key")
	errAnchor    = errors.New("the anchor is not that of this ledger")
	errPin       = errors.New("not the first receipt that was pinned")
)

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
// form and signature verified, with their digests, until it wants no more. A
// document that is too large or no text is never loaded. It returns how many
// there were.
func (s *SQLiteStore) receipts(
	ctx context.Context, k *conn, after uint64, limit int, yield func(Receipt, ident.Digest) (bool, error),
) (n int, err error) {
	rows, err := k.query(ctx, `SELECT generation, `+
		`CASE WHEN typeof(document) = 'text' AND octet_length(document) <= ? THEN CAST(document AS BLOB) END `+
		`FROM main.receipts WHERE generation > ? ORDER BY generation LIMIT ?`, maxReceipt, int64(min(after, maxGeneration)), limit)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	sign := newSigner(s.key)
	for rows.Next() {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		var generation uint64
		var document sql.RawBytes
		if err := rows.Scan(&generation, &document); err != nil {
			return n, err
		}
		r, ok := parseReceipt(string(document))
		if !ok || !r.valid() || r.Generation != generation || !sign.canonical(r, document) {
			return n, errReceipt
		}
		if !sign.verify(r) {
			return n, errSignature
		}
		n++
		if more, err := yield(r, ident.DigestOf(document)); err != nil || !more {
			return n, err
		}
	}

	return n, rows.Err()
}

// recorded reports whether h is one of the receipts of a ledger whose head is
// verified.
func (k *conn) recorded(ctx context.Context, h Head) (bool, error) {
	if h.Generation == 0 || h.Generation > maxGeneration {
		return false, nil
	}
	rows, err := k.query(ctx, "SELECT document FROM main.receipts WHERE generation = ? AND octet_length(document) <= ?",
		int64(h.Generation), maxReceipt)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	found := false
	for rows.Next() {
		var document sql.RawBytes
		if err := rows.Scan(&document); err != nil {
			return false, err
		}
		found = ident.DigestOf(document) == h.Digest
	}

	return found, rows.Err()
}

// anchorHead reads the one row of an anchor and verifies its signature.
func (k *conn) anchorHead(ctx context.Context, table string, key Key) (Head, error) {
	var h Head
	var rows, generation uint64
	var digest, signature string
	err := k.row(ctx, "SELECT (SELECT count(*) FROM "+table+"), generation, digest, signature FROM "+table+
		" WHERE id = 1 AND typeof(generation) = 'integer' AND typeof(digest) = 'text' AND typeof(signature) = 'text'"+
		" AND octet_length(digest) < 100 AND octet_length(signature) < 100").Scan(&rows, &generation, &digest, &signature)
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
