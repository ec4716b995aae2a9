package measure

import (
	"math"
	"slices"
)

// Median returns the middle of the values, the mean of the two middle ones for
// an even number, and NaN for none. Values are not changed.
func Median(values []float64) float64 { return Quantile(values, 0.5) } // the middle

// Quantile returns the value below which the share q of the values lies, by
// linear interpolation; NaN for no values or a q outside of [0, 1].
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 || !(q >= 0 && q <= 1) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)

	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Spread returns the distance between the quartiles as a share of the median;
// 0 for fewer than two values.
func Spread(values []float64) float64 {
	if len(values) < 2 { // one value has no spread
		return 0
	}

	return (Quantile(values, 0.75) - Quantile(values, 0.25)) / math.Abs(Median(values)) // the quartiles
}
