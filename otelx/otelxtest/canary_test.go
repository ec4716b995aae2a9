package otelxtest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// written is how other code than the scanner's writes a text.
func written(s string) map[otelxtest.Encoding][]string {
	marshalled, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	nested, err := json.Marshal(map[string]string{"body": string(marshalled)})
	if err != nil {
		panic(err)
	}
	ints, err := json.Marshal(toInts(s))
	if err != nil {
		panic(err)
	}
	u := url.URL{Scheme: "https", Host: "example.org", Path: "/" + s, RawQuery: url.Values{"q": {s}}.Encode()}
	spell := map[otelxtest.Encoding][]string{
		otelxtest.Plain:  {s},
		otelxtest.Folded: {strings.ToLower(s), strings.ToUpper(s), strings.ToTitle(s)},
		otelxtest.URL: {
			url.QueryEscape(s), url.PathEscape(s), u.String(), strings.ToLower(url.QueryEscape(s)), u.EscapedPath(),
		},
		otelxtest.Hex:       {hex.EncodeToString([]byte(s)), fmt.Sprintf("%x", s)},
		otelxtest.HexUpper:  {fmt.Sprintf("%X", s), strings.ToUpper(hex.EncodeToString([]byte(s)))},
		otelxtest.JSON:      {string(marshalled)},
		otelxtest.JSONTwice: {string(nested)},
		otelxtest.GoQuoted:  {fmt.Sprintf("%q", s), fmt.Sprintf("%+q", s), fmt.Sprintf("%#v", s)},
		otelxtest.Decimal:   {fmt.Sprintf("%v", []byte(s)), fmt.Sprintf("%d", []byte(s)), string(ints)},
	}
	for shift := range 3 {
		spell[otelxtest.Base64+otelxtest.Encoding(shift)] = []string{
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff", shift) + s + "\xff\xff")),
			base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("a", shift) + s)),
		}
		spell[otelxtest.Base64URL+otelxtest.Encoding(shift)] = []string{
			base64.URLEncoding.EncodeToString([]byte(strings.Repeat("\xff", shift) + s + "\x00")),
		}
	}

	return spell
}

func toInts(s string) []int {
	ints := make([]int, len(s))
	for i := range len(s) {
		ints[i] = int(s[i])
	}

	return ints
}

func TestEveryEncodingIsFound(t *testing.T) {
	t.Parallel()
	c := otelxtest.NewCanary(3)
	for _, e := range otelxtest.Encodings() {
		texts := written(c.Phrase())[e]
		if len(texts) == 0 {
			t.Errorf("%v is not tested", e)
		}
		for _, text := range texts {
			findings := c.Scan("outlet", []byte("before "+text+" behind"))
			if !slices.ContainsFunc(findings, func(f otelxtest.Finding) bool { return f.Encoding == e }) {
				t.Errorf("%v is found as %v in %q", e, findings, text)
			}
		}
		for _, text := range written(c.Word())[e] {
			if len(c.Scan("outlet", []byte(text))) == 0 {
				t.Errorf("the word is not found: %q", text)
			}
		}
	}
}

func TestNothingElseIsFound(t *testing.T) {
	t.Parallel()
	c, other := otelxtest.NewCanary(1), otelxtest.NewCanary(2)
	if other.Phrase() == c.Phrase() || otelxtest.NewCanary(1).Phrase() != c.Phrase() {
		t.Error("a seed is not a canary of its own")
	}
	if first, second := otelxtest.RandomCanary(), otelxtest.RandomCanary(); first.Phrase() == second.Phrase() {
		t.Error("random canaries are equal")
	}
	for _, texts := range written(other.Phrase()) {
		for _, text := range append(texts, "", "Canary", text64(30)) {
			if f := c.Scan("outlet", []byte(text)); f != nil {
				t.Errorf("another canary is taken for this one: %v", f)
			}
		}
	}
}

func text64(n int) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("Canary "), n))
}

