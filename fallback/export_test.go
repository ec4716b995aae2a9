package fallback

import "time"

// NewScaled is New with everything that the specification fixes divided by one factor, for tests that wait in real time.
// What a Config says is not scaled.
func NewScaled(cfg Config, by time.Duration) (*Model, error) {
	m, err := New(cfg)
	if err != nil {
		return nil, err
	}
	t := &m.timing
	for _, d := range []*time.Duration{&t.short, &t.long, &t.first, &t.longest, &t.second} {
		*d /= by
	}

	return m, nil
}

// ClassRow returns what the code says of a class, in the words of its documentation.
func ClassRow(c Class) (again int, next, bench string) {
	row := classTable[c]
	next = map[moveRule]string{moveNever: "never", moveNext: "yes", moveAuth: "only with AuthNext", moveLarger: "only to a larger Window"}[row.move]
	bench = map[benchRule]string{benchNever: "no", benchShort: "30 s or Retry-After", benchLong: "10 min"}[row.bench]

	return row.again, next, bench
}

// Share is the bound of retries, for its own test.
type Share struct{ s share }

// Call counts a call.
func (s *Share) Call(now time.Time) { s.s.call(now, time.Second) }

// Retry takes a retry, if there is one.
func (s *Share) Retry(now time.Time) bool { return s.s.retry(now, time.Second) }

// RetryAfter reads the header.
func RetryAfter(header string, now time.Time) time.Duration { return retryAfter(header, now) }
