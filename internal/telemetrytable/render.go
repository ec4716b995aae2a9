package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/otelx"
)

const intro = `# Telemetry

Everything that the observer and tracer of package ` + "`otelx`" + ` let out: spans, their attributes, and metrics.
There is no other value, and no switch that adds one. The page is generated from the code, and a test fails when it is stale:

` + "```sh\ngo run ./internal/telemetrytable -write docs/telemetry.md\n```" + `

Values come from four sources only: a **closed list** of this library, a **registered name** (a label or workflow
given at construction), a **number**, or a **random identifier** made by the library. What is outside of a list or of the
registry is rendered as ` + "`_OTHER`" + ` and counted in ` + "`interlock.telemetry.rejected`" + `. Keys that begin with
` + "`gen_ai.`" + ` and ` + "`error.type`" + ` are OpenTelemetry's published ones.

`

const rules = `
- An attribute is absent where it does not apply.
- An operation that failed has ` + "`error.type`" + ` and the status Error with an empty description;
  ` + "`interlock.fallback`" + ` has the attribute alone. A decision that worked is Unset, also when it is a refusal;
  one whose component broke down is Error. Never Ok, never an event.
- A refused tool has the span of the decision and no ` + "`execute_tool`" + ` span. The span of a tool that was left
  behind ends when the tool does.
- The decision about an attempt stands on its ` + "`chat`" + ` span. A skipped attempt has no such span, and a decision span
  instead.
- Decisions with the verdict allow have a span unless ` + "`Config.DisableAllowSpans`" + ` is set. They are counted either way.
  What the context limiter measures without finding anything is a metric and never a span.
- A run that is continued from another process is a link, with one attribute, and never a parent.

`

// render makes the page.
func render() []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	spans(&b)
	b.WriteString("## Decision set\n\n")
	b.WriteString(sentence(otelx.DecisionSet()) + "\n\n")
	attributes(&b)
	instruments(&b)
	lists(&b)

	return b.Bytes()
}

func spans(b *bytes.Buffer) {
	b.WriteString("## Spans\n\n| span | kind | when | attributes | attributes of links |\n| --- | --- | --- | --- | --- |\n")
	decision := otelx.DecisionSet()
	for _, s := range otelx.Spans() {
		own := s.Attributes
		shown := ""
		if !slices.ContainsFunc(decision, func(k string) bool { return !slices.Contains(own, k) }) {
			own = slices.DeleteFunc(slices.Clone(own), func(k string) bool { return slices.Contains(decision, k) })
			shown = ", [decision set](#decision-set)"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s%s | %s |\n", s.Name, s.Kind, s.When, sentence(own), shown, sentence(s.Links))
	}
	b.WriteString(rules)
}

func attributes(b *bytes.Buffer) {
	b.WriteString("## Attributes\n\n| key | source | what |\n| --- | --- | --- |\n")
	for _, a := range otelx.Attributes() {
		source := a.Source
		if a.Source == otelx.SourceClosed {
			source = "[" + a.Source + "](#" + anchor(a.Key) + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", a.Key, source, a.About)
	}
	b.WriteByte('\n')
}

func instruments(b *bytes.Buffer) {
	b.WriteString("## Metrics\n\n| name | instrument, unit | attributes | buckets | what |\n| --- | --- | --- | --- | --- |\n")
	for _, i := range otelx.Instruments() {
		fmt.Fprintf(b, "| `%s` | %s %s | %s | %s | %s |\n", i.Name, i.Kind, i.Unit, sentence(i.Attributes), bounds(i.Buckets), i.About)
	}
	b.WriteString("\nNo instrument has 1000 series: registries and lists are capped, and series past 900 of one instrument\n" +
		"are folded together as `_OTHER`. Identifiers, generations and digests are on no metric.\n\n")
}

func lists(b *bytes.Buffer) {
	b.WriteString("## Closed lists\n")
	for _, a := range otelx.Attributes() {
		if a.Source == otelx.SourceClosed {
			b.WriteString("\n### " + a.Key + "\n\n" + sentence(a.Values) + "\n")
		}
	}
}

// anchor is how a page of Markdown names a heading.
func anchor(heading string) string { return strings.ReplaceAll(heading, ".", "") }

func sentence(names []string) string {
	if len(names) == 0 {
		return "–"
	}

	return "`" + strings.Join(names, "`, `") + "`"
}

func bounds(buckets []float64) string {
	if len(buckets) == 0 {
		return "–"
	}
	s := make([]string, len(buckets))
	for i, v := range buckets {
		s[i] = strconv.FormatFloat(v, 'f', -1, 64)
	}

	return strings.Join(s, " ")
}
