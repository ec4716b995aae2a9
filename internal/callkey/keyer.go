package callkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/interlock-go/interlock/ident"
)

// Domains: what a digest was made for is part of it.
const (
	domainJSON byte = iota + 1
	domainText
	domainLine
	domainResult
	domainSum
)

// Keyer makes keys that can be compared with the keys of the same Keyer, and
// with no others. The zero value has no key of its own: it draws one for each
// call, so nothing that it makes is ever equal to anything. Copies share the
// key. It prints redacted.
type Keyer struct{ s *secret }

// secret is the key and the working memory that calls share. The key is behind
// a second pointer: for a verb that does not fit, fmt follows one.
type secret struct {
	key  *[sha256.Size]byte
	pool sync.Pool // of *scratch
}

// New returns a Keyer with a fresh random key. crypto/rand does not fail: the
// program ends if the system has no random bytes to give.
func New() Keyer { return Keyer{s: newSecret()} }

func newSecret() *secret {
	s := &secret{key: new([sha256.Size]byte)}
	_, _ = rand.Read(s.key[:]) // never returns an error

	return s
}

// Call returns the key of a tool with its arguments.
func (k Keyer) Call(tool ident.Label, input string) Key {
	s := k.secret()
	w := s.scratch()
	defer s.release(w)
	domain := domainText
	if w.parse(input) {
		domain = domainJSON
	}
	w.begin(s, domain)
	w.writeSized(tool.String())
	if domain == domainJSON {
		w.emitAll()
	} else {
		w.writeSized(trimText(input))
	}

	return w.key()
}

// Sum returns a digest over parts, for what binds a decision to exactly one
// call. Parts are kept apart: ("ab", "c") is not ("a", "bc"), nor ("abc").
func (k Keyer) Sum(parts ...string) [sha256.Size]byte {
	s := k.secret()
	w := s.scratch()
	defer s.release(w)
	w.begin(s, domainSum)
	w.writeUint(uint64(len(parts)))
	for _, p := range parts {
		w.writeSized(p)
	}

	return w.end()
}

// Format redacts for every verb and flag.
func (k Keyer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "callkey.Keyer(redacted)") }

func (k Keyer) secret() *secret {
	if k.s == nil {
		return newSecret()
	}

	return k.s
}

const keySize = 16

// Key is a keyed digest of 128 bits. It is comparable and has no text: every
// way of printing or marshalling it gives a redaction or fails. Because the
// digest's key is secret, collisions cannot be searched for.
type Key struct{ b [keySize]byte }

// Bits returns half of the digest, for tables that hold many keys. It is as
// secret as the key: it stays in memory.
func (k Key) Bits() uint64 { return binary.LittleEndian.Uint64(k.b[:]) }

// Format redacts for every verb and flag.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "callkey.Key(redacted)") }

// keptBuffer is the largest working buffer that is kept for the next call.
const keptBuffer = 64 << 10

// scratch is the working memory of one call. It comes from a pool, because a
// hash.Hash and what is written to it would be allocated each time otherwise.
type scratch struct {
	h   hash.Hash
	n   int
	buf [1024]byte
	sum [sha256.Size]byte

	doc    document
	values argValues
	line   []byte // one line of a result without argument values
	clean  []byte // and without what is volatile
}

func (s *secret) scratch() *scratch {
	w, ok := s.pool.Get().(*scratch)
	if !ok {
		w = &scratch{h: sha256.New()}
	}

	return w
}

// release clears what held content.
func (s *secret) release(w *scratch) {
	w.h.Reset()
	clear(w.buf[:])
	w.doc.release()
	w.values.release()
	w.line, w.clean = releaseBuffer(w.line), releaseBuffer(w.clean)
	s.pool.Put(w)
}

func releaseBuffer(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	clear(b[:cap(b)])

	return b[:0]
}

func (w *scratch) begin(s *secret, domain byte) {
	w.h.Reset()
	w.n = copy(w.buf[:], s.key[:])
	w.writeByte(domain)
}

func (w *scratch) end() [sha256.Size]byte {
	w.flush()
	w.h.Sum(w.sum[:0])

	return w.sum
}

func (w *scratch) key() Key {
	sum := w.end()

	return Key{b: [keySize]byte(sum[:keySize])}
}

func (w *scratch) flush() {
	_, _ = w.h.Write(w.buf[:w.n]) // a hash never returns an error
	w.n = 0
}

func (w *scratch) writeByte(b byte) {
	if w.n == len(w.buf) {
		w.flush()
	}
	w.buf[w.n] = b
	w.n++
}

func (w *scratch) writeString(s string) {
	for len(s) > 0 {
		if w.n == len(w.buf) {
			w.flush()
		}
		n := copy(w.buf[w.n:], s)
		w.n += n
		s = s[n:]
	}
}

func (w *scratch) writeUint(n uint64) {
	if len(w.buf)-w.n >= 8 {
		binary.LittleEndian.PutUint64(w.buf[w.n:], n)
		w.n += 8

		return
	}
	for range 8 {
		w.writeByte(byte(n))
		n >>= 8
	}
}

// writeSized writes the length first, so that what follows cannot be read as
// part of s.
func (w *scratch) writeSized(s string) {
	w.writeUint(uint64(len(s)))
	w.writeString(s)
}
