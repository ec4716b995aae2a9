package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

type counter struct {
	Count int `json:"count"`
}

var errStrict = errors.New("not what Save wrote: " + secret)

func counterSlot(name string) *middleware.PerRun[counter] {
	return &middleware.PerRun[counter]{
		Name: name,
		New:  func(*middleware.Run) (*counter, error) { return &counter{}, nil },
		Save: func(c *counter) ([]byte, error) { return json.Marshal(c) },
		Load: func(_ *middleware.Run, section []byte) (*counter, error) {
			var c counter
			if err := json.Unmarshal(section, &c); err != nil {
				return nil, err
			}
			if again, err := json.Marshal(c); err != nil || !bytes.Equal(again, section) {
				return nil, errStrict
			}

			return &c, nil
		},
	}
}

func fixedRun(slots ...middleware.Slot) middleware.RunConfig {
	return middleware.RunConfig{
		Workflow: workflow(), Slots: slots, Random: bytes.NewReader(bytes.Repeat([]byte{0xab}, 16)),
		Now: func() time.Time { return time.Unix(1_800_000_000, 999) },
		Previewer: previewerFunc(func(context.Context, ident.WorkflowID) (middleware.Preview, error) {
			return preview(42), nil
		}),
	}
}

const golden = `{"halted":{"component":"watchdog","reason":"loop"},` +
	`"preview":{"digest":"sha256:684888c0ebb17f374298b65ee2807526c066094c701bcc7ebbe1c1095f494fc1","generation":42},` +
	`"run_id":"run_abababababababababababababababab","schema_version":"interlock.run.v1",` +
	`"sections":{"budget":{"count":7},"escalation":{"count":0}},` +
	`"started_at":1800000000,"workflow_id":"workflow:org.example/refunds@1.0.0"}`

const goldenPlain = `{"halted":null,"preview":null,"run_id":"run_abababababababababababababababab",` +
	`"schema_version":"interlock.run.v1","sections":{},"started_at":1800000000,` +
	`"workflow_id":"workflow:org.example/refunds@1.0.0"}`

func TestSaveIsGolden(t *testing.T) {
	t.Parallel()
	budget, escalation := counterSlot("budget"), counterSlot("escalation")
	_, r := start(t, fixedRun(escalation, budget)) // the order of the slots does not matter
	c, err := budget.Get(r)
	if err != nil {
		t.Fatal(err)
	}
	c.Count = 7
	r.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
	if data, err := r.Save(); err != nil || string(data) != golden {
		t.Errorf("%v\n got %s\nwant %s", err, data, golden)
	}
	cfg := fixedRun()
	cfg.Previewer = nil
	_, plain := start(t, cfg)
	if data, err := plain.Save(); err != nil || string(data) != goldenPlain {
		t.Errorf("%v\n got %s\nwant %s", err, data, goldenPlain)
	}
}

