package looptrace

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Report sums up the verdicts about one detector, by family. The zero value is
// empty and ready.
type Report struct {
	families []string // in the order of the corpus
	tallies  map[string]Tally
	total    Tally
	wrong    []Wrong
}

// Wrong is a trace that the detector was wrong about.
type Wrong struct {
	ID      string  `json:"id"`
	Verdict Verdict `json:"-"`
	// Step and Reason of the first firing; 0 and "" if there is none.
	Step     int    `json:"step"`
	Reason   string `json:"reason"`
	Earliest int    `json:"earliest,omitempty"`
	StopBy   int    `json:"stop_by,omitempty"`
}

// Add counts the verdict about one trace.
func (r *Report) Add(t *Trace, firings []Firing) {
	v := Judge(t, firings)
	if r.tallies == nil {
		r.tallies = make(map[string]Tally)
	}
	tally, known := r.tallies[t.Family]
	if !known {
		r.families = append(r.families, t.Family)
	}
	r.tallies[t.Family] = tally.With(v)
	r.total = r.total.With(v)
	if v.Wrong() {
		w := Wrong{ID: t.ID, Verdict: v, Earliest: t.Earliest, StopBy: t.StopBy}
		if len(firings) > 0 {
			w.Step, w.Reason = firings[0].Step, firings[0].Reason.String()
		}
		r.wrong = append(r.wrong, w)
	}
}

// Families returns the families in the order in which they were met.
func (r *Report) Families() []string { return slices.Clone(r.families) }

// Family returns the tally of one family.
func (r *Report) Family(name string) Tally { return r.tallies[name] }

// Total returns the tally of all.
func (r *Report) Total() Tally { return r.total }

// Wrong returns the traces that the detector was wrong about.
func (r *Report) Wrong() []Wrong { return slices.Clone(r.wrong) }

// Column is a report under the name of its detector.
type Column struct {
	Name   string
	Report *Report
}

// Table writes reports about the same traces side by side, a row for each
// family and one for all.
func Table(w io.Writer, columns ...Column) error {
	var out strings.Builder
	out.WriteString(pad("", familyWidth))
	out.WriteString("traces loops")
	for _, c := range columns {
		out.WriteString(" | " + pad(c.Name, columnWidth))
	}
	out.WriteString("\n" + pad("family", familyWidth) + "            ")
	for range columns {
		out.WriteString(" |  hit early miss false precision recall")
	}
	out.WriteByte('\n')
	if len(columns) > 0 {
		for _, family := range columns[0].Report.families {
			writeRow(&out, family, columns, func(r *Report) Tally { return r.Family(family) })
		}
		writeRow(&out, "all", columns, (*Report).Total)
	}
	_, err := io.WriteString(w, out.String())

	return err
}

const (
	familyWidth = 22
	columnWidth = 38
)

func writeRow(out *strings.Builder, name string, columns []Column, tally func(*Report) Tally) {
	first := tally(columns[0].Report)
	fmt.Fprintf(out, "%s%6d %5d", pad(name, familyWidth), first.Traces, first.Loops)
	for _, c := range columns {
		t := tally(c.Report)
		fmt.Fprintf(out, " | %4d %5d %4d %5d %9s %6s",
			t.Hits, t.Premature, t.Misses, t.FalseStops, percent(t.Precision()), percent(t.Recall()))
	}
	out.WriteByte('\n')
}

func percent(v float64, ok bool) string {
	if !ok {
		return "-"
	}

	return fmt.Sprintf("%.3f", v)
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-len(s)))
}

type jsonRow struct {
	Family string `json:"family"`
	Tally

	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
}

type jsonReport struct {
	Detector string      `json:"detector"`
	Families []jsonRow   `json:"families"`
	All      jsonRow     `json:"all"`
	Wrong    []jsonWrong `json:"wrong"`
}

type jsonWrong struct {
	Wrong

	Verdict string `json:"verdict"`
}

// JSON writes the report as one JSON object; a ratio of nothing is null.
func (r *Report) JSON(w io.Writer, detector string) error {
	out := jsonReport{Detector: detector, Families: []jsonRow{}, All: row("all", r.total), Wrong: []jsonWrong{}}
	for _, f := range r.families {
		out.Families = append(out.Families, row(f, r.tallies[f]))
	}
	for _, v := range r.wrong {
		out.Wrong = append(out.Wrong, jsonWrong{Wrong: v, Verdict: v.Verdict.String()})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")

	return enc.Encode(out)
}

func row(family string, t Tally) jsonRow {
	out := jsonRow{Family: family, Tally: t}
	if v, ok := t.Precision(); ok {
		out.Precision = &v
	}
	if v, ok := t.Recall(); ok {
		out.Recall = &v
	}

	return out
}
