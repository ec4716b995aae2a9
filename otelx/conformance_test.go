package otelx_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Tool(t, conformance.ToolSuite{
		New: func(t *testing.T) middleware.ToolMiddleware {
			t.Helper()

			return middleware.TraceTool(open(t).Telemetry)
		},
	})
}
