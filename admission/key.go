package admission

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/middleware"
)

const (
	minKey       = 32
	maxKey       = 4096
	redacted     = "redacted"
	anchorDomain = "interlock.effect_admission.anchor.v1"
)

// Key signs receipts and the anchor, and verifies them: HMAC is symmetric, so
// who can verify can sign. One key belongs to one store. It prints "redacted"
// in every form. The zero value is no key and is refused everywhere.
type Key struct {
	// mac holds the secret in a closure: a dump of a structure that has a key
	// inside, which fmt makes without asking the methods below, shows an address.
	mac func() hash.Hash
}

// ParseKey takes 32…4096 bytes as they are; they may not all be equal. Else
// invalid_key. The bytes are copied.
func ParseKey(secret []byte) (Key, error) {
	if len(secret) < minKey || len(secret) > maxKey {
		return Key{}, fail(middleware.ReasonInvalidKey, nil)
	}
	first := secret[0]
	if !slices.ContainsFunc(secret, func(b byte) bool { return b != first }) {
		return Key{}, fail(middleware.ReasonInvalidKey, nil)
	}
	own := slices.Clone(secret)

	return Key{mac: func() hash.Hash { return hmac.New(sha256.New, own) }}, nil
}

// IsZero reports whether k is no key.
func (k Key) IsZero() bool { return k.mac == nil }

// Sign returns r with its signature. It is invalid_key for the zero key and
// invalid_transition for a receipt with a field outside of its range; whether
// the transition may stand where it stands is the ledger's business.
func (k Key) Sign(r Receipt) (Receipt, error) {
	if k.IsZero() {
		return Receipt{}, fail(middleware.ReasonInvalidKey, nil)
	}
	if !r.valid() {
		return Receipt{}, fail(middleware.ReasonInvalidTransition, nil)
	}
	newSigner(k).sum(&r.signature, r.appendJSON(nil, false))

	return r, nil
}

// Verify reports whether r carries the signature of k. It takes the same time
// for every signature.
func (k Key) Verify(r Receipt) bool { return !k.IsZero() && newSigner(k).verify(r) }

// Format prints "redacted" for every verb and flag.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// String returns "redacted".
func (k Key) String() string { return redacted }

// GoString returns "redacted".
func (k Key) GoString() string { return redacted }

// MarshalText gives "redacted".
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue gives "redacted".
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// signer is the state of one HMAC, reused for the receipts of one loading.
type signer struct {
	mac hash.Hash
	buf []byte
}

func newSigner(k Key) *signer { return &signer{mac: k.mac()} }

func (s *signer) sum(out *[signatureBytes]byte, message []byte) {
	s.mac.Reset()
	_, _ = s.mac.Write(message) // a hash.Hash never fails
	s.mac.Sum(out[:0])
}

// canonical reports whether document is how r is written.
func (s *signer) canonical(r Receipt, document []byte) bool {
	s.buf = r.appendJSON(s.buf[:0], true)

	return bytes.Equal(s.buf, document)
}

func (s *signer) verify(r Receipt) bool {
	var want [signatureBytes]byte
	s.buf = r.appendJSON(s.buf[:0], false)
	s.sum(&want, s.buf)

	return hmac.Equal(want[:], r.signature[:])
}

// anchor returns the signature of an anchor. The tag keeps it from ever being
// the signature of a receipt, which begins with a brace.
func (s *signer) anchor(h Head) string {
	var sum [signatureBytes]byte
	s.buf = append(s.buf[:0], anchorDomain+"\n"...)
	s.buf = strconv.AppendUint(s.buf, h.Generation, 10)
	s.buf = append(s.buf, '\n')
	s.buf = append(s.buf, h.Digest.String()...)
	s.sum(&sum, s.buf)

	return signaturePrefix + hex.EncodeToString(sum[:])
}

func (s *signer) verifyAnchor(h Head, signature string) bool {
	return hmac.Equal([]byte(s.anchor(h)), []byte(signature))
}
