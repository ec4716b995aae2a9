package otelxtest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
)

// Outlet is a way out.
type Outlet struct {
	// Name of the outlet in findings. Required, unique.
	Name string
	// Marker must stand in all that is scanned of the outlet, such as a reason
	// code: without it the outlet was not reached. Required.
	Marker string
}

// Matrix keeps account of slots, the ways in, × outlets, the ways out. What goes
// wrong fails the test that it was made for, at the place where it is noticed.
type Matrix struct {
	tb      testing.TB
	canary  *Canary
	slots   []string
	outlets []Outlet

	mu    sync.Mutex
	cells map[[2]string]*cell
}

type cell struct {
	scans    int
	bytes    int
	byDesign string
}

// NewMatrix returns a matrix whose cells are all open. Names that are empty or
// twice, and outlets without a marker, fail the test.
func NewMatrix(tb testing.TB, canary *Canary, slots []string, outlets []Outlet) *Matrix {
	tb.Helper()
	m := &Matrix{tb: tb, canary: canary, slots: slots, outlets: outlets, cells: map[[2]string]*cell{}}
	for _, s := range slots {
		for _, o := range outlets {
			key := [2]string{s, o.Name}
			if s == "" || o.Name == "" || o.Marker == "" || m.cells[key] != nil {
				tb.Errorf("otelxtest: cell %q × %q: names are needed, once each, and a marker", s, o.Name)
			}
			m.cells[key] = &cell{}
		}
	}

	return m
}

// Scan looks for the secret in what came out of an outlet while the secret was
// in slot. A finding fails the test, and so does an outlet without its marker.
func (m *Matrix) Scan(slot, outlet string, data []byte) {
	m.tb.Helper()
	c := m.reach(slot, outlet, data)
	for _, f := range m.canary.Scan(slot+" → "+outlet, data) {
		m.tb.Error(f)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.scans++
	c.bytes += len(data)
}

// ByDesign names a cell in which the secret comes out on purpose, with the
// reason. It must really be there: an exception that is needed no longer fails
// the test.
func (m *Matrix) ByDesign(slot, outlet, reason string, data []byte) {
	m.tb.Helper()
	c := m.reach(slot, outlet, data)
	if reason == "" {
		m.tb.Errorf("otelxtest: %s → %s: an exception needs a reason", slot, outlet)
	}
	if len(m.canary.Scan(outlet, data)) == 0 {
		m.tb.Errorf("otelxtest: %s → %s: the secret is not there; the exception is not needed", slot, outlet)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.byDesign = reason
}

func (m *Matrix) reach(slot, outlet string, data []byte) *cell {
	m.tb.Helper()
	c := m.cells[[2]string{slot, outlet}]
	if c == nil {
		m.tb.Errorf("otelxtest: cell %q × %q is not in the matrix", slot, outlet)

		return &cell{}
	}
	for _, o := range m.outlets {
		if o.Name == outlet && !bytes.Contains(data, []byte(o.Marker)) {
			m.tb.Errorf("otelxtest: %s → %s: %d bytes without the marker: the outlet was not reached", slot, outlet, len(data))
		}
	}

	return c
}

// Report is the size of a matrix.
type Report struct {
	// Slots × Outlets × Encodings are what is looked for where.
	Slots, Outlets, Encodings int
	// Scanned and ByDesign are cells; Open are those of which nothing is known.
	Scanned, ByDesign, Open int
	// Bytes that were scanned.
	Bytes int
	// Exceptions are the cells that are by design, with their reasons.
	Exceptions []string
}

// String returns the figures in one line.
func (r Report) String() string {
	return fmt.Sprintf("%d slots × %d outlets × %d encodings: %d cells scanned, %d by design, %d open; %d bytes",
		r.Slots, r.Outlets, r.Encodings, r.Scanned, r.ByDesign, r.Open, r.Bytes)
}

// Finish fails the test for each cell that is open, and for each that is both
// scanned and by design; it prints the size of the matrix and returns it.
func (m *Matrix) Finish() Report {
	m.tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{Slots: len(m.slots), Outlets: len(m.outlets), Encodings: len(Encodings())}
	for _, s := range m.slots {
		for _, o := range m.outlets {
			c := m.cells[[2]string{s, o.Name}]
			r.Bytes += c.bytes
			switch {
			case c.byDesign != "":
				r.ByDesign++
				r.Exceptions = append(r.Exceptions, s+" → "+o.Name+": "+c.byDesign)
				if c.scans > 0 {
					m.tb.Errorf("otelxtest: %s → %s: scanned, and by design", s, o.Name)
				}
			case c.scans > 0:
				r.Scanned++
			default:
				r.Open++
				m.tb.Errorf("otelxtest: %s → %s: not accounted for", s, o.Name)
			}
		}
	}
	m.tb.Log(r)

	return r
}
