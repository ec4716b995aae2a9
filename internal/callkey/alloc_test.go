//go:build !race

package callkey_test

import (
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
)

// The race detector makes pools forget on purpose.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts
	keys, tool := callkey.New(), ident.MustLabel("lookup_order")
	for name, f := range map[string]func(){
		"Call":      func() { keys.Call(tool, `{"order":"A-1007","page": 1.0}`) },
		"Call text": func() { keys.Call(tool, "weather in Oslo") },
		"Result":    func() { keys.Result(`{"id":7}`, "order 7 shipped at 10:15:02\nin 12 ms") },
		"Sum":       func() { keys.Sum("lookup_order", `{"id":7}`, "12") },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
