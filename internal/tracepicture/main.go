// Command tracepicture draws a trace as a picture: one bar per span, below the
// span that it belongs to, coloured by the part of the library that made it and
// marked by what that part decided.
//
//	go run ./examples/langchaingo -act provider-down -keep DIR
//	go run ./internal/tracepicture -o docs/trace.svg DIR/provider-down/telemetry.jsonl
//
// It reads what OpenTelemetry's stdout exporters write, which is what the example
// keeps; metrics in between are passed over. A file may hold several traces: the
// one with the most spans is drawn, or with -trace N the N-th by its start. The
// SVG depends on the spans alone, needs no script and no font, and has colours
// for light and dark.
//
// Trees need not be whole. A span whose parent is not there is drawn at the
// outermost level; of spans that are each other's parents the first one is; a span
// without an end lasts to the end of the trace and is marked as open.
//
// An error is one line with a code, and where it is about one object of the input
// that object's number: unreadable, malformed, invalid_span, invalid_time,
// too_large, too_many_spans, no_spans, no_such_trace, unwritable. It never repeats
// the input. The exit code is 1 then, and 2 for wrong usage.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usageExit = 2

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("tracepicture", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	out := fs.String("o", "", "write to this file, instead of standard output")
	number := fs.Int("trace", 0, "draw the trace with this number, by start; 0 for the one with the most spans")
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fmt.Fprintln(stdout, "tracepicture [-o FILE] [-trace N] [FILE]")
		fs.PrintDefaults()

		return 0
	}
	if err != nil || fs.NArg() > 1 || *number < 0 {
		fmt.Fprintln(stderr, "tracepicture: usage: tracepicture [-o FILE] [-trace N] [FILE]")

		return usageExit
	}
	if err := draw(fs.Arg(0), *out, *number, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "tracepicture:", err)

		return 1
	}

	return 0
}

// draw reads everything before it writes anything, so that a bad input leaves an
// older picture alone.
func draw(in, out string, number int, stdin io.Reader, stdout io.Writer) error {
	if in != "" && in != "-" {
		f, err := os.Open(in) //nolint:gosec // whoever runs it names it
		if err != nil {
			return inputError{code: codeUnreadable}
		}
		defer f.Close()
		stdin = f
	}
	spans, err := readSpans(stdin)
	if err != nil {
		return err
	}
	t, err := pick(spans, number)
	if err != nil {
		return err
	}
	var picture bytes.Buffer
	render(&picture, t)
	if out != "" {
		if err := os.WriteFile(out, picture.Bytes(), 0o644); err != nil { //nolint:gosec // a page that everybody may read
			return inputError{code: codeUnwritable}
		}

		return nil
	}
	if _, err := stdout.Write(picture.Bytes()); err != nil {
		return inputError{code: codeUnwritable}
	}

	return nil
}
