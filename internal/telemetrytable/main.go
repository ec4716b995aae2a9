// Command telemetrytable renders the description that otelx gives of its spans,
// attributes and instruments as a page.
//
//	go run ./internal/telemetrytable                              # print it
//	go run ./internal/telemetrytable docs/telemetry.md            # exit 1 if the page is stale
//	go run ./internal/telemetrytable -write docs/telemetry.md     # bring it up to date
//
// The page is generated as a whole; its test fails when it is stale.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
)

const (
	ok = iota
	stale
	misused
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("telemetrytable", flag.ContinueOnError)
	flags.SetOutput(stderr)
	write := flags.Bool("write", false, "bring the page up to date")
	if err := flags.Parse(args); err != nil || flags.NArg() > 1 || (*write && flags.NArg() == 0) {
		_, _ = fmt.Fprintln(stderr, "telemetrytable: [-write] [page]")

		return misused
	}
	page := render()
	if flags.NArg() == 0 {
		_, _ = stdout.Write(page)

		return ok
	}
	path := flags.Arg(0)
	if *write {
		if err := os.WriteFile(path, page, 0o644); err != nil { //nolint:gosec // a public page
			_, _ = fmt.Fprintln(stderr, "telemetrytable: the page cannot be written")

			return stale
		}

		return ok
	}
	now, err := os.ReadFile(path) //nolint:gosec // the caller's own page
	if err != nil || !bytes.Equal(now, page) {
		_, _ = fmt.Fprintln(stderr, "telemetrytable: the page is stale: go run ./internal/telemetrytable -write "+path)

		return stale
	}

	return ok
}
