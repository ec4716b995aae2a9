package cli

import (
	"context"
	"io"
	"time"
)

// RunEnv is Run with an environment of the test's own.
func RunEnv(args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	return newApp(stdout, getenv).run(context.Background(), args, stdin, stderr)
}

// RunAt is RunEnv with a context and a clock too.
func RunAt(
	ctx context.Context, now func() time.Time, args []string, stdout, stderr io.Writer, getenv func(string) string,
) int {
	a := newApp(stdout, getenv)
	a.now = now

	return a.run(ctx, args, nil, stderr)
}
