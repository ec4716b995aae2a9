package escalation_test

import (
	"testing"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/internal/callkey"
)

// The quick look tells common arguments apart, and never equal ones.
func TestLooselyDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"id":7}`, `{"id":8}`, true},
		{`{"id":12}`, `{"id":21}`, true},
		{`{"a":1,"b":2}`, ` { "b" : 2, "a": 1 } `, false},
		{`{"id":7}`, `{"id":7.0}`, false},
		{`{"id":7}`, `{"id":70e-1}`, false},
		{`{"id":0}`, `{"id":-0}`, false},
		{`{"id":"A"}`, `{"id":"\u0041"}`, false},
		{"query one", "query two", true},
		{"query", " query\n", false},
		{"query", "\u00a0query", false},
		{"", " ", false},
	} {
		if got := escalation.LooselyDiffer(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
	}
}

func FuzzLooselyDiffer(f *testing.F) {
	keys := callkey.New()
	for _, s := range [][2]string{
		{`{"a":1,"b":[2,3]}`, `{"b":[2.0,3],"a":1}`}, {`{"a":"x y"}`, `{"a":"x  y"}`}, {`[1,-0]`, `[1,0]`}, {"a\x00", "a"},
		{`[10]`, `[1e1]`}, {"\u2003x", "x"}, {"\x85x", "x"}, {`{"a":1,"a":2}`, `{"a":2,"a":1}`}, {`[1E400]`, `[10E399]`}, {`"/"`, `"\/"`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if keys.Call(deskLabel, a) == keys.Call(deskLabel, b) && escalation.LooselyDiffer(a, b) {
			t.Errorf("%q and %q are equal", a, b)
		}
	})
}
