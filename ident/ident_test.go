package ident_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
)

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*ident.Error](err)
	if !ok {
		return "not an ident.Error"
	}

	return e.Code().String()
}

func TestParseWorkflowID(t *testing.T) {
	t.Parallel()
	label63 := strings.Repeat("a", 63)
	ns253 := strings.Join([]string{label63, label63, label63, strings.Repeat("b", 61)}, ".")
	for _, tc := range []struct{ name, in, code string }{
		{"plain", "workflow:org.example/refunds", ""},
		{"versioned", "workflow:org.example/refunds@1.0.20", ""},
		{"hyphens", "workflow:org.ex-ample.a1/re-funds-", ""},
		{"longest name", "workflow:org.example/" + "a" + strings.Repeat("9", 63), ""},
		{"longest namespace", "workflow:" + ns253 + "/x", ""},
		{"empty", "", "invalid_identifier"},
		{"no kind", "org.example/refunds", "invalid_identifier"},
		{"unknown kind", "flow:org.example/refunds", "unknown_kind"},
		{"upper kind", "Workflow:org.example/refunds", "unknown_kind"},
		{"empty kind", ":org.example/refunds", "unknown_kind"},
		{"tool", "tool:org.example/refunds", "wrong_kind"},
		{"policy", "policy:org.example/refunds", "wrong_kind"},
		{"purpose", "purpose:", "wrong_kind"},
		{"capability", "capability:x", "wrong_kind"},
		{"run", "run_" + strings.Repeat("0", 32), "wrong_identifier_kind"},
		{"one label", "workflow:org/refunds", "invalid_identifier"},
		{"empty label", "workflow:org..example/refunds", "invalid_identifier"},
		{"label ends with hyphen", "workflow:org.example-/refunds", "invalid_identifier"},
		{"label starts with hyphen", "workflow:-org.example/refunds", "invalid_identifier"},
		{"long label", "workflow:org." + label63 + "a/refunds", "invalid_identifier"},
		{"long namespace", "workflow:a." + ns253 + "/x", "namespace_too_long"},
		{"upper case", "workflow:org.Example/refunds", "invalid_identifier"},
		{"no name", "workflow:org.example/", "invalid_identifier"},
		{"no slash", "workflow:org.example", "invalid_identifier"},
		{"name starts with digit", "workflow:org.example/1x", "invalid_identifier"},
		{"long name", "workflow:org.example/a" + strings.Repeat("b", 64), "invalid_identifier"},
		{"second slash", "workflow:org.example/a/b", "invalid_identifier"},
		{"empty version", "workflow:org.example/a@", "invalid_identifier"},
		{"two parts", "workflow:org.example/a@1.0", "invalid_identifier"},
		{"four parts", "workflow:org.example/a@1.0.0.0", "invalid_identifier"},
		{"leading zero", "workflow:org.example/a@1.01.0", "invalid_identifier"},
		{"zero version", "workflow:org.example/a@0.0.0", ""},
		{"version letters", "workflow:org.example/a@1.0.x", "invalid_identifier"},
		{"newline", "workflow:org.example/a\n", "invalid_identifier"},
		{"unicode", "workflow:org.exämple/a", "invalid_identifier"},
		{"513 bytes", "workflow:org.example/a@1.0." + strings.Repeat("1", 486), "identifier_too_long"},
		{"512 bytes", "workflow:org.example/a@1.0." + strings.Repeat("1", 485), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			id, err := ident.ParseWorkflowID(tc.in)
			if got := codeOf(err); got != tc.code {
				t.Fatalf("code %q, want %q (len %d)", got, tc.code, len(tc.in))
			}
			if err == nil && id.String() != tc.in {
				t.Fatalf("String() = %q, want the input", id)
			}
			if (err != nil) != id.IsZero() {
				t.Fatalf("IsZero() = %v with error %v", id.IsZero(), err)
			}
		})
	}
}

func TestParseToolID(t *testing.T) {
	t.Parallel()
	id, err := ident.ParseToolID("tool:org.example/lookup@2.1.0")
	if err != nil || id.String() != "tool:org.example/lookup@2.1.0" {
		t.Fatalf("got %v, %v", id, err)
	}
	if _, err = ident.ParseToolID("workflow:org.example/lookup"); codeOf(err) != "wrong_kind" {
		t.Fatalf("code %q, want wrong_kind", codeOf(err))
	}
}

