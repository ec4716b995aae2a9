package catalog_test

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
	"github.com/interlock-go/interlock/benchmarks/internal/growth"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

func TestRows(t *testing.T) {
	t.Parallel()
	rows := catalog.Rows()
	if err := row.Check(rows); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(rows, func(r row.Row) bool { return r.Control }) {
		t.Error("no row says how noisy the machine is")
	}
	for _, set := range []row.Set{row.Micro, row.Peers, row.Scale} {
		if !slices.ContainsFunc(rows, func(r row.Row) bool { return r.Set == set }) {
			t.Errorf("no rows of %s", set)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	exists := make(map[string]bool)
	for _, r := range catalog.Rows() {
		exists[r.Name] = true
	}
	seen := make(map[string]bool)
	for _, target := range catalog.Targets() {
		if seen[target.Name] {
			t.Errorf("%s: twice", target.Name)
		}
		seen[target.Name] = true
		for _, name := range []string{target.Row, target.To, target.Over} {
			if name != "" && !exists[name] {
				t.Errorf("%s: no row %s", target.Name, name)
			}
		}
		if target.Row == "" || (target.AtMost == 0) == (target.AtLeast == 0) || target.About == "" {
			t.Errorf("%s: claims nothing", target.Name)
		}
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	points := make(map[string]map[float64]bool)
	for _, r := range catalog.Rows() {
		if r.Series == "" {
			continue
		}
		if points[r.Series] == nil {
			points[r.Series] = make(map[float64]bool)
		}
		points[r.Series][r.X] = true
	}
	for _, s := range catalog.Series() {
		if len(points[s.Name]) < 3 {
			t.Errorf("%s: %d points", s.Name, len(points[s.Name]))
		}
		if want, ok := growth.Parse(s.Want); !ok || want == growth.Unclear || s.Claim == "" || s.Quantity == "" {
			t.Errorf("%s: claims nothing", s.Name)
		}
		delete(points, s.Name)
	}
	for name := range points {
		t.Errorf("%s: points without a claim", name)
	}
}

// Every row that is quickly made ready does its work, checked by itself, more
// than once.
func TestWork(t *testing.T) {
	t.Parallel()
	for _, r := range catalog.Rows() {
		if r.Slow || r.Set == row.Macro || r.Unit == row.Bytes { // the macro set has tests of its own
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			if r.Measure != nil {
				if figure, err := r.Measure(); err != nil || figure <= 0 {
					t.Errorf("%v, %v", figure, err)
				}

				return
			}
			w, err := r.Prepare()
			if err != nil {
				t.Fatal(err)
			}
			defer w.Release()
			for _, n := range []int{0, 1, 40} {
				if err := w.Run(n); err != nil {
					t.Errorf("%d operations: %v", n, err)
				}
			}
		})
	}
}

// A live run needs memory, and not more than the claim says.
//
//nolint:paralleltest // the heap is everybody's
func TestMemory(t *testing.T) {
	for _, r := range catalog.Rows() {
		if r.Set != row.Scale || r.Unit != row.Bytes || r.Slow {
			continue
		}
		if figure, err := r.Measure(); err != nil || figure < 100 || figure > 1<<30/100_000 {
			t.Errorf("%s: %v, %v", r.Name, figure, err)
		}
	}
}
