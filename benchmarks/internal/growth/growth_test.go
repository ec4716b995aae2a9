package growth_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/interlock-go/interlock/benchmarks/internal/growth"
)

// decades are the x of most series.
var decades = []float64{10, 100, 1_000, 10_000, 100_000}

func series(xs []float64, y func(x float64) float64) []growth.Point {
	points := make([]growth.Point, len(xs))
	for i, x := range xs {
		points[i] = growth.Point{X: x, Y: y(x)}
	}

	return points
}

func TestOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		xs    []float64
		y     func(x float64) float64
		noise float64
		want  growth.Kind
	}{
		"constant":               {decades, func(float64) float64 { return 7000 }, 0, growth.Flat},
		"falling":                {decades, func(x float64) float64 { return 7000 / math.Log2(x) }, 0, growth.Flat},
		"a fifth more":           {decades, func(x float64) float64 { return 7000 * (1 + 0.2*math.Log10(x)/5) }, 0, growth.Flat},
		"one outlier in ten":     {decades, func(x float64) float64 { return map[bool]float64{true: 7700, false: 7000}[x == 1000] }, 0, growth.Flat},
		"logarithm":              {decades, func(x float64) float64 { return 100 + 50*math.Log2(x) }, 0, growth.Logarithmic},
		"logarithm from nothing": {decades, math.Log2, 0, growth.Logarithmic},
		"line":                   {decades, func(x float64) float64 { return 3 * x }, 0, growth.Linear},
		"line with a base":       {decades, func(x float64) float64 { return 2800 + 5*x }, 0, growth.Linear},
		"late line":              {decades, func(x float64) float64 { return 1000 + 0.1*x }, 0, growth.Linear},
		"x log x is a line":      {decades, func(x float64) float64 { return x * (20 + math.Log2(x)) }, 0, growth.Linear},
		"square":                 {decades, func(x float64) float64 { return x * x }, 0, growth.Faster},
		"square with a base":     {decades, func(x float64) float64 { return 1e6 + x*x }, 0, growth.Faster},
		"doubling, quiet":        {decades, func(x float64) float64 { return 1000 * (1 + math.Log10(x)/5) }, 0, growth.Logarithmic},
		"doubling, noisy":        {decades, func(x float64) float64 { return 1000 * (1 + math.Log10(x)/5) }, 1.5, growth.Flat},
		"three points":           {[]float64{10, 1_000, 100_000}, func(x float64) float64 { return 10 + x }, 0, growth.Linear},
		"up and down": {decades, func(x float64) float64 {
			return map[bool]float64{true: 9000, false: 100}[math.Mod(math.Log10(x), 2) == 1]
		}, 0, growth.Unclear},
		"jumps": {decades, func(x float64) float64 { return map[bool]float64{true: x, false: 1}[math.Mod(math.Log10(x), 2) == 1] }, 0, growth.Unclear},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fit, err := growth.Of(series(tc.xs, tc.y), tc.noise)
			if err != nil || fit.Kind != tc.want {
				t.Errorf("%v, %v", fit, err)
			}
		})
	}
}

// Forms are found again under noise that is well below what is reckoned with,
// and so are their factors.
func TestOfNoisy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		y    func(x float64) float64
		want growth.Kind
		b    float64
	}{
		"flat":        {func(float64) float64 { return 7000 }, growth.Flat, 0},
		"logarithmic": {func(x float64) float64 { return 100 + 50*math.Log2(x) }, growth.Logarithmic, 50},
		"linear":      {func(x float64) float64 { return 2800 + 5*x }, growth.Linear, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(200) {
				r := rand.New(rand.NewPCG(seed, 1))
				fit, err := growth.Of(series(decades, func(x float64) float64 { return tc.y(x) * (0.95 + 0.1*r.Float64()) }), 0)
				if err != nil || fit.Kind != tc.want || math.Abs(fit.B-tc.b) > tc.b/4 {
					t.Fatalf("seed %d: %v, %v", seed, fit, err)
				}
			}
		})
	}
}

func TestOfRefuses(t *testing.T) {
	t.Parallel()
	for name, points := range map[string][]growth.Point{
		"none":     nil,
		"two":      {{1, 1}, {2, 2}},
		"one x":    {{1, 1}, {1, 2}, {1, 3}},
		"zero x":   {{0, 1}, {1, 2}, {2, 3}},
		"zero y":   {{1, 0}, {2, 2}, {3, 3}},
		"negative": {{1, -1}, {2, 2}, {3, 3}},
		"NaN":      {{1, math.NaN()}, {2, 2}, {3, 3}},
		"infinite": {{1, 1}, {2, 2}, {math.Inf(1), 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if fit, err := growth.Of(points, 0); !errors.Is(err, growth.ErrPoints) {
				t.Errorf("%v, %v", fit, err)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	kinds := []growth.Kind{growth.Flat, growth.Logarithmic, growth.Linear, growth.Faster}
	for i, k := range kinds {
		if growth.Unclear.Within(k) || k.Within(growth.Unclear) {
			t.Errorf("unclear and %v", k)
		}
		for j, want := range kinds {
			if k.Within(want) != (i <= j) {
				t.Errorf("%v within %v", k, want)
			}
		}
		if got, ok := growth.Parse(k.String()); !ok || got != k {
			t.Errorf("%v is read as %v", k, got)
		}
	}
	if _, ok := growth.Parse("a word"); ok {
		t.Error("any word is a kind")
	}
}

func ExampleOf() {
	fit, _ := growth.Of([]growth.Point{{10, 7100}, {1_000, 7300}, {100_000, 7200}}, 0.1)
	fmt.Println(fit)
	fit, _ = growth.Of([]growth.Point{{10, 2_850}, {1_000, 7_800}, {100_000, 502_800}}, 0.1)
	fmt.Println(fit)
	// Output:
	// flat over 10…100000: 7.2e+03, rise 1 % of a noise of 25 %
	// linear over 10…100000: 2.8e+03 + 5 x, off by 0 %
}
