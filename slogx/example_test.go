package slogx_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/slogx"
)

// A gate refuses a tool that is registered, and one whose name a model made up.
func ExampleNew() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}

		return a
	}
	lines, err := slogx.New(slogx.Config{
		Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
		Labels: []ident.Label{ident.MustLabel("issue_refund")},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	for _, name := range []string{"issue_refund", "jane_doe"} {
		middleware.Notify(context.Background(), lines, middleware.Decision{
			Component: middleware.ComponentAdmission, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
			Reason: middleware.ReasonAdmissionStopped, Label: ident.MustLabel(name),
		})
	}
	fmt.Println(lines.Rejected(), "not registered")
	// Output:
	// level=WARN msg="interlock decision" interlock.decision.component=admission interlock.decision.verdict=deny interlock.decision.action=block interlock.decision.reason=admission_stopped interlock.decision.label=issue_refund
	// level=WARN msg="interlock decision" interlock.decision.component=admission interlock.decision.verdict=deny interlock.decision.action=block interlock.decision.reason=admission_stopped interlock.decision.label=_OTHER
	// 1 not registered
}

// Without a logger there is nobody to write to.
func ExampleNew_refused() {
	_, err := slogx.New(slogx.Config{})
	fmt.Println(err)
	// Output: slogx: Config.Logger: must be not nil
}
