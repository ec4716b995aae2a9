package looptrace

// Verdict is what a detector's answer to a trace counts as. The zero value is
// invalid.
type Verdict uint8

// The verdicts.
const (
	_         Verdict = iota
	Hit               // a loop, stopped in time
	Premature         // a loop, stopped before it was one
	Miss              // a loop, stopped too late or never
	FalseStop         // honest work, stopped
	Quiet             // honest work, left alone

	verdictEnd
)

var verdictNames = [verdictEnd]string{ //nolint:gochecknoglobals // compiled table
	"invalid", Hit: "hit", Premature: "premature", Miss: "miss", FalseStop: "false_stop", Quiet: "quiet",
}

// String returns the verdict's name, or "invalid".
func (v Verdict) String() string {
	if v >= verdictEnd {
		return verdictNames[0]
	}

	return verdictNames[v]
}

// Wrong reports whether the detector was wrong.
func (v Verdict) Wrong() bool { return v != Hit && v != Quiet }

// Judge says what firings in order mean for a trace: the first one decides.
func Judge(t *Trace, firings []Firing) Verdict {
	switch {
	case !t.Loop() && len(firings) == 0:
		return Quiet
	case !t.Loop():
		return FalseStop
	case len(firings) == 0 || firings[0].Step > t.StopBy:
		return Miss
	case firings[0].Step < t.Earliest:
		return Premature
	default:
		return Hit
	}
}

// Tally counts verdicts.
type Tally struct {
	Traces     int `json:"traces"`
	Loops      int `json:"loops"`
	Hits       int `json:"hits"`
	Premature  int `json:"premature"`
	Misses     int `json:"misses"`
	FalseStops int `json:"false_stops"`
}

// With returns the tally with one more verdict.
func (t Tally) With(v Verdict) Tally {
	t.Traces++
	switch v {
	case Hit:
		t.Loops++
		t.Hits++
	case Premature:
		t.Loops++
		t.Premature++
	case Miss:
		t.Loops++
		t.Misses++
	case FalseStop:
		t.FalseStops++
	default:
	}

	return t
}

// Plus returns the sum of both.
func (t Tally) Plus(u Tally) Tally {
	return Tally{
		Traces: t.Traces + u.Traces, Loops: t.Loops + u.Loops, Hits: t.Hits + u.Hits, Premature: t.Premature + u.Premature,
		Misses: t.Misses + u.Misses, FalseStops: t.FalseStops + u.FalseStops,
	}
}

// Precision returns hits / (hits + premature + false stops), and false if
// nothing fired in time to be counted.
func (t Tally) Precision() (float64, bool) { return ratio(t.Hits, t.Hits+t.Premature+t.FalseStops) }

// Recall returns hits / loops, and false if there is no loop.
func (t Tally) Recall() (float64, bool) { return ratio(t.Hits, t.Loops) }

func ratio(n, of int) (float64, bool) {
	if of == 0 {
		return 0, false
	}

	return float64(n) / float64(of), true
}
