//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// noCanary fails if data shows the canary, in any case.
func noCanary(tb testing.TB, where string, data []byte) {
	tb.Helper()
	if bytes.Contains(bytes.ToLower(data), bytes.ToLower([]byte(secret))) {
		tb.Errorf("%s: %s", where, data)
	}
}

// A secret goes into the arguments, the results, the errors and the panics of
// tools, and into the names of files and folders; nothing of it comes out of the
// handoff file, the queue and the errors.
func TestQueueCanary(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), secret)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, secret)
	sink, err := escalation.NewFileSink(path)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *escalation.Config) { c.Sink = sink })
	tools := map[string]middleware.ToolHandler{
		"fails": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, errors.Join(errTool, &fs.PathError{Op: secret, Path: path, Err: errTool})
		},
		"panics": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(secret) },
		"tells": func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0.1})

			return &middleware.ToolResult{Output: secret}, nil
		},
		"refuses": func(ctx context.Context, _ *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, middleware.NewDenial(middleware.Refusal{
				Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped, Verdict: middleware.VerdictDeny, Cause: errTool,
			})
		},
	}
	for name, fn := range tools {
		ctx, run := b.start(t, t.Context())
		tool := b.chained(t, name, middleware.Effectful, middleware.Chain(b.Tool(), middleware.Recover), fn)
		for i := range 4 {
			_, err := tool.Do(ctx, strconv.Itoa(i)+secret, `{"patient":"`+secret+`"}`)
			contentFree(t, err)
		}
		if _, tripped := b.Handoff(run); !tripped {
			t.Errorf("%s did not trip", name)
		}
	}
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: path, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	look := func(e escalation.QueueEntry) error {
		contentFree(t, e)
		data, err := json.Marshal(e)
		noCanary(t, "an entry", data)

		return err
	}
	report, err := q.List(t.Context(), look)
	if err != nil || report.Waiting != len(tools) {
		t.Fatalf("%+v, %v", report, err)
	}
	decided := 0
	if _, err := q.List(t.Context(), func(e escalation.QueueEntry) error {
		r, err := q.Decide(t.Context(), e.Digest, escalation.ReviewAbortRun, desk)
		contentFree(t, r)
		decided++

		return err
	}); err != nil || decided != len(tools) {
		t.Fatalf("%d, %v", decided, err)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("\n")) != 2*len(tools) {
		t.Fatalf("%d lines, %v", bytes.Count(data, []byte("\n")), err)
	}
	noCanary(t, "the file", data)

	// A secret that somebody else put into the file is not repeated.
	line, _, _ := strings.Cut(string(data), "\n")
	for _, foreign := range []string{
		secret, `{"` + secret + `":1}`, `{"decided_at":"` + secret + `"}`, strings.Replace(line, `[]`, `["`+secret+`"]`, 1),
		strings.Replace(line, "refunds", "refunds-"+secret, 1), line + secret, secret + line,
	} {
		if err := os.WriteFile(path, []byte(foreign+"\n"+line+"\n"+foreign), 0o600); err != nil {
			t.Fatal(err)
		}
		report, err := q.List(t.Context(), look)
		if err != nil || report.Damaged != 2 || report.Waiting != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		contentFree(t, report)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = q.List(t.Context(), look)
	contentFree(t, err)
	if !errors.Is(err, escalation.ErrQueueUnreadable) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	contentFree(t, q)
	contentFree(t, sink)
}
