package benchmarks_test

import (
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// BenchmarkRow is every row of the catalogue, for whoever likes go test's tools.
func BenchmarkRow(b *testing.B) {
	for _, r := range catalog.Rows() {
		b.Run(r.Name, func(b *testing.B) {
			if r.Measure != nil {
				figure, err := r.Measure() // once: it repeats by itself what has to be repeated
				if err != nil {
					b.Fatal(err)
				}
				unit := r.Unit
				if unit == "" {
					unit = row.Nanoseconds
				}
				b.ReportMetric(figure, string(unit)+"/piece")
				b.ReportMetric(0, "ns/op")

				return
			}
			w, err := r.Prepare()
			if err != nil {
				b.Fatal(err)
			}
			defer w.Release()
			b.ReportAllocs()
			b.ResetTimer()
			err = w.Run(b.N)
			b.StopTimer() // what Release does is not the row's
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
