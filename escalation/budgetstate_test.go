package escalation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const budgetGolden = `{"final_answer":"open","model_calls":1,"per_tool":{"lookup":2,"other":0},` +
	`"run_id":"run_abababababababababababababababab","schema_version":"interlock.budget.v1","steps":1,"stopped":"",` +
	`"tokens":20,"tool_calls":3,"wall_time_ns":5000000000}`

func section(tb testing.TB, run *middleware.Run) string {
	tb.Helper()
	data, err := run.Save()
	if err != nil {
		tb.Fatal(err)
	}
	var state struct{ Sections map[string]json.RawMessage }
	if err := json.Unmarshal(data, &state); err != nil {
		tb.Fatal(err)
	}

	return string(state.Sections[escalation.BudgetSlotName])
}

// restore continues a run of id abab… whose budget section is this.
func (p purse) restore(tb testing.TB, section string) (context.Context, *middleware.Run, error) {
	tb.Helper()
	state := `{"halted":null,"preview":null,"run_id":"` + runID(tb, "ab").String() + `","schema_version":"interlock.run.v1",` +
		`"sections":{"budget":` + section + `},"started_at":0,"workflow_id":"` + workflow.String() + `"}`
	ctx, run, err := middleware.RestoreRun(tb.Context(), middleware.RunConfig{Slots: []middleware.Slot{p.Slot()}}, []byte(state))
	if err == nil {
		tb.Cleanup(func() { run.End() })
	}

	return ctx, run, err
}

func limitedTools(l *escalation.Limits) {
	l.PerTool = map[ident.Label]int{ident.MustLabel("lookup"): 2, ident.MustLabel("other"): 9}
	l.WallTime = 8 * time.Second
}

func TestBudgetState(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, limitedTools)
	ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{
		ID: runID(t, "ab"), Workflow: workflow, Slots: []middleware.Slot{p.Slot()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	lookup := p.tool(t, "lookup", works)
	if err := errors.Join(useBudget(ctx, lookup), useBudget(ctx, lookup), useBudget(ctx, p.tool(t, "free", works)),
		askBudget(ctx, p.model(t, answers(12, 8)))); err != nil {
		t.Fatal(err)
	}
	p.now.Store(int64(5 * time.Second))
	if d := cmp.Diff(budgetGolden, section(t, run)); d != "" {
		t.Fatal(d)
	}

	// Another process, with another clock.
	q := newPurse(t, false, limitedTools)
	q.now.Store(int64(time.Hour))
	ctx, again, err := q.restore(t, budgetGolden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p.Used(run), q.Used(again)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(budgetGolden, section(t, again)); d != "" {
		t.Error(d)
	}
	overBudget(t, useBudget(ctx, q.tool(t, "lookup", works)), escalation.ResourceTool)
	q.now.Add(int64(3 * time.Second))
	overBudget(t, useBudget(ctx, q.tool(t, "other", works)), escalation.ResourceWallTime)
}

// What is reserved for a call under way is used, for whoever restores the run.
func TestBudgetStateDuringACall(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, nil)
	ctx, run := p.start(t, t.Context())
	err := useBudget(ctx, p.tool(t, "lookup", func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		if s := section(t, run); !strings.Contains(s, `"tool_calls":1,`) {
			t.Error(s)
		}

		return works(ctx, c)
	}))
	if err != nil {
		t.Fatal(err)
	}
}

