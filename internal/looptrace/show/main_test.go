package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "corpus")
	text := `{"v":1,"id":"a","family":"f","label":"ok","steps":[{"turn":1,"answer":"hello"}]}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := path + "-bad"
	if err := os.WriteFile(bad, []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	const usage = "usage: show -corpus FILE -trace ID\n"
	tests := []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{
			"a trace", []string{"-corpus", path, "-trace", "a"}, 0,
			"a  family f  ok\n   1 turn 1   answer: hello\n  repeat  quiet\nprogress  quiet\n", "",
		},
		{"nothing", nil, 2, "", usage},
		{"no trace", []string{"-corpus", path}, 2, "", usage},
		{"an unknown flag", []string{"-SECRET"}, 2, "", usage},
		{"no such trace", []string{"-corpus", path, "-trace", "SECRET"}, 1, "", "show: the corpus has no trace of that id\n"},
		{"a malformed corpus", []string{"-corpus", bad, "-trace", "a"}, 1, "", "show: looptrace: not_json: line 1\n"},
		{"no such file", []string{"-corpus", path + "-none", "-trace", "a"}, 1, "", "show: the corpus cannot be opened\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(tt.args, &out, &errs); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if out.String() != tt.out || errs.String() != tt.errs {
				t.Errorf("output\n%s\nerrors\n%s", out.String(), errs.String())
			}
			if strings.Contains(errs.String(), "SECRET") {
				t.Error("content gets out")
			}
		})
	}
}
