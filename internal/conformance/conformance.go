package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Secret stands in errors, panics, inputs and outputs of the suite. It must
// not be found in what a middleware returns or reports.
const Secret = "canary-7f3a-SECRET"

const callers = 32

var errTool = errors.New("the failure of " + Secret)

// workflow is the one that the suite's runs belong to if a suite names none.
func workflow() ident.WorkflowID { return ident.MustWorkflowID("workflow:org.example/conformance") }

func start(ctx context.Context, t *testing.T, run func(*testing.T) middleware.RunConfig) (context.Context, *middleware.Run) {
	t.Helper()
	var cfg middleware.RunConfig
	if run != nil {
		cfg = run(t)
	}
	if cfg.Workflow.IsZero() {
		cfg.Workflow = workflow()
	}
	ctx, r, err := middleware.StartRun(ctx, cfg)
	if err != nil {
		t.Fatalf("StartRun: %v", err)
	}
	t.Cleanup(func() { r.End() })

	return ctx, r
}

// apart runs f on a goroutine of its own and waits for its end, so that a
// runtime.Goexit in f ends that goroutine and not the test.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// contentFree fails the test if err shows the secret in any form of printing.
func contentFree(t *testing.T, err error) {
	t.Helper()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		if s := fmt.Sprintf(verb, err); strings.Contains(s, "SECRET") {
			t.Errorf("%s of the error shows content: %s", verb, s)
		}
	}
}

// together runs f for every index on goroutines of their own, at once.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
