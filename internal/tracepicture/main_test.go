package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden pictures anew")

// The picture of the documentation is what the command makes of the spans of a
// real run, which are kept beside this test; the other one is of a tree with all
// that can be odd.
func TestGolden(t *testing.T) {
	t.Parallel()
	for in, golden := range map[string]string{
		"testdata/provider-down.jsonl": "../../docs/trace.svg",
		"testdata/odd.jsonl":           "testdata/odd.svg",
	} {
		out := filepath.Join(t.TempDir(), "picture.svg")
		if *update {
			out = golden
		}
		var stdout, stderr bytes.Buffer
		if code := run([]string{"-o", out, in}, nil, &stdout, &stderr); code != 0 || stdout.Len()+stderr.Len() > 0 {
			t.Fatalf("%s: exit %d, %s%s", in, code, stdout.String(), stderr.String())
		}
		got, want := read(t, out), read(t, golden)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not the picture of %s: go test ./internal/tracepicture -update", golden, in)
		}
		wellFormed(t, got)
		if code := run(nil, bytes.NewReader(read(t, in)), &stdout, &stderr); code != 0 || !bytes.Equal(stdout.Bytes(), got) {
			t.Errorf("%s: from standard input to standard output: exit %d, another picture", in, code)
		}
	}
}

// A decision names what it is about, unless its span does, and the new state of
// a breaker.
func TestPictureOfTheDocumentation(t *testing.T) {
	t.Parallel()
	picture := string(read(t, "../../docs/trace.svg"))
	for _, must := range []string{
		"deny overloaded · primary · circuit open<", "wait overloaded · primary<", "substitute overloaded · secondary<",
		"abstain benched · primary<", "allow admission_enabled · issue_refund<",
	} {
		if !strings.Contains(picture, must) {
			t.Errorf("the picture lacks %q", must)
		}
	}
	if repeated := "chat secondary · 4.6 ms · allow · secondary"; strings.Contains(picture, repeated) {
		t.Errorf("the picture has %q", repeated)
	}
}

