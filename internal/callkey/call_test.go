package callkey_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
)

func TestCallEqual(t *testing.T) {
	t.Parallel()
	for name, spellings := range map[string][]string{
		"white space":     {`{"a":[1,2],"b":{}}`, " {\t\"a\" : [ 1 , 2 ] ,\r\n \"b\" : { } } "},
		"order":           {`{"a":1,"b":2,"c":3}`, `{"c":3,"b":2,"a":1}`, `{"b":2,"c":3,"a":1}`},
		"order inside":    {`[{"x":{"a":1,"b":[{"d":4,"c":3}]}}]`, `[{"x":{"b":[{"c":3,"d":4}],"a":1}}]`},
		"order by escape": {`{"\u0061":1,"b":2}`, `{"b":2,"a":1}`},
		"number one":      {"1", "1.0", "1e0", "10e-1", "1E+0", "0.1e1", "100e-2", "1.000", " 1 "},
		"number ten":      {"10", "1e1", "1E1", "10.0", "100e-1", "0.01e3"},
		"number small":    {"0.05", "5e-2", "0.5e-1", "50e-3", "0.0500"},
		"number long":     {"1005e-1", "100.5", "1.005e2", "0.1005e+0003"},
		"number negative": {"-1.50", "-15e-1", "-0.15E1"},
		"number zero":     {"0", "-0", "0.0", "0e5", "-0.000e-7", "0E+0"},
		"number huge":     {"1e400", "10e399", "0.1e401"},
		"escapes":         {`"a/é\n\""`, `"\u0061\/\u00e9\u000A\u0022"`, `"a\/\u00E9\n\""`},
		"surrogates":      {`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		"lone surrogate":  {`"\ud800x"`, `"\uD800x"`, `"\uD800\u0078"`},
		"two high":        {`"\ud83d\ud83d\ude00"`, `"\uD83D😀"`},
		"words":           {`[true,false,null]`, ` [ true , false , null ] `},
		"empty":           {`{}`, ` { } `},
		"text":            {"weather in Oslo", "  weather in Oslo\n", "\u00a0weather in Oslo"},
		"no arguments":    {"", " ", "\n\t"},
		"nested objects":  {`{"b":{"y":1,"x":{"q":[{}, {"k":1}]}},"a":{"z":{}}}`, `{"a":{"z":{}},"b":{"x":{"q":[{},{"k":1.0}]},"y":1}}`},
		"duplicate order": {`{"a":1,"b":0,"a":2}`, `{"b":0,"a":1,"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, tool := callkey.New(), ident.MustLabel("tool")
			for _, s := range spellings[1:] {
				if keys.Call(tool, s) != keys.Call(tool, spellings[0]) {
					t.Errorf("%q and %q have different keys", spellings[0], s)
				}
			}
		})
	}
}

func TestCallDifferent(t *testing.T) {
	t.Parallel()
	// Every input differs from every other one.
	inputs := []string{
		`1`, `"1"`, `[1]`, `[[1]]`, `{"a":1}`, `{"a":"1"}`, `{"a":[1]}`, `{"A":1}`, `{"a ":1}`, `1.1`, `-1`, `11`, `1e-2`,
		`9007199254740992`, `9007199254740993`, `0.1`, `0.10000000000000001`, `1e400`, `1e401`, `-1e400`,
		`1e99999999999999999999`, `1e99999999999999999998`,
		`[1,2]`, `[2,1]`, `[12]`, `["1","2"]`, `["1,2"]`, `["1\",\"2"]`, `[[1],2]`, `[1,[2]]`,
		`{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":{"b":2}}`, `{"a":{},"b":2}`, `{"a":1,"a":2}`, `{"a":2,"a":1}`, `{"a":2}`,
		`true`, `false`, `null`, `"true"`, `"null"`, `""`, `{}`, `[]`, `[{}]`, `[[]]`, ``, `{`, `[`, `text`, `"text"`, `Text`,
		`"\ud800"`, `"\ufffd"`, `"\\ud800"`, `"\u0000"`, `"\\u0000"`, `"a\\b"`, `"a\b"`, `"é"`, "\"e\u0301\"",
		`{"a":1,}`, `[1,]`, `01`, `+1`, `.5`, `1.`, `1e`, `nan`, `{a:1}`, `'a'`, `{"a":1}x`, `{"a" 1}`, `{"a":}`, `[1 2]`, `"`, `"\x"`, `"\u12g4"`,
		"\"a\nb\"", "\"a\\nb\"", `-`, `{"a":1 "b":2}`, `{"a"`, `{"a":1`, `[1`, `tru`, `{1:2}`, `"\`, `"\u12`,
	}
	keys, tool := callkey.New(), ident.MustLabel("tool")
	seen := map[callkey.Key]string{}
	for _, in := range inputs {
		key := keys.Call(tool, in)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have the same key", in, other)
		}
		seen[key] = in
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	keys := callkey.New()
	seen := map[callkey.Key]bool{}
	for _, label := range []ident.Label{{}, ident.MustLabel("a"), ident.MustLabel("ab"), ident.MustLabel("abc")} {
		for _, in := range []string{"", "c", "bc", "{}"} {
			key := keys.Call(label, in)
			if seen[key] {
				t.Errorf("tool %q with %q has the key of another pair", label, in)
			}
			seen[key] = true
		}
	}
}

