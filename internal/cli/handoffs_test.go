package cli_test

import (
	"context"
	"strings"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// deliver appends the handoff of a run that was halted then.
func deliver(path, class string, at time.Time) (h escalation.Handoff, err error) {
	run, err := ident.NewRunID()
	if err != nil {
		return h, err
	}
	b, err := escalation.NewBreaker(escalation.BreakerConfig{
		Run: run, Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Policy: escalation.DefaultPolicy(),
	})
	if err != nil {
		return h, err
	}
	var c escalation.Class
	for _, known := range middleware.FailureClasses() {
		if known.String() == class {
			c = known
		}
	}
	tripped, err := b.Trip(c, strings.Repeat("ab", 32), at.UTC().Truncate(time.Second))
	if err != nil {
		return h, err
	}
	s, err := escalation.NewFileSink(path)
	if err != nil {
		return h, err
	}

	return *tripped, s.Deliver(context.Background(), *tripped)
}
