package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"readmecheck": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("line\n", maxLines)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			files := map[string]string{
				"200.md": long,
				"201.md": long + "line\n",
				// 200 lines with one line of code; the example has two.
				"grows.md": "<!-- example: example_test.go ExampleTwo -->\n```go\none()\n```\n" +
					strings.Repeat("line\n", maxLines-4),
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(text), 0o600); err != nil {
					return err
				}
			}

			return nil
		},
	})
}

// Each of these is refused with one line, also by -write, which then leaves the file alone.
func TestRefused(t *testing.T) {
	t.Parallel()

	const goBlock = "\n```go\nx()\n```\n"
	example := func(target string) string { return "<!-- example: " + target + " -->" + goBlock }
	tests := map[string]struct {
		readme string
		want   string
	}{
		"no marker": {goBlock, "2: Go block without an example marker"},
		"marker too far away": {
			"<!-- example: x_test.go ExampleX -->\ntext" + goBlock,
			"1: example marker without a Go block after it\n3: Go block without an example marker",
		},
		"marker at the end":   {"text\n<!-- example: x_test.go ExampleX -->\n", "2: example marker without a Go block after it"},
		"marker before shell": {"<!-- example: x_test.go ExampleX -->\n```sh\nls\n```\n", "1: example marker before a block that is not Go"},
		"no language":         {"```\nx()\n```\n", "1: fence names no language; plain text is called text"},
		"never closed":        {"```go\nx()\n``\n", "1: fence is never closed"},
		"upper case":          {"```Go\nx()\n```\n", "1: Go block without an example marker"},
		"in a list":           {"- ```go\n  x()\n  ```\n", "1: Go block without an example marker"},
		"in a quotation":      {"> ```go,ignore\n> x()\n> ```\n", "1: Go block without an example marker"},
		"no name":             {example("x_test.go"), "1: " + errForm.Error()},
		"no example":          {example("x_test.go TestX"), "1: " + errForm.Error()},
		"empty region":        {example("x_test.go ExampleX#"), "1: " + errForm.Error()},
		"too many words":      {example("x_test.go ExampleX now"), "1: " + errForm.Error()},
		"absolute path":       {example("/x_test.go ExampleX"), "1: " + errPath.Error()},
		"outside":             {example("../x_test.go ExampleX"), "1: " + errPath.Error()},
		"not clean":           {example("./x_test.go ExampleX"), "1: " + errPath.Error()},
		"not Go":              {example("x_test.txt #all"), "1: " + errPath.Error()},
		"missing file":        {example("y_test.go ExampleX"), "1: " + errPath.Error()},
		"testdata":            {example("testdata/x_test.go ExampleX"), "1: " + errBuilt.Error()},
		"hidden file":         {example("_x_test.go ExampleX"), "1: " + errBuilt.Error()},
		"build constraint":    {example("never_test.go ExampleX"), "1: " + errBuilt.Error()},
		"not parsed":          {example("broken_test.go ExampleX"), "1: " + errParse.Error()},
		"not a test":          {example("x.go ExampleX"), "1: " + errTestFile.Error()},
		"missing function":    {example("x_test.go ExampleY"), "1: function ExampleY does not stand in that file exactly once"},
		"method":              {example("x_test.go ExampleMethod"), "1: function ExampleMethod does not stand in that file exactly once"},
		"empty function":      {example("x_test.go ExampleEmpty"), "1: " + errEmpty.Error()},
		"missing region":      {example("x_test.go #none"), "1: region none does not stand in that file exactly once"},
		"region elsewhere":    {example("x_test.go ExampleX#r"), "1: region r does not stand in that file exactly once"},
		"region twice":        {example("x_test.go #twice"), "1: region twice does not stand in that file exactly once"},
		"region backwards":    {example("x_test.go #backwards"), "1: region backwards does not stand in that file exactly once"},
	}
	files := map[string]string{
		"x.go": "package x\n",
		"x_test.go": `package x

func ExampleX() {
	x()
}

func ExampleEmpty() {}

func (x) ExampleMethod() {
	x()
}

// snippet-start: r
// snippet-end: r
// snippet-start: twice
// snippet-start: twice
// snippet-end: twice
// snippet-end: backwards
// snippet-start: backwards
`,
		"x_test.txt":         "package x\n",
		"never_test.go":      "//go:build never\n\npackage x\n\nfunc ExampleX() {\n\tx()\n}\n",
		"broken_test.go":     "package x\n\nfunc ExampleX() {\n",
		"_x_test.go":         "package x\n\nfunc ExampleX() {\n\tx()\n}\n",
		"testdata/x_test.go": "package x\n\nfunc ExampleX() {\n\tx()\n}\n",
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			folder := t.TempDir()
			for file, text := range files {
				put(t, filepath.Join(folder, file), text)
			}
			// A block that -write could mend: it must not do so while there is something else to mend.
			readme := test.readme + "<!-- example: x_test.go ExampleX -->\n```go\nold()\n```\n"
			if name == "never closed" {
				readme = test.readme
			}
			path := filepath.Join(folder, "README.md")
			put(t, path, readme)

			var stdout, stderr bytes.Buffer
			if code := run([]string{"-write", path}, &stdout, &stderr); code != exitFound {
				t.Errorf("exit code %d, want %d", code, exitFound)
			}
			want := path + ":" + strings.ReplaceAll(test.want, "\n", "\n"+path+":") + "\n"
			if got := stderr.String(); got != want {
				t.Errorf("stderr\n got %q\nwant %q", got, want)
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout %q, want nothing", stdout.String())
			}
			after, err := os.ReadFile(path)
			if err != nil || string(after) != readme {
				t.Errorf("the file was changed (%v):\n%s", err, after)
			}
		})
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
