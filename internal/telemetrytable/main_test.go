package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/otelx"
)

const page = "../../docs/telemetry.md"

// The page of the documentation is what the code says.
func TestPageIsFresh(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := run([]string{page}, &stdout, &stderr); code != 0 {
		t.Errorf("exit %d: %s", code, &stderr)
	}
}

// The page names every span, key, value of a list and instrument.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, s := range otelx.Spans() {
		want = append(append(append(want, s.Name), s.Attributes...), s.Links...)
	}
	for _, i := range otelx.Instruments() {
		want = append(append(want, i.Name), i.Attributes...)
	}
	for _, a := range otelx.Attributes() {
		want = append(append(want, a.Key), a.Values...)
	}
	for _, name := range want {
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("%q is missing", name)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	copied := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(copied, []byte("# Telemetry\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		args []string
		code int
		says string // on one of the two streams
	}{
		{"print", nil, 0, "# Telemetry"},
		{"stale", []string{copied}, 1, "the page is stale"},
		{"write", []string{"-write", copied}, 0, ""},
		{"fresh", []string{copied}, 0, ""},
		{"absent", []string{copied + ".none"}, 1, "the page is stale"},
		{"cannot be written", []string{"-write", filepath.Join(copied, "below")}, 1, "cannot be written"},
		{"write without a page", []string{"-write"}, 2, "[-write] [page]"},
		{"two pages", []string{copied, copied}, 2, "[-write] [page]"},
		{"unknown flag", []string{"-x"}, 2, "[-write] [page]"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(step.args, &stdout, &stderr); code != step.code || !strings.Contains(stdout.String()+stderr.String(), step.says) {
			t.Errorf("%s: exit %d, want %d; %.200s %s", step.name, code, step.code, &stdout, &stderr)
		}
	}
}
