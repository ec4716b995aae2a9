package measure

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// The bounds of [Options].
const (
	MaxRounds = 1000
	maxGrow   = 100 // a sample's operations grow by at most this factor at once
)

// Options of a run.
type Options struct {
	// Rounds is how many samples each row gives. Required, 1…1000.
	Rounds int
	// Sample is about how long one sample takes. Required, positive. A row whose
	// single operation takes longer is measured with one operation a sample.
	Sample time.Duration
	// SlowRounds is Rounds for rows that are Slow or take their own figure.
	// Default 0: Rounds.
	SlowRounds int
	// Progress hears the name of a group before it is measured. Default nil.
	Progress func(group string, rows int)
	// Now is the clock. Default nil: time.Now.
	Now func() time.Time
}

// Figure is what was measured of one row.
type Figure struct {
	Row     row.Row
	Samples []float64 // in the row's unit, in the order of the rounds
	Ops     int       // operations of one sample
	Allocs  float64   // per operation, median; negative: not counted
	Bytes   float64   // allocated per operation, median; negative: not counted
}

// Median returns the middle sample.
func (f *Figure) Median() float64 { return Median(f.Samples) }

// Spread returns the distance between the quartiles as a share of the median.
func (f *Figure) Spread() float64 { return Spread(f.Samples) }

// Group is what was measured together.
type Group struct {
	Name    string
	Figures []Figure
}

// Figure returns the figure of the row of this name in the group.
func (g *Group) Figure(name string) (*Figure, bool) {
	i := slices.IndexFunc(g.Figures, func(f Figure) bool { return f.Row.Name == name })
	if i < 0 {
		return nil, false
	}

	return &g.Figures[i], true
}

// Ratio returns (of − over) ÷ to within each round, over "" being nothing. It
// reports false if one of them is not in the group.
func (g *Group) Ratio(of, over, to string) ([]float64, bool) {
	a, okA := g.Figure(of)
	b, okB := g.Figure(to)
	if !okA || !okB {
		return nil, false
	}
	var less *Figure
	if over != "" {
		var ok bool
		if less, ok = g.Figure(over); !ok {
			return nil, false
		}
	}
	rounds := min(len(a.Samples), len(b.Samples))
	if less != nil {
		rounds = min(rounds, len(less.Samples))
	}
	ratios := make([]float64, 0, rounds)
	for i := range rounds {
		v := a.Samples[i]
		if less != nil {
			v -= less.Samples[i]
		}
		ratios = append(ratios, v/b.Samples[i])
	}

	return ratios, true
}

// RowError is a row that did not do its work.
type RowError struct {
	Row   string
	Stage string // "prepare", "run" or "measure"
	Cause error
}

// Error names the row and the stage, and the cause: rows are our own code.
func (e *RowError) Error() string { return fmt.Sprintf("row %s: %s: %v", e.Row, e.Stage, e.Cause) }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Cause }

// errNoFigure is a sample that is not a finite, positive number.
var errNoFigure = errors.New("the figure is not a positive number")

// Run measures rows together, as one group.
func Run(ctx context.Context, name string, rows []row.Row, opts Options) (Group, error) {
	if opts.Rounds < 1 || opts.Rounds > MaxRounds || opts.SlowRounds < 0 || opts.SlowRounds > MaxRounds {
		return Group{}, errors.New("rounds: 1…1000")
	}
	if opts.Sample <= 0 {
		return Group{}, errors.New("sample: positive")
	}
	if opts.SlowRounds == 0 {
		opts.SlowRounds = opts.Rounds
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Progress != nil {
		opts.Progress(name, len(rows))
	}
	g := Group{Name: name, Figures: make([]Figure, len(rows))}
	works := make([]*row.Work, len(rows))
	defer func() {
		for _, w := range works {
			w.Release()
		}
	}()
	for i, r := range rows {
		if err := ctx.Err(); err != nil {
			return Group{}, err
		}
		g.Figures[i] = Figure{Row: r, Allocs: -1, Bytes: -1}
		if r.Prepare == nil {
			continue
		}
		w, err := r.Prepare()
		if err == nil && (w == nil || w.Run == nil) {
			err = errors.New("nothing was prepared")
		}
		if err != nil {
			return Group{}, &RowError{Row: r.Name, Stage: "prepare", Cause: err}
		}
		works[i] = w
		if g.Figures[i].Ops, err = calibrate(ctx, w, &opts); err != nil {
			return Group{}, &RowError{Row: r.Name, Stage: "run", Cause: err}
		}
	}

	return g, rounds(ctx, &g, works, &opts)
}

// calibrate finds how many operations take about a sample's time. The first
// trials also warm up what the row needs.
func calibrate(ctx context.Context, w *row.Work, opts *Options) (int, error) {
	for n := 1; ; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begin := opts.Now()
		if err := w.Run(n); err != nil {
			return 0, err
		}
		took := opts.Now().Sub(begin)
		if took >= opts.Sample*4/5 { // near enough
			return n, nil
		}
		grow := maxGrow
		if took > 0 {
			grow = min(maxGrow, int(math.Ceil(float64(opts.Sample)/float64(took))))
		}
		if grow <= 1 || n > math.MaxInt32/grow {
			return n, nil
		}
		n *= grow
	}
}

type counted struct{ allocs, bytes []float64 }

func rounds(ctx context.Context, g *Group, works []*row.Work, opts *Options) error {
	counts := make([]counted, len(works))
	for round := range max(opts.Rounds, opts.SlowRounds) {
		for k := range works {
			i := (k + round) % len(works) // the order turns, so that no row always follows the same one
			f := &g.Figures[i]
			limit := opts.Rounds
			if f.Row.Slow || f.Row.Measure != nil {
				limit = opts.SlowRounds
			}
			if round >= limit {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := sample(f, works[i], &counts[i], opts.Now); err != nil {
				return err
			}
		}
	}
	for i := range g.Figures {
		if c := counts[i]; len(c.allocs) > 0 {
			g.Figures[i].Allocs, g.Figures[i].Bytes = Median(c.allocs), Median(c.bytes)
		}
	}

	return nil
}

func sample(f *Figure, w *row.Work, c *counted, now func() time.Time) error {
	if f.Row.Measure != nil {
		v, err := f.Row.Measure()
		if err == nil && !positive(v) {
			err = errNoFigure
		}
		if err != nil {
			return &RowError{Row: f.Row.Name, Stage: "measure", Cause: err}
		}
		f.Samples = append(f.Samples, v)

		return nil
	}
	var before, after runtime.MemStats
	runtime.GC() // so that a sample does not pay for the garbage of the one before
	runtime.ReadMemStats(&before)
	begin := now()
	err := w.Run(f.Ops)
	took := now().Sub(begin)
	runtime.ReadMemStats(&after)
	ns := float64(took) / float64(f.Ops)
	if err == nil && !positive(ns) {
		err = errNoFigure
	}
	if err != nil {
		return &RowError{Row: f.Row.Name, Stage: "run", Cause: err}
	}
	f.Samples = append(f.Samples, ns)
	c.allocs = append(c.allocs, float64(after.Mallocs-before.Mallocs)/float64(f.Ops))
	c.bytes = append(c.bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(f.Ops))

	return nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