// A stopped run is stopped in another process, and gets its final answer once,
// in whichever of the two.
func TestBudgetStateStopped(t *testing.T) {
	t.Parallel()
	change := func(l *escalation.Limits) { l.ToolCalls = 1 }
	roomy := func(l *escalation.Limits) { l.ToolCalls = 100 }
	for name, c := range map[string]struct {
		final, answered bool // before it is saved
		later           bool // FinalAnswer where it is restored
		admits          bool
	}{
		"stopped":                      {false, false, false, false},
		"stopped, final answers later": {false, false, true, false},
		"pending":                      {true, false, true, true},
		"pending, not any more":        {true, false, false, false},
		"answered":                     {true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPurse(t, c.final, change)
			ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{
				ID: runID(t, "ab"), Workflow: workflow, Slots: []middleware.Slot{p.Slot()},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer run.End()
			tool := p.tool(t, "lookup", works)
			if err := useBudget(ctx, tool); err != nil {
				t.Fatal(err)
			}
			overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
			if c.answered {
				if err := askBudget(ctx, p.model(t, answers(1, 1))); err != nil {
					t.Fatal(err)
				}
			}
			q := newPurse(t, c.later, roomy)
			again, _, err := q.restore(t, section(t, run))
			if err != nil {
				t.Fatal(err)
			}
			tool, model := q.tool(t, "lookup", works), q.model(t, answers(1, 1))
			if refusal(t, useBudget(again, tool), escalation.ResourceToolCalls).Soft() != c.admits {
				t.Error("soft?")
			}
			if err := askBudget(again, model); (err == nil) != c.admits {
				t.Error(err)
			}
			overBudget(t, askBudget(again, model), escalation.ResourceToolCalls)
		})
	}
}

// A child that its parent's stop stopped is stopped alone, too.
func TestBudgetStateOfAChild(t *testing.T) {
	t.Parallel()
	p := newPurse(t, false, func(l *escalation.Limits) { l.ToolCalls = 1 })
	ctx, _ := p.start(t, t.Context())
	tool := p.tool(t, "lookup", works)
	_, child, err := middleware.StartRun(ctx, middleware.RunConfig{ID: runID(t, "ab"), Workflow: workflow, Slots: []middleware.Slot{p.Slot()}})
	if err != nil {
		t.Fatal(err)
	}
	p.Used(child)
	if err := useBudget(ctx, tool); err != nil {
		t.Fatal(err)
	}
	overBudget(t, useBudget(ctx, tool), escalation.ResourceToolCalls)
	again, _, err := p.restore(t, section(t, child))
	if err != nil {
		t.Fatal(err)
	}
	overBudget(t, useBudget(again, tool), escalation.ResourceToolCalls)
}

