package main

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Measures, in pixels.
const (
	width     = 1120
	margin    = 24
	nameWidth = 300
	barLeft   = margin + nameWidth
	barRight  = width - 216 // what stands behind a bar needs room
	header    = 92
	rowHeight = 24
	barHeight = 14
	indent    = 16
	maxIndent = 8
	minBar    = 2.5
	charWidth = 6.1 // of the small font, on average
	nameChar  = 7   // of the font of names
	footer    = 74
	ticks     = 8
	tickGap   = 6
	swatch    = 10
	keyGap    = 20
	keyHeight = 24
	maxWords  = 28 // characters of what a span says of itself
)

// kinds are the parts of a run, by which bars are coloured; the last one is
// everything that is not ours.
var kinds = []string{ //nolint:gochecknoglobals // compiled table
	"run", "model", "tool", "fallback", "admission", "watchdog", "escalation", "breaker", "budget", "other",
}

// verdicts are what a dot behind a bar shows.
var verdicts = []string{"allow", "deny", "modify", "escalate", "abstain"} //nolint:gochecknoglobals // compiled table

// style has the colours. Bars and dots keep theirs in the dark; text, lines and
// ground change.
const style = `
text{font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:11.5px;fill:#1f2328}
.ground{fill:#ffffff;stroke:#d1d9e0}
.title{font-size:16px;font-weight:600}
.sub,.tick,.note,.key{fill:#59636e}
.tick,.note,.key{font-size:11px}
.name{font-size:12px}
.grid{stroke:#d1d9e0;stroke-width:1;stroke-dasharray:2 3}
.guide{stroke:#c3ccd5;stroke-width:1;fill:none}
.band{fill:#818b98;fill-opacity:.08}
.run{fill:#6e7781}.model{fill:#2f74d0}.tool{fill:#2c974b}.fallback{fill:#8250df}.admission{fill:#0e8a8a}
.watchdog{fill:#d4730c}.escalation{fill:#c2418c}.breaker{fill:#9a6324}.budget{fill:#a08800}.other{fill:#98a2ad}
.allow{fill:#2c974b}.deny{fill:#d1242f}.modify{fill:#d99200}.escalate{fill:#8250df}.abstain{fill:#98a2ad}
.failed{stroke:#d1242f;stroke-width:2}
.bad{fill:#cf222e;font-weight:600}
.open{fill-opacity:.45}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.ground{fill:#0d1117;stroke:#3d444d}
.sub,.tick,.note,.key{fill:#9198a1}
.grid{stroke:#30363d}
.guide{stroke:#4b535d}
.band{fill:#9198a1}
.run{fill:#848d97}.model{fill:#4c93f0}.tool{fill:#3fb950}.fallback{fill:#a371f7}.admission{fill:#2bb3b3}
.watchdog{fill:#f0883e}.escalation{fill:#e06fb0}.breaker{fill:#c08552}.budget{fill:#d0b400}
.allow{fill:#3fb950}.deny{fill:#f85149}.modify{fill:#e3b341}.escalate{fill:#a371f7}
.failed{stroke:#f85149}
.bad{fill:#ff7b72}
}
`

// render writes the picture of a tree.
func render(w io.Writer, t *tree) {
	p := painter{w: w, t: t, height: header + rowHeight*len(t.rows) + footer}
	root := clean(t.rows[0].name)
	p.putf(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %d %d" width="%d" height="%d" aria-labelledby="title desc">`,
		width, p.height, width, p.height)
	p.putf(`<title id="title">%s</title>`, root)
	p.putf(`<desc id="desc">A trace of %d spans in %s, one bar per span, each below its parent.</desc>`,
		len(t.rows), short(t.duration()))
	p.putf("<style>%s</style>", style)
	p.putf(`<rect class="ground" x=".5" y=".5" width="%d" height="%d" rx="6"/>`, width-1, p.height-1)
	p.putf(`<text class="title" x="%d" y="36">%s</text>`, margin, root)
	p.putf(`<text class="sub" x="%d" y="56">%d spans · %s</text>`, margin, len(t.rows), short(t.duration()))
	p.axis()
	for i := range t.rows {
		p.row(i)
	}
	p.legend()
	p.putf("</svg>")
}