func TestRestoreRun(t *testing.T) {
	t.Parallel()
	budget, escalation := counterSlot("budget"), counterSlot("escalation")
	asked := 0
	cfg := middleware.RunConfig{
		Label: ident.MustLabel("agent"), Slots: []middleware.Slot{budget, escalation},
		Previewer: previewerFunc(func(context.Context, ident.WorkflowID) (middleware.Preview, error) { asked++; return preview(43), nil }),
	}
	ctx, r, err := middleware.RestoreRun(t.Context(), cfg, []byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	defer r.End()
	if middleware.RunFrom(ctx) != r || r.ID().String() != "run_abababababababababababababababab" || r.Workflow() != workflow() ||
		!r.Started().Equal(time.Unix(1_800_000_000, 0)) || r.Label().String() != "agent" {
		t.Errorf("got %+v", r)
	}
	if r.CurrentPreview() != preview(42) || asked != 0 {
		t.Errorf("the saved preview was renewed: %v", r.CurrentPreview())
	}
	if c, err := budget.Get(r); err != nil || c.Count != 7 {
		t.Errorf("got %v, %v", c, err)
	}
	wantReason(t, middleware.CheckRun(ctx), middleware.ReasonLoop)
	if c, _, _ := r.Halted(); c != middleware.ComponentWatchdog {
		t.Errorf("halted by %v", c)
	}
	_, err = newTool(t, middleware.ToolConfig{}, echo).Do(ctx, "", "")
	wantReason(t, err, middleware.ReasonLoop)
	if again, err := r.Save(); err != nil || string(again) != golden {
		t.Errorf("%v\n got %s\nwant %s", err, again, golden)
	}
}

// A nested run that was saved under a halted parent is halted for itself.
func TestRestoreKeepsTheParentsHalt(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	_, child := startIn(ctx, t, middleware.RunConfig{})
	outer.Halt(middleware.ComponentBudget, middleware.ReasonBudgetExceeded)
	data, err := child.Save()
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := middleware.RestoreRun(t.Context(), middleware.RunConfig{}, data)
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, again.Check(), middleware.ReasonBudgetExceeded)
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	const sections = `"sections":{"budget":{"count":7},"escalation":{"count":0}}`
	edit := func(old, with string) string {
		if strings.Count(golden, old) != 1 {
			t.Fatalf("%s stands %d times in the golden text", old, strings.Count(golden, old))
		}

		return strings.Replace(golden, old, with, 1)
	}
	for name, data := range map[string]string{
		"empty":                   "",
		"null":                    "null",
		"a string":                `"` + secret + `"`,
		"an array":                "[" + golden + "]",
		"cut":                     golden[:len(golden)-1],
		"data behind it":          golden + "{}",
		"a line end behind it":    golden + "\n",
		"a space in front of it":  " " + golden,
		"a space inside":          edit(`"started_at":`, `"started_at": `),
		"double key":              edit(`"started_at":1800000000`, `"started_at":1800000000,"started_at":1800000000`),
		"double key, other value": edit(`"halted":{`, `"halted":null,"halted":{`),
		"double section":          edit(`"budget":{"count":7}`, `"budget":{"count":0},"budget":{"count":7}`),
		"unknown field":           edit(`"started_at"`, `"`+secret+`":1,"started_at"`),
		"unknown inner field":     edit(`"reason":"loop"`, `"reason":"loop","text":"`+secret+`"`),
		"missing field":           edit(`"started_at":1800000000,`, ``),
		"missing halted":          edit(`"halted":{"component":"watchdog","reason":"loop"},`, ``),
		"other order":             edit(`"component":"watchdog","reason":"loop"`, `"reason":"loop","component":"watchdog"`),
		"other spelling of a key": edit(`"halted"`, `"Halted"`),
		"escaped key":             edit(`"halted"`, `"h\u0061lted"`),
		"escaped value":           edit(`"loop"`, `"l\u006fop"`),
		"other number":            edit(`1800000000`, `18e8`),
		"fraction":                edit(`1800000000`, `1800000000.5`),
		"too large a number":      edit(`:42`, `:18446744073709551616`),
		"negative generation":     edit(`:42`, `:-1`),
		"other schema":            edit(`interlock.run.v1`, `interlock.run.v2`),
		"no schema":               edit(`interlock.run.v1`, ``),
		"empty run":               edit(`run_abababababababababababababababab`, ``),
		"run in upper case":       edit(`run_abababababababababababababababab`, `run_ABABABABABABABABABABABABABABABAB`),
		"empty workflow":          edit(`workflow:org.example/refunds@1.0.0`, ``),
		"another workflow":        edit(`refunds@1.0.0`, `payouts@1.0.0`),
		"unknown component":       edit(`"watchdog"`, `"`+secret+`"`),
		"empty component":         edit(`"watchdog"`, `""`),
		"invalid component":       edit(`"watchdog"`, `"invalid"`),
		"unknown reason":          edit(`"loop"`, `"`+secret+`"`),
		"invalid reason":          edit(`"loop"`, `"invalid"`),
		"empty halt":              edit(`{"component":"watchdog","reason":"loop"}`, `{}`),
		"short digest":            edit(`494fc1"`, `494fc"`),
		"null preview fields":     edit(`"generation":42`, `"generation":null`),
		"missing section":         edit(sections, `"sections":{"budget":{"count":7}}`),
		"no section":              edit(sections, `"sections":{}`),
		"null sections":           edit(sections, `"sections":null`),
		"further section":         edit(sections, `"sections":{"budget":{"count":7},"escalation":{"count":0},"other":{}}`),
		"another section":         edit(sections, `"sections":{"budget":{"count":7},"other":{"count":0}}`),
		"bad section":             edit(`{"count":7}`, `{"count":"`+secret+`"}`),
		"null section":            edit(`{"count":7}`, `null`),
		"space in a section":      edit(`{"count":7}`, `{"count": 7}`),
		"unknown in a section":    edit(`{"count":7}`, `{"count":7,"x":1}`),
		"not UTF-8":               edit(`"loop"`, "\"lo\xffp\""),
		"oversize":                edit(`{"count":7}`, `{"count":7,"x":"`+strings.Repeat("a", 1<<20)+`"}`),
		"deep":                    strings.Repeat("[", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, r, err := middleware.RestoreRun(t.Context(), middleware.RunConfig{
				Workflow: workflow(), Slots: []middleware.Slot{counterSlot("budget"), counterSlot("escalation")},
			}, []byte(data))
			if ctx != nil || r != nil {
				t.Error("got a run")
			}
			wantReason(t, err, middleware.ReasonInvalidRunState)
			if err != nil && err.Error() != "interlock: run: invalid_run_state" {
				t.Error(err)
			}
		})
	}
}

