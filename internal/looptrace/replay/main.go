// Command replay scores a loop detector on a corpus.
//
//	go run ./internal/looptrace/replay -corpus FILE -detector progress|repeat [-json] [-wrong]
//
// It prints hits, premature firings, misses, false stops, precision and recall,
// by family and over all. -wrong lists the traces that the detector was wrong
// about. Exit codes: 0 printed, 1 the corpus is malformed or cannot be read, 2
// wrong flags.
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
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	path := flags.String("corpus", "", "")
	name := flags.String("detector", looptrace.Progress.String(), "")
	asJSON := flags.Bool("json", false, "")
	wrong := flags.Bool("wrong", false, "")
	err := flags.Parse(args)
	detector, known := looptrace.ParseDetector(*name)
	if err != nil || flags.NArg() > 0 || *path == "" || !known {
		fmt.Fprintln(stderr, "usage: replay -corpus FILE -detector progress|repeat [-json] [-wrong]")

		return exitUsage
	}
	if err := score(*path, detector, *asJSON, *wrong, stdout); err != nil {
		fmt.Fprintln(stderr, "replay: "+err.Error())

		return exitData
	}

	return exitOK
}

var errOpen = errors.New("the corpus cannot be opened")

func score(path string, detector looptrace.Detector, asJSON, wrong bool, stdout io.Writer) error {
	file, err := os.Open(path) //nolint:gosec // it is told which file to read
	if err != nil {
		return errOpen
	}
	defer file.Close()
	traces, err := looptrace.Read(file)
	if err != nil {
		return err
	}
	var report looptrace.Report
	for _, t := range traces {
		firings, err := looptrace.Replay(context.Background(), detector, t)
		if err != nil {
			return err
		}
		report.Add(t, firings)
	}
	if asJSON {
		return report.JSON(stdout, detector.String())
	}
	if err := looptrace.Table(stdout, looptrace.Column{Name: detector.String(), Report: &report}); err != nil || !wrong {
		return err
	}
	for _, w := range report.Wrong() {
		fmt.Fprintf(stdout, "%s: %s at step %d by %s, marks %d to %d\n",
			w.ID, w.Verdict, w.Step, orNone(w.Reason), w.Earliest, w.StopBy)
	}

	return nil
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}

	return s
}
