// Package catalog lists every row, target and series of the benchmarks.
package catalog

import (
	"slices"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/macro"
	"github.com/interlock-go/interlock/benchmarks/internal/micro"
	"github.com/interlock-go/interlock/benchmarks/internal/peers"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/benchmarks/internal/scale"
)

// Rows returns all rows, in the order of the report. Rows of one call share
// their ledgers.
func Rows() []row.Row {
	l := fixture.NewLedgers()

	return slices.Concat(micro.Rows(l), peers.Rows(l), macro.Rows(l), scale.Rows(l))
}

// Targets returns the claims about rows that a report checks.
func Targets() []row.Target {
	return slices.Concat(micro.Targets(), peers.Targets(), macro.Targets(), scale.Targets())
}

// Series returns the claims about growth that a report fits.
func Series() []row.Series { return scale.Series() }
