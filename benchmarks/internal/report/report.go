package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/interlock-go/interlock/benchmarks/internal/growth"
	"github.com/interlock-go/interlock/benchmarks/internal/measure"
	"github.com/interlock-go/interlock/benchmarks/internal/peers"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Schema of report.json.
const Schema = "interlock.benchmarks.v1"

// Report is everything that is written down.
type Report struct {
	Schema   string    `json:"schema"`
	Date     string    `json:"date"`    // of the run, UTC
	Command  string    `json:"command"` // that makes the report again
	Seconds  float64   `json:"seconds"` // that the run took
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	Noise    []Noise   `json:"noise"`
	Targets  []Target  `json:"targets"`
	Growth   []Growth  `json:"growth"`
	Rows     []Row     `json:"rows"`
	Cannot   []Gap     `json:"cannot"`
}

// Noise is how much a control row varied: half of its samples lie within this
// share of the median.
type Noise struct {
	Row    string  `json:"row"`
	Spread float64 `json:"spread"`
}

// Row is the figures of one row. Value is in Unit; ratios are medians over the
// rounds of the run.
type Row struct {
	Name        string   `json:"name"`
	Set         string   `json:"set"`
	About       string   `json:"about"`
	Unit        string   `json:"unit"`
	Value       float64  `json:"value"`
	Spread      float64  `json:"spread"`
	Samples     int      `json:"samples"`
	Allocs      *float64 `json:"allocs,omitempty"`
	Bytes       *float64 `json:"bytes,omitempty"`
	RatioTo     string   `json:"ratio_to,omitempty"`
	Ratio       *float64 `json:"ratio,omitempty"`
	RatioSpread *float64 `json:"ratio_spread,omitempty"`
	Control     bool     `json:"control,omitempty"`
}

// Target is a claim and whether it held.
type Target struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Head    bool     `json:"headline,omitempty"`
	Row     string   `json:"row"`
	To      string   `json:"to,omitempty"`
	Over    string   `json:"over,omitempty"`
	Value   float64  `json:"value"`
	Spread  float64  `json:"spread"`
	AtMost  float64  `json:"at_most,omitempty"`
	AtLeast float64  `json:"at_least,omitempty"`
	Allocs  *float64 `json:"allocs,omitempty"` // of Row, where the target bounds them
	MaxOps  *float64 `json:"max_allocs,omitempty"`
	Met     bool     `json:"met"`
	Why     string   `json:"why,omitempty"` // it was missed, as far as a profile shows
}

// Growth is how a cost grew with a quantity.
type Growth struct {
	Name     string  `json:"name"`
	Quantity string  `json:"quantity"`
	Claim    string  `json:"claim"`
	Unit     string  `json:"unit"`
	Points   []Point `json:"points"`
	Fit      string  `json:"fit"`
	Want     string  `json:"want"`
	Met      bool    `json:"met"`
}

// Gap is work that a peer cannot do, so that it is not measured.
type Gap struct {
	Peer   string `json:"peer"`
	Cannot string `json:"cannot"`
}

// Point of a growth series.
type Point struct {
	X     float64 `json:"x"`
	Value float64 `json:"value"`
}

// Input is what a report is built of.
type Input struct {
	Groups  []measure.Group
	Plans   []measure.Plan
	Targets []row.Target
	Series  []row.Series
	Gaps    []peers.Gap
}

// Build makes the rows, noise, targets and growth of a report. Targets and
// series whose rows were not measured are left out.
func Build(in Input) Report {
	r := Report{Schema: Schema}
	for _, g := range in.Gaps {
		r.Cannot = append(r.Cannot, Gap{Peer: g.Peer, Cannot: g.Cannot})
	}
	for i, g := range in.Groups {
		for _, name := range in.Plans[i].Own {
			f, ok := g.Figure(name)
			if !ok {
				continue
			}
			r.Rows = append(r.Rows, rowOf(&g, f))
			if f.Row.Control {
				r.Noise = append(r.Noise, Noise{Row: name, Spread: round(f.Spread())})
			}
			for _, t := range in.Targets {
				if t.Row == name {
					r.addTarget(&g, f, t)
				}
			}
		}
	}
	for _, s := range in.Series {
		r.addGrowth(in, s)
	}

	return r
}