type painter struct {
	w      io.Writer
	t      *tree
	height int
}

func (p *painter) putf(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// x is where a time lies.
func (p *painter) x(at time.Time) float64 {
	whole := p.t.duration()
	if whole <= 0 {
		return barLeft
	}

	return barLeft + (barRight-barLeft)*float64(at.Sub(p.t.start))/float64(whole)
}

func (p *painter) axis() {
	bottom := header + rowHeight*len(p.t.rows)
	whole := int64(p.t.duration())
	step := tickStep(whole)
	for at := int64(0); at <= whole; at += step {
		label := "0"
		if at > 0 {
			label = short(time.Duration(at))
		}
		x := number(p.x(p.t.start.Add(time.Duration(at))))
		p.putf(`<line class="grid" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, header-tickGap, x, bottom)
		p.putf(`<text class="tick" x="%s" y="%d" text-anchor="middle">%s</text>`, x, header-2*tickGap, label)
	}
}

// tickStep is 1, 2 or 5 times a power of ten, for at most eight steps. Traces are
// short enough for it to end (maxDuration).
func tickStep(whole int64) int64 {
	for step := int64(1); ; step *= 10 {
		for _, factor := range []int64{1, 2, 5} {
			if whole <= ticks*step*factor {
				return step * factor
			}
		}
	}
}

func (p *painter) row(i int) {
	r := &p.t.rows[i]
	top := header + rowHeight*i
	middle := top + rowHeight/2
	base := middle + 4 // of the text
	if i%2 == 1 {
		p.putf(`<rect class="band" x="%d" y="%d" width="%d" height="%d"/>`, margin/2, top, width-margin, rowHeight)
	}
	left := margin + indent*min(r.depth, maxIndent)
	if r.parent >= 0 {
		elbow := left - indent/2
		from := header + rowHeight*(r.parent+1) - tickGap
		p.putf(`<path class="guide" d="M%d %dV%dH%d"/>`, elbow, from, middle, left-3)
	}
	p.putf(`<text class="name" x="%d" y="%d">%s</text>`, left, base, clean(cut(r.name, (barLeft-left-margin/2)/nameChar)))

	from, to := p.x(r.start), p.x(r.end)
	class := kindOf(r.name)
	if r.failed {
		class += " failed"
	}
	if r.open {
		class += " open"
	}
	size := max(to-from, minBar)
	said, bad := describe(r)
	p.putf(`<rect class="%s" x="%s" y="%d" width="%s" height="%d" rx="2"><title>%s</title></rect>`,
		class, number(from), middle-barHeight/2, number(size), barHeight, clean(r.name+" · "+said))
	p.note(r, from, from+size, middle, said, bad)
}

// note writes what a span says of itself behind its bar, before it, or if
// neither has room at the end of the bar.
func (p *painter) note(r *row, from, to float64, middle int, said string, bad bool) {
	const gap, dot = 7, 12
	verdict := verdictOf(r)
	long := charWidth*float64(len([]rune(said))) + gap
	if verdict != "" {
		long += dot
	}
	x := to + gap
	if to+long > width-margin/2 && from-long > barLeft {
		x = from - long
	} else if to+long > width-margin/2 {
		x = width - margin/2 - long
	}
	if verdict != "" {
		p.putf(`<circle class="%s" cx="%s" cy="%d" r="4"/>`, verdict, number(x+4), middle)
		x += dot
	}
	class := "note"
	if bad {
		class = "note bad"
	}
	p.putf(`<text class="%s" x="%s" y="%d">%s</text>`, class, number(x), middle+4, clean(said))
}

// verdictOf is what the dot shows; a failed span has none, because that an attempt
// was allowed is not what matters about it then.
func verdictOf(r *row) string {
	v := r.attributes["interlock.decision.verdict"]
	if r.failed || !slices.Contains(verdicts, v) {
		return ""
	}

	return v
}

// describe is the duration, what was decided, why and about what, or how it
// failed.
func describe(r *row) (text string, bad bool) {
	parts := []string{short(r.end.Sub(r.start))}
	if r.open {
		parts = append(parts, "open")
	}
	word, reason := r.attributes["interlock.decision.verdict"], r.attributes["interlock.decision.reason"]
	if a := r.attributes["interlock.decision.action"]; a == "wait" || a == "substitute" {
		word = a // says more than modify
	}
	failure := r.attributes["error.type"]
	switch {
	case r.failed && failure != "":
		parts = append(parts, "✕ "+cut(failure, maxWords))
	case r.failed:
		parts = append(parts, "✕ failed")
	case word != "" && reason != "" && reason != "ok":
		parts = append(parts, cut(word+" "+reason, maxWords))
	case word != "":
		parts = append(parts, cut(word, maxWords))
	}
	if r.failed {
		return strings.Join(parts, " · "), true
	}
	if about := r.attributes["interlock.decision.label"]; about != "" && !strings.HasSuffix(r.name, " "+about) {
		parts = append(parts, cut(about, maxWords))
	}
	if state := r.attributes["interlock.circuit.state"]; state != "" {
		parts = append(parts, cut("circuit "+state, maxWords))
	}

	return strings.Join(parts, " · "), false
}

func kindOf(name string) string {
	switch first, _, _ := strings.Cut(name, " "); first {
	case "invoke_agent":
		return "run"
	case "chat":
		return "model"
	case "execute_tool":
		return "tool"
	default:
		kind, ours := strings.CutPrefix(first, "interlock.")
		if ours && slices.Contains(kinds, kind) {
			return kind
		}

		return "other"
	}
}

// legend explains the colours that occur.
func (p *painter) legend() {
	top := header + rowHeight*len(p.t.rows) + keyHeight
	used := map[string]bool{}
	for i := range p.t.rows {
		r := &p.t.rows[i]
		used[kindOf(r.name)], used[verdictOf(r)] = true, true
		used["failed"] = used["failed"] || r.failed
	}
	x := float64(margin)
	key := func(label string) {
		p.putf(`<text class="key" x="%s" y="%d">%s</text>`, number(x), top+4, label)
		x += charWidth*float64(len(label)) + keyGap
	}
	key("bars:")
	for _, k := range kinds {
		if used[k] {
			p.putf(`<rect class="%s" x="%s" y="%d" width="14" height="%d" rx="2"/>`, k, number(x), top-swatch/2, swatch)
			x += 19
			key(k)
		}
	}
	if used["failed"] {
		p.putf(`<rect class="other failed" fill-opacity="0" x="%s" y="%d" width="14" height="%d" rx="2"/>`, number(x), top-swatch/2, swatch)
		x += 19
		key("failed")
	}
	if !slices.ContainsFunc(verdicts, func(v string) bool { return used[v] }) {
		return
	}
	x, top = margin, top+keyHeight
	key("dots:")
	for _, v := range verdicts {
		if used[v] {
			p.putf(`<circle class="%s" cx="%s" cy="%d" r="4"/>`, v, number(x+4), top)
			x += 13
			key(v)
		}
	}
}

// clean escapes text, and leaves out what XML forbids even escaped.
func clean(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}

		return r
	}, text))
}

func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}

	return text
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// short is a duration with three digits at most where it is below a second.
func short(d time.Duration) string {
	unit, size := "s", float64(time.Second)
	switch {
	case d < time.Microsecond:
		unit, size = "ns", 1
	case d < time.Millisecond:
		unit, size = "µs", float64(time.Microsecond)
	case d < time.Second:
		unit, size = "ms", float64(time.Millisecond)
	}
	v := float64(d) / size
	if v < 100 && unit != "ns" {
		return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) + " " + unit
	}

	return strconv.FormatFloat(math.Round(v), 'f', -1, 64) + " " + unit
}
