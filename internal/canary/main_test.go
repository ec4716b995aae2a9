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
	primary = ident.MustLabel("primary")
	backup  = ident.MustLabel("backup")
)
