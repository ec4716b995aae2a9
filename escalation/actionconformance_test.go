package escalation_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

func TestActionConformance(t *testing.T) {
	t.Parallel()
	for _, effect := range []middleware.Effect{middleware.Effectful, middleware.ReadOnly} {
		t.Run(effect.String(), func(t *testing.T) {
			t.Parallel()
			conformance.Tool(t, conformance.ToolSuite{
				New:    func(t *testing.T) middleware.ToolMiddleware { t.Helper(); return newRig(t, nil).Tool() },
				Effect: effect,
			})
		})
	}
}
