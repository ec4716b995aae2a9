package looptrace

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Fired are the firings of one detector, for [Timeline].
type Fired struct {
	Detector Detector
	Firings  []Firing
}

// shown is how much of a text the timeline prints, in characters.
const shown = 72

// Timeline prints a trace step by step: words, calls and results shortened to a
// line each, where the marks are and where each detector fired. It prints
// content.
func Timeline(w io.Writer, t *Trace, fired ...Fired) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s  family %s  %s", t.ID, t.Family, t.Label)
	if t.Loop() {
		fmt.Fprintf(&out, "  stop from step %d, by step %d", t.Earliest, t.StopBy)
	}
	out.WriteString("\n")
	writeLine(&out, "why", t.Why)
	writeLine(&out, "prompt", t.Prompt)
	if len(t.Tools) > 0 {
		names := make([]string, 0, len(t.Tools))
		for _, tool := range t.Tools {
			names = append(names, tool.Name+" "+tool.Effect)
		}
		fmt.Fprintf(&out, "%8s  %s\n", "tools", strings.Join(names, ", "))
	}
	for i := range t.Steps {
		writeStep(&out, t, i, fired)
	}
	for _, f := range fired {
		fmt.Fprintf(&out, "%8s  %s\n", f.Detector, Judge(t, f.Firings))
	}
	_, err := io.WriteString(w, out.String())

	return err
}

func writeStep(out *strings.Builder, t *Trace, i int, fired []Fired) {
	s := &t.Steps[i]
	n := i + 1
	if t.Loop() && n == t.Earliest {
		out.WriteString("-------- earliest\n")
	}
	turn := ""
	if i == 0 || t.Steps[i-1].Turn != s.Turn {
		turn = "turn " + strconv.Itoa(s.Turn)
	}
	writeLine(out, "", s.Thought)
	head := fmt.Sprintf("%4d %-8s ", n, turn)
	switch s.kind() {
	case stepInvention:
		out.WriteString(head + s.Tool + "(" + shorten(text(s.Args)) + ") was not offered\n")
	case stepAnswer:
		out.WriteString(head + "answer: " + shorten(*s.Answer))
		if s.Unparsable {
			out.WriteString(" (could not be read)")
		}
		out.WriteByte('\n')
		if s.Reply != nil {
			fmt.Fprintf(out, "%14s<- %s\n", "", shorten(*s.Reply))
		}
	case stepOutage:
		out.WriteString(head + "the model failed: " + s.Infra + "\n")
	default:
		fmt.Fprintf(out, "%s%s(%s)\n%14s-> %s", head, s.Tool, shorten(text(s.Args)), "", s.Result)
		if s.Text != nil {
			out.WriteString(": " + shorten(*s.Text))
		}
		if s.Final {
			out.WriteString(" (final)")
		}
		if s.Infra != "" {
			out.WriteString(" (" + s.Infra + ")")
		}
		if s.Progress != nil {
			out.WriteString(" (progress " + strconv.FormatFloat(*s.Progress, 'g', -1, 64) + ")")
		}
		out.WriteByte('\n')
	}
	for _, f := range fired {
		for _, at := range f.Firings {
			if at.Step == n {
				fmt.Fprintf(out, "%13s ! %s fired: %s, %d of %d\n", "", f.Detector, at.Reason.String(), at.Count, at.Limit)
			}
		}
	}
	if t.Loop() && n == t.StopBy {
		out.WriteString("-------- stop by\n")
	}
}

func writeLine(out *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	if name == "" {
		fmt.Fprintf(out, "%14s\" %s\n", "", shorten(value))

		return
	}
	fmt.Fprintf(out, "%8s  %s\n", name, shorten(value))
}

// shorten makes one line of a text, without what a terminal would obey.
func shorten(s string) string {
	var out strings.Builder
	n := 0
	for _, r := range s {
		if n == shown {
			out.WriteString("…")

			break
		}
		n++
		switch {
		case r == '\n':
			out.WriteString("⏎")
		case !unicode.IsPrint(r):
			out.WriteByte(' ')
		default:
			out.WriteRune(r)
		}
	}

	return out.String()
}
