// Package peers holds the rows of the set.
package peers

import (
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// Rows returns the rows of the set.
func Rows(*fixture.Ledgers) []row.Row { return nil }

// Targets returns the claims about them.
func Targets() []row.Target { return nil }
