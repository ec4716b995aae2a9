package callkey

import (
	"bytes"
	"strings"
)

// What of the arguments is looked for in results.
const (
	maxValues     = 16
	minValue      = 3 // of a string; shorter ones are ordinary words
	maxValue      = 512
	maxValueBytes = 4 << 10
	maxSpellings  = 64 // of values; of failures, their words too
)

// Marks that stand for what was left out. They are control characters which do
// not separate lines or words, and belong to no volatile form.
const (
	markVolatile = 0x00
	markValue    = 0x0e // and the 15 after it, one for each value
)

// argValues are the argument values of one call, in canonical order: a value
// has the same mark in results of calls that differ in it alone.
type argValues struct {
	buf    []byte
	ends   [maxSpellings]int  // a number may have two spellings
	marks  [maxSpellings]byte // which value it is
	digits [maxSpellings]bool // whether it is a number
	words  int                // spellings that are none
	least  int                // length of a string that counts
	count  int                // spellings
	values int
	starts [256]bool // first bytes of the values
}

func (v *argValues) release() {
	v.buf = releaseBuffer(v.buf)
	v.reset()
}

func (v *argValues) reset() {
	for i := range v.count {
		v.starts[v.value(i)[0]] = false
	}
	v.buf, v.count, v.values, v.words = v.buf[:0], 0, 0, 0
}

func (v *argValues) value(i int) []byte {
	from := 0
	if i > 0 {
		from = v.ends[i-1]
	}

	return v.buf[from:v.ends[i]]
}

// commit keeps what was appended to buf as a value, if it is fit for one.
func (v *argValues) commit(grown []byte, shortest int) {
	if v.values < maxValues && v.spelling(grown, shortest) {
		v.values++
	}
}

// spelling keeps what was appended to buf under the mark of the next value.
func (v *argValues) spelling(grown []byte, shortest int) bool {
	value := grown[len(v.buf):]
	if len(value) < shortest || len(value) > maxValue || len(grown) > maxValueBytes || v.count == maxSpellings {
		return false
	}
	for _, c := range value {
		if c < ' ' {
			return false
		}
	}
	v.buf = grown
	v.ends[v.count] = len(grown)
	v.marks[v.count] = markValue + byte(v.values) //nolint:gosec // below maxValues, or not used
	if v.digits[v.count] = isNumber(value); !v.digits[v.count] {
		v.words++
	}
	v.count++
	v.starts[value[0]] = true

	return true
}

// number keeps a number as it is spelled and, if that is another spelling, as a
// plain decimal: a tool that was given 7.0 speaks of 7.
func (v *argValues) number(raw string) {
	if len(raw) > maxValue || v.values == maxValues {
		return
	}
	if plain := appendPlain(v.buf, raw); len(plain) > len(v.buf) && string(plain[len(v.buf):]) != raw {
		v.spelling(plain, 1)
	}
	v.commit(append(v.buf, raw...), 1)
}

// Values calls yield with the values of the arguments: strings of 1…512 bytes in
// one line and numbers, as plain decimals, at most 16 and 4 KiB. The bytes are
// valid until yield returns.
func (k Keyer) Values(input string, yield func(value []byte)) {
	s := k.secret()
	w := s.scratch()
	defer s.release(w)
	w.collectValues(input, 1)
	for i := range w.values.count {
		if i == 0 || w.values.marks[i] != w.values.marks[i-1] {
			yield(w.values.value(i))
		}
	}
}

// collectValues finds the values in input, strings of at least this length.
func (w *scratch) collectValues(input string, least int) {
	w.values.reset()
	w.values.least = least
	if w.parse(input) {
		w.collect(w.doc.root, 0)
		return
	}
	text := trimText(input)
	if len(text) <= maxValue {
		w.values.commit(append(w.values.buf, text...), least)
	}
}

// collectWords finds the words of the values that have several: a failure often
// repeats one of them.
func (w *scratch) collectWords() {
	v := &w.values
	for k := range v.count {
		if v.digits[k] {
			continue
		}
		for from, end := 0, 0; end < len(v.value(k)); from = end {
			value := v.value(k)
			for from < len(value) && !inWord(value[from]) {
				from++
			}
			for end = from; end < len(value) && inWord(value[end]); {
				end++
			}
			word := bytes.TrimRight(value[from:end], ".-/:")
			if len(word) < len(value) && v.spelling(append(v.buf, word...), minValue) {
				v.marks[v.count-1] = markVolatile // whichever it is
			}
		}
	}
}