func TestRestoreRefusesConfig(t *testing.T) {
	t.Parallel()
	fresh := func(*middleware.Run) (*counter, error) { return &counter{}, nil }
	full := counterSlot("budget")
	other := counterSlot("budget")
	_, stranger := start(t, middleware.RunConfig{})
	var none *middleware.PerRun[counter]
	for name, cfg := range map[string]middleware.RunConfig{
		"another run":     {ID: stranger.ID(), Slots: []middleware.Slot{full, counterSlot("escalation")}},
		"no slots":        {},
		"one name twice":  {Slots: []middleware.Slot{full, other}},
		"one slot twice":  {Slots: []middleware.Slot{full, full}},
		"nil slot":        {Slots: []middleware.Slot{full, nil}},
		"typed nil slot":  {Slots: []middleware.Slot{full, none}},
		"slot without it": {Slots: []middleware.Slot{full, &middleware.PerRun[counter]{Name: "escalation", New: fresh}}},
		"unnamed slot":    {Slots: []middleware.Slot{full, &middleware.PerRun[counter]{New: fresh, Save: full.Save, Load: full.Load}}},
		"invalid name":    {Slots: []middleware.Slot{full, counterSlot("Escalation")}},
		"panicking Load": {Slots: []middleware.Slot{full, &middleware.PerRun[counter]{
			Name: "escalation", New: fresh, Save: full.Save,
			Load: func(*middleware.Run, []byte) (*counter, error) { panic(secret) },
		}}},
	} {
		_, r, err := middleware.RestoreRun(t.Context(), cfg, []byte(golden))
		if r != nil {
			t.Errorf("%s: got a run", name)
		}
		wantReason(t, err, middleware.ReasonInvalidRunState)
		if name == "no slots" || name == "another run" {
			continue // these make good new runs
		}
		cfg.Workflow = workflow()
		_, saved := start(t, cfg)
		if data, err := saved.Save(); name != "panicking Load" && (data != nil || !errors.Is(err, middleware.ReasonInvalidRunState)) {
			t.Errorf("%s: saved %s, %v", name, data, err)
		}
	}
}

func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(*counter) ([]byte, error){
		"error":    func(*counter) ([]byte, error) { return []byte("{}"), errSecret },
		"panic":    func(*counter) ([]byte, error) { panic(secret) },
		"not JSON": func(*counter) ([]byte, error) { return []byte("{" + secret), nil },
		"oversize": func(*counter) ([]byte, error) { return []byte(`"` + strings.Repeat("a", 1<<20) + `"`), nil },
	} {
		slot := counterSlot("budget")
		slot.Save = save
		_, r := start(t, middleware.RunConfig{Slots: []middleware.Slot{slot}})
		data, err := r.Save()
		if data != nil {
			t.Errorf("%s: got %s", name, data)
		}
		wantReason(t, err, middleware.ReasonInvalidRunState)
	}
	slot := counterSlot("budget")
	slot.New = func(*middleware.Run) (*counter, error) { return nil, errSecret }
	_, r := start(t, middleware.RunConfig{Slots: []middleware.Slot{slot}})
	_, err := r.Save()
	wantReason(t, err, middleware.ReasonInvalidRunState)
	r.End()
	_, err = r.Save()
	wantReason(t, err, middleware.ReasonRunEnded)
}

