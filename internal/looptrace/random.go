package looptrace

// random is a generator of its own (splitmix64), so that a seed gives the same
// corpus whatever the version of Go.
type random struct{ state uint64 }

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9 //nolint:mnd // the published constants
	z = (z ^ z>>27) * 0x94d049bb133111eb //nolint:mnd // the published constants

	return z ^ z>>31
}

// n returns a number below limit.
func (r *random) n(limit int) int { return int(r.next() % uint64(limit)) } //nolint:gosec // limit is small and positive

// between returns a number in low…high.
func (r *random) between(low, high int) int { return low + r.n(high-low+1) }

// chance reports true in one of n cases.
func (r *random) chance(n int) bool { return r.n(n) == 0 }

func pick[T any](r *random, from []T) T { return from[r.n(len(from))] }

// shuffled returns a copy in another order.
func shuffled[T any](r *random, from []T) []T {
	all := make([]T, len(from))
	copy(all, from)
	for i := len(all) - 1; i > 0; i-- {
		j := r.n(i + 1)
		all[i], all[j] = all[j], all[i]
	}

	return all
}
