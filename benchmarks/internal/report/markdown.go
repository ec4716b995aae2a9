package report

import (
	"fmt"
	"strings"
)

// Markdown renders the report for people. charts are the file names of the
// charts, beside the report.
func (r *Report) Markdown(charts []Chart) string {
	var b strings.Builder
	b.WriteString("# What gating costs\n\n")
	fmt.Fprintf(&b, "Made by `%s` on %s, in %.0f s; do not edit.\n\n", r.Command, r.Date, r.Seconds)
	b.WriteString("Ratios carry over to other machines; absolute times are those of the machine below. Each figure is a median, and the\n")
	b.WriteString("spread beside it is the distance between the quartiles as a share of the median. A ratio is taken within each round\n")
	b.WriteString("of the run, in which all rows that are compared take turns, and then the median over the rounds.\n\n")
	r.machine(&b)
	r.noise(&b)
	r.targets(&b)
	r.growth(&b)
	for _, c := range charts {
		fmt.Fprintf(&b, "![%s](%s)\n\n", c.Title, c.File)
	}
	r.rows(&b)
	r.cannot(&b)

	return strings.TrimRight(b.String(), "\n") + "\n"
}

func (r *Report) machine(b *strings.Builder) {
	b.WriteString("## The machine\n\n| | |\n| --- | --- |\n")
	m := r.Machine
	fmt.Fprintf(b, "| processor | %s, %d cores in use |\n", cell(m.CPU), m.Cores)
	fmt.Fprintf(b, "| system | %s/%s %s |\n", m.OS, m.Arch, cell(m.Kernel))
	fmt.Fprintf(b, "| Go | %s |\n", m.Go)
	for _, v := range r.Versions {
		fmt.Fprintf(b, "| %s | %s |\n", v.Module, v.Version)
	}
	b.WriteString("\n")
}

func (r *Report) noise(b *strings.Builder) {
	b.WriteString("## How noisy it was\n\nControl rows are work that is not ours. What moves them moves everything.\n\n")
	b.WriteString("| control row | spread |\n| --- | ---: |\n")
	for _, n := range r.Noise {
		fmt.Fprintf(b, "| %s | %s |\n", n.Row, percent(n.Spread))
	}
	b.WriteString("\n")
	if worst := r.worstNoise(); worst > noisy {
		fmt.Fprintf(b, "**This run was noisy**: a control row varied by %s. Take differences below that as none.\n\n", percent(worst))
	}
}

// noisy is the spread of a control row above which a report says so.
const noisy = 0.15

func (r *Report) worstNoise() float64 {
	worst := 0.0
	for _, n := range r.Noise {
		worst = max(worst, n.Spread)
	}

	return worst
}

func (r *Report) targets(b *strings.Builder) {
	if len(r.Targets) == 0 {
		return
	}
	b.WriteString("## What is claimed\n\n| claim | bound | measured | spread | held |\n| --- | --- | --- | ---: | --- |\n")
	for i := range r.Targets {
		t := &r.Targets[i]
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n",
			cell(t.About), t.bound(r.unit(t.Row)), t.measuredValue(r.unit(t.Row)), percent(t.Spread), yes(t.Met))
	}
	b.WriteString("\n")
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Why != "" {
			fmt.Fprintf(b, "- *%s*: %s\n", t.About, t.Why)
		}
	}
	b.WriteString("\n")
}

func (r *Report) growth(b *strings.Builder) {
	if len(r.Growth) == 0 {
		return
	}
	b.WriteString("## How cost grows\n\n| with the number of | claim | from | to | fits | held |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, g := range r.Growth {
		first, last := g.Points[0], g.Points[len(g.Points)-1]
		fmt.Fprintf(b, "| %s | %s | %s at %s | %s at %s | %s | %s |\n", cell(g.Quantity), cell(g.Claim),
			amount(first.Value, g.Unit), group(fmt.Sprintf("%.0f", first.X)),
			amount(last.Value, g.Unit), group(fmt.Sprintf("%.0f", last.X)), g.Fit, yes(g.Met))
	}
	b.WriteString("\n")
}

func (r *Report) rows(b *strings.Builder) {
	set := ""
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Set != set {
			set = row.Set
			fmt.Fprintf(b, "## %s%s\n\n", strings.ToUpper(set[:1]), set[1:])
			b.WriteString("| row | ratio | to | this machine | spread | allocations | what is done |\n")
			b.WriteString("| --- | ---: | --- | ---: | ---: | ---: | --- |\n")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", row.Name, ratio(row.Ratio), row.RatioTo,
			amount(row.Value, row.Unit), percent(row.Spread), allocs(row.Allocs), cell(row.About))
		if i == len(r.Rows)-1 || r.Rows[i+1].Set != set {
			b.WriteString("\n")
		}
	}
}

func (r *Report) cannot(b *strings.Builder) {
	if len(r.Cannot) == 0 {
		return
	}
	b.WriteString("## What a peer cannot do\n\nIt is said here, and not measured.\n\n| peer | cannot |\n| --- | --- |\n")
	for _, c := range r.Cannot {
		fmt.Fprintf(b, "| %s | %s |\n", cell(c.Peer), cell(c.Cannot))
	}
	b.WriteString("\n")
}
