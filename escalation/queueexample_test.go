//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// A reviewer's tool: what waits, and what was decided about it.
func ExampleNewQueue() {
	dir, err := os.MkdirTemp("", "handoffs")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, path := context.Background(), filepath.Join(dir, "handoffs.jsonl")

	// The guarded process halts a run.
	sink, _ := escalation.NewFileSink(path)
	run, _ := ident.ParseRunID("run_" + strings.Repeat("0f", 16))
	b, _ := escalation.NewBreaker(escalation.BreakerConfig{
		Run: run, Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Policy: escalation.DefaultPolicy(),
	})
	h, _ := b.Trip(middleware.FailureTool, ident.DigestOf(nil).Hex(), time.Unix(0, 0).UTC())
	fmt.Println(sink.Deliver(ctx, *h))

	// Ten minutes later somebody looks.
	queue, err := escalation.NewQueue(escalation.QueueConfig{
		Path: path, Now: func() time.Time { return time.Unix(600, 0) },
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	report, err := queue.List(ctx, func(e escalation.QueueEntry) error {
		fmt.Println(e.State, e.Handoff.RequestedDecision(), e.Handoff.RecoveryActions()) //nolint:staticcheck // codes, not bytes

		return nil
	})
	fmt.Println(report.Waiting, err)

	_, err = queue.Decide(ctx, h.Digest(), escalation.ReviewPermissions, ident.MustLabel("night-desk"))
	fmt.Println(err)
	review, err := queue.Decide(ctx, h.Digest(), escalation.ReviewToolFailure, ident.MustLabel("night-desk"))
	fmt.Println(review.Decision(), err)
	_, err = queue.Decide(ctx, h.Digest(), escalation.ReviewDismissed, ident.MustLabel("night-desk"))
	fmt.Println(errors.Is(err, escalation.ErrHandoffDecided))

	// The run stays halted: a review permits nothing.
	fmt.Println(b.Halted())
	// Output:
	// <nil>
	// waiting assess_safety [review_tool_failure abort_run]
	// 1 <nil>
	// interlock: escalation: invalid_decision
	// review_tool_failure <nil>
	// true
	// true
}
