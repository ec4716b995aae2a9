package callkey

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strings"
)

// MaxResult is how many bytes of a result are considered: of a longer one the
// first and the last half as many. What lies between is not seen, nor is the
// length. An agent's model could not read so much either.
const MaxResult = 256 << 10

// Result returns the signature of what a call with these arguments answered.
// Equal signatures mean that the answers say the same, because all of this is
// left out:
//
//   - dates: 2006-01-02, 2006/01/02, 02.01.2006, 01/02/2006, 2 Jan 2006,
//     2-Jan-2006, Jan 2, 2006, Jan 2, with the names in full or of three
//     letters, and a day of the week before them;
//   - clocks: 15:04, 15:04:05, 15:04:05.999, with am or pm, behind a T, and with
//     Z or an offset; 15:04 does not count inside of numbers that colons join
//     (file.go:10:45 is a place);
//   - UUIDs, and words of 16 and more hex digits of which one is a letter;
//   - addresses: 0x and 8 or more hex digits; an IP address with a port
//     (10.0.0.7:53122, [fe80::1]:53122), but not one without;
//   - durations with units: 12ms, 1.5s, 1h2m3s, 5m, 2d, 3 ms, 12 seconds, 2
//     hours, 3 days, 2 weeks; m, h and d without a space only;
//   - of names below /tmp/, words of 4…32 letters and digits that look random:
//     upper case, lower case and a digit, or six digits, or tmp in front;
//   - the call's own argument values where they stand as whole words: strings
//     of 3…512 bytes in one line, and numbers as they are spelled or as plain
//     decimals (7 for 7.0), at most 16 values and 4 KiB; arguments that are not
//     JSON are one value. Each value has its own mark, so that 1 and 2 do not
//     become one where both were given;
//   - the order of lines, empty lines, and the amount of white space.
//
// Plain numbers stay, of any length: counts, line numbers, measured values and
// short commit ids are often the result. So do seconds since 1970, durations
// whose unit is in a name beside them ("elapsed_ms": 7), and identifiers in
// other alphabets.
func (k Keyer) Result(input, output string) Key {
	without, _ := k.Results(input, output)

	return without
}

// Results returns the signature without the call's own argument values, and
// the one of the answer as it stands: equal answers to different calls have
// that in common also where their arguments, small numbers say, occur in them by
// chance. The second one is found by the way.
func (k Keyer) Results(input, output string) (without, plain Key) {
	return k.results(input, output, false)
}

// Failure is Results for the text of an error. In it the single words of the
// arguments are left out too, those of 3…512 bytes: no such column: a, and no
// such column: b, say one thing.
func (k Keyer) Failure(input, text string) (without, plain Key) { return k.results(input, text, true) }

func (k Keyer) results(input, output string, words bool) (without, plain Key) {
	s := k.secret()
	w := s.scratch()
	defer s.release(w)
	w.collectValues(input, minValue)
	if words {
		w.collectWords()
	}
	var lines lineSets
	head, tail := split(output)
	w.addLines(s, &lines, head)
	w.addLines(s, &lines, tail)
	without = w.signature(s, &lines.without)
	if !lines.differ {
		return without, without
	}

	return without, w.signature(s, &lines.plain)
}

// lineSets are the lines of a result without argument values, and as they
// stand.
type lineSets struct {
	without, plain lineSet
	differ         bool
}

func (w *scratch) signature(s *secret, all *lineSet) Key {
	if all.count == 1 { // as most results: what was digested says it all
		var k Key
		binary.LittleEndian.PutUint64(k.b[:], all.sum[0])
		binary.LittleEndian.PutUint64(k.b[8:], all.sum[1])

		return k
	}
	w.begin(s, domainResult)
	for _, word := range all.sum {
		w.writeUint(word)
	}
	w.writeUint(all.count)

	return w.key()
}

func split(text string) (head, tail string) {
	if len(text) <= MaxResult {
		return text, ""
	}

	return text[:MaxResult/2], text[len(text)-MaxResult/2:]
}

func (w *scratch) addLines(s *secret, lines *lineSets, text string) {
	for len(text) > 0 {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		clean, replaced := w.cleanLine(line)
		digest, ok := w.lineDigest(s, clean)
		if ok {
			lines.without.add(digest)
		}
		if replaced {
			lines.differ = true
			w.line = append(w.line[:0], line...)
			w.clean = appendStable(w.clean[:0], w.line)
			digest, ok = w.lineDigest(s, w.clean)
		}
		if ok {
			lines.plain.add(digest)
		}
	}
}

func (w *scratch) lineDigest(s *secret, clean []byte) (digest [sha256.Size]byte, ok bool) {
	if len(clean) == 0 {
		return digest, false
	}
	w.begin(s, domainLine)
	w.writeUint(uint64(len(clean)))
	w.writeBytes(clean)

	return w.end(), true
}

// cleanLine returns line without argument values, volatile words and extra
// white space, and whether there were such values. Numbers are looked for in
// what is left: 12 is not a part of 10:12. The result is valid until the next
// call.
func (w *scratch) cleanLine(line string) (clean []byte, replaced bool) {
	v := &w.values
	w.line = append(w.line[:0], line...)
	if v.words > 0 {
		w.clean, replaced = v.appendWithout(w.clean[:0], w.line, false)
		w.line, w.clean = w.clean, w.line
	}
	w.clean = appendStable(w.clean[:0], w.line)
	if v.count > v.words {
		var numbers bool
		w.line, numbers = v.appendWithout(w.line[:0], w.clean, true)
		w.line, w.clean = w.clean, w.line
		replaced = replaced || numbers
	}

	return w.clean, replaced
}

func (w *scratch) writeBytes(b []byte) {
	for len(b) > 0 {
		if w.n == len(w.buf) {
			w.flush()
		}
		n := copy(w.buf[w.n:], b)
		w.n += n
		b = b[n:]
	}
}

// lineSet is a multiset of lines in constant memory: the sum of their keyed
// digests, modulo 2^256. Since nobody outside can compute the digests, lines
// whose sum is that of others cannot be searched for.
type lineSet struct {
	sum   [sha256.Size / 8]uint64
	count uint64
}

func (l *lineSet) add(digest [sha256.Size]byte) {
	var carry uint64
	for i := range l.sum {
		l.sum[i], carry = bits.Add64(l.sum[i], binary.LittleEndian.Uint64(digest[8*i:]), carry)
	}
	l.count++
}
