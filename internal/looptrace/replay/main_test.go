package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const valid = `{"v":1,"id":"a","family":"f","label":"loop","earliest":3,"stop_by":6,"tools":[{"name":"get","effect":"read_only"}],"steps":[` +
	`{"turn":1,"tool":"get","args":"{}","result":"ok","text":"SECRET"},{"turn":2,"tool":"get","args":"{}","result":"ok","text":"SECRET"},` +
	`{"turn":3,"tool":"get","args":"{}","result":"ok","text":"SECRET"},{"turn":4,"tool":"get","args":"{}","result":"ok","text":"SECRET"},` +
	`{"turn":5,"tool":"get","args":"{}","result":"ok","text":"SECRET"},{"turn":6,"tool":"get","args":"{}","result":"ok","text":"SECRET"}]}`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

func TestRun(t *testing.T) {
	t.Parallel()
	good, bad := write(t, "good", valid), write(t, "bad", "\n{\"v\":1,\"SECRET\":2}")
	missing := filepath.Join(t.TempDir(), "SECRET")
	const usage = "usage: replay -corpus FILE -detector progress|repeat [-json] [-wrong]\n"
	tests := []struct {
		name      string
		args      []string
		code      int
		out, errs string
	}{
		{"table", []string{"-corpus", good, "-detector", "repeat", "-wrong"}, 0, "all                        1     1 |    1     0    0     0     1.000  1.000\n", ""},
		{"the default detector", []string{"-corpus", good}, 0, "progress", ""},
		{"json", []string{"-corpus", good, "-detector", "repeat", "-json"}, 0, `"hits": 1`, ""},
		{"nothing", nil, 2, "", usage},
		{"no detector", []string{"-corpus", good, "-detector", "SECRET"}, 2, "", usage},
		{"an unknown flag", []string{"-corpus", good, "-SECRET"}, 2, "", usage},
		{"one argument too many", []string{"-corpus", good, "SECRET"}, 2, "", usage},
		{"a malformed corpus", []string{"-corpus", bad}, 1, "", "replay: looptrace: unknown_field: line 2\n"},
		{"no such file", []string{"-corpus", missing}, 1, "", "replay: the corpus cannot be opened\n"},
		{"a folder", []string{"-corpus", filepath.Dir(missing)}, 1, "", "replay: looptrace: unreadable: line 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			if code := run(tt.args, &out, &errs); code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, errs.String())
			}
			if !strings.Contains(out.String(), tt.out) || errs.String() != tt.errs {
				t.Errorf("output\n%s\nerrors\n%s", out.String(), errs.String())
			}
			if strings.Contains(out.String()+errs.String(), "SECRET") {
				t.Error("content gets out")
			}
		})
	}
}

func TestRunListsWhatIsWrong(t *testing.T) {
	t.Parallel()
	path := write(t, "late", strings.Replace(valid, `"earliest":3,"stop_by":6`, `"earliest":5,"stop_by":6`, 1))
	var out, errs bytes.Buffer
	if code := run([]string{"-corpus", path, "-detector", "repeat", "-wrong"}, &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if want := "a: premature at step 4 by loop, marks 5 to 6\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("output\n%s", out.String())
	}
}
