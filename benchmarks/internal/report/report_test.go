package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/benchmarks/internal/measure"
	"github.com/interlock-go/interlock/benchmarks/internal/peers"
	"github.com/interlock-go/interlock/benchmarks/internal/report"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// input is one group of each kind, with samples that are made up.
func input() report.Input {
	control := measure.Figure{
		Row:     row.Row{Name: "micro/control", Set: row.Micro, About: "work that is not ours", Control: true},
		Samples: []float64{100, 100, 110, 100}, Allocs: 0, Bytes: 0,
	}
	gated := measure.Figure{
		Row:     row.Row{Name: "micro/gated", Set: row.Micro, RatioTo: "micro/control", About: "a | b"},
		Samples: []float64{150, 150, 165, 150}, Allocs: 7.04, Bytes: 512,
	}
	memory := measure.Figure{
		Row:     row.Row{Name: "micro/memory", Set: row.Micro, About: "a run", Unit: row.Bytes},
		Samples: []float64{4096}, Allocs: -1, Bytes: -1,
	}
	in := report.Input{
		Groups: []measure.Group{{Name: "micro", Figures: []measure.Figure{control, gated, memory}}},
		Plans:  []measure.Plan{{Name: "micro", Own: []string{"micro/control", "micro/gated", "micro/memory"}}},
		Targets: []row.Target{
			{Name: "held", About: "held", Headline: true, Row: "micro/gated", To: "micro/control", AtMost: 1.75, Allocs: 8},
			{Name: "missed", About: "missed", Headline: true, Row: "micro/gated", To: "micro/control", AtMost: 1.2, Allocs: -1},
			{Name: "allocs", About: "allocates too much", Row: "micro/gated", To: "micro/control", AtMost: 2, Allocs: 6},
			{Name: "over", About: "what it adds", Row: "micro/gated", To: "micro/control", Over: "micro/control", AtMost: 0.5, Allocs: -1},
			{Name: "ahead", About: "ahead", Row: "micro/control", To: "micro/gated", AtLeast: 3, Allocs: -1},
			{Name: "absolute", About: "small", Row: "micro/memory", AtMost: 5000, Allocs: -1},
			{Name: "not measured", About: "-", Row: "micro/gated", To: "peers/none", AtMost: 1, Allocs: -1},
		},
		Gaps: []peers.Gap{{Peer: "other", Cannot: "do it"}},
	}
	growing := measure.Group{Name: "scale/receipts"}
	plan := measure.Plan{Name: "scale/receipts"}
	for i, x := range []float64{10, 100, 1000, 10000} {
		name := "scale/receipts-" + string(rune('a'+i))
		growing.Figures = append(growing.Figures, measure.Figure{
			Row:     row.Row{Name: name, Set: row.Scale, Series: "receipts", X: x, About: "a check"},
			Samples: []float64{100, 102}, Allocs: 0,
		})
		plan.Own = append(plan.Own, name)
	}
	in.Groups, in.Plans = append(in.Groups, growing), append(in.Plans, plan)
	in.Series = []row.Series{
		{Name: "receipts", Quantity: "receipts", Claim: "does not grow", Want: "flat"},
		{Name: "absent", Quantity: "nothing", Claim: "-", Want: "flat"},
	}

	return in
}

func TestBuild(t *testing.T) {
	t.Parallel()
	r := report.Build(input())
	got := map[string]bool{}
	for _, target := range r.Targets {
		got[target.Name] = target.Met
	}
	want := map[string]bool{"held": true, "missed": false, "allocs": false, "over": true, "ahead": false, "absolute": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets: %s", diff)
	}
	gated := r.Rows[1]
	if gated.Value != 150 || *gated.Ratio != 1.5 || *gated.RatioSpread != 0 || *gated.Allocs != 7.04 || gated.Samples != 4 {
		t.Errorf("%+v", gated)
	}
	if memory := r.Rows[2]; memory.Unit != "B" || memory.Allocs != nil || memory.Ratio != nil {
		t.Errorf("%+v", memory)
	}
	if len(r.Growth) != 1 || r.Growth[0].Fit != "flat" || !r.Growth[0].Met || len(r.Growth[0].Points) != 4 {
		t.Errorf("growth %+v", r.Growth)
	}
	if len(r.Noise) != 1 || r.Noise[0].Spread != 0.025 {
		t.Errorf("noise %+v", r.Noise)
	}
}

