package benchmarks_test

import (
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
	"github.com/interlock-go/interlock/benchmarks/internal/growth"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// BenchmarkSeries is every claim about growth: the rows of a series take turns,
// and the growth of their medians is printed with the claim. A loop of it is one
// turn of each row; rows that take their figure themselves have one turn only.
func BenchmarkSeries(b *testing.B) {
	rows := catalog.Rows()
	for _, s := range catalog.Series() {
		b.Run(s.Name, func(b *testing.B) {
			var all []*taken
			for _, r := range rows {
				if r.Series == s.Name {
					all = append(all, take(b, r))
				}
			}
			for b.Loop() {
				for _, one := range all {
					if one.row.Measure == nil || len(one.figures) == 0 {
						one.turn(b)
					}
				}
			}
			b.ReportMetric(0, "ns/op") // of all together
			report(b, s, all)
		})
	}
}

func report(b *testing.B, s row.Series, all []*taken) {
	b.Helper()
	points := make([]growth.Point, len(all))
	for i, one := range all {
		points[i] = growth.Point{X: one.row.X, Y: one.median()}
		b.Logf("%8.0f %s: %.0f", one.row.X, s.Quantity, points[i].Y)
	}
	fit, err := growth.Of(points, 0)
	if err != nil {
		b.Fatal(err)
	}
	want, _ := growth.Parse(s.Want)
	holds := "holds"
	if !fit.Kind.Within(want) {
		holds = "does not hold here"
	}
	b.Logf("%v\nclaim: %s (%s): %s", fit, s.Claim, s.Want, holds)
}
