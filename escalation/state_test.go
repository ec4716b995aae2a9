package escalation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

func config(tb testing.TB) escalation.BreakerConfig {
	tb.Helper()

	return escalation.BreakerConfig{Run: runID(tb, "ab"), Workflow: workflow, Policy: escalation.DefaultPolicy()}
}

func render(tb testing.TB, b *escalation.Breaker) string {
	tb.Helper()
	data, err := b.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}

	return string(data)
}

func goldenState(tb testing.TB, name string) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}

	return string(data)
}

func TestStateGolden(t *testing.T) {
	t.Parallel()
	b := newBreaker(t, escalation.DefaultPolicy())
	for i, c := range []escalation.Class{toolFailure, uncertainty, toolFailure} {
		if i == 2 {
			if got, want := render(t, b), goldenState(t, "state_counting.json"); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		if h, err := b.RecordFailure(c, digest(i), at); h != nil || err != nil {
			t.Fatalf("%v, %v", h, err)
		}
	}
	if _, err := b.RecordFailure(toolFailure, digest(3), at); err != nil {
		t.Fatal(err)
	}
	if got, want := render(t, b), goldenState(t, "state_halted.json"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	b := newBreaker(t, escalation.DefaultPolicy())
	for i, c := range []escalation.Class{uncertainty, toolFailure, permission, uncertainty, toolFailure, toolFailure} {
		restored, err := escalation.ParseBreaker(config(t), []byte(render(t, b)))
		if err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
		b = restored // every failure is counted by another process
		h, err := b.RecordFailure(c, digest(i), at.Add(time.Duration(i)*time.Hour))
		if err != nil || (h != nil) != (i == 5) {
			t.Fatalf("failure %d: %v, %v", i, h, err)
		}
	}
	restored, err := escalation.ParseBreaker(config(t), []byte(render(t, b)))
	if err != nil || !restored.Halted() || render(t, restored) != render(t, b) {
		t.Fatalf("the halted breaker came back otherwise: %v", err)
	}
	if _, err := restored.RecordFailure(toolFailure, digest(9), at); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Errorf("%v", err)
	}
}

func TestStateTighterPolicy(t *testing.T) {
	t.Parallel()
	b := newBreaker(t, escalation.DefaultPolicy())
	for i := range 2 {
		if _, err := b.RecordFailure(toolFailure, digest(i), at); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(t)
	cfg.Policy.ToolFailure = 1
	b, err := escalation.ParseBreaker(cfg, []byte(render(t, b)))
	if err != nil || b.Halted() {
		t.Fatal(err)
	}
	if h, err := b.RecordFailure(toolFailure, digest(2), at); h == nil || err != nil {
		t.Errorf("%v, %v", h, err)
	}
}

func TestParseBreakerRefuses(t *testing.T) {
	t.Parallel()
	counting, halted := goldenState(t, "state_counting.json"), goldenState(t, "state_halted.json")
	swap := func(data, old, replacement string) string {
		t.Helper()
		if !strings.Contains(data, old) {
			t.Fatalf("%q is not in the golden file", old)
		}

		return strings.Replace(data, old, replacement, 1)
	}
	handoff := halted[strings.Index(halted, `"handoff":{`)+len(`"handoff":`) : strings.Index(halted, `},"run_id"`)+1]
	for name, data := range map[string]string{
		"empty":              "",
		"null":               "null",
		"empty object":       "{}",
		"cut":                halted[:len(halted)-1],
		"trailing":           counting + "\n",
		"space":              swap(counting, `"halted":false`, `"halted": false`),
		"unknown field":      swap(counting, `"halted"`, `"approved":true,"halted"`),
		"missing field":      swap(counting, `"halted":false,`, ``),
		"double field":       swap(counting, `"halted":false`, `"halted":false,"halted":false`),
		"other case":         swap(counting, `"halted"`, `"Halted"`),
		"schema":             swap(counting, `escalation.v1`, `escalation.v2`),
		"another run":        swap(counting, `run_ab`, `run_cd`),
		"another workflow":   swap(counting, `refunds@1.0.0`, `refunds@1.0.1`),
		"fewer counts":       swap(counting, `"tool_failure":1`, `"tool_failure":0`),
		"negative count":     swap(swap(counting, `"tool_failure":1`, `"tool_failure":3`), `"uncertainty":1`, `"uncertainty":-1`),
		"fraction":           swap(counting, `"tool_failure":1`, `"tool_failure":1.0`),
		"upper case digest":  swap(counting, digest(0), strings.ToUpper(digest(0))),
		"digests null":       swap(counting, `"step_digests":["`+digest(0)+`","`+digest(1)+`"]`, `"step_digests":null`),
		"halted, no handoff": swap(counting, `"halted":false`, `"halted":true`),
		"handoff, counting":  swap(halted, `"halted":true`, `"halted":false`),
		"handoff of a run":   swap(halted, `"run_id":"run_ab`, `"run_id":"run_cd`),
		"handoff, space":     swap(halted, `"evidence":[]`, `"evidence": []`),
		"handoff malformed":  swap(halted, `"evidence":[]`, `"evidence":{}`),
		"handoff, digests":   swap(halted, digest(3), digest(4)),
		"handoff, class":     swap(halted, handoff, strings.Replace(golden(t, permission), digest(1), strings.Join([]string{digest(0), digest(1), digest(2), digest(3)}, `","`), 1)),
		"handoff, fewer":     swap(halted, `["`+digest(0)+`",`, `[`),
		"oversize":           counting + strings.Repeat(" ", 40<<10),
		"32 and counting": `{"counts":{"permission_denial":0,"tool_failure":32,"uncertainty":0},"halted":false,"handoff":null,"run_id":"` +
			runID(t, "ab").String() + `","schema_version":"interlock.escalation.v1","step_digests":["` +
			strings.Repeat(digest(0)+`","`, 31) + digest(0) + `"],"workflow_id":"` + workflow.String() + `"}`,
	} {
		b, err := escalation.ParseBreaker(config(t), []byte(data))
		if b != nil || !errors.Is(err, escalation.ErrInvalidState) {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
	if _, err := escalation.ParseBreaker(escalation.BreakerConfig{}, []byte(counting)); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("no configuration: %v", err)
	}
}

func TestRunIsRestoredHalted(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	ctx, run := b.start(t, t.Context())
	tool := b.tool(t, "refund", middleware.ReadOnly, fails)
	for range 2 {
		if _, err := tool.Do(ctx, "", ""); !errors.Is(err, errTool) {
			t.Fatal(err)
		}
	}
	data, err := run.Save()
	if err != nil {
		t.Fatal(err)
	}
	run.End()

	// Another process: another Escalation.
	b = newBench(t, nil)
	restore := func(data []byte) (*middleware.GuardedTool, *middleware.Run, error) {
		t.Helper()
		var r *middleware.Run
		var err error
		ctx, r, err = middleware.RestoreRun(t.Context(), middleware.RunConfig{ //nolint:fatcontext // begins anew each time
			Workflow: workflow, Receivers: []middleware.SignalReceiver{b}, Slots: []middleware.Slot{b.Slot()},
		}, data)
		if err != nil {
			return nil, nil, err
		}
		t.Cleanup(func() { r.End() })
		return b.tool(t, "refund", middleware.ReadOnly, fails), r, nil
	}
	tool, run, err = restore(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Counts(run); got.ToolFailure != 2 {
		t.Errorf("counts %+v after the restore", got)
	}
	if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
		t.Fatalf("the third failure: %v", err)
	}
	want, _ := b.Handoff(run)
	data, err = run.Save()
	if err != nil {
		t.Fatal(err)
	}
	run.End()

	// Also if it was saved between the trip of the breaker and the halt of the run.
	for _, state := range []string{
		string(data),
		strings.Replace(string(data), `"halted":{"component":"escalation","reason":"circuit_open"}`, `"halted":null`, 1),
	} {
		b = newBench(t, nil)
		tool, run, err = restore([]byte(state))
		if err != nil {
			t.Fatal(err)
		}
		if c, r, halted := run.Halted(); !halted || c != middleware.ComponentEscalation || r != middleware.ReasonCircuitOpen {
			t.Errorf("halted %v by %v: %v", halted, c, r)
		}
		if _, err := tool.Do(ctx, "", ""); !errors.Is(err, escalation.ErrCircuitOpen) {
			t.Errorf("a call of the restored run: %v", err)
		}
		got, ok := b.Handoff(run)
		if !ok || got.IssuedAt() != want.IssuedAt() || len(got.StepDigests()) != 3 {
			t.Error("the handoff is another one")
		}
	}
	broken := strings.Replace(string(data), `"tool_failure":3`, `"tool_failure":2`, 1)
	if _, _, err := restore([]byte(broken)); !errors.Is(err, escalation.ErrInvalidState) {
		t.Errorf("a contradicting state: %v", err)
	}
}
