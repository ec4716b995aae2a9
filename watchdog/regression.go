package watchdog

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/middleware"
)

// regression is the detector of a confidence that falls: the mean of the first
// half of the last reported values less the mean of the last half. Of an odd
// number the middle one belongs to neither half.
type regression struct {
	window int
	drop   float64
	runs   middleware.PerRun[confidences]
}

var _ Detector = (*regression)(nil)

func newRegression(window int, drop float64) *regression {
	r := &regression{window: window, drop: drop}
	r.runs.New = func(*middleware.Run) (*confidences, error) {
		return &confidences{values: make([]float64, 0, window)}, nil
	}

	return r
}

// confidences are the last values of a run, in the order in which they came.
type confidences struct {
	mu     sync.Mutex
	values []float64
	fallen bool // until the trend recovers
	due    Detection
	waits  bool // due was not reported yet
}

func (r *regression) confidence(run *middleware.Run, value float64) {
	c, err := r.runs.Get(run)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.values) == r.window {
		copy(c.values, c.values[1:])
		c.values = c.values[:r.window-1]
	}
	if c.values = append(c.values, value); len(c.values) < r.window {
		return
	}
	half := r.window / 2
	fall := mean(c.values[:half]) - mean(c.values[r.window-half:])
	switch {
	case fall < r.drop-rounding:
		c.fallen, c.waits = false, false
	case !c.fallen:
		c.fallen, c.waits = true, true
		c.due = Detection{
			Reason: middleware.ReasonRegression, Severity: min(1, fall/r.drop), Count: r.window, Limit: r.window,
		}
	}
}

// rounding is what sums of decimal fractions may be off: 0.9 less 0.7 is a drop
// of 0.2.
const rounding = 1e-9

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}

	return sum / float64(len(values))
}

// Check reports a fall once, at the next call.
func (r *regression) Check(ctx context.Context, _ *middleware.ToolCall) (Detection, bool, error) {
	c, err := r.runs.Get(middleware.RunFrom(ctx))
	if err != nil {
		return Detection{}, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.waits
	c.waits = false

	return c.due, due, nil
}
