package main

import (
	"cmp"
	"slices"
	"time"
)

// maxDuration is the longest trace that is drawn. Differences of times saturate
// far above it.
const maxDuration = 1000 * 24 * time.Hour

// tree is one trace in the order in which it is drawn.
type tree struct {
	rows       []row
	start, end time.Time
}

// row is a span, how deep it lies, and in which row its parent is (-1: none).
type row struct {
	span

	depth, parent int
	open          bool
}

func (t *tree) duration() time.Duration { return t.end.Sub(t.start) }

// pick returns the trace with this number by start, or for 0 the one with the
// most spans.
func pick(spans []span, number int) (*tree, error) {
	byTrace := map[string][]span{}
	for _, s := range spans {
		byTrace[s.trace] = append(byTrace[s.trace], s)
	}
	traces := make([][]span, 0, len(byTrace))
	for _, t := range byTrace {
		slices.SortStableFunc(t, byStart)
		traces = append(traces, t)
	}
	slices.SortFunc(traces, func(a, b []span) int { return byStart(a[0], b[0]) })
	if number > len(traces) {
		return nil, inputError{code: codeNoSuchTrace}
	}
	chosen := traces[max(number-1, 0)]
	if number == 0 {
		for _, t := range traces {
			if len(t) > len(chosen) {
				chosen = t
			}
		}
	}
	if len(chosen) > maxSpans {
		return nil, inputError{code: codeTooManySpans}
	}

	t := grow(chosen)
	if t.duration() > maxDuration {
		return nil, inputError{code: codeInvalidTime}
	}

	return t, nil
}

func byStart(a, b span) int {
	return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.trace, b.trace), cmp.Compare(a.id, b.id))
}

// grow puts the spans of one trace, sorted by start, below their parents.
func grow(spans []span) *tree {
	t := &tree{start: spans[0].start, end: spans[0].start}
	known, children := map[string]bool{}, map[string][]int{}
	for i, s := range spans {
		known[s.id] = true
		children[s.parent] = append(children[s.parent], i)
		for _, at := range []time.Time{s.start, s.end} {
			if at.After(t.end) {
				t.end = at
			}
		}
	}
	drawn := make([]bool, len(spans))
	var place func(i, depth, parent int)
	place = func(i, depth, parent int) {
		if drawn[i] {
			return
		}
		drawn[i] = true
		s := spans[i]
		open := s.end.IsZero()
		if open {
			s.end = t.end
		}
		t.rows = append(t.rows, row{span: s, depth: depth, parent: parent, open: open})
		at := len(t.rows) - 1
		for _, c := range children[s.id] {
			place(c, depth+1, at)
		}
	}
	for i, s := range spans {
		if s.parent == "" || !known[s.parent] {
			place(i, 0, -1)
		}
	}
	for i := range spans { // what is left goes in circles
		place(i, 0, -1)
	}

	return t
}
