// Command readmecheck proves that the Go code in a Markdown file is code that the compiler has seen.
//
//	go run ./internal/readmecheck [-write] README.md
//
// Every Go block follows an HTML comment that names its source, a file below the folder of the Markdown file:
//
//	<!-- example: path/to/example_test.go ExampleName -->          the body of that function, without its output comment
//	<!-- example: path/to/example_test.go ExampleName#region -->   a region inside that function
//	<!-- example: path/to/file.go #region -->                      a region anywhere in a Go file
//
// A region is what stands between the comment lines "// snippet-start: region" and "// snippet-end: region".
// A Go block without such a comment is an error, and so are a comment without a Go block, a block that differs from its
// source, a fence that names no language (a plain one is called text) and more than 200 lines. Blocks in other languages
// are not looked into. With -write, blocks that differ are rewritten in place; nothing is written while another error
// stands.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Exit codes of run.
const (
	exitOK    = 0
	exitFound = 1
	exitUsage = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run checks the one file named in args, or rewrites it, and returns the exit code. Each problem is one line on stderr.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("readmecheck", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	write := flags.Bool("write", false, "rewrite blocks that differ from their source")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		reportf(stderr, "usage: readmecheck [-write] README.md")

		return exitUsage
	}
	path := flags.Arg(0)

	text, err := os.ReadFile(path) //nolint:gosec // It is told which file to read.
	if err != nil {
		reportf(stderr, "%s: %v", path, cause(err))

		return exitUsage
	}

	got := check(string(text), filepath.Dir(path))
	problems := got.problems
	if !*write {
		problems = append(problems, got.stale...)
	}
	for _, p := range problems {
		reportf(stderr, "%s:%d: %s", path, p.line, p.text)
	}
	if len(problems) > 0 {
		return exitFound
	}

	if *write && len(got.stale) > 0 {
		if err := os.WriteFile(path, []byte(got.text), 0o644); err != nil { //nolint:gosec // A README is for everybody.
			reportf(stderr, "%s: %v", path, cause(err))

			return exitUsage
		}
		reportf(stdout, "%s: %d of %d Go blocks rewritten", path, len(got.stale), got.blocks)

		return exitOK
	}
	reportf(stdout, "%s: %d Go blocks equal their examples", path, got.blocks)

	return exitOK
}

// reportf prints one line. A line that cannot be printed has nowhere else to go, and the exit code still tells.
func reportf(w io.Writer, format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	_, _ = fmt.Fprintln(w, line)
}

// cause drops the operation and the path from a file error: the line begins with the path already.
func cause(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}

	return err
}