func TestRunID(t *testing.T) {
	t.Parallel()
	id, err := ident.GenerateRunID(bytes.NewReader([]byte{
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255, 99,
	}))
	if err != nil || id.String() != "run_000102030405060708090a0b0c0d0eff" {
		t.Fatalf("got %v, %v", id, err)
	}
	back, err := ident.ParseRunID(id.String())
	if err != nil || back != id {
		t.Fatalf("round trip: %v, %v", back, err)
	}
	one, err1 := ident.NewRunID()
	two, err2 := ident.NewRunID()
	if err1 != nil || err2 != nil || one == two || one.IsZero() {
		t.Fatalf("NewRunID: %v %v %v %v", one, err1, two, err2)
	}
}

func TestRunIDRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, code string }{
		{"", "invalid_identifier"},
		{"run_", "invalid_identifier"},
		{"run_" + strings.Repeat("A", 32), "invalid_identifier"},
		{"run_" + strings.Repeat("a", 33), "invalid_identifier"},
		{"run-" + strings.Repeat("a", 32), "invalid_identifier"},
		{strings.Repeat("a", 513), "identifier_too_long"},
		{"workflow:org.example/a", "wrong_identifier_kind"},
		{"tool:org.example/a", "wrong_identifier_kind"},
	} {
		if _, err := ident.ParseRunID(tc.in); codeOf(err) != tc.code {
			t.Errorf("%.20q: code %q, want %q", tc.in, codeOf(err), tc.code)
		}
	}
	boom := errors.New("secret path")
	for _, src := range []io.Reader{nil, bytes.NewReader(make([]byte, 15)), errReader{boom}} {
		id, err := ident.GenerateRunID(src)
		if codeOf(err) != "entropy_failed" || !id.IsZero() {
			t.Errorf("source %T: %v, %v", src, id, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "secret") {
			t.Errorf("the error shows its cause")
		}
	}
	if _, err := ident.GenerateRunID(errReader{boom}); !errors.Is(err, boom) {
		t.Errorf("the cause is not reachable by Unwrap")
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

func TestLabel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, code, modelCode string }{
		{"lookup_order", "", ""},
		{"a", "", ""},
		{"a.b-c_d9", "", ""},
		{"", "invalid_label", "invalid_label"},
		{"9a", "invalid_label", "invalid_label"},
		{"a_", "invalid_label", "invalid_label"},
		{"_a", "invalid_label", "invalid_label"},
		{"a..b", "invalid_label", "invalid_label"},
		{"a b", "invalid_label", "invalid_label"},
		{"a\n", "invalid_label", "invalid_label"},
		{"Web", "invalid_label", ""},
		{"gpt-4o-mini-2024-07-18", "", ""},
		{"llama3.1:8b", "invalid_label", ""},
		{"Qwen/Qwen2.5-7B@main+x", "invalid_label", ""},
		{"ft:gpt-3.5:org::id", "invalid_label", "invalid_label"},
		{"größe", "invalid_label", "invalid_label"},
		{strings.Repeat("a", 64), "", ""},
		{strings.Repeat("a", 65), "identifier_too_long", ""},
		{strings.Repeat("a", 96), "identifier_too_long", ""},
		{strings.Repeat("a", 97), "identifier_too_long", "identifier_too_long"},
	} {
		if l, err := ident.NewLabel(tc.in); codeOf(err) != tc.code || (err == nil && l.String() != tc.in) {
			t.Errorf("NewLabel(%q): code %q, want %q", tc.in, codeOf(err), tc.code)
		}
		if l, err := ident.NewModelLabel(tc.in); codeOf(err) != tc.modelCode || (err == nil && l.String() != tc.in) {
			t.Errorf("NewModelLabel(%q): code %q, want %q", tc.in, codeOf(err), tc.modelCode)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, B.1
	d := ident.DigestOf([]byte("abc"))
	if d.Hex() != abc || d.String() != "sha256:"+abc {
		t.Fatalf("DigestOf(abc) = %v", d)
	}
	for _, in := range []string{d.String()} {
		if got, err := ident.ParseDigest(in); err != nil || got != d {
			t.Errorf("ParseDigest: %v, %v", got, err)
		}
	}
	if got, err := ident.ParseHexDigest(abc); err != nil || got != d {
		t.Errorf("ParseHexDigest: %v, %v", got, err)
	}
	zero, err := ident.ParseDigest("sha256:" + strings.Repeat("0", 64))
	if err != nil || !zero.IsZero() || d.IsZero() {
		t.Errorf("zero digest: %v, %v", zero, err)
	}
	for _, in := range []string{"", abc, "sha256:", "sha256:" + abc + "0", "sha256:" + strings.ToUpper(abc), "sha1:" + abc} {
		if _, err := ident.ParseDigest(in); codeOf(err) != "invalid_digest" {
			t.Errorf("ParseDigest(%q): code %q", in, codeOf(err))
		}
	}
	for _, in := range []string{"", abc[1:], abc + "0", strings.ToUpper(abc), " " + abc[1:]} {
		if _, err := ident.ParseHexDigest(in); codeOf(err) != "invalid_digest" {
			t.Errorf("ParseHexDigest(%q): code %q", in, codeOf(err))
		}
	}
}

// One document with every type goes out and comes back.
func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	type doc struct {
		W ident.WorkflowID
		T ident.ToolID
		R ident.RunID
		L ident.Label
		M ident.Label
		D ident.Digest
	}
	run, err := ident.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	in := doc{
		ident.MustWorkflowID("workflow:org.example/a@1.2.3"), ident.MustToolID("tool:org.example/b"),
		run, ident.MustLabel("a_b"), ident.MustModelLabel("A/b:c"), ident.DigestOf(nil),
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out doc
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Fatalf("got %+v, %v", out, err)
	}
	dump := fmt.Sprintf("%#v", in)
	for _, v := range []string{in.W.String(), in.T.String(), in.R.String(), in.D.Hex(), "a_b"} {
		if strings.Contains(dump, v) {
			t.Errorf("%%#v shows a value: %s", dump)
		}
	}
}

func TestUnmarshalRefusesAndKeeps(t *testing.T) {
	t.Parallel()
	w := ident.MustWorkflowID("workflow:org.example/a")
	tool := ident.MustToolID("tool:org.example/a")
	r, _ := ident.ParseRunID("run_" + strings.Repeat("1", 32))
	l := ident.MustLabel("a")
	d := ident.DigestOf(nil)
	w0, t0, r0, l0, d0 := w, tool, r, l, d
	bad := []byte("no such thing")
	for _, err := range []error{
		w.UnmarshalText(bad), tool.UnmarshalText(bad), r.UnmarshalText(bad), l.UnmarshalText(bad), d.UnmarshalText(bad),
	} {
		if codeOf(err) == "" {
			t.Errorf("bad text was accepted")
		}
	}
	if w != w0 || tool != t0 || r != r0 || l != l0 || d != d0 {
		t.Errorf("a refused text changed the value")
	}
}

func TestZeroDoesNotMarshal(t *testing.T) {
	t.Parallel()
	_, e1 := ident.WorkflowID{}.MarshalText()
	_, e2 := ident.ToolID{}.MarshalText()
	_, e3 := ident.RunID{}.MarshalText()
	_, e4 := ident.Label{}.MarshalText()
	for i, err := range []error{e1, e2, e3, e4} {
		if codeOf(err) == "" {
			t.Errorf("%d: the zero value was marshalled", i)
		}
	}
}

func TestErrorsNeverEcho(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-SECRET"
	_, e1 := ident.ParseWorkflowID(secret)
	_, e2 := ident.ParseToolID("tool:" + secret)
	_, e3 := ident.ParseRunID(secret)
	_, e4 := ident.NewLabel(secret)
	_, e5 := ident.ParseDigest(secret)
	for i, err := range []error{e1, e2, e3, e4, e5} {
		if s := fmt.Sprintf("%v %+v %#v %q", err, err, err, err); strings.Contains(s, "hunter2") {
			t.Errorf("%d: %s", i, s)
		}
	}
	if !errors.Is(e1, e3) || errors.Is(e1, e4) {
		t.Errorf("errors.Is does not compare by code")
	}
}

func TestMustPanics(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"workflow": func() { ident.MustWorkflowID("x") },
		"tool":     func() { ident.MustToolID("x") },
		"label":    func() { ident.MustLabel("") },
		"model":    func() { ident.MustModelLabel("") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestCodeNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for c := ident.CodeInvalidIdentifier; c <= ident.CodeEntropyFailed; c++ {
		if s := c.String(); s == "" || s == "invalid" || seen[s] {
			t.Errorf("code %d has the text %q", c, s)
		} else {
			seen[s] = true
		}
	}
	if ident.Code(0).String() != "invalid" || ident.Code(200).String() != "invalid" {
		t.Errorf("codes outside the set must render as invalid")
	}
}