// A Load that uses a slot which is restored only after it would get it empty,
// and what was saved would be lost: limits would start again from zero.
func TestRestoreOrderOfSlots(t *testing.T) {
	t.Parallel()
	budget, escalation := counterSlot("budget"), counterSlot("escalation")
	strict := escalation.Load
	escalation.Load = func(r *middleware.Run, section []byte) (*counter, error) {
		if _, err := budget.Get(r); err != nil {
			return nil, err
		}

		return strict(r, section)
	}
	_, r, err := middleware.RestoreRun(t.Context(), middleware.RunConfig{Slots: []middleware.Slot{escalation, budget}}, []byte(golden))
	if r != nil {
		t.Error("restored without its budget")
	}
	wantReason(t, err, middleware.ReasonInvalidRunState)
	_, r, err = middleware.RestoreRun(t.Context(), middleware.RunConfig{Slots: []middleware.Slot{budget, escalation}}, []byte(golden))
	if err != nil {
		t.Fatal(err)
	}
	if c, _ := budget.Get(r); c == nil || c.Count != 7 {
		t.Errorf("got %v", c)
	}
}

// What a failed restoration has made is ended: it may hold timers.
func TestRestoreEndsWhatItMade(t *testing.T) {
	t.Parallel()
	ctx, outer := start(t, middleware.RunConfig{})
	ended := 0
	budget, escalation := counterSlot("budget"), counterSlot("escalation")
	budget.End = func(*counter) { ended++ }
	if _, r, err := middleware.RestoreRun(ctx, middleware.RunConfig{Slots: []middleware.Slot{budget, escalation}},
		[]byte(strings.Replace(golden, `{"count":0}`, `{"count":"x"}`, 1))); err == nil || r != nil || ended != 1 {
		t.Errorf("bad section: got %v, ended %d times", err, ended)
	}
	strict := escalation.Load
	escalation.Load = func(r *middleware.Run, section []byte) (*counter, error) {
		outer.End()

		return strict(r, section)
	}
	_, r, err := middleware.RestoreRun(ctx, middleware.RunConfig{Slots: []middleware.Slot{budget, escalation}}, []byte(golden))
	if r != nil || ended != 2 {
		t.Errorf("the parent ended: got %v, ended %d times", r, ended)
	}
	wantReason(t, err, middleware.ReasonRunEnded)
	_, r, err = middleware.RestoreRun(ctx, middleware.RunConfig{Slots: []middleware.Slot{budget, escalation}}, []byte(golden))
	if r != nil {
		t.Error("an ended run got a child")
	}
	wantReason(t, err, middleware.ReasonRunEnded)
}

func FuzzRestoreRun(f *testing.F) {
	for _, seed := range []string{
		golden, goldenPlain, "", "{}", "null", golden + " ", golden[:40], strings.ToUpper(golden),
		strings.Replace(goldenPlain, `"sections":{}`, `"sections":{"budget":{"count":1},"escalation":{"count":2}}`, 1),
		strings.Replace(golden, `"halted":{"component":"watchdog","reason":"loop"}`, `"halted":null`, 1),
		strings.Replace(golden, `:42`, `:18446744073709551615`, 1),
		strings.Replace(golden, `1800000000`, `-1`, 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		budget, escalation := counterSlot("budget"), counterSlot("escalation")
		for _, slots := range [][]middleware.Slot{nil, {budget, escalation}} {
			_, r, err := middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: slots}, data)
			if err != nil {
				if r != nil || err.Error() != "interlock: run: invalid_run_state" {
					t.Errorf("got %v, %v", r, err)
				}

				continue
			}
			// Nothing but what Save writes is accepted.
			if again, err := r.Save(); err != nil || !bytes.Equal(again, data) {
				t.Errorf("%v: %s became %s", err, data, again)
			}
			r.End()
		}
	})
}
