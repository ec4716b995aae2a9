package escalation_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("tool", func(t *testing.T) {
		t.Parallel()
		for _, effect := range []middleware.Effect{middleware.Effectful, middleware.ReadOnly} {
			t.Run(effect.String(), func(t *testing.T) {
				t.Parallel()
				conformance.Tool(t, conformance.ToolSuite{
					New:    func(t *testing.T) middleware.ToolMiddleware { t.Helper(); return newBench(t, nil).Tool() },
					Effect: effect,
				})
			})
		}
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		conformance.Model(t, conformance.ModelSuite{
			New: func(t *testing.T) middleware.ModelMiddleware { t.Helper(); return newBench(t, nil).Model() },
		})
	})
}
