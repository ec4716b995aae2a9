package measure_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/interlock-go/interlock/benchmarks/internal/measure"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// machine is a clock that work moves, and a speed that the test changes.
type machine struct {
	now   time.Time
	slow  float64 // how many times slower than usual
	ran   []string
	close []string
}

func (m *machine) clock() time.Time { return m.now }

func (m *machine) row(name string, cost time.Duration, change func(*row.Row)) row.Row {
	r := row.Row{Name: name, Set: row.Micro, About: "moves the clock", Prepare: func() (*row.Work, error) {
		return &row.Work{
			Run: func(n int) error {
				m.ran = append(m.ran, name)
				m.now = m.now.Add(time.Duration(float64(cost) * m.slow * float64(n)))

				return nil
			},
			Close: func() { m.close = append(m.close, name) },
		}, nil
	}}
	if change != nil {
		change(&r)
	}

	return r
}

func options(m *machine) measure.Options {
	return measure.Options{Rounds: 4, Sample: time.Millisecond, Now: m.clock}
}

func TestRunMeasuresByTheClock(t *testing.T) {
	t.Parallel()
	m := &machine{slow: 1}
	rows := []row.Row{m.row("micro/a", 300, nil), m.row("micro/b", 100, nil)}
	g, err := measure.Run(t.Context(), "micro", rows, options(m))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"micro/a": 300, "micro/b": 100} {
		f, ok := g.Figure(name)
		if !ok || f.Median() != want || f.Spread() != 0 || len(f.Samples) != 4 {
			t.Errorf("%s: %v %+v", name, ok, f)
		}
		if took := float64(f.Ops) * want; took < 0.8e6 || took > 1.3e6 {
			t.Errorf("%s: a sample takes %v ns", name, took)
		}
	}
	if diff := cmp.Diff([]string{"micro/a", "micro/b"}, m.close); diff != "" {
		t.Errorf("closed: %s", diff)
	}
	ratios, ok := g.Ratio("micro/a", "", "micro/b")
	if !ok || len(ratios) != 4 || measure.Median(ratios) != 3 {
		t.Errorf("ratios %v", ratios)
	}
	if over, _ := g.Ratio("micro/a", "micro/b", "micro/b"); measure.Median(over) != 2 {
		t.Errorf("what a adds to b: %v", over)
	}
	if _, ok := g.Ratio("micro/a", "", "micro/c"); ok {
		t.Error("a ratio to a row that was not measured")
	}
}

// The order turns, so that in each round both rows see the same machine: a ratio
// survives a machine that gets four times slower half way.
func TestRatioSurvivesASlowMachine(t *testing.T) {
	t.Parallel()
	m := &machine{slow: 1}
	a := m.row("micro/a", 300, nil)
	b := m.row("micro/b", 100, nil)
	g, err := measure.Run(t.Context(), "micro", []row.Row{a, b}, options(m))
	if err != nil {
		t.Fatal(err)
	}
	last := m.ran[len(m.ran)-8:]
	want := []string{"micro/a", "micro/b", "micro/b", "micro/a", "micro/a", "micro/b", "micro/b", "micro/a"}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("order of the rounds: %s", diff)
	}
	f, _ := g.Figure("micro/a")
	h, _ := g.Figure("micro/b")
	for i := range 2 { // as if the machine had been slow in the first two rounds
		f.Samples[i] *= 4
		h.Samples[i] *= 4
	}
	ratios, _ := g.Ratio("micro/a", "", "micro/b")
	if measure.Spread(ratios) != 0 || measure.Median(ratios) != 3 || f.Spread() == 0 {
		t.Errorf("ratios %v, spread of a %v", ratios, f.Spread())
	}
}

func TestSlowRowsAndOwnFigures(t *testing.T) {
	t.Parallel()
	m := &machine{slow: 1}
	opts := options(m)
	opts.SlowRounds = 2
	rows := []row.Row{
		m.row("micro/long", 5*time.Millisecond, func(r *row.Row) { r.Slow = true }),
		m.row("micro/own", 0, func(r *row.Row) {
			r.Prepare, r.Unit = nil, row.Bytes
			r.Measure = func() (float64, error) { return 1024, nil }
		}),
	}
	g, err := measure.Run(t.Context(), "micro", rows, opts)
	if err != nil {
		t.Fatal(err)
	}
	long, _ := g.Figure("micro/long")
	own, _ := g.Figure("micro/own")
	if len(long.Samples) != 2 || long.Ops != 1 || len(own.Samples) != 2 || own.Median() != 1024 || own.Allocs >= 0 {
		t.Errorf("%+v %+v", long, own)
	}
}