func TestNothingPrintsTheSecret(t *testing.T) {
	t.Parallel()
	c := otelxtest.NewCanary(4)
	findings := c.Scan("outlet", []byte("x "+c.Phrase()+" "+hex.EncodeToString([]byte(c.Phrase()))))
	if len(findings) < 2 || findings[0].Offset != len("x ") {
		t.Fatalf("found %v", findings)
	}
	text := otelxtest.Printed(findings)
	text = append(text, otelxtest.Printed(findings[0].String())...)
	text = fmt.Appendf(text, "%v %+v %#v %s %q %x %d", c, c, c, c, c, c, c)
	if f := c.Scan("its own output", text); f != nil {
		t.Error(f)
	}
}

func TestCanaryOf(t *testing.T) {
	t.Parallel()
	c, err := otelxtest.CanaryOf("Jane Doe, born in May", "sk-4f0a77aa77aa")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Scan("x", []byte(`"key":"SK-4F0A77AA77AA"`))) != 1 || c.Phrase() != "Jane Doe, born in May" || c.Word() != "sk-4f0a77aa77aa" {
		t.Error("the second secret is not looked for")
	}
	for name, secrets := range map[string][]string{
		"secrets": nil, "secrets[1]": {"long enough to be one", "short"}, "secrets[0]": {"no UTF-8, but long \xff"},
	} {
		if _, err := otelxtest.CanaryOf(secrets...); err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncodingNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"invalid": true}
	for _, e := range otelxtest.Encodings() {
		if seen[e.String()] {
			t.Errorf("%d is named %q", e, e)
		}
		seen[e.String()] = true
	}
	if otelxtest.Encoding(0).String() != "invalid" || otelxtest.Encoding(200).String() != "invalid" {
		t.Error("what is no encoding has a name")
	}
}

// leaky shows its cause where it is asked in one particular way.
type leaky struct{ say func(verb string) string }

func (l *leaky) Error() string { return l.say("Error") }
func (l *leaky) Format(s fmt.State, verb rune) {
	name := string(verb)
	if s.Flag('+') {
		name = "+" + name
	}
	if s.Flag('#') {
		name = "#" + name
	}
	fmt.Fprint(s, l.say(name))
}
func (l *leaky) MarshalJSON() ([]byte, error) { return json.Marshal(l.say("json")) }

type byValue struct{ cause string }

func (byValue) Error() string { return "a code" }

func TestPrintedAsksInEveryWay(t *testing.T) {
	t.Parallel()
	c := otelxtest.NewCanary(5)
	for _, way := range []string{"Error", "v", "+v", "#v", "s", "q", "+q", "x", "X", "d", "json"} {
		err := &leaky{func(asked string) string {
			if asked == way {
				return c.Phrase()
			}

			return "a code"
		}}
		if len(c.Scan("printed", otelxtest.Printed(err))) == 0 {
			t.Errorf("what %s shows is not printed", way)
		}
	}
	if len(c.Scan("printed", otelxtest.Printed(byValue{c.Phrase()}))) == 0 {
		t.Error("a field of a value is not printed")
	}
	for _, err := range []error{
		errors.New(c.Phrase()), fmt.Errorf("x: %w", errors.New(c.Phrase())), errors.Join(errors.New("a code"), errors.New(c.Phrase())),
	} {
		if len(c.Scan("logged", otelxtest.Logged(err))) == 0 {
			t.Error("the text of an error is not logged")
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add(uint64(1), []byte("before"), []byte("behind"))
	f.Add(uint64(2), []byte(`{"a":"\`), []byte("\xc3\x28\xff\x00"))
	f.Add(uint64(3), []byte("%2"), []byte("=="))
	f.Fuzz(func(t *testing.T, seed uint64, before, behind []byte) {
		c := otelxtest.NewCanary(seed)
		around := slices.Concat(before, behind)
		if found := c.Scan("around", around); found != nil && !bytes.Contains(bytes.ToLower(around), []byte("canary")) {
			t.Errorf("found where it is not: %v", found)
		}
		for _, secret := range []string{c.Phrase(), c.Word()} {
			for e, texts := range written(secret) {
				for _, text := range texts {
					if len(c.Scan("outlet", slices.Concat(before, []byte(text), behind))) == 0 {
						t.Errorf("%v is not found between %q and %q", e, before, behind)
					}
				}
			}
			raw := slices.Concat(before, []byte(secret), behind)
			for _, text := range []string{base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), hex.EncodeToString(raw)} {
				if len(c.Scan("outlet", []byte(text))) == 0 {
					t.Errorf("not found in %q", text)
				}
			}
		}
	})
}
