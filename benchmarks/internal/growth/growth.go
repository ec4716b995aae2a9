// Package growth says how a cost grows with a quantity: not at all, with its
// logarithm, with itself, or faster.
//
// # Rule
//
// Points are medians: (x, y) with x and y above 0, at least three different x.
//
//  1. Flat: of the best straight line over log x, the fitted values at both ends
//     differ by less than the noise, as a share of the smaller one; or the line
//     falls. Noise is at least [LeastNoise], and the caller's measure of it (the
//     spread of a control row) if that is more.
//  2. Else, for the forms a + b·log₂ x, a + b·x and a + b·x², a and b by least
//     squares of the *relative* errors (each point weighs 1/y²), so that the
//     small end counts as much as the large one.
//  3. The slowest form whose root mean square relative error is at most half of
//     the noise, and else the form that fits best. Between two that fit, the
//     slower is the simpler word; a claim of ours is an upper bound, so a form
//     that grows faster has to fit clearly better (by a factor of two) to win.
//  4. If the form that was chosen (or the line of 1) is off by more than twice
//     the noise, the growth is unclear: nothing is claimed from such points.
package growth

import (
	"errors"
	"fmt"
	"math"
)

// LeastNoise is the noise that is always reckoned with: medians of one machine
// differ by as much from hour to hour.
const LeastNoise = 0.25

// Kind is a form of growth. The zero value is Unclear.
type Kind uint8

// The kinds, from the slowest growth on.
const (
	// Unclear points fit no form.
	Unclear Kind = iota
	// Flat does not grow beyond noise.
	Flat
	// Logarithmic grows as log x.
	Logarithmic
	// Linear grows as x.
	Linear
	// Faster grows as x² or more.
	Faster
)

// String returns the kind's word.
func (k Kind) String() string {
	return [...]string{"unclear", "flat", "logarithmic", "linear", "faster than linear"}[k]
}

// Parse returns the kind of a word.
func Parse(word string) (Kind, bool) {
	for k := Unclear; k <= Faster; k++ {
		if k.String() == word {
			return k, true
		}
	}

	return Unclear, false
}

// Within reports whether growth k is at most want: what a claim holds against.
// Unclear is within nothing.
func (k Kind) Within(want Kind) bool { return k != Unclear && k <= want }

// Point is a median of one row.
type Point struct{ X, Y float64 }

// Fit is how points grow.
type Fit struct {
	Kind Kind
	// A and B are of the form that was chosen: A + B·f(x). B is 0 if it is flat.
	A, B float64
	// Rise is by how much the cost grows from the smallest to the largest x, as a
	// share: 1 is twice.
	Rise float64
	// Error is the root mean square relative error of the form.
	Error float64
	// Noise is what was reckoned with.
	Noise float64
	// From and To are the smallest and the largest x.
	From, To float64
}

// ErrPoints is what Of returns for points that nothing can be said about.
var ErrPoints = errors.New("growth: needs three different x, and x and y above 0")

// Of fits points. noise is the spread of the machine as a share of the median,
// 0 if it is not known.
func Of(points []Point, noise float64) (Fit, error) {
	fit := Fit{Noise: max(noise, LeastNoise), From: math.Inf(1)}
	seen := make(map[float64]bool, len(points))
	for _, p := range points {
		if !(p.X > 0 && p.Y > 0) || math.IsInf(p.X, 0) || math.IsInf(p.Y, 0) { // so that NaN is refused
			return Fit{}, ErrPoints
		}
		seen[p.X] = true
		fit.From, fit.To = min(fit.From, p.X), max(fit.To, p.X)
	}
	if len(seen) < leastPoints {
		return Fit{}, ErrPoints
	}
	forms := [...]form{
		{kind: Logarithmic, of: math.Log2},
		{kind: Linear, of: func(x float64) float64 { return x }},
		{kind: Faster, of: func(x float64) float64 { return x * x }},
	}
	for i := range forms {
		forms[i].solve(points)
	}
	if line := &forms[0]; line.rise(fit.From, fit.To) < fit.Noise {
		return fit.flat(points, line), nil
	}
	best := &forms[0]
	for i := range forms[1:] {
		if f := &forms[i+1]; f.b > 0 && best.err > fit.Noise/2 && f.err < best.err {
			best = f
		}
	}
	for i := range forms { // a slower form that is nearly as good
		if f := &forms[i]; f.kind < best.kind && f.err < clearly*best.err && f.b > 0 {
			best = f

			break
		}
	}
	fit.Kind, fit.A, fit.B, fit.Error = best.kind, best.a, best.b, best.err
	fit.Rise = best.rise(fit.From, fit.To)
	if best.err > 2*fit.Noise {
		fit.Kind = Unclear
	}

	return fit, nil
}

const (
	leastPoints = 3
	// clearly is by which factor a faster form has to fit better than a slower one.
	clearly = 2
)

// flat is the constant that fits best, unless the line that says so is far off.
func (fit Fit) flat(points []Point, line *form) Fit {
	f := form{kind: Flat, of: func(float64) float64 { return 0 }}
	f.solve(points)
	fit.Kind, fit.A, fit.Error, fit.Rise = Flat, f.a, f.err, line.rise(fit.From, fit.To)
	if line.err > 2*fit.Noise {
		fit.Kind, fit.Error = Unclear, line.err
	}

	return fit
}

// form is a + b·of(x).
type form struct {
	kind      Kind
	of        func(float64) float64
	a, b, err float64
}

// solve finds a and b by weighted least squares, and the error that is left.
func (f *form) solve(points []Point) {
	var w, wx, wy, wxx, wxy float64
	for _, p := range points {
		weight, x := 1/(p.Y*p.Y), f.of(p.X)
		w += weight
		wx += weight * x
		wy += weight * p.Y
		wxx += weight * x * x
		wxy += weight * x * p.Y
	}
	if d := w*wxx - wx*wx; d > 0 {
		f.b = (w*wxy - wx*wy) / d
	}
	f.a = (wy - f.b*wx) / w
	for _, p := range points {
		off := (f.a + f.b*f.of(p.X) - p.Y) / p.Y
		f.err += off * off
	}
	f.err = math.Sqrt(f.err / float64(len(points)))
}

// rise is the growth between two x, as a share of the smaller value. A fitted
// value that is not above 0 means growth without bound.
func (f *form) rise(from, to float64) float64 {
	low, high := f.a+f.b*f.of(from), f.a+f.b*f.of(to)
	switch {
	case f.b <= 0:
		return 0
	case low <= 0:
		return math.Inf(1)
	default:
		return high/low - 1
	}
}

// String says it in a line, without the unit.
func (fit Fit) String() string {
	span := fmt.Sprintf("over %g…%g", fit.From, fit.To)
	switch fit.Kind {
	case Flat:
		return fmt.Sprintf("flat %s: %.3g, rise %.0f %% of a noise of %.0f %%", span, fit.A, 100*fit.Rise, 100*fit.Noise)
	case Logarithmic:
		return fmt.Sprintf("logarithmic %s: %.3g + %.3g log2 x, off by %.0f %%", span, fit.A, fit.B, 100*fit.Error)
	case Linear:
		return fmt.Sprintf("linear %s: %.3g + %.3g x, off by %.0f %%", span, fit.A, fit.B, 100*fit.Error)
	case Faster:
		return fmt.Sprintf("faster than linear %s: %.3g + %.3g x^2, off by %.0f %%", span, fit.A, fit.B, 100*fit.Error)
	default:
		return fmt.Sprintf("unclear %s: the best form is off by %.0f %%", span, 100*fit.Error)
	}
}