// Held returns how many of the targets held.
func (r *Report) Held() int {
	held := 0
	for i := range r.Targets {
		if r.Targets[i].Met {
			held++
		}
	}

	return held
}

func rowOf(g *measure.Group, f *measure.Figure) Row {
	out := Row{
		Name: f.Row.Name, Set: string(f.Row.Set), About: f.Row.About, Unit: string(unitOf(f.Row)),
		Value: round(f.Median()), Spread: round(f.Spread()), Samples: len(f.Samples), RatioTo: f.Row.RatioTo,
		Control: f.Row.Control,
	}
	if f.Allocs >= 0 {
		out.Allocs, out.Bytes = new(round(f.Allocs)), new(round(f.Bytes))
	}
	if ratios, ok := g.Ratio(f.Row.Name, "", f.Row.RatioTo); ok {
		out.Ratio, out.RatioSpread = new(round(measure.Median(ratios))), new(round(measure.Spread(ratios)))
	}

	return out
}

func unitOf(r row.Row) row.Unit {
	if r.Unit == "" {
		return row.Nanoseconds
	}

	return r.Unit
}

func (r *Report) addTarget(g *measure.Group, f *measure.Figure, t row.Target) {
	samples := f.Samples
	if t.To != "" {
		var ok bool
		if samples, ok = g.Ratio(t.Row, t.Over, t.To); !ok {
			return
		}
	}
	value := measure.Median(samples)
	out := Target{
		Name: t.Name, About: t.About, Head: t.Headline, Row: t.Row, To: t.To, Over: t.Over, Value: round(value),
		Spread: round(measure.Spread(samples)), AtMost: t.AtMost, AtLeast: t.AtLeast, Met: true,
	}
	if t.AtMost > 0 && !(value <= t.AtMost) || t.AtLeast > 0 && !(value >= t.AtLeast) {
		out.Met = false
	}
	if t.Allocs >= 0 && f.Allocs >= 0 {
		out.Allocs, out.MaxOps = new(round(f.Allocs)), new(t.Allocs)
		// What the runtime allocates beside a sample is spread over its operations.
		if math.Round(f.Allocs) > t.Allocs {
			out.Met = false
		}
	}
	if !out.Met {
		out.Why = t.Why
	}
	r.Targets = append(r.Targets, out)
}

func (r *Report) addGrowth(in Input, s row.Series) {
	var points []growth.Point
	unit := row.Nanoseconds
	for i, g := range in.Groups {
		for _, f := range g.Figures {
			if f.Row.Series == s.Name && owns(in.Plans[i], f.Row.Name) {
				points = append(points, growth.Point{X: f.Row.X, Y: f.Median()})
				unit = unitOf(f.Row)
			}
		}
	}
	fit, err := growth.Of(points, r.worstNoise())
	if err != nil {
		return // too few of its rows were chosen
	}
	out := Growth{
		Name: s.Name, Quantity: s.Quantity, Claim: s.Claim, Unit: string(unit), Fit: fit.Kind.String(), Want: s.Want,
	}
	want, known := growth.Parse(s.Want)
	out.Met = known && fit.Kind.Within(want)
	for _, p := range points {
		out.Points = append(out.Points, Point{X: p.X, Value: round(p.Y)})
	}
	r.Growth = append(r.Growth, out)
}

func owns(p measure.Plan, name string) bool {
	return slices.Contains(p.Own, name)
}

// digits is how many a figure is written down with: more would be noise.
const digits = 4

func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v)))) // decimal digits

	return math.Round(v*unit) / unit
}

//go:fix inline

// Write renders the report as JSON.
func (r *Report) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")

	return enc.Encode(r)
}

// Read parses report.json.
func Read(data []byte) (Report, error) {
	var r Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return Report{}, fmt.Errorf("report.json: %w", err)
	}
	if dec.More() {
		return Report{}, errors.New("report.json: something stands after the report")
	}
	if r.Schema != Schema {
		return Report{}, errors.New("report.json: not of the schema " + Schema)
	}
	if len(r.Rows) == 0 {
		return Report{}, errors.New("report.json: no rows")
	}

	return r, nil
}
