package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/report"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// rows that are made for the test: real work, of little cost.
func source4(t *testing.T, broken bool) source {
	t.Helper()
	work := func() (*row.Work, error) {
		sum := 0

		return &row.Work{Run: func(n int) error {
			for i := range n {
				sum += i
			}
			if broken {
				return errors.New("not done")
			}

			return nil
		}}, nil
	}

	return source{
		rows: func() []row.Row {
			return []row.Row{
				{Name: "micro/adds", Set: row.Micro, About: "adds", Control: true, Prepare: work},
				{Name: "micro/adds-too", Set: row.Micro, About: "adds too", RatioTo: "micro/adds", Prepare: work},
				{Name: "scale/size", Set: row.Scale, About: "a size", Unit: row.Bytes, Measure: func() (float64, error) { return 64, nil }},
			}
		},
		targets: func() []row.Target {
			return []row.Target{{Name: "t", Headline: true, About: "as fast", Row: "micro/adds-too", To: "micro/adds", AtMost: 1000, Allocs: -1}}
		},
		series: func() []row.Series { return nil },
	}
}

func try(t *testing.T, from source, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs, from)

	return code, out.String(), errs.String()
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"unknown set":      {[]string{"-set", "micro,sekret"}, []string{"unknown set", "micro\n", "scale\n"}},
		"unknown row":      {[]string{"-row", "sekret"}, []string{"unknown row", "micro/adds\n", "scale/size\n"}},
		"unknown flag":     {[]string{"-sekret"}, []string{"unknown or incomplete flag"}},
		"no value":         {[]string{"-set"}, []string{"unknown or incomplete flag"}},
		"argument":         {[]string{"sekret"}, []string{"arguments are not expected"}},
		"readme and quick": {[]string{"-readme", "x", "-quick"}, []string{"stand alone"}},
		"readme and check": {[]string{"-readme", "x", "-check", "x"}, []string{"stand alone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := try(t, source4(t, false), tc.args...)
			if code != exitUsage || stdout != "" || strings.Contains(stderr, "sekret") {
				t.Errorf("exit %d, %q, %q", code, stdout, stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error lacks %q: %s", want, stderr)
				}
			}
		})
	}
}

func TestListAndHelp(t *testing.T) {
	t.Parallel()
	if code, stdout, _ := try(t, source4(t, true), "-list"); code != 0 || !strings.Contains(stdout, "micro/adds-too") {
		t.Errorf("exit %d: %s", code, stdout)
	}
	if code, stdout, _ := try(t, source4(t, true), "-help"); code != 0 || !strings.Contains(stdout, "-quick") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

func TestQuickJSON(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := try(t, source4(t, false), "-quick", "-json")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var names []string
	for text := range strings.Lines(stdout) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, key := range []string{"name", "ns", "allocs", "ratio_to", "ratio"} {
			if _, ok := l[key]; !ok {
				t.Errorf("%s lacks %s", text, key)
			}
		}
		name, _ := l["name"].(string)
		names = append(names, name)
		ns, isTime := l["ns"].(float64)
		ratio, compared := l["ratio"].(float64)
		if isTime != (name != "scale/size") || isTime && ns <= 0 || compared != (name == "micro/adds-too") || compared && ratio <= 0 {
			t.Errorf("got %s", text)
		}
		if name == "scale/size" && (l["value"] != 64.0 || l["unit"] != "B") {
			t.Errorf("got %s", text)
		}
	}
	if strings.Join(names, " ") != "micro/adds micro/adds-too scale/size" {
		t.Errorf("rows %v", names)
	}
}

// A row brings what it is compared with, but does not report it.
func TestOneRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, stdout, stderr := try(t, source4(t, false), "-quick", "-row", "micro/adds-too", "-out", dir)
	text, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if code != 0 || err != nil || !strings.Contains(stdout, "1 rows, 1 of 1 claims held") {
		t.Errorf("exit %d: %v, %s%s", code, err, stdout, stderr)
	}
	if !strings.Contains(string(text), "| micro/adds-too |") || strings.Contains(string(text), "| adds |") {
		t.Errorf("got %s", text)
	}
}

func TestWritesAndChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte("a\n"+report.Begin+"\n"+report.End+"\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := try(t, source4(t, false), "-quick", "-out", dir); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, name := range []string{"report.json", "report.md", filepath.Join("charts", "micro.svg")} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, _, stderr := try(t, source4(t, false), "-check", readme, "-out", dir); code != exitFailed || !strings.Contains(stderr, "stale") {
		t.Errorf("a stale section: exit %d, %s", code, stderr)
	}
	if code, _, stderr := try(t, source4(t, false), "-readme", readme, "-out", dir); code != 0 {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr := try(t, source4(t, false), "-check", readme, "-out", dir); code != 0 {
		t.Errorf("after writing: exit %d, %s", code, stderr)
	}
	text, err := os.ReadFile(readme)
	if err != nil || !strings.Contains(string(text), "| as fast |") || !strings.HasSuffix(string(text), "\nb\n") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, stderr := try(t, source4(t, true), "-quick"); code != exitFailed || !strings.Contains(stderr, "micro/adds") {
		t.Errorf("a row that fails: exit %d, %s", code, stderr)
	}
	for name, args := range map[string][]string{
		"no report":         {"-check", filepath.Join(dir, "README.md"), "-out", dir},
		"a file for folder": {"-quick", "-out", filepath.Join(os.Args[0], "x")},
	} {
		code, _, stderr := try(t, source4(t, false), args...)
		if code != exitFailed || strings.Contains(stderr, dir) || strings.Contains(stderr, os.Args[0]) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
}

// A quick run leaves out what takes seconds, unless it is named.
func TestQuickLeavesLongRowsOut(t *testing.T) {
	t.Parallel()
	from := source4(t, false)
	rows := from.rows()
	rows[1].Long = true
	from.rows = func() []row.Row { return rows }
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"quick":         {[]string{"-quick", "-json"}, 2},
		"quick, a set":  {[]string{"-quick", "-json", "-set", "micro"}, 1},
		"quick, by row": {[]string{"-quick", "-json", "-row", "micro/adds-too"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := try(t, from, tc.args...)
			if code != 0 || strings.Count(stdout, "\n") != tc.want {
				t.Errorf("exit %d, want %d rows: %s%s", code, tc.want, stdout, stderr)
			}
		})
	}
}

// The README of the project says what the committed report says.
func TestReadmeIsUpToDate(t *testing.T) {
	t.Parallel()
	code, _, stderr := try(t, source4(t, false), "-check", filepath.Join("..", "..", "..", "README.md"), "-out", filepath.Join("..", ".."))
	if code != 0 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
