package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	noDigest     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	anchorTag    = "interlock.effect_admission.anchor.v1"
	schema       = "interlock.effect_admission.v1"
	maxDocument  = 16_384
	signedFields = 8
)

var errReceipt = errors.New("not the receipt that may stand here")

// check verifies both files.
func check(ctx context.Context, ledger, anchor string, key []byte) (o outcome) {
	c := chain{key: key, digest: noDigest, own: map[string]string{}}
	if err := c.read(ctx, ledger); err != nil {
		if errors.Is(err, errReceipt) {
			o.FirstBad = c.generation + 1
		}
		o.Generation = c.generation

		return o
	}
	o.Generation = c.generation
	generation, digest, ok := head(ctx, anchor, key)
	switch {
	case !ok:
	case generation != c.generation:
		o.FirstBad = min(generation, c.generation) + 1
	case generation == 0:
	case digest != c.digest:
		o.FirstBad = generation
	default:
		o.OK, o.Digest = true, c.digest
	}

	return o
}

func open(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: "mode=ro"}

	return sql.Open("sqlite", u.String())
}

func mac(key []byte, message []byte) string {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(message)

	return "hmac-sha256:" + hex.EncodeToString(h.Sum(nil))
}

func digestOf(document []byte) string {
	sum := sha256.Sum256(document)

	return "sha256:" + hex.EncodeToString(sum[:])
}

// chain is what was read so far: the last receipt, and what all of them amount
// to.
type chain struct {
	key        []byte
	generation int64
	digest     string
	global     string
	own        map[string]string // state by workflow
}

func (c *chain) read(ctx context.Context, path string) error {
	db, err := open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables != 1 {
		return errors.Join(err, errors.New("not one table"))
	}
	rows, err := db.QueryContext(ctx, "SELECT generation, document FROM receipts ORDER BY generation")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var generation int64
		var document []byte
		if err := rows.Scan(&generation, &document); err != nil {
			return err
		}
		if generation != c.generation+1 || !c.next(document) {
			return errReceipt
		}
	}

	return rows.Err()
}

// next verifies a receipt in its place.
func (c *chain) next(document []byte) bool {
	if len(document) > maxDocument {
		return false
	}
	fields := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	if d.Decode(&fields) != nil || len(fields) != signedFields+1 {
		return false
	}
	// A map is written with sorted keys and without spaces: equal bytes mean that
	// no key was there twice, and nothing stood between or behind.
	if again, err := json.Marshal(fields); err != nil || !bytes.Equal(again, document) {
		return false
	}
	signature, _ := fields["signature"].(string)
	delete(fields, "signature")
	unsigned, err := json.Marshal(fields)
	if err != nil || !hmac.Equal([]byte(signature), []byte(mac(c.key, unsigned))) {
		return false
	}
	if number(fields["generation"]) != c.generation+1 || number(fields["time"]) < 0 ||
		fields["previous_digest"] != c.digest || fields["schema_version"] != schema {
		return false
	}
	if !c.transition(text(fields["scope"]), text(fields["state"]), text(fields["reason_code"]), text(fields["role"])) {
		return false
	}
	c.generation, c.digest = c.generation+1, digestOf(document)

	return true
}

func text(v any) string {
	s, _ := v.(string)

	return s
}

// number returns an integer that is written as one, else -1.
func number(v any) int64 {
	n, _ := v.(json.Number)
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		return -1
	}

	return i
}

// transition verifies that this may follow, and follows it.
func (c *chain) transition(scope, state, reason, role string) bool {
	global := scope == "global"
	if role != "operator" && role != "incident_commander" || !global && !strings.HasPrefix(scope, "workflow:") {
		return false
	}
	switch {
	case c.generation == 0:
		if !global || state != "disabled" || reason != "initialized" {
			return false
		}
	case state == "stopped":
		if reason != "emergency_stop" && reason != "maintenance" {
			return false
		}
	case state != "enabled", reason != "explicit_enable", !global && c.global == "stopped":
		return false
	}
	if !global {
		c.own[scope] = state

		return true
	}
	c.global = state
	if state == "stopped" {
		for workflow, own := range c.own {
			if own == "enabled" {
				delete(c.own, workflow)
			}
		}
	}

	return true
}

// head reads an anchor: the last generation, and the digest of its receipt.
func head(ctx context.Context, path string, key []byte) (generation int64, digest string, ok bool) {
	db, err := open(path)
	if err != nil {
		return 0, "", false
	}
	defer db.Close()
	var rows int
	var signature string
	if db.QueryRowContext(ctx, "SELECT count(*) FROM head").Scan(&rows) != nil || rows != 1 {
		return 0, "", false
	}
	row := db.QueryRowContext(ctx, "SELECT generation, digest, signature FROM head WHERE id = 1")
	if row.Scan(&generation, &digest, &signature) != nil {
		return 0, "", false
	}
	message := anchorTag + "\n" + strconv.FormatInt(generation, 10) + "\n" + digest

	return generation, digest, hmac.Equal([]byte(signature), []byte(mac(key, []byte(message))))
}
