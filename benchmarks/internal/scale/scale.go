// Package scale holds the rows of the set.
package scale

import (
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Rows returns the rows of the set.
func Rows(*fixture.Ledgers) []row.Row { return nil }

// Targets returns the claims about them.
func Targets() []row.Target { return nil }

// Series returns the growth claims.
func Series() []row.Series { return nil }
