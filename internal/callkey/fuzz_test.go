package callkey_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
)

// FuzzCall holds the parser against encoding/json: it accepts the same texts,
// and another spelling of the same value has the same key.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		"", "text", `{"b":[1.50,-0,1e400],"a":{"\u0061":"\ud83d\ude00\/","x":null}}`, `{"a":1,"a":2}`, `"\ud800"`,
		`[[[[{}]]]]`, `{"a":true}x`, `[0.1e-5,10E+2,00]`, "\"\x80\"", `{"é":"\n","e":{}}`, `1e99999999999999999999`, " \t{} ",
	} {
		f.Add(seed, uint64(1))
	}
	keys, tool := callkey.New(), ident.MustLabel("tool")
	f.Fuzz(func(t *testing.T, input string, seed uint64) {
		key := keys.Call(tool, input)
		if key != keys.Call(tool, input) || key != keys.Call(tool, "\n "+input+" ") {
			t.Fatal("the key is not stable")
		}
		isJSON := keys.IsJSON(input)
		valid := json.Valid([]byte(input))
		if isJSON && !valid || valid && !isJSON && strings.Count(input, "[")+strings.Count(input, "{") <= callkey.MaxDepth {
			t.Fatalf("read as JSON: %v, but it is: %v", isJSON, valid)
		}
		if !isJSON || !utf8.ValidString(input) {
			return
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(input)); err != nil {
			t.Fatal(err)
		}
		if key != keys.Call(tool, compact.String()) {
			t.Fatalf("white space changes the key of %q", input)
		}
		if other, ok := respell(input, rand.New(rand.NewPCG(seed, 0))); ok && key != keys.Call(tool, other) {
			t.Fatalf("%q and %q have different keys", input, other)
		}
	})
}

// respell writes a JSON value in another way; it reports false for what
// encoding/json does not keep: equal names, and surrogates without a partner.
func respell(input string, r *rand.Rand) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(input))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || strings.ContainsRune(input, utf8.RuneError) {
		return "", false
	}
	var b strings.Builder
	ok := write(&b, v, r)

	return b.String(), ok && strings.Count(b.String(), ":") == countNames(input)
}

// countNames counts members and colons in strings, as the respelled text has
// them; names that are equal make the difference.
func countNames(input string) int {
	dec := json.NewDecoder(strings.NewReader(input))
	dec.UseNumber()
	colons := 0
	type level struct{ object, name bool }
	var open []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return colons
		}
		top := len(open) - 1
		isName := top >= 0 && open[top].object && open[top].name
		if d, ok := tok.(json.Delim); ok && (d == ']' || d == '}') {
			open = open[:top]

			continue
		}
		if top >= 0 && open[top].object {
			open[top].name = !open[top].name
		}
		if isName {
			colons++
		}
		if s, ok := tok.(string); ok {
			colons += strings.Count(s, ":")
		}
		if d, ok := tok.(json.Delim); ok {
			open = append(open, level{object: d == '{', name: d == '{'})
		}
	}
}

func write(b *strings.Builder, v any, r *rand.Rand) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		b.WriteString("{ ")
		for i, name := range names {
			if i > 0 {
				b.WriteString(" ,")
			}
			ok = writeString(b, name, r) && ok
			b.WriteString(":\t")
			ok = write(b, v[name], r) && ok
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, e := range v {
			if i > 0 {
				b.WriteString(",\n")
			}
			ok = write(b, e, r) && ok
		}
		b.WriteString(" ]")
	case string:
		return writeString(b, v, r)
	case json.Number:
		b.WriteString(v.String())
		if s := v.String(); r.IntN(2) == 0 && !strings.ContainsAny(s, "eE") {
			if !strings.Contains(s, ".") {
				b.WriteString(".")
			}
			b.WriteString("000e-0")
		}
	case bool:
		data, _ := json.Marshal(v)
		b.Write(data)
	default:
		b.WriteString("null")
	}

	return ok
}

func writeString(b *strings.Builder, s string, r *rand.Rand) bool {
	b.WriteString(`"`)
	for _, c := range s {
		switch {
		case c == utf8.RuneError:
			return false
		case c < 0x10000 && (c < ' ' || c == '"' || c == '\\' || c != ':' && r.IntN(3) == 0):
			const digits = "0123456789aBcDeF"
			b.WriteString(`\u`)
			for shift := 12; shift >= 0; shift -= 4 {
				b.WriteByte(digits[c>>shift&0xf])
			}
		default:
			b.WriteRune(c)
		}
	}
	b.WriteString(`"`)

	return true
}

// FuzzResult: a line that was cleaned has nothing left to clean, and the order
// of lines does not count.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		"", "up since 2024-05-01T10:15:02.123Z, 1h2m3s", "Mon, 02 Jan 2006 15:04:05 GMT", "dial [::1]:80 10.0.0.1:99 0xc000123456",
		"7f3b0c1e-1111-4a4a-9b9b-0123456789ab " + hex40, "10/Oct/2000:13:55:36 -0700", "1,234.5 ms 3 weeks 5µs", "12:30[::1]:80",
		"5s.10:30 10:15:02.9 10:45: 1:2:3", "Jan 2, 2006-01-02", "a\nb\r\nc", "7 \x00\x0e 7.5 \xff\x1d", "10:00-10:30am",
	} {
		f.Add(`{"n":7,"q":"abc def"}`, seed)
		f.Add("", seed)
		f.Add(":30", seed)
	}
	keys := callkey.New()
	f.Fuzz(func(t *testing.T, input, output string) {
		signature := keys.Result(input, output)
		if signature != keys.Result(input, output) {
			t.Fatal("the signature is not stable")
		}
		lines := strings.Split(output, "\n")
		if len(output) <= callkey.MaxResult {
			slices.Reverse(lines)
			if signature != keys.Result(input, strings.Join(lines, "\n")) {
				t.Fatal("the order of lines counts")
			}
		}
		for _, line := range lines {
			once := keys.CleanLine(input, line)
			if len(once) > len(line) {
				t.Fatalf("%q grew to %q", line, once)
			}
			if twice := keys.CleanLine(input, once); twice != once {
				t.Fatalf("%q became %q, then %q", line, once, twice)
			}
		}
	})
}
