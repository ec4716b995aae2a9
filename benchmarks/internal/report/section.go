package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/benchmarks/internal/growth"
)

// The markers of the README's part.
const (
	Begin = "<!-- cost: written by benchmarks/cmd/report from benchmarks/report.json -->"
	End   = "<!-- /cost -->"
)

// ErrMarkers is a README without the two markers, in their order, once each.
var ErrMarkers = errors.New("the README needs the two markers of the cost section, once each and in order")

// Section renders the README's part: the headline claims with what was
// measured, held or not, and how costs grow.
func Section(r Report) string {
	var b strings.Builder
	b.WriteString("| claim | measured | bound |\n| --- | --- | --- |\n")
	for i := range r.Targets {
		t := &r.Targets[i]
		missed := " (missed)"
		if t.Met {
			missed = ""
		}
		if t.Head {
			fmt.Fprintf(&b, "| %s | %s%s | %s |\n", cell(t.About), t.measuredValue(r.unit(t.Row)), missed, t.bound(r.unit(t.Row)))
		}
	}
	b.WriteString("\n")
	r.flat(&b, true, "The cost of a call does not grow with ")
	r.flat(&b, false, "Against the claim it grows with ")
	fmt.Fprintf(&b, "%d of %d claims held in the run of %s, whose control rows varied by up to %s.\n"+
		"Times, peers and how to run it again: [the report](benchmarks/report.md).\n",
		r.Held(), len(r.Targets), r.Date, percent(r.worstNoise()))

	return b.String()
}

// flat names the quantities that a cost is not to grow with, as far as that held.
func (r *Report) flat(b *strings.Builder, held bool, lead string) {
	var with []string
	for _, g := range r.Growth {
		if g.Want == growth.Flat.String() && g.Met == held && !slices.Contains(with, g.Quantity) {
			with = append(with, g.Quantity)
		}
	}
	if len(with) > 0 {
		b.WriteString(lead + strings.Join(with, ", ") + ".\n")
	}
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
