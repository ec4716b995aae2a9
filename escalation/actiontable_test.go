package escalation_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// actionRow is one row of the table of states in the comment of ActionBreaker.
type actionRow struct{ state, event, next, decision string }

func actionRows(t *testing.T) []actionRow {
	t.Helper()
	src, err := os.ReadFile("action.go")
	if err != nil {
		t.Fatal(err)
	}
	column := regexp.MustCompile(`\s{2,}`)
	var rows []actionRow
	for line := range strings.SplitSeq(string(src), "\n") {
		text, ok := strings.CutPrefix(line, "//\t")
		if c := column.Split(text, -1); ok && len(c) == 4 && c[0] != "state" && slices.Contains([]string{"closed", "open", "half_open"}, c[0]) {
			rows = append(rows, actionRow{c[0], c[1], c[2], c[3]})
		}
	}

	return rows
}

// actionScene sets a state up and makes an event happen in it.
type actionScene struct {
	change  func(*escalation.ActionConfig)
	prepare func(tb testing.TB, r *rig)
	happen  func(tb testing.TB, r *rig)
}

func (s actionScene) hardThree() actionScene {
	s.change = func(c *escalation.ActionConfig) { c.HardFailures = 3 }

	return s
}

// do makes the event a call.
func do(effect middleware.Effect, fn middleware.ToolHandler) func(testing.TB, *rig) {
	return func(tb testing.TB, r *rig) {
		tb.Helper()
		apart(func() { _ = r.call(tb, effect, fn) })
	}
}

func times(n int, f func(testing.TB, *rig)) func(testing.TB, *rig) {
	return func(tb testing.TB, r *rig) {
		tb.Helper()
		for range n {
			f(tb, r)
		}
	}
}

func tell(tb testing.TB, r *rig) {
	tb.Helper()
	ctx, run := r.start(tb)
	r.Note(ctx, run, middleware.ReasonBudgetExceeded)
}

func risky(tb testing.TB, r *rig) {
	tb.Helper()
	ctx, _ := r.start(tb)
	middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalRisk, Value: 0.9})
	_, _ = r.tool(tb, "act", middleware.ReadOnly, works).Do(ctx, "", "input")
}

func canceled(tb testing.TB, r *rig) {
	tb.Helper()
	ctx, _ := r.start(tb)
	ctx, cancel := context.WithCancel(ctx)
	_, _ = r.tool(tb, "act", middleware.ReadOnly, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		cancel()

		return nil, errTool
	}).Do(ctx, "", "input")
}

func stopped(tb testing.TB, r *rig) {
	tb.Helper()
	ctx, run := r.start(tb)
	_, _ = r.inner(tb, "act", middleware.ReadOnly, inside(func(context.Context) error {
		return denial(run.ID(), middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, middleware.VerdictDeny)
	}), works).Do(ctx, "", "input")
}

// earlier starts an action before the state is made and lets it fail after.
func earlier(state func(testing.TB, *rig)) (prepare, happen func(testing.TB, *rig)) {
	var h *held

	return func(tb testing.TB, r *rig) {
			tb.Helper()
			h = r.hold(tb, middleware.ReadOnly)
			state(tb, r)
		}, func(tb testing.TB, _ *rig) {
			tb.Helper()
			if err := h.end(panics); err == nil {
				tb.Error("the action did not panic")
			}
		}
}

func recovered(tb testing.TB, r *rig) {
	tb.Helper()
	r.halfOpen(tb)
	times(2, do(middleware.ReadOnly, works))(tb, r)
	r.in(tb, middleware.CircuitClosed)
}

