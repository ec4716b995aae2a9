package otelxtest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// MinSecret is the length in bytes that a secret must have: a shorter one may
// stand somewhere by chance.
const MinSecret = 12

// Canary is a secret and its encodings. It never prints the secret.
type Canary struct {
	secrets []string
	needles []needle
}

type needle struct {
	encoding Encoding
	text     []byte
}

// NewCanary returns the canary of a seed: the same for the same seed. Its phrase
// holds letters of both cases and beyond ASCII, blanks, quotes and what URLs
// escape; its word is an identifier, for inputs that take nothing else.
func NewCanary(seed uint64) *Canary {
	digest := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("interlock canary"), seed))
	const part = 6
	letters := make([]byte, 0, len(digest))
	for _, b := range digest {
		letters = append(letters, "bcdfghjkmnpqrstvwxzBCDFGHJKMNPQRSTVWXZ"[int(b)%38]) // no vowels: no words
	}
	p := func(i int) string { return string(letters[i*part : (i+1)*part]) }

	return of("Canary "+p(0)+"/"+p(1)+`+"Päss"&k=<`+p(2)+`>\`+p(3), "Canary"+p(4)+"x"+p(3))
}

// RandomCanary returns a canary that nobody can have seen before.
func RandomCanary() *Canary {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails

	return NewCanary(binary.BigEndian.Uint64(seed[:]))
}

// CanaryOf returns a canary of the caller's own secrets, such as a name and a
// key. It fails for none, and for one that is shorter than [MinSecret] or no
// valid UTF-8; the error says which by its index.
func CanaryOf(secrets ...string) (*Canary, error) {
	if len(secrets) == 0 {
		return nil, errors.New("otelxtest: secrets: at least one")
	}
	for i, s := range secrets {
		if len(s) < MinSecret || !utf8.ValidString(s) {
			return nil, fmt.Errorf("otelxtest: secrets[%d]: at least %d bytes of UTF-8", i, MinSecret)
		}
	}

	return of(secrets...), nil
}

func of(secrets ...string) *Canary {
	c := &Canary{secrets: secrets}
	for _, e := range Encodings() {
		known := map[string]bool{}
		for _, s := range secrets {
			for _, form := range e.forms(s) {
				if form == s && e != Plain && e != Folded {
					continue // the encoding leaves it alone
				}
				if e.folded() {
					form = string(bytes.ToLower([]byte(form)))
				}
				if !known[form] {
					known[form] = true
					c.needles = append(c.needles, needle{e, []byte(form)})
				}
			}
		}
	}

	return c
}

// Phrase returns the secret to plant where any text goes in: the first one.
func (c *Canary) Phrase() string { return c.secrets[0] }

// Word returns the secret to plant where only an identifier goes in: letters of
// both cases; of [CanaryOf], the last secret.
func (c *Canary) Word() string { return c.secrets[len(c.secrets)-1] }

// Format prints a constant for every verb and flag.
func (*Canary) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[canary]") }

// Finding says that the secret stands in an outlet. It does not hold the secret.
type Finding struct {
	// Outlet is what was scanned.
	Outlet string
	// Encoding is how the secret is written there.
	Encoding Encoding
	// Offset is the byte at which it starts; in the lower-cased outlet for
	// encodings that are looked for in any letter case.
	Offset int
}

// String returns outlet, encoding and offset.
func (f Finding) String() string {
	return fmt.Sprintf("%s holds the secret, %s, at byte %d", f.Outlet, f.Encoding, f.Offset)
}

// Scan looks for the secret in data and returns the first place of each encoding
// in which it is there, in the order of [Encodings]; nil if it is not there. In
// any letter case it is reported only where it does not stand as it is.
func (c *Canary) Scan(outlet string, data []byte) []Finding {
	var findings []Finding
	lower := bytes.ToLower(data)
	found := [encodingsEnd]bool{}
	for _, n := range c.needles {
		where := data
		if n.encoding.folded() {
			where = lower
		}
		if found[n.encoding] || (n.encoding == Folded && found[Plain]) {
			continue
		}
		if at := bytes.Index(where, n.text); at >= 0 {
			found[n.encoding] = true
			findings = append(findings, Finding{outlet, n.encoding, at})
		}
	}

	return findings
}
