package otelx

// Bucket boundaries. The first two are those that the published conventions
// advise.

func operationBuckets() []float64 { return doubling(0.01, 14) } //nolint:mnd // up to 81.92 s

func agentBuckets() []float64 { return doubling(0.1, 13) } //nolint:mnd // up to 409.6 s

func decisionBuckets() []float64 {
	return []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1}
}

func stateBuckets() []float64 {
	return []float64{1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400}
}

func shareBuckets() []float64 {
	return []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1}
}

func doubling(from float64, n int) []float64 {
	b := make([]float64, n)
	for i := range b {
		b[i] = from
		from *= 2 // exact, so each is the float64 nearest to its decimal
	}

	return b
}
