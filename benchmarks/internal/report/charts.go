package report

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one picture of a report.
type Chart struct {
	File  string // its name, beside the report
	Title string
	SVG   []byte
}

const (
	chartWidth = 9 * vg.Inch
	barHeight  = 0.24 * vg.Inch
	barSpace   = 1.1 * vg.Inch // title and axis
	growthHigh = 4.5 * vg.Inch
	maxBars    = 100
)

// Charts draws, for each set, how rows compare with what they are compared with,
// and one picture of how costs grow.
func Charts(r *Report) ([]Chart, error) {
	var charts []Chart
	for _, set := range r.sets() {
		c, err := r.ratioChart(set)
		if err != nil {
			return nil, err
		}
		charts = append(charts, c...)
	}
	if len(r.Growth) > 0 {
		c, err := r.growthChart()
		if err != nil {
			return nil, err
		}
		charts = append(charts, c...)
	}

	return charts, nil
}

func (r *Report) sets() []string {
	var sets []string
	for i := range r.Rows {
		if set := r.Rows[i].Set; !slices.Contains(sets, set) {
			sets = append(sets, set)
		}
	}

	return sets
}

// ratioChart draws the ratios of a set as bars, the first row on top, on a
// logarithmic axis: a ratio of a hundred and one of two have to be seen in one
// picture. There is no chart of a set without ratios.
func (r *Report) ratioChart(set string) ([]Chart, error) {
	var values plotter.XYs
	var names []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Set == set && row.Ratio != nil && *row.Ratio > 0 && len(names) < maxBars {
			values = append(values, plotter.XY{X: *row.Ratio})
			names = append(names, row.Name[len(set)+1:]+"  ÷  "+strings.TrimPrefix(row.RatioTo, set+"/"))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Reverse(names)
	slices.Reverse(values)
	low, high := 1.0, 1.0
	for i := range values {
		values[i].Y = float64(i)
		low, high = min(low, values[i].X), max(high, values[i].X)
	}
	p := newPlot()
	p.Title.Text = set + ": ratio to the row that it is compared with"
	p.X.Label.Text = "ratio, logarithmic"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ratioTicks{}
	p.X.Min, p.X.Max = low/1.3, high*math.Pow(high/low, 0.12)*1.3 // air, and room for the last figure
	p.Y.Min, p.Y.Max = -0.7, float64(len(names))-0.3
	p.NominalY(names...)
	p.Add(bars{values: values, from: 1})
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return nil, fmt.Errorf("chart of %s: %w", set, err)
	}
	p.Add(one)

	return render(p, set+".svg", p.Title.Text, barSpace+barHeight*vg.Length(len(names)))
}

// growthChart draws every series as a share of its first point.
func (r *Report) growthChart() ([]Chart, error) {
	p := newPlot()
	p.Title.Text = "Cost against a quantity that grows, as a multiple of its first point"
	p.X.Label.Text, p.Y.Label.Text = "quantity, logarithmic", "multiple, logarithmic"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ratioTicks{}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ratioTicks{}
	p.Legend.Top, p.Legend.Left = true, true
	for i, g := range r.Growth {
		var points plotter.XYs
		for _, pt := range g.Points {
			if pt.X > 0 && pt.Value > 0 && g.Points[0].Value > 0 {
				points = append(points, plotter.XY{X: pt.X, Y: pt.Value / g.Points[0].Value})
			}
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, fmt.Errorf("chart of growth: %w", err)
		}
		line.Color, dots.Color = plotutil.Color(i), plotutil.Color(i)
		dots.Shape = draw.CircleGlyph{}
		p.Add(line, dots)
		p.Legend.Add(g.Name+" ("+g.Fit+")", line)
	}
	if !(p.Y.Min > 0 && p.Y.Min <= p.Y.Max) {
		return nil, errors.New("chart of growth: no points")
	}
	p.Y.Min, p.Y.Max = p.Y.Min/2, p.Y.Max*4 // air for the legend

	return render(p, "growth.svg", p.Title.Text, growthHigh)
}

// newPlot sets a face without serifs, whose widths are the same wherever the
// picture is shown, and sizes that leave room for long names.
func newPlot() *plot.Plot {
	p := plot.New()
	for _, style := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		style.Font.Variant, style.Font.Size = "Sans", vg.Points(9)
	}
	p.Title.TextStyle.Font.Size = vg.Points(12)
	p.Title.Padding = vg.Points(8)

	return p
}

func render(p *plot.Plot, file, title string, height vg.Length) ([]Chart, error) {
	p.BackgroundColor = color.White
	canvas := vgsvg.New(chartWidth, height)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("chart %s: %w", file, err)
	}

	// A name alone would fall back to serifs where the face is not installed.
	svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))

	return []Chart{{File: file, Title: title, SVG: svg}}, nil
}

// bars are horizontal bars from one value to another on any scale.
type bars struct {
	values plotter.XYs
	from   float64
}

var _ plot.Plotter = bars{}

// Plot draws the bars: longer than the row that is compared with in one colour,
// shorter in another, with the figure at its end.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	const half = 0.32
	x, y := p.Transforms(&c)
	label := p.X.Tick.Label
	for _, v := range b.values {
		fill := color.RGBA{R: 0x3b, G: 0x6e, B: 0xa8, A: 0xff}
		if v.X < b.from {
			fill = color.RGBA{R: 0x3a, G: 0x8f, B: 0x5c, A: 0xff}
		}
		left, right := x(min(v.X, b.from)), x(max(v.X, b.from))
		c.FillPolygon(fill, []vg.Point{
			{X: left, Y: y(v.Y - half)}, {X: right, Y: y(v.Y - half)}, {X: right, Y: y(v.Y + half)}, {X: left, Y: y(v.Y + half)},
		})
		label.XAlign, label.YAlign = draw.XLeft, draw.YCenter
		at := vg.Point{X: right + vg.Points(3), Y: y(v.Y)} // a gap
		c.FillText(label, at, number(v.X))
	}
}

// ratioTicks labels 1, 2, 5 of each power of ten.
type ratioTicks struct{}

// Ticks returns the ticks between the bounds.
func (ratioTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := 1e-6; power <= high && power < 1e12; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * power; v >= low && v <= high {
				label := ""
				if m == 1 || high/low < 200 { // all fit
					label = strconv.FormatFloat(v, 'f', -1, 64)
				}
				ticks = append(ticks, plot.Tick{Value: v, Label: label})
			}
		}
	}

	return ticks
}