func actionScenes() map[string]actionScene {
	nothing := func(testing.TB, *rig) {}
	open := func(tb testing.TB, r *rig) { tb.Helper(); r.open(tb) }
	half := func(tb testing.TB, r *rig) { tb.Helper(); r.halfOpen(tb) }
	due := func(tb testing.TB, r *rig) { tb.Helper(); r.open(tb); r.clock.move(time.Minute) }
	scenes := map[string]actionScene{
		"closed/success":                {prepare: nothing, happen: do(middleware.ReadOnly, works)},
		"closed/success after failures": {prepare: times(4, do(middleware.ReadOnly, fails)), happen: do(middleware.Effectful, works)},
		"closed/failure":                {prepare: times(3, do(middleware.ReadOnly, fails)), happen: do(middleware.ReadOnly, fails)},
		"closed/failure at threshold":   {prepare: times(4, do(middleware.ReadOnly, fails)), happen: do(middleware.ReadOnly, fails)},
		"closed/hard failure below":     actionScene{prepare: times(1, do(middleware.ReadOnly, panics)), happen: do(middleware.ReadOnly, panics)}.hardThree(),
		"closed/hard failure":           actionScene{prepare: times(2, do(middleware.ReadOnly, panics)), happen: do(middleware.ReadOnly, exits)}.hardThree(),
		"closed/guardrail":              {prepare: nothing, happen: risky},
		"closed/excluded":               {prepare: times(4, do(middleware.ReadOnly, fails)), happen: times(20, stopped)},
		"open/action":                   {prepare: open, happen: do(middleware.ReadOnly, works)},
		"open/told":                     {prepare: open, happen: times(7, tell)},
		"open/action after recovery":    {prepare: due, happen: do(middleware.Polling, works)},
		"open/effect after recovery":    {prepare: due, happen: do(middleware.Idempotent, works)},
		"half_open/success":             {prepare: half, happen: do(middleware.ReadOnly, works)},
		"half_open/success at threshold": {
			prepare: func(tb testing.TB, r *rig) { tb.Helper(); r.halfOpen(tb); do(middleware.ReadOnly, works)(tb, r) },
			happen:  do(middleware.ReadOnly, works),
		},
		"half_open/trial errors":             {prepare: half, happen: do(middleware.ReadOnly, fails)},
		"half_open/trial panics":             {prepare: half, happen: do(middleware.ReadOnly, panics)},
		"half_open/trial ends its goroutine": {prepare: half, happen: do(middleware.ReadOnly, exits)},
		"half_open/trial is canceled":        {prepare: half, happen: canceled},
		"half_open/trial is refused inside":  {prepare: half, happen: stopped},
		"half_open/guardrail":                {prepare: half, happen: risky},
		"half_open/told":                     {prepare: half, happen: tell},
		"half_open/effect":                   {prepare: half, happen: do(middleware.Effectful, works)},
	}
	for state, to := range map[string]func(testing.TB, *rig){"closed": recovered, "open": open} {
		prepare, happen := earlier(to)
		scenes[state+"/earlier generation"] = actionScene{prepare: prepare, happen: happen}
	}
	prepare, happen := earlier(half)
	scenes["half_open/earlier generation"] = actionScene{prepare: prepare, happen: happen}
	var first *held
	trial := func(tb testing.TB, r *rig) {
		tb.Helper()
		r.halfOpen(tb)
		first = r.hold(tb, middleware.ReadOnly)
		tb.Cleanup(func() { _ = first.end(works) })
	}
	scenes["half_open/one trial too many"] = actionScene{prepare: trial, happen: do(middleware.ReadOnly, works)}
	var lost *held
	scenes["half_open/trial is lost"] = actionScene{
		prepare: func(tb testing.TB, r *rig) {
			tb.Helper()
			r.halfOpen(tb)
			lost = r.hold(tb, middleware.ReadOnly)
			tb.Cleanup(func() { _ = lost.end(works) })
			lost.cancel()
			r.clock.move(time.Minute)
		},
		happen: do(middleware.ReadOnly, works),
	}

	return scenes
}

// The table in the comment of ActionBreaker says what the code does: each row is
// a test, and there is no scene without a row.
func TestActionTransitions(t *testing.T) {
	t.Parallel()
	scenes := actionScenes()
	rows := actionRows(t)
	for _, row := range rows {
		name := row.state + "/" + row.event
		scene, ok := scenes[name]
		if !ok {
			t.Errorf("no scene for %s", name)

			continue
		}
		delete(scenes, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, scene.change)
			scene.prepare(t, r)
			if got := r.State(workflow).String(); got != row.state {
				t.Fatalf("prepared %s, want %s", got, row.state)
			}
			before := len(r.History(workflow))
			r.log.clear()
			scene.happen(t, r)
			// After recovery, a trial that succeeds leaves it half-open.
			if got := r.State(workflow).String(); got != row.next {
				t.Errorf("now %s, want %s", got, row.next)
			}
			checkDecisions(t, r.log.all(), row)
			if got := len(r.History(workflow)) - before; got != b2i(row.state != row.next) {
				t.Errorf("%d transitions in the history", got)
			}
		})
	}
	for name := range scenes {
		t.Errorf("no row for %s", name)
	}
	if len(rows) < 25 {
		t.Errorf("%d rows", len(rows))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}

	return 0
}

// checkDecisions compares the decisions with the words of the table: failure is
// any failure, trip the transition for it, refused a refusal by the guardrail,
// others are codes.
func checkDecisions(t *testing.T, got []middleware.Decision, row actionRow) {
	t.Helper()
	var want []string
	if row.decision != "–" {
		want = strings.Split(row.decision, ", ")
	}
	if len(got) != len(want) {
		t.Fatalf("%d decisions %v, want %v", len(got), got, want)
	}
	for i, d := range got {
		transition := row.state != row.next && d.Circuit != 0
		switch w := want[i]; {
		case w == "failure":
			if d.Class == 0 || d.Count < 1 || d.Circuit != 0 || d.Verdict != middleware.VerdictAbstain {
				t.Errorf("decision %d is %+v, want a failure", i, d)
			}
		case w == "trip":
			if d.Class == 0 || d.Circuit != middleware.CircuitOpen || d.Verdict != middleware.VerdictEscalate || d.Reason != got[i-1].Reason {
				t.Errorf("decision %d is %+v, want the trip", i, d)
			}
		case w == "refused":
			if d.Reason != middleware.ReasonGuardrail || d.Verdict != middleware.VerdictDeny {
				t.Errorf("decision %d is %+v, want a refusal", i, d)
			}
		case d.Reason.String() != w:
			t.Errorf("decision %d is %v, want %s", i, d.Reason, w)
		}
		if transition && (d.Circuit.String() != row.next || d.Label != deskLabel) {
			t.Errorf("a transition to %v of %v", d.Circuit, d.Label)
		}
		if d.Component != middleware.ComponentBreaker || d.Run.IsZero() || d.Workflow != workflow || d.Seq == 0 {
			t.Errorf("decision %d lacks its place: %+v", i, d)
		}
		if i > 0 && d.Seq <= got[i-1].Seq {
			t.Errorf("decision %d has Seq %d after %d", i, d.Seq, got[i-1].Seq)
		}
	}
}
