package report

import (
	"fmt"
	"strconv"
	"strings"
)

// amount renders a time in the unit that reads best, or a size.
func amount(v float64, unit string) string {
	switch unit {
	case "1":
		return number(v)
	case "1/s":
		return number(v) + "/s"
	case "B":
		return scaled(v, []string{"B", "KiB", "MiB", "GiB"}, 1024) // binary
	default:
	}

	return scaled(v, []string{"ns", "µs", "ms", "s"}, 1000) // decimal
}

func scaled(v float64, units []string, step float64) string {
	i := 0
	for v >= step && i < len(units)-1 {
		v /= step
		i++
	}

	return number(v) + " " + units[i]
}

// number renders three digits: as many as the figures deserve.
func number(v float64) string {
	switch {
	case v >= 100: // three digits
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case v >= 10: // three digits
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// group puts commas between thousands.
func group(s string) string {
	for i := len(s) - 3; i > 0; i -= 3 { // thousands
		s = s[:i] + "," + s[i:]
	}

	return s
}

func ratio(v *float64) string {
	if v == nil {
		return ""
	}

	return number(*v) + " ×"
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) } // percent

func allocs(v *float64) string {
	if v == nil {
		return ""
	}
	if *v < 0.05 { // what the runtime allocates beside a sample
		return "0"
	}

	return strings.TrimSuffix(strconv.FormatFloat(*v, 'f', 1, 64), ".0")
}

func yes(met bool) string {
	if met {
		return "yes"
	}

	return "**no**"
}

// bound renders what a target allows.
func (t *Target) bound(unit string) string {
	render := func(v float64) string {
		if t.To == "" {
			return amount(v, unit)
		}

		return number(v) + " ×"
	}
	var parts []string
	if t.AtMost > 0 {
		parts = append(parts, "≤ "+render(t.AtMost))
	}
	if t.AtLeast > 0 {
		parts = append(parts, "≥ "+render(t.AtLeast))
	}
	if t.MaxOps != nil {
		parts = append(parts, "≤ "+strconv.FormatFloat(*t.MaxOps, 'f', -1, 64)+" allocations")
	}

	return strings.Join(parts, ", ")
}

// measuredValue renders what was measured for a target.
func (t *Target) measuredValue(unit string) string {
	s := amount(t.Value, unit)
	if t.To != "" {
		s = number(t.Value) + " ×"
	}
	if t.Allocs != nil {
		s += ", " + allocs(t.Allocs) + " allocations"
	}

	return s
}

func (r *Report) unit(name string) string {
	for i := range r.Rows {
		if r.Rows[i].Name == name {
			return r.Rows[i].Unit
		}
	}

	return ""
}

// cell makes s fit for a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
