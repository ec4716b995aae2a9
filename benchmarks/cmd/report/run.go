package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-go/interlock/benchmarks/internal/measure"
	"github.com/interlock-go/interlock/benchmarks/internal/peers"
	"github.com/interlock-go/interlock/benchmarks/internal/report"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

const (
	exitFailed = 1
	exitUsage  = 2

	fileMode = 0o644
)

// source is where rows come from: the catalogue, or a test's own.
type source struct {
	rows    func() []row.Row
	targets func() []row.Target
	series  func() []row.Series
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer, from source) int {
	all := from.rows()
	o, err := parse(args, all, stdout)
	if bad, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintln(stderr, "report:", bad.text)
		for _, name := range bad.names {
			fmt.Fprintln(stderr, " ", name)
		}

		return exitUsage
	}
	switch {
	case o.help:
		return 0
	case o.list:
		fmt.Fprintf(stdout, "sets: %s\n", strings.Join(setNames(), ", "))
		for _, r := range all {
			fmt.Fprintf(stdout, "%-44s %s\n", r.Name, r.About)
		}

		return 0
	case o.readme != "" || o.check != "":
		err = section(o, stdout)
	default:
		err = measureAll(ctx, o, all, stdout, stderr, from)
	}
	if err != nil {
		fmt.Fprintln(stderr, "report:", err)

		return exitFailed
	}

	return 0
}

func (o options) measure(progress io.Writer) measure.Options {
	opts := measure.Options{Rounds: 15, SlowRounds: 5, Sample: 60 * time.Millisecond}
	if o.quick {
		opts = measure.Options{Rounds: 3, SlowRounds: 1, Sample: 4 * time.Millisecond}
	}
	opts.Progress = func(group string, rows int) { fmt.Fprintf(progress, "%s: %d rows\n", group, rows) }

	return opts
}

func measureAll(ctx context.Context, o options, all []row.Row, stdout, stderr io.Writer, from source) error {
	if err := row.Check(all); err != nil {
		return err
	}
	begin := time.Now()
	in := report.Input{Targets: from.targets(), Series: from.series(), Gaps: peers.Gaps()}
	in.Plans = measure.Groups(choose(o, all), all, in.Targets)
	for _, plan := range in.Plans {
		g, err := measure.Run(ctx, plan.Name, plan.Rows, o.measure(stderr))
		if err != nil {
			return err
		}
		in.Groups = append(in.Groups, g)
	}
	r := report.Build(in)
	r.Date, r.Seconds = begin.UTC().Format(time.DateOnly), time.Since(begin).Round(time.Second).Seconds()
	r.Command, r.Machine, r.Versions = o.command(), report.ThisMachine(), report.Versions()
	if o.asJSON {
		if err := printRows(stdout, r); err != nil {
			return err
		}
	}
	if o.asJSON && !o.outGiven {
		return nil
	}
	if err := write(r, o.out); err != nil || o.asJSON {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s, %s and %s are written: %d rows, %d of %d claims held\n",
		markdownFile, jsonFile, chartsFolder, len(r.Rows), r.Held(), len(r.Targets))

	return err
}

// command is how to run it again.
func (o options) command() string {
	c := "go run ./cmd/report"
	if o.quick {
		c += " -quick"
	}
	if len(o.sets) > 0 {
		c += " -set " + strings.Join(o.sets, ",")
	}
	if len(o.rows) > 0 {
		c += " -row " + strings.Join(o.rows, ",")
	}

	return c
}

// line is the form of -json. A row whose figure is no time has value and unit
// instead of ns.
type line struct {
	Name    string   `json:"name"`
	NS      *float64 `json:"ns"`
	Allocs  *float64 `json:"allocs"`
	RatioTo *string  `json:"ratio_to"`
	Ratio   *float64 `json:"ratio"`
	Value   *float64 `json:"value,omitempty"`
	Unit    string   `json:"unit,omitempty"`
}

func printRows(w io.Writer, r report.Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i := range r.Rows {
		got := &r.Rows[i]
		l := line{Name: got.Name, Allocs: got.Allocs, Ratio: got.Ratio}
		if got.RatioTo != "" {
			l.RatioTo = &got.RatioTo
		}
		if got.Unit == string(row.Nanoseconds) {
			l.NS = &got.Value
		} else {
			l.Value, l.Unit = &got.Value, got.Unit
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}

	return nil
}

const (
	jsonFile     = "report.json"
	markdownFile = "report.md"
	chartsFolder = "charts"
)

func write(r report.Report, dir string) error {
	charts, err := report.Charts(&r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, chartsFolder), 0o755); err != nil { //nolint:gosec // a folder to be read by all
		return errors.New("the folder to write to cannot be made")
	}
	for i := range charts {
		charts[i].File = chartsFolder + "/" + charts[i].File
		if err := put(filepath.Join(dir, charts[i].File), charts[i].SVG); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		return err
	}

	return errors.Join(
		put(filepath.Join(dir, jsonFile), []byte(b.String())),
		put(filepath.Join(dir, markdownFile), []byte(r.Markdown(charts))))
}

func put(path string, data []byte) error {
	if err := os.WriteFile(path, data, fileMode); err != nil { //nolint:gosec // a report to be read by all
		return errors.New("a file of the report cannot be written")
	}

	return nil
}

// errStale is a README whose section is not what report.json says.
var errStale = errors.New("the cost section of the README is stale; -readme writes it")

func section(o options, stdout io.Writer) error {
	data, err := os.ReadFile(filepath.Join(o.out, jsonFile))
	if err != nil {
		return errors.New("report.json cannot be read")
	}
	r, err := report.Read(data)
	if err != nil {
		return err
	}
	path := o.readme + o.check
	readme, err := os.ReadFile(path) //nolint:gosec // the caller of the command names it
	if err != nil {
		return errors.New("the README cannot be read")
	}
	want, err := report.Replace(string(readme), report.Section(r))
	if err != nil {
		return err
	}
	switch {
	case want == string(readme):
		_, err = fmt.Fprintln(stdout, "the cost section is up to date")

		return err
	case o.check != "":
		return errStale
	default:
		return put(path, []byte(want))
	}
}
