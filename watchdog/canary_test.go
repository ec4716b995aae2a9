package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestCanary plants a secret in arguments, results, errors, prompts, answers,
// names of tools and panics, lets every rule fire, and looks for it in
// detections, decisions, errors and in dumps of everything that is exported.
func TestCanary(t *testing.T) {
	t.Parallel()
	var out []string
	dump := func(values ...any) {
		for _, v := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
				out = append(out, fmt.Sprintf(verb, v))
			}
		}
	}
	seen := map[middleware.Reason]bool{}
	play := func(action watchdog.Action, tool func(n int) (*middleware.ToolResult, error), args func(n int) string, effect middleware.Effect, calls int) {
		k := newTalk(t, watchdog.Config{
			Regression: true, RegressionWindow: 2,
			Policy: func(d watchdog.Detection) watchdog.Action {
				seen[d.Reason] = true
				dump(d)

				return action
			},
		})
		n := 0
		guarded := toolOf(t, "probe", effect, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return tool(n) }, k.dog.Tool())
		_ = k.ask(secret, one(secret), offers)
		for ; n < calls; n++ {
			openTurn(k.ctx, t)
			_, err := guarded.Do(k.ctx, secret, args(n))
			dump(err)
			if n == 1 {
				k.dog.ReceiveSignal(k.ctx, k.run, middleware.Signal{Kind: middleware.SignalConfidence, Value: 1})
				k.dog.ReceiveSignal(k.ctx, k.run, middleware.Signal{Kind: middleware.SignalConfidence, Value: 0})
			}
		}
		for range 4 {
			dump(k.ask(secret, chat(secret), offers))
		}
		for range 4 {
			dump(k.ask("@"+strings.ToLower(secret), chat(secret), offers))
		}
		for _, m := range k.got[max(0, len(k.got)-1):] {
			if text := fmt.Sprint(m); strings.Contains(text, "repeat each other") && strings.Contains(strings.ReplaceAll(text, secret, ""), "SECRET") {
				t.Errorf("the nudge holds content: %s", text)
			}
		}
		for _, d := range k.rec.decisions() {
			dump(d)
		}
		dump(k.dog)
	}
	same := func(int) string { return secret }
	ever := func(n int) string { return fmt.Sprint(secret, n) }
	result := func(int) (*middleware.ToolResult, error) { return &middleware.ToolResult{Output: secret}, nil }
	fails := func(int) (*middleware.ToolResult, error) { return nil, errTool }
	for _, action := range watchdog.Actions() {
		play(action, result, same, middleware.ReadOnly, 8)
		play(action, result, same, middleware.Polling, 15)
		play(action, fails, ever, middleware.ReadOnly, 20)
		play(action, result, func(n int) string { return fmt.Sprint(secret, n%2) }, middleware.ReadOnly, 12)
		play(action, func(n int) (*middleware.ToolResult, error) {
			if n%2 == 0 {
				return &middleware.ToolResult{Output: secret}, nil
			}

			return &middleware.ToolResult{Output: "FAIL " + secret}, nil
		}, func(n int) string {
			if n%2 == 0 {
				return fmt.Sprint(secret, "edit", n)
			}

			return secret
		}, middleware.Effectful, 30)
		play(action, func(int) (*middleware.ToolResult, error) { panic(errors.New(secret)) }, same, middleware.ReadOnly, 3)
	}
	for _, r := range []middleware.Reason{
		middleware.ReasonLoop, middleware.ReasonWaiting, middleware.ReasonDrift, middleware.ReasonCycle, middleware.ReasonStagnation,
		middleware.ReasonAnswerLoop, middleware.ReasonUnknownTool, middleware.ReasonRegression,
	} {
		if !seen[r] {
			t.Errorf("nothing was seen of %v", r)
		}
	}
	lower := strings.ToLower(secret)
	for _, s := range out {
		if l := strings.ToLower(s); strings.Contains(l, lower) || strings.Contains(l, fmt.Sprintf("%x", secret)) {
			t.Fatalf("content: %.400s", s)
		}
	}
}