// inWord reports whether c belongs to a word of an argument, a name with its
// points and dashes say.
func inWord(c byte) bool {
	return isWord(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == ':'
}

// collect walks the document as emit does.
func (w *scratch) collect(i, number int) (end, next int) {
	d := &w.doc
	switch c := d.src[i]; {
	case c == '{':
		o := d.objects[number]
		for _, m := range d.members[o.first : o.first+o.count] {
			if w.values.values == maxValues {
				break
			}
			w.collect(int(m.value), int(m.object))
		}

		return int(o.end), int(o.next)
	case c == '[':
		i = skipSpace(d.src, i+1)
		for d.src[i] != ']' {
			i, number = w.collect(i, number)
			if i = skipSpace(d.src, i); d.src[i] == ',' {
				i = skipSpace(d.src, i+1)
			}
		}

		return i + 1, number
	case c == '"':
		end = stringEnd(d.src, i)
		if end-i-2 <= 6*maxValue { // an escape has at most six bytes per byte
			text := appendUnescaped(w.values.buf, d.src[i+1:end-1])
			from := len(w.values.buf)
			value := bytes.TrimSpace(text[from:])
			w.values.commit(append(text[:from], value...), w.values.least)
		}

		return end, number
	case c == '-' || isDigit(c):
		end = numberEnd(d.src, i)
		w.values.number(d.src[i:end])

		return end, number
	default:
		return i + len("null") + strings.Count(d.src[i:i+1], "f"), number
	}
}

// isNumber reports whether a value consists of digits, and signs that numbers
// have.
func isNumber(value []byte) bool {
	for _, c := range value {
		if !isDigit(c) && c != '.' && c != '-' && c != '+' && c|lowerCase != 'e' {
			return false
		}
	}

	return isDigit(value[len(value)-1])
}

// appendWithout appends line with a mark in place of each value of one kind,
// numbers or not, that stands there as a whole word; the longest one that fits
// wins. It reports whether there was any.
func (v *argValues) appendWithout(dst, line []byte, numbers bool) (out []byte, found bool) {
	from := 0
	for i := 0; i < len(line); {
		if v.starts[line[i]] {
			if n, mark := v.match(line, i, numbers); n > 0 {
				dst = append(dst, line[from:i]...)
				dst = append(dst, mark)
				i += n
				from, found = i, true

				continue
			}
		}
		i++
	}

	return append(dst, line[from:]...), found
}

func (v *argValues) match(line []byte, i int, numbers bool) (n int, mark byte) {
	for k := range v.count {
		if v.digits[k] != numbers {
			continue
		}
		value := v.value(k)
		end := i + len(value)
		if len(value) <= n || end > len(line) || string(line[i:end]) != string(value) { // the conversions do not allocate
			continue
		}
		if wholeWord(line, i, end) {
			n, mark = len(value), v.marks[k]
		}
	}

	return n, mark
}

// wholeWord reports whether line[i:j] is not a part of a longer word or number.
// A point between a digit and whatever belongs to a word, or stood for one, is
// inside of a number.
func wholeWord(line []byte, i, j int) bool {
	if i > 0 && isWord(line[i]) {
		before := line[i-1]
		if isWord(before) || before == '.' && isDigit(line[i]) && i > 1 && isWordOrMark(line[i-2]) {
			return false
		}
	}
	if last := line[j-1]; j < len(line) && isWord(last) {
		after := line[j]
		if isWord(after) || after == '.' && isDigit(last) && j+1 < len(line) && isWordOrMark(line[j+1]) {
			return false
		}
	}

	return true
}

func isWordOrMark(c byte) bool {
	return isWord(c) || c == markVolatile || markValue <= c && c < markValue+maxValues
}

// isWord reports whether c is a letter, a digit, or part of a rune beyond ASCII.
func isWord(c byte) bool {
	return isDigit(c) || 'a' <= c|lowerCase && c|lowerCase <= 'z' || c >= 0x80
}
