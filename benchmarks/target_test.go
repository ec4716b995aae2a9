package benchmarks_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// turn is how long a row runs before the other one has its turn.
const turn = 2 * time.Millisecond

// BenchmarkTarget is every claim about two rows: they take turns, and the ratio
// is of the medians. A loop of it is one turn of each.
func BenchmarkTarget(b *testing.B) {
	rows := make(map[string]row.Row)
	for _, r := range catalog.Rows() {
		rows[r.Name] = r
	}
	for _, t := range catalog.Targets() {
		b.Run(t.Name, func(b *testing.B) {
			var all []*taken
			for _, name := range []string{t.Row, t.To, t.Over} {
				if name != "" {
					all = append(all, take(b, rows[name]))
				}
			}
			for b.Loop() {
				for _, one := range all {
					one.turn(b)
				}
			}
			figure := all[0].median()
			if t.Over != "" {
				figure -= all[len(all)-1].median()
			}
			b.ReportMetric(figure, "figure")
			if t.To != "" {
				b.ReportMetric(figure/all[1].median(), "ratio")
			}
			b.ReportMetric(t.AtMost, "at-most")
			b.ReportMetric(t.AtLeast, "at-least")
			b.ReportMetric(all[0].allocs(), "allocs")
			b.ReportMetric(t.Allocs, "allocs-at-most")
			b.ReportMetric(0, "ns/op") // of both together
		})
	}
}

// taken is a row that has its turns.
type taken struct {
	row     row.Row
	work    *row.Work
	n       int // operations of a turn
	figures []float64
	mallocs uint64
	did     int
}

func take(b *testing.B, r row.Row) *taken {
	b.Helper()
	t := &taken{row: r}
	if r.Measure != nil {
		return t
	}
	var err error
	if t.work, err = r.Prepare(); err != nil {
		b.Fatal(r.Name, err)
	}
	b.Cleanup(t.work.Release)
	for t.n = 1; ; t.n *= 2 {
		from := time.Now()
		if err := t.work.Run(t.n); err != nil {
			b.Fatal(r.Name, err)
		}
		if time.Since(from) >= turn/2 {
			return t
		}
	}
}

func (t *taken) turn(b *testing.B) {
	b.Helper()
	if t.row.Measure != nil {
		figure, err := t.row.Measure()
		if err != nil {
			b.Fatal(t.row.Name, err)
		}
		t.figures = append(t.figures, figure)

		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := time.Now()
	err := t.work.Run(t.n)
	took := time.Since(from)
	runtime.ReadMemStats(&after)
	if err != nil {
		b.Fatal(t.row.Name, err)
	}
	t.figures = append(t.figures, float64(took.Nanoseconds())/float64(t.n))
	t.mallocs += after.Mallocs - before.Mallocs
	t.did += t.n
}

func (t *taken) median() float64 {
	slices.Sort(t.figures)

	return t.figures[len(t.figures)/2]
}

func (t *taken) allocs() float64 {
	if t.did == 0 {
		return 0
	}

	return float64(t.mallocs / uint64(t.did))
}
