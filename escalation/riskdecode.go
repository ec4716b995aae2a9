package escalation

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxWraps bounds how often a text may be wrapped.
	maxWraps = 6
	// minBase64 is the length from which a run of letters is tried as base64: 8
	// of them hold 6 bytes.
	minBase64 = 8
)

// decodeAll visits a text and everything that can be decoded from it, each text
// once, and reports whether it saw it all. Past the bounds it stops, and the
// answer is no.
//
//	text      visit it; take it apart by each of these, and what comes out likewise:
//	JSON      every value and key that is a text; the texts of a list, joined by spaces
//	          (else, of what is no JSON document:)
//	escapes   \u0072 \u{72} \U00000072 \x72 \n \/ …, surrogate pairs
//	URL       %72, %u0072, and + as a space
//	base64    all of it without white space, or any run of at least 8 of its characters:
//	          both alphabets, padded or not; the bytes as UTF-8 or UTF-16
func decodeAll(text string, maxBytes int, visit func(string)) (whole bool) {
	d := decoding{left: maxBytes, visit: visit, seen: make(map[string]struct{})}
	d.text(text, 0)

	return !d.over
}

type decoding struct {
	visit func(string)
	seen  map[string]struct{}
	left  int
	over  bool
}

func (d *decoding) text(s string, wraps int) {
	if _, seen := d.seen[s]; seen || s == "" || d.over {
		return
	}
	if len(s) > d.left || wraps > maxWraps {
		d.over = true

		return
	}
	d.left -= len(s)
	d.seen[s] = struct{}{}
	d.visit(s)
	if d.document(s, wraps+1) {
		return
	}
	if out, changed := unescape(s); changed {
		d.text(out, wraps+1)
	}
	for _, plus := range []bool{false, true} {
		if out, changed := unpercent(s, plus); changed {
			d.text(out, wraps+1)
		}
	}
	d.base64(s, wraps+1)
}

// document takes a JSON document apart, if s is one.
func (d *decoding) document(s string, wraps int) bool {
	trimmed := strings.TrimLeft(s, " \t\r\n")
	if trimmed == "" || !strings.ContainsRune(`{["`, rune(trimmed[0])) || !json.Valid([]byte(s)) {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var lists [][]string // of the lists and objects that are open; nil for an object
	for !d.over {
		t, err := dec.Token()
		if err != nil { // the end, as the document is valid
			break
		}
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '[':
				lists = append(lists, []string{})
			case '{':
				lists = append(lists, nil)
			default:
				if parts := lists[len(lists)-1]; len(parts) > 1 {
					d.text(strings.Join(parts, " "), wraps)
				}
				lists = lists[:len(lists)-1]
			}
		case string:
			if n := len(lists) - 1; n >= 0 && lists[n] != nil {
				lists[n] = append(lists[n], t)
			}
			d.text(t, wraps)
		}
	}

	return true
}

// unescape undoes what starts with a backslash. What is no escape stays.
func unescape(s string) (string, bool) {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, false
	}
	var out strings.Builder
	changed := false
	for len(s) > 0 {
		if i = strings.IndexByte(s, '\\'); i < 0 {
			break
		}
		out.WriteString(s[:i])
		r, size := escape(s[i:])
		if utf16.IsSurrogate(r) {
			if low, more := escape(s[i+size:]); more > 0 && utf16.DecodeRune(r, low) != utf8.RuneError {
				r, size = utf16.DecodeRune(r, low), size+more
			}
		}
		if size == 0 {
			out.WriteByte('\\')
			size = 1
		} else {
			out.WriteRune(r)
			changed = true
		}
		s = s[i+size:]
	}
	out.WriteString(s)

	return out.String(), changed
}

// escape reads one escape at the start of s; size 0 if there is none.
func escape(s string) (r rune, size int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	digits := 0
	switch s[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case '"', '\'', '/', '\\':
		return rune(s[1]), 2
	case 'x':
		digits = 2
	case 'u':
		if end := strings.IndexByte(s, '}'); strings.HasPrefix(s, `\u{`) && end > 3 && end <= 3+6 {
			return hexRune(s[3:end], end+1)
		}
		digits = 4
	case 'U':
		digits = 8
	}
	if digits == 0 || len(s) < 2+digits {
		return 0, 0
	}

	return hexRune(s[2:2+digits], 2+digits)
}

func hexRune(digits string, size int) (rune, int) {
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, 0
	}

	return rune(n), size
}

// unpercent undoes the escapes of URLs, and + for a space if it is asked to.
// What is no escape stays.
func unpercent(s string, plus bool) (string, bool) {
	if !strings.ContainsRune(s, '%') && (!plus || !strings.ContainsRune(s, '+')) {
		return s, false
	}
	const wide = len("%u0072")
	out := make([]byte, 0, len(s))
	changed := false
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '+' && plus:
			out, changed = append(out, ' '), true
			i++
		case c == '%' && len(s) >= i+wide && (s[i+1] == 'u' || s[i+1] == 'U'):
			r, size := hexRune(s[i+2:i+wide], wide)
			if size == 0 {
				out = append(out, c)
				size = 1
			} else {
				out, changed = utf8.AppendRune(out, r), true
			}
			i += size
		case c == '%' && len(s) >= i+3:
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				out = append(out, c)
				i++

				continue
			}
			out, changed = append(out, byte(n)), true
			i += 3
		default:
			out = append(out, c)
			i++
		}
	}

	return string(out), changed
}

// base64 tries the whole text without its white space, as mail and files are
// wrapped, and each run of the alphabets' characters.
func (d *decoding) base64(s string, wraps int) {
	if strings.ContainsAny(s, " \t\r\n") {
		joined := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}

			return r
		}, s)
		if run := base64Run(joined); run == len(joined) {
			d.run(joined, wraps)
		}
	}
	for len(s) > 0 && !d.over {
		n := base64Run(s)
		if n >= minBase64 {
			d.run(s[:n], wraps)
		}
		s = s[max(n, 1):]
	}
}

// base64Run returns the length of the run that s starts with, padding included.
func base64Run(s string) int {
	n := 0
	for n < len(s) && isBase64(s[n]) {
		n++
	}
	for end := n; n > 0 && n < len(s) && n < end+2 && s[n] == '='; {
		n++
	}

	return n
}

func isBase64(c byte) bool {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '+' || c == '/' || c == '-' || c == '_'
}

// run decodes one run of base64. Most words are none: their bytes are no text.
func (d *decoding) run(s string, wraps int) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case '-':
			return '+'
		case '_':
			return '/'
		}

		return r
	}, strings.TrimRight(s, "="))
	if len(s)%4 == 1 {
		s = s[:len(s)-1] // one character too many: of what stands behind
	}
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return
	}
	if isText(raw) {
		d.text(string(raw), wraps)
	} else if wide, ok := fromUTF16(raw); ok {
		d.text(wide, wraps)
	}
}

func isText(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for _, c := range raw {
		if (c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f {
			return false
		}
	}

	return len(raw) > 0
}

// fromUTF16 reads little-endian UTF-16 of mostly ASCII: what PowerShell takes.
func fromUTF16(raw []byte) (string, bool) {
	if len(raw) < 2 || len(raw)%2 != 0 {
		return "", false
	}
	units := make([]uint16, len(raw)/2)
	narrow := 0
	for i := range units {
		units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
		if raw[2*i+1] == 0 {
			narrow++
		}
	}
	text := string(utf16.Decode(units))

	return text, 2*narrow > len(units) && isText([]byte(text))
}
