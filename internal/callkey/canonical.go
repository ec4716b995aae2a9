package callkey

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxExponent is the largest exponent, in digits, that numbers are compared by;
// a number beyond is compared by its spelling.
const maxExponent = 17

// emitAll writes the canonical form of the parsed document. It is JSON without
// white space in which objects are sorted, strings are as short as they can be,
// and a number is its digits and the power of ten of 0.digits. The line end is
// what keeps one number from being the beginning of another.
func (w *scratch) emitAll() {
	w.emit(w.doc.root, 0)
	w.writeByte('\n')
}

// emit writes the value at i, in which the first object has this number. It
// returns the value's end and the number of the first object after it.
func (w *scratch) emit(i, number int) (end, next int) {
	d := &w.doc
	switch c := d.src[i]; {
	case c == '{':
		return w.emitObject(number)
	case c == '[':
		return w.emitArray(i, number)
	case c == '"':
		end = stringEnd(d.src, i)
		w.emitString(d.src[i+1 : end-1])
	case c == '-' || isDigit(c):
		end = numberEnd(d.src, i)
		w.emitNumber(d.src[i:end])
	default:
		end = i + 4 // true, null
		if c == 'f' {
			end++
		}
		w.writeString(d.src[i:end])
	}

	return end, number
}

func (w *scratch) emitObject(number int) (end, next int) {
	d := &w.doc
	o := d.objects[number]
	w.writeByte('{')
	for k, m := range d.members[o.first : o.first+o.count] {
		if k > 0 {
			w.writeByte(',')
		}
		w.emitString(d.src[m.name:m.end])
		w.writeByte(':')
		w.emit(int(m.value), int(m.object))
	}
	w.writeByte('}')

	return int(o.end), int(o.next)
}

func (w *scratch) emitArray(i, number int) (end, next int) {
	d := &w.doc
	w.writeByte('[')
	i = skipSpace(d.src, i+1)
	for d.src[i] != ']' {
		i, number = w.emit(i, number)
		i = skipSpace(d.src, i)
		if d.src[i] == ',' {
			w.writeByte(',')
			i = skipSpace(d.src, i+1)
		}
	}
	w.writeByte(']')

	return i + 1, number
}

// emitString writes the string between its quotes. Only what has to be is
// escaped, in one way: quote and backslash, and surrogates without a partner.
func (w *scratch) emitString(raw string) {
	w.writeByte('"')
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			break
		}
		w.writeString(raw[:i])
		r, size := unescape(raw[i:])
		raw = raw[i+size:]
		switch {
		case r == '"' || r == '\\':
			w.writeByte('\\')
			w.writeByte(byte(r))
		case utf16.IsSurrogate(r):
			w.writeString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				w.writeByte("0123456789abcdef"[r>>shift&0xf])
			}
		default:
			var b [utf8.UTFMax]byte
			for _, c := range b[:utf8.EncodeRune(b[:], r)] {
				w.writeByte(c)
			}
		}
	}
	w.writeString(raw)
	w.writeByte('"')
}

// unescape reads the escape at the beginning of s: a rune, or a surrogate
// without a partner.
func unescape(s string) (r rune, size int) {
	const long, pair = len(`\u0000`), 2 * len(`\u0000`)
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(s[1]), 2
	}
	r = hexRune(s[2:])
	if utf16.IsSurrogate(r) && len(s) >= pair && s[long] == '\\' && s[long+1] == 'u' {
		if whole := utf16.DecodeRune(r, hexRune(s[long+2:])); whole != utf8.RuneError {
			return whole, pair
		}
	}

	return r, long
}

func hexRune(s string) rune {
	var r rune
	for i := range 4 {
		c := s[i] | lowerCase
		if c >= 'a' {
			c -= 'a' - 10
		} else {
			c -= '0'
		}
		r = r<<4 | rune(c)
	}

	return r
}

// appendUnescaped appends the decoded string. A surrogate without a partner
// becomes three bytes that no valid text contains.
func appendUnescaped(dst []byte, raw string) []byte {
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:i]...)
		r, size := unescape(raw[i:])
		raw = raw[i+size:]
		if utf16.IsSurrogate(r) {
			dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f) //nolint:gosec // the three bytes of UTF-8
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
}

// emitNumber writes a number as its value: sign, digits without zeros at
// either end, "e", and the exponent of 0.digits. Zero is "0".
func (w *scratch) emitNumber(raw string) {
	mantissa, exponent, ok := splitNumber(raw)
	if !ok {
		w.writeByte('=')
		w.writeString(raw)

		return
	}
	negative := mantissa[0] == '-'
	mantissa = strings.TrimPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent += int64(len(whole))
	digits := strings.TrimLeft(whole, "0")
	exponent -= int64(len(whole) - len(digits))
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		digits = strings.TrimRight(digits, "0")
	}
	if digits == "" {
		trimmed := strings.TrimLeft(fraction, "0")
		exponent -= int64(len(fraction) - len(trimmed))
		fraction = trimmed
	}
	if digits == "" && fraction == "" {
		w.writeByte('0')

		return
	}
	if negative {
		w.writeByte('-')
	}
	w.writeString(digits)
	w.writeString(fraction)
	w.writeByte('e')
	var b [20]byte
	for _, c := range strconv.AppendInt(b[:0], exponent, 10) {
		w.writeByte(c)
	}
}

// maxPlain is the longest plain decimal that is made of a number.
const maxPlain = 32

// appendPlain appends a number without an exponent and without zeros at the end
// of a fraction: 7 for 7.0, 70e-1 and 0.7e1. It appends nothing if that is too
// long.
func appendPlain(dst []byte, raw string) []byte {
	if raw[0] != '-' && strings.IndexByte(raw, '.') < 0 && strings.IndexByte(raw, 'e') < 0 && strings.IndexByte(raw, 'E') < 0 {
		return append(dst, raw...) // as most
	}
	mantissa, exponent, ok := splitNumber(raw)
	negative := ok && mantissa[0] == '-'
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	if !ok || len(whole)+len(fraction) > maxPlain || exponent > maxPlain || exponent < -maxPlain {
		return dst
	}
	point := len(whole) + int(exponent) // digits before it
	var b [4 * maxPlain]byte
	digits := append(b[:0], "00000000000000000000000000000000"[:max(0, 1-point)]...)
	digits = append(append(digits, whole...), fraction...)
	point = max(1, point)
	for len(digits) < point {
		digits = append(digits, '0')
	}
	from, end := 0, len(digits)
	for from+1 < point && digits[from] == '0' {
		from++
	}
	for end > point && digits[end-1] == '0' {
		end--
	}
	if negative && (end > point || point-from > 1 || digits[from] != '0') {
		dst = append(dst, '-')
	}
	dst = append(dst, digits[from:point]...)
	if end > point {
		dst = append(append(dst, '.'), digits[point:end]...)
	}

	return dst
}

func splitNumber(raw string) (mantissa string, exponent int64, ok bool) {
	i := strings.IndexAny(raw, "eE")
	if i < 0 {
		return raw, 0, true
	}
	text := raw[i+1:]
	negative := text[0] == '-'
	text = strings.TrimLeft(strings.TrimLeft(text, "+-"), "0")
	if len(text) > maxExponent {
		return "", 0, false
	}
	for i := range len(text) {
		exponent = exponent*10 + int64(text[i]-'0')
	}
	if negative {
		exponent = -exponent
	}

	return raw[:i], exponent, true
}

// trimText is how arguments that are not JSON are compared.
func trimText(s string) string { return strings.TrimSpace(s) }