func TestRowsThatFail(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		change func(*row.Row)
		stage  string
	}{
		"cannot be prepared": {func(r *row.Row) {
			r.Prepare = func() (*row.Work, error) { return nil, broken }
		}, "prepare"},
		"prepares nothing": {func(r *row.Row) {
			r.Prepare = func() (*row.Work, error) { return nil, nil }
		}, "prepare"},
		"does not work": {func(r *row.Row) {
			r.Prepare = func() (*row.Work, error) {
				return &row.Work{Run: func(int) error { return broken }}, nil
			}
		}, "run"},
		"takes no time": {func(r *row.Row) {
			r.Prepare = func() (*row.Work, error) { return &row.Work{Run: func(int) error { return nil }}, nil }
		}, "run"},
		"has no figure": {func(r *row.Row) {
			r.Prepare, r.Measure = nil, func() (float64, error) { return math.NaN(), nil }
		}, "measure"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &machine{slow: 1}
			rows := []row.Row{m.row("micro/first", 100, nil), m.row("micro/bad", 100, tc.change)}
			_, err := measure.Run(t.Context(), "micro", rows, options(m))
			bad, ok := errors.AsType[*measure.RowError](err)
			if !ok || bad.Row != "micro/bad" || bad.Stage != tc.stage {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"micro/first"}, m.close, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what was prepared is not released: %s", diff)
			}
		})
	}
}

func TestRunStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := &machine{slow: 1}
	rows := []row.Row{m.row("micro/a", 100, func(r *row.Row) {
		prepare := r.Prepare
		r.Prepare = func() (*row.Work, error) { cancel(); return prepare() }
	})}
	if _, err := measure.Run(ctx, "micro", rows, options(m)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(m.ran) > 0 || len(m.close) != 1 {
		t.Errorf("ran %v, closed %v", m.ran, m.close)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]measure.Options{
		"no rounds":            {Sample: time.Millisecond},
		"too many rounds":      {Rounds: measure.MaxRounds + 1, Sample: time.Millisecond},
		"negative slow rounds": {Rounds: 1, SlowRounds: -1, Sample: time.Millisecond},
		"no sample":            {Rounds: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := measure.Run(t.Context(), "micro", nil, opts); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	t.Parallel()
	var keep [][]byte
	rows := []row.Row{{Name: "micro/allocates", Set: row.Micro, About: "two slices", Prepare: func() (*row.Work, error) {
		return &row.Work{Run: row.Loop(func() error {
			keep = append(keep[:0], make([]byte, 64), make([]byte, 64))

			return nil
		})}, nil
	}}}
	g, err := measure.Run(t.Context(), "micro", rows, measure.Options{Rounds: 3, Sample: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := g.Figures[0]
	if f.Allocs < 2 || f.Bytes < 128 { // other tests of the package may allocate beside it
		t.Errorf("%v allocations of %v bytes", f.Allocs, f.Bytes)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	all := []row.Row{
		{Name: "micro/x/a", Set: row.Micro, RatioTo: "micro/x/b"},
		{Name: "micro/x/b", Set: row.Micro},
		{Name: "micro/y", Set: row.Micro},
		{Name: "peers/z/c", Set: row.Peers, RatioTo: "micro/x/a"},
		{Name: "scale/d", Set: row.Scale, Series: "runs", X: 1},
		{Name: "scale/e", Set: row.Scale, Series: "runs", X: 2},
		{Name: "scale/f", Set: row.Scale, Series: "receipts", X: 1},
	}
	targets := []row.Target{{Name: "t", Row: "micro/x/a", To: "peers/z/c", Over: "micro/x/b"}}
	got := map[string][][]string{}
	for _, p := range measure.Groups(all, all, targets) {
		var rows []string
		for _, r := range p.Rows {
			rows = append(rows, r.Name)
		}
		got[p.Name] = [][]string{p.Own, rows}
	}
	want := map[string][][]string{
		"micro/x":        {{"micro/x/a", "micro/x/b"}, {"micro/x/a", "micro/x/b", "peers/z/c"}},
		"micro/y":        {{"micro/y"}, {"micro/y"}},
		"peers/z":        {{"peers/z/c"}, {"peers/z/c", "micro/x/a"}},
		"scale/runs":     {{"scale/d", "scale/e"}, {"scale/d", "scale/e"}},
		"scale/receipts": {{"scale/f"}, {"scale/f"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values         []float64
		median, spread float64
	}{
		"odd":      {[]float64{3, 1, 2}, 2, 0.5},
		"even":     {[]float64{4, 1, 3, 2}, 2.5, 0.6},
		"one":      {[]float64{7}, 7, 0},
		"none":     {nil, math.NaN(), 0},
		"constant": {[]float64{5, 5, 5}, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := measure.Median(tc.values); got != tc.median && !(math.IsNaN(got) && math.IsNaN(tc.median)) {
				t.Errorf("median %v", got)
			}
			if got := measure.Spread(tc.values); math.Abs(got-tc.spread) > 1e-12 {
				t.Errorf("spread %v", got)
			}
		})
	}
	if !math.IsNaN(measure.Quantile([]float64{1}, 2)) || !math.IsNaN(measure.Quantile([]float64{1}, math.NaN())) {
		t.Error("a quantile outside of [0, 1]")
	}
}
