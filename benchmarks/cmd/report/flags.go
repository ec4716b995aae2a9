package main

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

type options struct {
	sets, rows     []string
	out            string
	readme, check  string
	quick, asJSON  bool
	list           bool
	outGiven, help bool
}

// usageError is a flag that makes no sense. names are what could have been said.
type usageError struct {
	text  string
	names []string
}

func (e *usageError) Error() string { return e.text }

// parse reads the flags. Its errors do not repeat a value.
func parse(args []string, all []row.Row, stdout io.Writer) (options, error) {
	var (
		o          options
		sets, rows string
	)
	fs := flag.NewFlagSet("report", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&o.quick, "quick", false, "a look, in less than a minute")
	fs.BoolVar(&o.asJSON, "json", false, "print one JSON object per row; write nothing without -out")
	fs.StringVar(&sets, "set", "", "the sets to measure, parted by commas")
	fs.StringVar(&rows, "row", "", "the rows to measure, parted by commas")
	fs.BoolVar(&o.list, "list", false, "print the names of sets and rows")
	fs.StringVar(&o.out, "out", "", "the folder to write to (default this one)")
	fs.StringVar(&o.readme, "readme", "", "fill the cost section of this README")
	fs.StringVar(&o.check, "check", "", "fail if the cost section of this README is stale")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		o.help = true

		return o, nil
	case err != nil:
		return o, &usageError{text: "unknown or incomplete flag; -help lists them"}
	case fs.NArg() > 0:
		return o, &usageError{text: "arguments are not expected; -help lists the flags"}
	case (o.readme != "" || o.check != "") && (o.quick || o.asJSON || o.list || sets+rows != "" || o.readme != "" && o.check != ""):
		return o, &usageError{text: "-readme and -check stand alone, with -out"}
	}
	o.outGiven = o.out != ""
	if !o.outGiven {
		o.out = "."
	}
	if o.sets, err = names(sets, setNames(), "unknown set; there are:"); err != nil {
		return o, err
	}
	o.rows, err = names(rows, rowNames(all), "unknown row; there are:")

	return o, err
}

func names(value string, known []string, refusal string) ([]string, error) {
	if value == "" {
		return nil, nil
	}
	chosen := strings.Split(value, ",")
	for _, name := range chosen {
		if !slices.Contains(known, name) {
			return nil, &usageError{text: refusal, names: known}
		}
	}

	return chosen, nil
}

func setNames() []string {
	var known []string
	for _, s := range row.Sets() {
		known = append(known, string(s))
	}

	return known
}

func rowNames(all []row.Row) []string {
	var known []string
	for _, r := range all {
		known = append(known, r.Name)
	}

	return known
}

// choose returns the rows that the options name; all if they name none. A quick
// run leaves long ones out that are not named themselves.
func choose(o options, all []row.Row) []row.Row {
	return slices.DeleteFunc(slices.Clone(all), func(r row.Row) bool {
		if slices.Contains(o.rows, r.Name) {
			return false
		}
		whole := len(o.sets)+len(o.rows) == 0 || slices.Contains(o.sets, string(r.Set))

		return !whole || (o.quick && r.Long)
	})
}
