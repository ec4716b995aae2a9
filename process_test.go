package interlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// childEnv makes the test binary go on with a run that it reads from standard input.
const childEnv = "INTERLOCK_TEST_GO_ON"

// elsewhere is the guard of both processes, and its one tool.
func elsewhere() (*interlock.Guard, func(ctx context.Context, in string) error, error) {
	budget := escalation.BudgetConfig{Limits: escalation.DefaultBudget()}
	budget.Limits.ToolCalls = 3
	g, err := interlock.New(interlock.Config{Workflows: []interlock.Workflow{{ID: desk}}, Budget: budget})
	if err != nil {
		return nil, nil, err
	}
	guarded, err := g.Tools(interlock.ReadOnly(aTool{"look", func(_ context.Context, in string) (string, error) {
		if in == "broken" {
			return "", errors.New("no")
		}

		return in, nil
	}}))
	if err != nil {
		return nil, nil, err
	}

	return g, func(ctx context.Context, in string) error { _, err := guarded[0].Call(ctx, in); return err }, nil
}

// goOnElsewhere prints what a call of the restored run comes to.
func goOnElsewhere(in io.Reader, out io.Writer) int {
	saved, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	g, look, err := elsewhere()
	if err != nil {
		return 1
	}
	ctx, run, err := g.RestoreRun(context.Background(), saved)
	if err == nil {
		err = look(ctx, "x")
		run.End(err)
	}
	code := "ok"
	if err != nil {
		code = middleware.ReasonOf(err).String()
	}
	_, err = fmt.Fprint(out, code)
	if err != nil {
		return 1
	}

	return 0
}

// TestHaltedInAnotherProcess: a run that was halted, or that its budget stopped,
// is refused by the process that goes on with it; one that was not is served.
func TestHaltedInAnotherProcess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(ctx context.Context, look func(context.Context, string) error)
		want   string
	}{
		"goes on": {func(ctx context.Context, look func(context.Context, string) error) { _ = look(ctx, "x") }, "ok"},
		"halted": {func(ctx context.Context, look func(context.Context, string) error) {
			for range escalation.DefaultPolicy().ToolFailure {
				_ = look(ctx, "broken")
			}
		}, "circuit_open"},
		"stopped by its budget": {func(ctx context.Context, look func(context.Context, string) error) {
			for i := range 4 {
				_ = look(ctx, strconv.Itoa(i))
			}
		}, "budget_exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, look, err := elsewhere()
			if err != nil {
				t.Fatal(err)
			}
			ctx, run, err := g.StartRun(t.Context(), desk)
			if err != nil {
				t.Fatal(err)
			}
			defer run.End(nil)
			tc.before(ctx, look)
			saved, err := run.Save()
			if err != nil {
				t.Fatal(err)
			}
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), childEnv+"=1")
			child.Stdin = bytes.NewReader(saved)
			out, err := child.Output()
			if err != nil || string(out) != tc.want {
				t.Errorf("got %q, %v; want %q", out, err, tc.want)
			}
		})
	}
}
