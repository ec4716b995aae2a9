package admission

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	receiptSchema   = "interlock.effect_admission.v1"
	signaturePrefix = "hmac-sha256:"
	signatureBytes  = 32
	maxReceipt      = 16_384
	usualReceipt    = 512
	maxGeneration   = math.MaxInt64
)

// Receipt is one recorded transition. Nothing about a person, a payload or a
// place is in it. Its stored form is canonical JSON (keys sorted, no spaces,
// ASCII), and [Key.Sign] gives it its signature.
type Receipt struct {
	// Generation counts the transitions of all scopes, from 1.
	Generation uint64
	// Previous is the digest of the receipt before, zero for the first.
	Previous ident.Digest
	Scope    Scope
	State    State
	Role     Role
	Reason   TransitionReason
	// Time is in Unix seconds, from 0. It does not order receipts.
	Time int64

	signature [signatureBytes]byte
}

// Document returns the canonical JSON, with the signature.
func (r Receipt) Document() []byte { return r.appendJSON(make([]byte, 0, usualReceipt), true) }

// Digest returns SHA-256 over the document.
func (r Receipt) Digest() ident.Digest { return ident.DigestOf(r.Document()) }

// valid reports whether every field can be written and read back.
func (r Receipt) valid() bool {
	return r.Generation >= 1 && r.Generation <= maxGeneration && r.Time >= 0 && !r.Scope.IsZero() &&
		r.State.String() != invalid && r.Role.String() != invalid && r.Reason.String() != invalid
}

// appendJSON writes the fields in the order of their keys. No value needs
// escaping: all are from closed lists, numbers, hex, or the grammar of
// identifiers.
func (r Receipt) appendJSON(b []byte, signed bool) []byte {
	b = append(b, `{"generation":`...)
	b = strconv.AppendUint(b, r.Generation, 10)
	b = append(b, `,"previous_digest":"`...)
	b = append(b, r.Previous.String()...)
	b = append(b, `","reason_code":"`...)
	b = append(b, r.Reason.String()...)
	b = append(b, `","role":"`...)
	b = append(b, r.Role.String()...)
	b = append(b, `","schema_version":"`+receiptSchema+`","scope":"`...)
	b = append(b, r.Scope.String()...)
	if signed {
		b = append(b, `","signature":"`+signaturePrefix...)
		b = hex.AppendEncode(b, r.signature[:])
	}
	b = append(b, `","state":"`...)
	b = append(b, r.State.String()...)
	b = append(b, `","time":`...)
	b = strconv.AppendInt(b, r.Time, 10)

	return append(b, '}')
}

// ParseReceipt reads exactly what [Receipt.Document] writes: anything else, be
// it equal as JSON, is untrusted_state. The signature is read, not verified:
// that is [Key.Verify].
func ParseReceipt(document string) (Receipt, error) {
	r, ok := parseReceipt(document)
	if !ok || !r.valid() || string(r.Document()) != document {
		return Receipt{}, fail(middleware.ReasonUntrustedState, nil)
	}

	return r, nil
}

// parseReceipt walks the one possible form. Canonical JSON of a fixed set of
// fields leaves no choice, so a general JSON reader would only be able to accept
// too much: other orders, escapes, double keys, deep values.
func parseReceipt(s string) (r Receipt, ok bool) {
	if len(s) > maxReceipt {
		return r, false
	}
	c := cursor{rest: s}
	generation := c.field(`{"generation":`, `,`)
	previous := c.field(`"previous_digest":"`, `"`)
	reason := c.field(`,"reason_code":"`, `"`)
	role := c.field(`,"role":"`, `"`)
	schema := c.field(`,"schema_version":"`, `"`)
	scope := c.field(`,"scope":"`, `"`)
	signature := c.field(`,"signature":"`+signaturePrefix, `"`)
	state := c.field(`,"state":"`, `"`)
	time := c.field(`,"time":`, `}`)
	if c.failed || c.rest != "" || schema != receiptSchema || len(signature) != 2*signatureBytes {
		return r, false
	}
	var errs [8]error
	r.Generation, errs[0] = strconv.ParseUint(generation, 10, 63)
	r.Previous, errs[1] = ident.ParseDigest(previous)
	r.Reason, errs[2] = ParseTransitionReason(reason)
	r.Role, errs[3] = ParseRole(role)
	r.Scope, errs[4] = ParseScope(scope)
	_, errs[5] = hex.Decode(r.signature[:], []byte(signature))
	r.State, errs[6] = parseName[State](stateNames[:], state)
	r.Time, errs[7] = strconv.ParseInt(time, 10, 64)
	for _, err := range errs {
		if err != nil {
			return Receipt{}, false
		}
	}

	return r, true
}

type cursor struct {
	rest   string
	failed bool
}

// field takes the prefix, and returns what stands before the next end.
func (c *cursor) field(prefix, end string) string {
	rest, ok := strings.CutPrefix(c.rest, prefix)
	value, after, found := strings.Cut(rest, end)
	c.failed = c.failed || !ok || !found
	c.rest = after

	return value
}
