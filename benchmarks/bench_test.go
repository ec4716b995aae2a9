package benchmarks_test

import (
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
)

// BenchmarkRow is every row of the catalogue, for whoever likes go test's tools.
func BenchmarkRow(b *testing.B) {
	for _, r := range catalog.Rows() {
		b.Run(r.Name, func(b *testing.B) {
			if r.Measure != nil {
				var figure float64
				for range b.N {
					var err error
					if figure, err = r.Measure(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(figure, string(r.Unit)+"/piece")

				return
			}
			w, err := r.Prepare()
			if err != nil {
				b.Fatal(err)
			}
			defer w.Release()
			b.ReportAllocs()
			b.ResetTimer()
			if err := w.Run(b.N); err != nil {
				b.Fatal(err)
			}
		})
	}
}
