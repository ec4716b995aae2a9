package canary_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is the secret: the same in every run, so that a failure repeats.
var canary = otelxtest.NewCanary(2026)

var (
	desk    = ident.MustWorkflowID("workflow:org.example/refund-desk@1.0.0")
	primary = ident.MustLabel("primary")
	backup  = ident.MustLabel("backup")
)
