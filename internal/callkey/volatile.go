package callkey

import "bytes"

// appendStable appends line with a mark in place of each volatile word; see
// [Keyer.Result] for the list. line is changed: white space is collapsed in it
// first. Each position is looked at a bounded number of times.
//
// Doing it twice changes nothing: forms are recognised by characters that are
// never replaced themselves, and what stands to the left is looked up in the
// output.
func appendStable(dst, line []byte) []byte {
	line = collapseSpace(line)
	prev := byte(' ')
	for i := 0; i < len(line); {
		c := line[i]
		if !isWord(c) {
			if n := addressIPv6(line[i:]); n > 0 && !isWord(prev) {
				dst, prev = append(dst, markVolatile), markVolatile
				i += n

				continue
			}
			dst, prev = append(dst, c), c
			i++

			continue
		}
		if n := volatileAt(line[i:], prev); n > 0 {
			dst, prev = append(dst, markVolatile), markVolatile
			i += n

			continue
		}
		from := i
		for i < len(line) && isWord(line[i]) {
			i++
		}
		if temporary(dst, line[from:i]) {
			dst, prev = append(dst, markVolatile), markVolatile

			continue
		}
		dst, prev = append(dst, line[from:i]...), line[i-1]
	}

	return dst
}

// temporary reports whether word, which stands behind dst, is the random part of
// the name of a temporary file.
func temporary(dst, word []byte) bool {
	const shortest, longest, counter = 4, 32, 6
	if len(word) < shortest || len(word) > longest {
		return false
	}
	var upper, lower, digits int
	for _, c := range word {
		switch {
		case isDigit(c):
			digits++
		case c < 'a':
			upper++
		default:
			lower++
		}
	}
	random := digits > 0 && upper > 0 && lower > 0 || digits >= counter || len(word) > shortest && bytes.HasPrefix(word, []byte("tmp"))
	if !random {
		return false
	}

	return bytes.Contains(dst[bytes.LastIndexByte(dst, ' ')+1:], []byte("/tmp/"))
}

// collapseSpace leaves one space between words and none at the ends, in place.
func collapseSpace(line []byte) []byte {
	out := line[:0]
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\v' && c != '\f' {
			out = append(out, c)
		} else if n := len(out); n > 0 && out[n-1] != ' ' {
			out = append(out, ' ')
		}
	}
	if n := len(out); n > 0 && out[n-1] == ' ' {
		out = out[:n-1]
	}

	return out
}

// volatileAt returns the length of the volatile form at the beginning of s, a
// word whose left neighbour is prev; 0 if there is none.
func volatileAt(s []byte, prev byte) int {
	if isDigit(s[0]) {
		if plainNumber(s) {
			return 0
		}
		for _, form := range [...]func([]byte, byte) int{
			dateTime, clock, addressIPv4, pointer, uuid, longHex, duration,
		} {
			if n := form(s, prev); n > 0 {
				return n
			}
		}

		return 0
	}
	if c := s[0]; !isHex(c) && c|lowerCase != 't' && (c < 'A' || c > 'Z') {
		return 0 // as most words
	}
	if n := namedDate(s); n > 0 {
		return n
	}
	if s[0]|lowerCase == 't' && len(s) > 1 && isDigit(s[1]) {
		if n := clock(s[1:], prev); n > 0 {
			return 1 + n
		}
	}
	if n := uuid(s, prev); n > 0 {
		return n
	}

	return longHex(s, prev)
}

// plainNumber reports whether the digits at the beginning of s stand alone, so
// that they can be no volatile form: most numbers do.
func plainNumber(s []byte) bool {
	n := 1
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == len(s) {
		return true
	}
	switch c := s[n]; c {
	case '-', '/', '.', ':', ',':
		return false
	case ' ': // a unit or a month may follow
		return n+1 == len(s) || !isWord(s[n+1]) || isDigit(s[n+1])
	default:
		return !isWord(c)
	}
}

// ends reports whether a word may end at n.
func ends(s []byte, n int) bool { return n >= len(s) || !isWord(s[n]) }

// goesOn reports whether sep stands at n and a further word or mark behind it.
func goesOn(s []byte, n int, sep byte) bool {
	return n+1 < len(s) && s[n] == sep && isWordOrMark(s[n+1])
}

// digitRun returns how many digits stand at i, at most most+1.
func digitRun(s []byte, i, most int) int {
	n := 0
	for n <= most && i+n < len(s) && isDigit(s[i+n]) {
		n++
	}

	return n
}

// number reads least to most digits at i as a number of at most limit. It
// returns how many there are, 0 if that does not fit.
func number(s []byte, i, least, most, limit int) int {
	n := digitRun(s, i, most)
	if n < least || n > most {
		return 0
	}
	v := 0
	for _, c := range s[i : i+n] {
		v = 10*v + int(c-'0')
	}
	if v > limit {
		return 0
	}

	return n
}

func uuid(s []byte, _ byte) int {
	n := 0
	for k, size := range [...]int{8, 4, 4, 4, 12} {
		if k > 0 {
			if n >= len(s) || s[n] != '-' {
				return 0
			}
			n++
		}
		for range size {
			if n >= len(s) || !isHex(s[n]) {
				return 0
			}
			n++
		}
	}
	if !ends(s, n) {
		return 0
	}

	return n
}

func longHex(s []byte, _ byte) int {
	const shortest = 16
	n, letter := 0, false
	for n < len(s) && isHex(s[n]) {
		letter = letter || !isDigit(s[n])
		n++
	}
	if n < shortest || !letter || !ends(s, n) {
		return 0
	}

	return n
}

func pointer(s []byte, _ byte) int {
	const shortest = 8
	if len(s) < 2+shortest || s[0] != '0' || s[1]|lowerCase != 'x' {
		return 0
	}
	n := 2
	for n < len(s) && isHex(s[n]) {
		n++
	}
	if n < 2+shortest || !ends(s, n) {
		return 0
	}

	return n
}

const (
	lastOctet  = 255
	lastPort   = 65535
	portDigits = 5
)

func addressIPv4(s []byte, prev byte) int {
	if prev == '.' {
		return 0
	}
	i := 0
	for k := range 4 {
		if k > 0 {
			if i >= len(s) || s[i] != '.' {
				return 0
			}
			i++
		}
		n := number(s, i, 1, 3, lastOctet)
		if n == 0 {
			return 0
		}
		i += n
	}

	return port(s, i)
}

func addressIPv6(s []byte) int {
	const longest = 64
	if s[0] != '[' {
		return 0
	}
	colons := 0
	for i := 1; i < len(s) && i < longest; i++ {
		switch c := s[i]; {
		case c == ':':
			colons++
		case c == ']':
			if colons < 2 {
				return 0
			}

			return port(s, i+1)
		case !isHex(c) && c != '.' && c != '%' && (!isWord(c) || c >= 0x80):
			return 0
		}
	}

	return 0
}

// port reads a colon and a port at i and returns where the address ends, or 0.
func port(s []byte, i int) int {
	if i >= len(s) || s[i] != ':' {
		return 0
	}
	n := number(s, i+1, 1, portDigits, lastPort)
	if n == 0 {
		return 0
	}
	if i += 1 + n; !ends(s, i) || goesOn(s, i, '.') || goesOn(s, i, ':') {
		return 0
	}

	return i
}