func TestGrowthThatIsTooMuch(t *testing.T) {
	t.Parallel()
	in := input()
	for i := range in.Groups[1].Figures {
		f := &in.Groups[1].Figures[i]
		f.Samples = []float64{f.Row.X * 10, f.Row.X * 10}
	}
	if g := report.Build(in).Growth[0]; g.Fit != "linear" || g.Met {
		t.Errorf("%+v", g)
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := report.Build(input())
	r.Date, r.Command, r.Machine = "2026-01-02", "go run ./cmd/report", report.ThisMachine()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := report.Read([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Error(diff)
	}
	for name, bad := range map[string]string{
		"no JSON":         "x",
		"another schema":  strings.Replace(b.String(), report.Schema, "another.v1", 1),
		"an unknown key":  strings.Replace(b.String(), `"date"`, `"day"`, 1),
		"two reports":     b.String() + b.String(),
		"no rows":         `{"schema":"` + report.Schema + `"}`,
		"a word as value": strings.Replace(b.String(), `"seconds": 0`, `"seconds": "long"`, 1),
	} {
		if _, err := report.Read([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := report.Build(input())
	r.Date, r.Command = "2026-01-02", "go run ./cmd/report"
	text := r.Markdown([]report.Chart{{File: "charts/micro.svg", Title: "micro"}})
	for _, want := range []string{
		"| held | ≤ 1.75 ×, ≤ 8 allocations | 1.50 ×, 7 allocations | 0 % | yes |",
		"| missed | ≤ 1.20 × | 1.50 × | 0 % | **no** |",
		"| micro/gated | 1.50 × | micro/control | 150 ns | 2 % | 7 | a \\| b |",
		"| small | ≤ 4.88 KiB | 4.00 KiB |",
		"| receipts | does not grow | 101 ns at 10 | 101 ns at 10,000 | flat | yes |",
		"![micro](charts/micro.svg)", "| other | do it |", "| micro/control | 2 % |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "This run was noisy") {
		t.Error("a quiet run is called noisy")
	}
	in := input()
	in.Groups[0].Figures[0].Samples = []float64{100, 300, 100, 300}
	noisy := report.Build(in)
	if text := noisy.Markdown(nil); !strings.Contains(text, "This run was noisy") {
		t.Error("a noisy run is not called so")
	}
}

func TestSection(t *testing.T) {
	t.Parallel()
	r := report.Build(input())
	section := report.Section(r)
	for _, want := range []string{"| held | 1.50 ×, 7 allocations |", "| missed | 1.50 × (missed) |", "does not grow with receipts.\n3 of 6 claims held"} {
		if !strings.Contains(section, want) {
			t.Errorf("the section lacks %q:\n%s", want, section)
		}
	}
	if strings.Contains(section, "allocates too much") {
		t.Error("the section has more than the headlines")
	}
	readme := "before\n" + report.Begin + "\nold\n" + report.End + "\nafter\n"
	got, err := report.Replace(readme, section)
	if err != nil || got != "before\n"+report.Begin+"\n"+section+report.End+"\nafter\n" {
		t.Errorf("%v: %s", err, got)
	}
	if again, err := report.Replace(got, section); err != nil || again != got {
		t.Errorf("not stable: %v", err)
	}
	for name, bad := range map[string]string{
		"no markers":  "text\n",
		"no end":      report.Begin + "\ntext\n",
		"end first":   report.End + "\n" + report.Begin + "\n",
		"begun twice": report.Begin + "\n" + report.Begin + "\n" + report.End + "\n",
		"two":         readme + readme,
	} {
		if _, err := report.Replace(bad, section); !errors.Is(err, report.ErrMarkers) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCharts(t *testing.T) {
	t.Parallel()
	r := report.Build(input())
	charts, err := report.Charts(&r)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, c := range charts {
		files = append(files, c.File)
		dec := xml.NewDecoder(strings.NewReader(string(c.SVG)))
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", c.File, err)
			}
		}
	}
	if diff := cmp.Diff([]string{"micro.svg", "growth.svg"}, files); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(charts[0].SVG), "gated") || !strings.Contains(string(charts[1].SVG), "receipts (flat)") {
		t.Error("the charts lack their names")
	}
	empty := report.Report{}
	if charts, err := report.Charts(&empty); err != nil || len(charts) != 0 {
		t.Errorf("of nothing: %v, %d", err, len(charts))
	}
}
