// Command show prints one trace of a corpus as a timeline: words, calls and
// results shortened, where the marks are, and where each detector fired.
//
//	go run ./internal/looptrace/show -corpus FILE -trace ID
//
// Exit codes: 0 printed, 1 the corpus is malformed, cannot be read or has no
// such trace, 2 wrong flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/interlock-go/interlock/internal/looptrace"
)

const (
	exitOK    = 0
	exitData  = 1
	exitUsage = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("show", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("corpus", "", "")
	id := flags.String("trace", "", "")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || *path == "" || *id == "" {
		fmt.Fprintln(stderr, "usage: show -corpus FILE -trace ID")

		return exitUsage
	}
	if err := show(*path, *id, stdout); err != nil {
		fmt.Fprintln(stderr, "show: "+err.Error())

		return exitData
	}

	return exitOK
}

var (
	errOpen  = errors.New("the corpus cannot be opened")
	errTrace = errors.New("the corpus has no trace of that id")
)

func show(path, id string, stdout io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // it is told which file to read
	if err != nil {
		return errOpen
	}
	defer file.Close()
	traces, err := looptrace.Read(file)
	if err != nil {
		return err
	}
	for _, t := range traces {
		if t.ID != id {
			continue
		}
		var fired []looptrace.Fired
		for _, d := range looptrace.Detectors() {
			firings, err := looptrace.Replay(context.Background(), d, t)
			if err != nil {
				return err
			}
			fired = append(fired, looptrace.Fired{Detector: d, Firings: firings})
		}

		return looptrace.Timeline(stdout, t, fired...)
	}

	return errTrace
}