// TestBounds shows on which side of a bound arguments are JSON: what is beyond
// is still equal to itself, and to no other spelling.
func TestBounds(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	members := func(n int) string { // n members and one object
		var b strings.Builder
		b.WriteString("{")
		for i := range n {
			fmt.Fprintf(&b, `"%d":0,`, i)
		}

		return strings.TrimSuffix(b.String(), ",") + "}"
	}
	for name, tc := range map[string]struct {
		input string
		json  bool
	}{
		"depth":               {nested(callkey.MaxDepth), true},
		"too deep":            {nested(callkey.MaxDepth + 1), false},
		"depth of objects":    {objects(callkey.MaxDepth), true},
		"too deep objects":    {objects(callkey.MaxDepth + 1), false},
		"members":             {members(callkey.MaxMembers - 1), true},
		"too many members":    {members(callkey.MaxMembers), false},
		"objects":             {"[" + strings.Repeat("{},", callkey.MaxMembers-1) + "{}]", true},
		"too many objects":    {"[" + strings.Repeat("{},", callkey.MaxMembers) + "{}]", false},
		"many plain elements": {"[" + strings.Repeat("1,", 4*callkey.MaxMembers) + "1]", true},
		"hostile depth":       {strings.Repeat("[", 1<<20), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, tool := callkey.New(), ident.MustLabel("tool")
			if got := keys.IsJSON(tc.input); got != tc.json {
				t.Fatalf("read as JSON: %v, want %v", got, tc.json)
			}
			key := keys.Call(tool, tc.input)
			if key != keys.Call(tool, " "+tc.input+"\n") {
				t.Error("white space around changes the key")
			}
			inside := tc.input[:1] + " " + tc.input[1:]
			if same := key == keys.Call(tool, inside); same != tc.json {
				t.Errorf("white space inside keeps the key: %v, want %v", same, tc.json)
			}
		})
	}
}

// TestLong crosses the borders of the working buffer.
func TestLong(t *testing.T) {
	t.Parallel()
	keys, tool := callkey.New(), ident.MustLabel("tool")
	seen := map[callkey.Key]int{}
	for n := 900; n < 1200; n++ {
		text := strings.Repeat("x", n)
		for _, in := range []string{text, `"` + text + `"`, `{"b":"` + text + `","a":"\u0022"}`} {
			key := keys.Call(tool, in)
			if other, ok := seen[key]; ok {
				t.Fatalf("lengths %d and %d have one key", other, n)
			}
			seen[key] = n
		}
		if keys.Call(tool, `{"a":"\"","b":"`+text+`"}`) != keys.Call(tool, `{"b":"`+text+`","a":"\u0022"}`) {
			t.Fatalf("length %d: order of members changes the key", n)
		}
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	keys := callkey.New()
	seen := map[[32]byte]string{}
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"a", "b", "c"},
		{"\x01\x00\x00\x00\x00\x00\x00\x00a"}, {strings.Repeat("a", 5000)}, {strings.Repeat("a", 4999), "a"},
	} {
		sum := keys.Sum(parts...)
		if sum != keys.Sum(parts...) {
			t.Errorf("%.40q: not stable", parts)
		}
		if other, ok := seen[sum]; ok {
			t.Errorf("%.40q has the sum of %.40s", parts, other)
		}
		seen[sum] = fmt.Sprintf("%q", parts)
	}
}

func TestKeyersAreApart(t *testing.T) {
	t.Parallel()
	a, b, tool := callkey.New(), callkey.New(), ident.MustLabel("tool")
	if a.Call(tool, "x") == b.Call(tool, "x") || a.Sum("x") == b.Sum("x") || a.Result("", "x") == b.Result("", "x") {
		t.Error("two Keyers agree")
	}
	copied := a
	if copied.Call(tool, "x") != a.Call(tool, "x") {
		t.Error("a copy has another key")
	}
	if a.Call(tool, "x") == a.Result("", "x") || a.Sum("x") == [32]byte{} {
		t.Error("keys for different purposes agree")
	}
	var zero callkey.Keyer
	call, sum, result := zero.Call(tool, "x"), zero.Sum("x"), zero.Result("", "x")
	if call == zero.Call(tool, "x") || sum == zero.Sum("x") || result == zero.Result("", "x") {
		t.Error("the zero Keyer makes values that are equal")
	}
}

func TestPrintsRedacted(t *testing.T) {
	t.Parallel()
	keys := callkey.New()
	key := keys.Call(ident.MustLabel("tool"), "x")
	type holder struct{ keys callkey.Keyer }
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		if got := fmt.Sprintf(verb, keys); got != "callkey.Keyer(redacted)" {
			t.Errorf("%s of a Keyer prints %s", verb, got)
		}
		if got := fmt.Sprintf(verb, key); got != "callkey.Key(redacted)" {
			t.Errorf("%s of a Key prints %s", verb, got)
		}
		if got := fmt.Sprintf(verb, holder{keys}); strings.Count(got, " ") > 12 {
			t.Errorf("%s of a structure shows what is inside of its Keyer: %s", verb, got)
		}
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	keys, tool := callkey.New(), ident.MustLabel("tool")
	want, signature := keys.Call(tool, `{"a":1,"b":2}`), keys.Result(`{"a":1}`, "a\nb")
	done := make(chan bool)
	for range 8 {
		go func() {
			ok := true
			for range 500 {
				ok = ok && keys.Call(tool, `{"b":2,"a":1}`) == want && keys.Result(`{"a":1}`, "b\na") == signature
			}
			done <- ok
		}()
	}
	for range 8 {
		if !<-done {
			t.Error("a key changed under concurrent use")
		}
	}
}
