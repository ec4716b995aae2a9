package ident

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const digestPrefix = "sha256:"

// Digest is a SHA-256 value. Its zero value is the all-zero digest, which
// stands for "nothing before" and is equal to no digest of data.
type Digest struct{ b [sha256.Size]byte }

// DigestOf hashes data.
func DigestOf(data []byte) Digest { return Digest{b: sha256.Sum256(data)} }

// ParseDigest reads "sha256:" and 64 lower-case hex digits; else
// invalid_digest.
func ParseDigest(s string) (Digest, error) {
	digits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok {
		return Digest{}, refuse(CodeInvalidDigest)
	}

	return ParseHexDigest(digits)
}

// ParseHexDigest reads exactly 64 lower-case hex digits; else invalid_digest.
func ParseHexDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d.b) || !isLowerHex(s) {
		return Digest{}, refuse(CodeInvalidDigest)
	}
	if _, err := hex.Decode(d.b[:], []byte(s)); err != nil {
		return Digest{}, refuse(CodeInvalidDigest)
	}

	return d, nil
}

// IsZero reports whether d is the all-zero digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// String returns "sha256:" and 64 hex digits.
func (d Digest) String() string { return digestPrefix + d.Hex() }

// Hex returns the 64 hex digits alone.
func (d Digest) Hex() string { return hex.EncodeToString(d.b[:]) }

// GoString redacts.
func (d Digest) GoString() string { return "ident.Digest(redacted)" }

// MarshalText gives the form of String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses as [ParseDigest] does. On error d is unchanged.
func (d *Digest) UnmarshalText(text []byte) error {
	v, err := ParseDigest(string(text))
	if err == nil {
		*d = v
	}

	return err
}
