package otelxtest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Encoding is a way in which a secret may be written.
type Encoding uint8

// The encodings.
const (
	_            Encoding = iota
	Plain                 // as it is
	Folded                // in lower, upper or any other letter case
	URL                   // escaped for a query or a path, in either letter case
	Hex                   // lower-case hexadecimal digits
	HexUpper              // upper-case hexadecimal digits
	Base64                // the standard alphabet, at alignment 0
	Base64At1             // behind one other byte
	Base64At2             // behind two other bytes
	Base64URL             // the alphabet of URLs, at alignment 0
	Base64URLAt1          // behind one other byte
	Base64URLAt2          // behind two other bytes
	JSON                  // escaped in a JSON string, with or without HTML's characters, in ASCII or not
	JSONTwice             // JSON in a JSON string
	GoQuoted              // as Go source, %q and %+q
	Decimal               // a list of bytes, as %v and %d print it, or JSON an array
	encodingsEnd
)

// Encodings returns all encodings.
func Encodings() []Encoding {
	all := make([]Encoding, 0, encodingsEnd-1)
	for e := Plain; e < encodingsEnd; e++ {
		all = append(all, e)
	}

	return all
}

//nolint:gochecknoglobals // compiled table
var encodingNames = [encodingsEnd]string{
	Plain: "plain", Folded: "letter case", URL: "url", Hex: "hex", HexUpper: "upper-case hex",
	Base64: "base64", Base64At1: "base64 at 1", Base64At2: "base64 at 2",
	Base64URL: "base64url", Base64URLAt1: "base64url at 1", Base64URLAt2: "base64url at 2",
	JSON: "json", JSONTwice: "json in json", GoQuoted: "go", Decimal: "decimal bytes",
}

// String returns the encoding's name, "invalid" for what is none.
func (e Encoding) String() string {
	if e < Plain || e >= encodingsEnd {
		return "invalid"
	}

	return encodingNames[e]
}

// forms returns how s is written in e. Those of base64 are the characters that
// depend on s alone, whatever stands around it.
func (e Encoding) forms(s string) []string {
	switch e {
	case Plain:
		return []string{s}
	case Folded:
		return []string{strings.ToLower(s)}
	case URL:
		return []string{
			url.QueryEscape(s), url.PathEscape(s), (&url.URL{Path: s}).EscapedPath(), everyByte(s, "%%%02X"),
			strings.ReplaceAll(url.QueryEscape(s), "+", "%20"),
		}
	case Hex:
		return []string{hex.EncodeToString([]byte(s))}
	case HexUpper:
		return []string{strings.ToUpper(hex.EncodeToString([]byte(s)))}
	case Base64, Base64At1, Base64At2:
		return []string{inner64(base64.RawStdEncoding, s, int(e-Base64))}
	case Base64URL, Base64URLAt1, Base64URLAt2:
		return []string{inner64(base64.RawURLEncoding, s, int(e-Base64URL))}
	case JSON:
		return jsonForms(s)
	case JSONTwice:
		var twice []string
		for _, once := range jsonForms(s) {
			twice = append(twice, jsonForms(once)...)
		}

		return twice
	case GoQuoted:
		return []string{unquote(strconv.Quote(s)), unquote(strconv.QuoteToASCII(s))}
	case Decimal:
		list := strings.TrimSuffix(everyByte(s, "%d "), " ")

		return []string{list, strings.ReplaceAll(list, " ", ","), strings.ReplaceAll(list, " ", ", ")}
	default:
		return nil
	}
}

// folded says that the form is looked for in any letter case.
func (e Encoding) folded() bool { return e == Folded || e == URL }

// inner64 leaves out what a neighbour has a part in.
func inner64(enc *base64.Encoding, s string, shift int) string {
	const bytesPerGroup, charsPerGroup = 3, 4
	text := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + s))
	from := 0
	if shift > 0 {
		from = shift + 1 // the first character that is made of s alone
	}
	whole := (shift + len(s)) / bytesPerGroup * charsPerGroup

	return text[from:whole]
}

func jsonForms(s string) []string {
	var forms []string
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		_ = enc.Encode(s) //nolint:errchkjson // a string always renders
		text := unquote(strings.TrimSpace(b.String()))
		forms = append(forms, text, ascii(text))
	}

	return forms
}

// ascii writes what is beyond ASCII as other JSON encoders do.
func ascii(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r <= unicode.MaxASCII:
			b.WriteRune(r)
		case utf16.RuneLen(r) == 2:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}

	return b.String()
}

func unquote(quoted string) string { return quoted[1 : len(quoted)-1] }

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}

	return b.String()
}
