package callkey

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
)

// Bounds of what is read as JSON. Both depend on the value alone, not on its
// spelling; what is beyond is compared as text.
const (
	// MaxDepth is how deep arrays and objects may nest.
	MaxDepth = 64
	// MaxMembers bounds the objects and members of the arguments, and with them
	// the memory that sorting takes: about 1 MiB.
	MaxMembers = 1 << 16
)

// keptIndex is the largest index that is kept for the next call.
const keptIndex = 1 << 10

// document is an index into JSON text: where the members of each object are, in
// the order of their names. The text is not copied; writing the canonical form
// is a walk over it.
type document struct {
	src     string
	root    int
	objects []object // in the order of their opening braces
	members []member // those of one object stand together, sorted
	open    []member // of the objects that are being read
	a, b    []byte   // decoded names that are compared
}

type object struct {
	first, count uint32 // in members
	end          uint32 // after the closing brace
	next         uint32 // number of the first object after it
}

type member struct {
	name, end uint32 // offsets of the name between its quotes
	value     uint32 // offset
	object    uint32 // number of the first object in value
}

func (d *document) release() {
	d.src = ""
	if cap(d.objects) > keptIndex || cap(d.members) > keptIndex || cap(d.open) > keptIndex {
		d.objects, d.members, d.open = nil, nil, nil
	}
	d.objects, d.members, d.open = d.objects[:0], d.members[:0], d.open[:0]
	d.a, d.b = releaseBuffer(d.a), releaseBuffer(d.b)
}

// parse indexes src and reports whether it is JSON within the bounds.
func (w *scratch) parse(src string) bool {
	d := &w.doc
	d.objects, d.members, d.open = d.objects[:0], d.members[:0], d.open[:0]
	if len(src) > math.MaxInt32 {
		return false
	}
	d.src = src
	d.root = skipSpace(src, 0)
	end := d.value(d.root, 0)

	return end >= 0 && skipSpace(src, end) == len(src)
}

// value reads the value at i and returns where it ends, or -1.
func (d *document) value(i, depth int) int {
	if i >= len(d.src) {
		return -1
	}
	switch c := d.src[i]; {
	case c == '{':
		return d.object(i, depth+1)
	case c == '[':
		return d.array(i, depth+1)
	case c == '"':
		return stringEnd(d.src, i)
	case c == '-' || isDigit(c):
		return numberEnd(d.src, i)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(d.src[i:], word) {
			return i + len(word)
		}
	}

	return -1
}

func (d *document) array(i, depth int) int {
	if depth > MaxDepth {
		return -1
	}
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == ']' {
		return i + 1
	}
	for {
		if i = d.value(i, depth); i < 0 {
			return -1
		}
		if i = skipSpace(d.src, i); i >= len(d.src) {
			return -1
		}
		switch d.src[i] {
		case ',':
			i = skipSpace(d.src, i+1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

func (d *document) object(i, depth int) int {
	if depth > MaxDepth || d.full() {
		return -1
	}
	number, base := len(d.objects), len(d.open)
	d.objects = append(d.objects, object{})
	i = skipSpace(d.src, i+1)
	if i < len(d.src) && d.src[i] == '}' {
		return d.close(number, base, i+1)
	}
	for {
		name := i
		if i = d.member(name, depth); i < 0 {
			return -1
		}
		if i = skipSpace(d.src, i); i >= len(d.src) {
			return -1
		}
		switch d.src[i] {
		case ',':
			i = skipSpace(d.src, i+1)
		case '}':
			return d.close(number, base, i+1)
		default:
			return -1
		}
	}
}

// member reads "name": value at i and returns where it ends, or -1.
func (d *document) member(name, depth int) int {
	if name >= len(d.src) || d.src[name] != '"' || d.full() {
		return -1
	}
	nameEnd := stringEnd(d.src, name)
	if nameEnd < 0 {
		return -1
	}
	i := skipSpace(d.src, nameEnd)
	if i >= len(d.src) || d.src[i] != ':' {
		return -1
	}
	value := skipSpace(d.src, i+1)
	d.open = append(d.open, member{
		name: uint32(name + 1), end: uint32(nameEnd - 1), //nolint:gosec // bounded by parse
		value: uint32(value), object: uint32(len(d.objects)), //nolint:gosec // bounded by parse
	})

	return d.value(value, depth)
}

func (d *document) full() bool {
	return len(d.objects)+len(d.members)+len(d.open) >= MaxMembers
}

// close sorts the members of an object; equal names keep their order.
func (d *document) close(number, base, end int) int {
	own := d.open[base:]
	byName := func(x, y member) int {
		if c := d.compareNames(d.src[x.name:x.end], d.src[y.name:y.end]); c != 0 {
			return c
		}

		return cmp.Compare(x.name, y.name)
	}
	if !slices.IsSortedFunc(own, byName) {
		slices.SortFunc(own, byName)
	}
	first := len(d.members)
	d.members = append(d.members, own...)
	d.open = d.open[:base]
	d.objects[number] = object{
		first: uint32(first), count: uint32(len(own)), //nolint:gosec // bounded by full
		end: uint32(end), next: uint32(len(d.objects)), //nolint:gosec // bounded by parse and full
	}
	clear(own)

	return end
}

func (d *document) compareNames(a, b string) int {
	if strings.IndexByte(a, '\\') < 0 && strings.IndexByte(b, '\\') < 0 {
		return strings.Compare(a, b)
	}
	d.a, d.b = appendUnescaped(d.a[:0], a), appendUnescaped(d.b[:0], b)

	return bytes.Compare(d.a, d.b)
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}

	return i
}

// stringEnd returns where the string whose quote is at i ends, or -1.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			i++
			if i >= len(s) {
				return -1
			}
			switch s[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(s)-i <= 4 || !isHex(s[i+1]) || !isHex(s[i+2]) || !isHex(s[i+3]) || !isHex(s[i+4]) {
					return -1
				}
				i += 4
			default:
				return -1
			}
		}
	}

	return -1
}

// numberEnd returns where the number at i ends, or -1.
func numberEnd(s string, i int) int {
	if s[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}

		return i > from
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return -1
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}

	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// lowerCase is the bit that makes an ASCII letter lower case.
const lowerCase = 0x20

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|lowerCase && c|lowerCase <= 'f' }