func TestBudgetStateIsStrict(t *testing.T) {
	t.Parallel()
	change := func(old, replacement string) string {
		if !strings.Contains(budgetGolden, old) {
			t.Fatalf("%s is not in the golden state", old)
		}

		return strings.Replace(budgetGolden, old, replacement, 1)
	}
	for name, state := range map[string]string{
		"nothing":             `{}`,
		"null":                `null`,
		"list":                `[]`,
		"another version":     change("budget.v1", "budget.v2"),
		"another run":         change("abab", "cdcd"),
		"no run":              change("run_abababababababababababababababab", ""),
		"space":               change(`"steps":1`, `"steps": 1`),
		"order":               change(`"final_answer":"open","model_calls":1`, `"model_calls":1,"final_answer":"open"`),
		"unknown":             change(`"steps":1`, `"steps":1,"stepz":1`),
		"double":              change(`"steps":1`, `"steps":1,"steps":1`),
		"missing":             change(`"steps":1,`, ``),
		"another case":        change(`"steps"`, `"Steps"`),
		"a fraction":          change(`"tokens":20`, `"tokens":20.5`),
		"an exponent":         change(`"tokens":20`, `"tokens":2e1`),
		"negative":            change(`"tokens":20`, `"tokens":-20`),
		"too large":           change(`"tokens":20`, `"tokens":9007199254740992`),
		"far too large":       change(`"tokens":20`, `"tokens":99999999999999999999`),
		"negative time":       change(`5000000000`, `-1`),
		"more steps":          change(`"steps":1`, `"steps":2`),
		"more of a tool":      change(`"lookup":2`, `"lookup":4`),
		"less of a tool":      change(`"lookup":2`, `"lookup":-1`),
		"tools are null":      change(`{"lookup":2,"other":0}`, `null`),
		"a tool twice":        change(`{"lookup":2,"other":0}`, `{"lookup":2,"lookup":2}`),
		"a tool of no name":   change(`"lookup"`, `""`),
		"tools in disorder":   change(`{"lookup":2,"other":0}`, `{"other":0,"lookup":2}`),
		"open and stopped":    change(`"stopped":""`, `"stopped":"steps"`),
		"pending, not":        change(`"open"`, `"pending"`),
		"another answer":      strings.Replace(change(`"open"`, `"given"`), `"stopped":""`, `"stopped":"steps"`, 1),
		"stopped by a tool":   strings.Replace(change(`"open"`, `"spent"`), `"stopped":""`, `"stopped":"tool"`, 1),
		"stopped by anything": strings.Replace(change(`"open"`, `"spent"`), `"stopped":""`, `"stopped":"all"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, run, err := newPurse(t, true, limitedTools).restore(t, state); run != nil || !errors.Is(err, escalation.ErrInvalidState) {
				t.Errorf("%v, %v", run, err)
			}
		})
	}
}

// Whatever parses renders as the same bytes, and a run that was stopped admits
// nothing but its one final answer.
func FuzzBudgetState(f *testing.F) {
	f.Add([]byte(budgetGolden))
	f.Add([]byte(strings.Replace(strings.Replace(budgetGolden, `"open"`, `"pending"`, 1), `"stopped":""`, `"stopped":"tokens"`, 1)))
	f.Add([]byte(strings.Replace(strings.Replace(budgetGolden, `"open"`, `"spent"`, 1), `"stopped":""`, `"stopped":"wall_time"`, 1)))
	f.Add([]byte(strings.Replace(budgetGolden, `"tokens":20`, `"tokens":9007199254740991`, 1)))
	f.Add([]byte(`{"final_answer":"open"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // the run's own parser refuses it
		}
		p := newPurse(t, true, func(l *escalation.Limits) { l.ToolCalls = 1 << 20 })
		ctx, run, err := p.restore(t, string(data))
		if err != nil {
			if !errors.Is(err, escalation.ErrInvalidState) {
				t.Fatal(err)
			}

			return
		}
		if s := section(t, run); s != string(data) {
			t.Fatalf("renders as %s", s)
		}
		before := p.Used(run)
		err = useBudget(ctx, p.tool(t, "lookup", works))
		if (err == nil) != (before.Stopped == 0 && before.ToolCalls < 1<<20) {
			t.Fatalf("%+v: %v", before, err)
		}
		model := p.model(t, answers(1, 1))
		open := p.Used(run).Stopped == 0
		first, second := askBudget(ctx, model), askBudget(ctx, model)
		if (first == nil) == (before.Stopped != 0 && before.Answered) || (second == nil) != open {
			t.Fatalf("%+v: %v, %v", before, first, second)
		}
	})
}

// Nothing that a run holds gets out: not by errors, not by decisions, not by the
// persisted state.
func TestBudgetCanary(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		p := newPurse(t, final, func(l *escalation.Limits) {
			l.ToolCalls, l.ModelCalls, l.PerTool = 3, 5, map[ident.Label]int{ident.MustLabel("lookup"): 1}
		})
		ctx, run := p.start(t, t.Context())
		tool, model := p.tool(t, "lookup", works), p.model(t, answers(1, 1))
		broken := p.model(t, func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return nil, errTool })
		failing := p.tool(t, "other", fails)
		errs := 0
		for range 4 {
			for _, err := range []error{useBudget(ctx, tool), useBudget(ctx, failing), askBudget(ctx, broken), askBudget(ctx, model)} {
				if err == nil {
					continue
				}
				errs++
				contentFree(t, err)
				if limit, ok := errors.AsType[*escalation.LimitError](err); ok {
					contentFree(t, limit)
					contentFree(t, *limit)
				}
			}
		}
		if errs < 8 || p.log.count(middleware.ReasonBudgetExceeded) == 0 || p.log.count(middleware.ReasonToolLimit) == 0 {
			t.Errorf("%d errors, %d decisions: too few to mean anything", errs, len(p.log.all()))
		}
		for _, d := range p.log.all() {
			contentFree(t, d)
		}
		contentFree(t, section(t, run))
		contentFree(t, p.Used(run))
	}
}