// What the odd picture has to hold, apart from how it looks.
func TestOddTree(t *testing.T) {
	t.Parallel()
	spans, err := readSpans(bytes.NewReader(read(t, "testdata/odd.jsonl")))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := pick(spans, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range tree.rows {
		first, _, _ := strings.Cut(r.name, " ")
		got = append(got, fmt.Sprintf("%d %d %s %v", r.depth, r.parent, first, r.open))
	}
	want := []string{
		"0 -1 invoke_agent false", "1 0 interlock.budget false", "1 0 execute_tool true", "1 0 line\nbreak\x01 false", "1 0 a false",
		"0 -1 chat false",              // an orphan
		"0 -1 interlock.breaker false", // the earlier one of a circle
		"1 6 interlock.watchdog false",
		"0 -1 interlock.escalation false", // its own parent
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("rows\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	picture := string(read(t, "testdata/odd.svg"))
	for _, must := range []string{
		"&lt;desk &amp; &#34;co&#34;&gt;", "✕ timeout", "✕ failed", "· open", `class="tool open"`, `class="model failed"`,
		"deny budget_exceeded", "wait waiting", "escalate parked", "0 ns", "prefers-color-scheme:dark",
	} {
		if !strings.Contains(picture, must) {
			t.Errorf("the picture lacks %q", must)
		}
	}
	for _, mustNot := range []string{"<desk", "\x01", "line\nbreak", `class="sekret"`, "NaN", "Inf"} {
		if strings.Contains(picture, mustNot) {
			t.Errorf("the picture has %q", mustNot)
		}
	}
}

const (
	context = `"SpanContext":{"TraceID":"0123456789abcdef0123456789abcdef","SpanID":"0123456789abcdef"}`
	times   = `"StartTime":"2026-01-02T03:04:05Z","EndTime":"2026-01-02T03:04:06Z"`
	good    = `{"Name":"chat primary",` + context + `,` + times + `}`
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ input, want string }{
		"empty":             {"", "no_spans"},
		"only metrics":      {`{"Resource":[],"ScopeMetrics":[]}`, "no_spans"},
		"no JSON":           {"sekret", "malformed (object 1)"},
		"cut":               {good + "\n" + good[:60], "malformed (object 2)"},
		"an array":          {`[` + good + `]`, "malformed (object 1)"},
		"a number as name":  {`{"Name":7,` + context + `,` + times + `}`, "malformed (object 1)"},
		"no name":           {`{` + context + `,` + times + `}`, "invalid_span (object 1)"},
		"no identifiers":    {`{"Name":"sekret","SpanContext":{},` + times + `}`, "invalid_span (object 1)"},
		"zero identifiers":  {strings.Replace(good, `"SpanID":"0123456789abcdef"`, `"SpanID":"0000000000000000"`, 1), "invalid_span (object 1)"},
		"sekret identifier": {strings.Replace(good, `"SpanID":"0123456789abcdef"`, `"SpanID":"sekret"`, 1), "invalid_span (object 1)"},
		"no start":          {`{"Name":"sekret",` + context + `}`, "invalid_time (object 1)"},
		"end before start":  {strings.Replace(good, "04:06Z", "04:04Z", 1), "invalid_time (object 1)"},
		"no time":           {strings.Replace(good, "2026-01-02T03:04:06Z", "sekret", 1), "malformed (object 1)"},
		"a trace of eons":   {strings.Replace(good, "2026-01-02T03:04:06Z", "9999-12-31T23:59:59Z", 1), "invalid_time"},
		"too many spans":    {strings.Repeat(good+"\n", maxSpans+1), "too_many_spans"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(nil, strings.NewReader(tt.input), &stdout, &stderr)
		if want := "tracepicture: " + tt.want + "\n"; code != 1 || stderr.String() != want || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %q, not %q", name, code, stderr.String(), want)
		}
	}
}

// A stream without an end is given up, not collected.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := readSpans(io.MultiReader(strings.NewReader(`{"Name":"`), endless{}))
	if !errors.Is(err, inputError{code: codeTooLarge}) {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}

	return len(p), nil
}

func TestFiles(t *testing.T) {
	t.Parallel()
	older := filepath.Join(t.TempDir(), "picture.svg")
	if err := os.WriteFile(older, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nothing to read": {[]string{"-o", older, "testdata/sekret"}, 1, "tracepicture: unreadable\n"},
		"bad input":       {[]string{"-o", older, "main_test.go"}, 1, "tracepicture: malformed (object 1)\n"},
		"no such trace":   {[]string{"-o", older, "-trace", "2", "testdata/odd.jsonl"}, 1, "tracepicture: no_such_trace\n"},
		"nowhere to go":   {[]string{"-o", filepath.Join(older, "sekret"), "testdata/odd.jsonl"}, 1, "tracepicture: unwritable\n"},
		"two files":       {[]string{"a", "sekret"}, usageExit, "tracepicture: usage: tracepicture [-o FILE] [-trace N] [FILE]\n"},
		"unknown flag":    {[]string{"-sekret"}, usageExit, "tracepicture: usage: tracepicture [-o FILE] [-trace N] [FILE]\n"},
		"negative trace":  {[]string{"-trace", "-1"}, usageExit, "tracepicture: usage: tracepicture [-o FILE] [-trace N] [FILE]\n"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(tt.args, strings.NewReader(""), &stdout, &stderr); code != tt.code || stderr.String() != tt.want || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %q", name, code, stderr.String())
		}
	}
	if string(read(t, older)) != "older" {
		t.Error("an older picture was written over")
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-help"}, nil, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-trace") {
		t.Errorf("help: exit %d, %q", code, stdout.String())
	}
}

// Of several traces the one with the most spans is drawn, or the one asked for.
func TestPick(t *testing.T) {
	t.Parallel()
	first := strings.NewReplacer("primary", "first", "0123456789abcdef0123456789abcdef", "1123456789abcdef0123456789abcdef", "03:04:0", "03:03:0")
	input := good + "\n" + strings.Replace(good, `"SpanID":"0123`, `"SpanID":"1123`, 1) + "\n" + first.Replace(good)
	for number, want := range map[string]string{"0": "chat primary", "1": "chat first", "2": "chat primary"} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{"-trace", number}, strings.NewReader(input), &stdout, &stderr); code != 0 {
			t.Fatalf("exit %d, %s", code, stderr.String())
		}
		if !strings.Contains(stdout.String(), `<title id="title">`+want+"<") {
			t.Errorf("trace %s is not %q", number, want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[int64]string{
		0: "0 ns", 999: "999 ns", 1000: "1 µs", 41_300: "41.3 µs", 278_000: "278 µs", 1_249_000: "1.2 ms", 145_678_000: "146 ms",
		1_500_000_000: "1.5 s", 100_000_000_000: "100 s",
	} {
		if got := short(time.Duration(d)); got != want {
			t.Errorf("%d ns: %q, not %q", d, got, want)
		}
	}
}

// Whatever is read is drawn well-formed, and what is refused is refused by code.
func FuzzPicture(f *testing.F) {
	// Small ones: what is found is then small, too.
	f.Add([]byte(good))
	f.Add([]byte(strings.Replace(good, `"SpanID":"0123`, `"SpanID":"1123`, 1) + `{"ScopeMetrics":[]}` + good))
	f.Add([]byte(strings.Replace(good, `{"Name"`, `{"Parent":{"SpanID":"0123456789abcdef"},"Status":{"Code":"Error"},"Name"`, 1)))
	f.Add([]byte(strings.Replace(good, `{"Name"`, `{"Attributes":[{"Key":"error.type","Value":{"Value":"<"}}],"Name"`, 1)))
	f.Add([]byte(strings.Replace(good, "2026-01-02T03:04:06Z", "9999-12-31T23:59:59Z", 1)))
	f.Add([]byte(strings.Replace(good, "chat primary", "\xff]]>\ufffe\u2028", 1)))
	f.Fuzz(func(t *testing.T, input []byte) {
		var stdout, stderr bytes.Buffer
		switch run(nil, bytes.NewReader(input), &stdout, &stderr) {
		case 0:
			wellFormed(t, stdout.Bytes())
			if bytes.Contains(stdout.Bytes(), []byte("NaN")) && !bytes.Contains(input, []byte("NaN")) {
				t.Error("a number is none")
			}
		case 1:
			if stdout.Len() > 0 || stderr.Len() > len("tracepicture: too_many_spans (object 100000)\n") {
				t.Errorf("%q, %q", stdout.String(), stderr.String())
			}
		default:
			t.Error("another exit code")
		}
	})
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	return text
}

func wellFormed(t *testing.T, picture []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(picture))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}
