package report

import (
	"errors"
	"fmt"
	"strings"
)

// The markers of the README's part.
const (
	Begin = "<!-- cost: written by benchmarks/cmd/report from benchmarks/report.json -->"
	End   = "<!-- /cost -->"
)

// ErrMarkers is a README without the two markers, in their order, once each.
var ErrMarkers = errors.New("the README needs the two markers of the cost section, once each and in order")

// Section renders the README's part: what is claimed with what was measured,
// and how costs grow.
func Section(r Report) string {
	var b strings.Builder
	b.WriteString("| claim | measured | bound |\n| --- | --- | --- |\n")
	for i := range r.Targets {
		t := &r.Targets[i]
		missed := ""
		if !t.Met {
			missed = " (missed)"
		}
		fmt.Fprintf(&b, "| %s | %s%s | %s |\n", cell(t.About), t.measuredValue(r.unit(t.Row)), missed, t.bound())
	}
	for _, g := range r.Growth {
		missed := ""
		if !g.Met {
			missed = " (missed)"
		}
		fmt.Fprintf(&b, "| cost against the number of %s | %s%s | %s |\n", cell(g.Quantity), g.Fit, missed, g.Want)
	}
	fmt.Fprintf(&b, "\nRatios of one run on %s; control rows varied by up to %s. Times, peers, spread and how to\nrun it again: [the report](benchmarks/report.md).\n",
		r.Date, percent(r.worstNoise()))

	return b.String()
}

// Replace puts section between the markers of readme.
func Replace(readme, section string) (string, error) {
	before, rest, ok := strings.Cut(readme, Begin+"\n")
	if !ok {
		return "", ErrMarkers
	}
	old, after, ok := strings.Cut(rest, End+"\n")
	if !ok || strings.Contains(old, Begin) || strings.Contains(after, Begin) || strings.Contains(after, End) {
		return "", ErrMarkers
	}

	return before + Begin + "\n" + section + End + "\n" + after, nil
}
