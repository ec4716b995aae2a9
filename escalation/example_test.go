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

// An executor of one's own, without a type of langchaingo: it goes on after
// errors, and two tools with a chain each share the count of their run.
func Example() {
	sink := escalation.SinkFunc(func(_ context.Context, h escalation.Handoff) error {
		fmt.Println("a human is asked:", h.ReasonCode().String(), h.RequestedDecision(), h.RecoveryActions()[0])

		return nil
	})
	esc, err := escalation.New(escalation.Config{
		Sink: sink,
		Now:  func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) },
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	offline := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, errors.New("connection refused")
	}
	var tools []*middleware.GuardedTool
	for _, name := range []string{"lookup_order", "notify_customer"} {
		tool, err := middleware.NewTool(middleware.ToolConfig{Name: name, Chain: esc.Tool()}, offline)
		if err != nil {
			fmt.Println(err)

			return
		}
		tools = append(tools, tool)
	}

	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow:  ident.MustWorkflowID("workflow:org.example/refunds@1.0.0"),
		Receivers: []middleware.SignalReceiver{esc},
		Slots:     []middleware.Slot{esc.Slot()},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for i := range 4 {
		_, err := tools[i%2].Do(ctx, "", "4711")
		_, tripped := escalation.HandoffOf(err)
		fmt.Println(i+1, err, tripped)
	}
	// Output:
	// 1 interlock: tool lookup_order: tool_failed false
	// 2 interlock: tool notify_customer: tool_failed false
	// a human is asked: safety_review assess_safety review_tool_failure
	// 3 interlock: escalation: circuit_open true
	// 4 interlock: escalation: circuit_open false
}

func ExampleNew() {
	_, err := escalation.New(escalation.Config{
		Policy: escalation.Policy{Uncertainty: 3, PermissionDenial: 0, ToolFailure: 3, Total: 6},
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, escalation.ErrInvalidThreshold))
	// Output:
	// interlock: escalation: invalid_threshold: Policy.PermissionDenial must be 1…32
	// true
}

func ExampleNewBreaker() {
	run, _ := ident.ParseRunID("run_" + strings.Repeat("0f", 16))
	b, err := escalation.NewBreaker(escalation.BreakerConfig{
		Run:      run,
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"),
		Policy:   escalation.DefaultPolicy(),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for step := 1; step <= 3; step++ {
		digest := escalation.StepDigest(run, step, middleware.ComponentAdmission, ident.MustLabel("issue_refund"))
		h, err := b.RecordFailure(middleware.FailurePermissionDenial, digest.Hex(), now)
		switch {
		case h != nil:
			fmt.Println("tripped:", h.Class(), h.ExpiresAt().Format(time.TimeOnly))
		default:
			fmt.Println("no handoff:", err)
		}
	}
	fmt.Println(b.Halted(), b.Counts().Total())
	// Output:
	// no handoff: <nil>
	// tripped: permission_denial 05:36:07
	// no handoff: interlock: escalation: circuit_open
	// true 2
}

func ExampleParseHandoff() {
	data, _ := os.ReadFile(filepath.Join("testdata", "handoff_tool_failure.json"))
	issued := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

	h, err := escalation.ParseHandoff(data, issued.Add(time.Minute))
	fmt.Println(h.Class(), h.WorkflowID(), err)

	_, err = escalation.ParseHandoff(data, issued.Add(30*time.Minute))
	fmt.Println(err)

	_, err = escalation.ParseHandoff(append(data, '\n'), issued)
	fmt.Println(err)
	// Output:
	// tool_failure workflow:org.example/refunds@1.0.0 <nil>
	// interlock: escalation: handoff_expired: expired
	// interlock: escalation: invalid_handoff: trailing_data
}

// The layer stands outside of what it counts. Inside of the gate it would see
// nothing that the gate refuses, and the first call says so.
func ExampleEscalation_Tool() {
	esc, err := escalation.New(escalation.Config{})
	if err != nil {
		fmt.Println(err)

		return
	}
	gate := middleware.At(middleware.StageGate, func(next middleware.ToolHandler) middleware.ToolHandler { return next })
	effect := func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "refunded"}, nil
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for _, chain := range []middleware.ToolMiddleware{
		middleware.Chain(esc.Tool(), gate),
		middleware.Chain(gate, esc.Tool()),
	} {
		tool, err := middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: chain}, effect)
		if err != nil {
			fmt.Println(err)

			return
		}
		res, err := tool.Do(ctx, "", "4711")
		fmt.Println(res != nil, err)
	}
	// Output:
	// true <nil>
	// false interlock: chain: unsafe_order
}

func ExampleNewFileSink() {
	dir, err := os.MkdirTemp("", "handoffs")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_, err = escalation.NewFileSink(filepath.Join(dir, "handoffs.jsonl"))
	fmt.Println(err)

	_ = os.Symlink("elsewhere", filepath.Join(dir, "link"))
	_, err = escalation.NewFileSink(filepath.Join(dir, "link"))
	fmt.Println(err)
	// Output:
	// <nil>
	// interlock: escalation: sink_failed
}

func ExampleNewChannelSink() {
	ch := make(chan escalation.Handoff, 1)
	sink, err := escalation.NewChannelSink(ch)
	if err != nil {
		fmt.Println(err)

		return
	}
	run, _ := ident.ParseRunID("run_" + strings.Repeat("0f", 16))
	b, _ := escalation.NewBreaker(escalation.BreakerConfig{
		Run: run, Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Policy: escalation.DefaultPolicy(),
	})
	h, _ := b.Trip(middleware.FailureUncertainty, ident.DigestOf(nil).Hex(), time.Unix(0, 0).UTC())
	fmt.Println(sink.Deliver(context.Background(), *h))
	fmt.Println(sink.Deliver(context.Background(), *h))
	fmt.Println((<-ch).Class())
	// Output:
	// <nil>
	// interlock: escalation: sink_failed
	// uncertainty
}

func ExampleNewWriterSink() {
	_, err := escalation.NewWriterSink(nil)
	fmt.Println(err)
	// Output:
	// interlock: escalation: invalid_config: w must be set
}

func ExampleNewMemorySink() {
	_, err := escalation.NewMemorySink(0)
	fmt.Println(err)
	// Output:
	// interlock: escalation: invalid_config: capacity must be 1…65536
}
