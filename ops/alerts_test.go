package ops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const (
	rulesFile     = "alerts.yaml"
	ruleTestsFile = "alerts_test.yaml"
	day           = 24 * time.Hour
	runbookFile   = "../docs/operations.md"
	runbookURL    = "https://github.com/interlock-go/interlock/blob/main/docs/operations.md#"
)

// unitTests is the part of promtool's format that the tests use.
//
//nolint:tagliatelle // promtool's names
type unitTests struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []unitTest     `yaml:"tests"`
}

//nolint:tagliatelle // promtool's names
type unitTest struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Series   []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Checks []check `yaml:"alert_rule_test"`
}

//nolint:tagliatelle // promtool's names
type check struct {
	At    model.Duration `yaml:"eval_time"`
	Alert string         `yaml:"alertname"`
	Want  []firing       `yaml:"exp_alerts"`
}

//nolint:tagliatelle // promtool's names
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func readRules(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	groups, errs := rulefmt.ParseFile(rulesFile, false, model.LegacyValidation, parser.NewParser(parser.Options{}),
		promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}

	return groups
}

func readUnitTests(t *testing.T) unitTests {
	t.Helper()
	f, err := os.Open(ruleTestsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	var u unitTests
	if err := dec.Decode(&u); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(u.RuleFiles, []string{rulesFile}) || len(u.Tests) == 0 {
		t.Fatalf("rule files %v, %d tests", u.RuleFiles, len(u.Tests))
	}

	return u
}

// Each alert says how long, how bad, what, and what to do; the runbook has a
// section for each of them and for no other one.
func TestAlertsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(runbookFile)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n### Interlock")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections["Interlock"+name] = strings.TrimSpace(text)
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.For <= 0 || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: for %v, labels %v", r.Alert, r.For, r.Labels)
			}
			if r.Annotations["summary"] == "" || r.Annotations["runbook_url"] != runbookURL+strings.ToLower(r.Alert) {
				t.Errorf("%s: annotations %v", r.Alert, r.Annotations)
			}
			if len(sections[r.Alert]) < 100 {
				t.Errorf("%s: the runbook says %q", r.Alert, sections[r.Alert])
			}
			delete(sections, r.Alert)
		}
	}
	for name := range sections {
		t.Errorf("the runbook has a section for %s, which is no alert", name)
	}
}

// Prometheus's own engine evaluates the rules on the series of the unit tests.
func TestAlerts(t *testing.T) {
	t.Parallel()
	u := readUnitTests(t)
	for _, tt := range u.Tests {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, time.Duration(u.Interval))
		})
	}
}

// run lets the rules run over the series of the test, and checks on the way.
func (tt unitTest) run(t *testing.T, interval time.Duration) {
	t.Helper()
	var load strings.Builder
	fmt.Fprintf(&load, "load %v\n", tt.Interval)
	for _, s := range tt.Series {
		fmt.Fprintf(&load, "  %s %s\n", s.Series, s.Values)
	}
	loader, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:    rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()),
		AppendableV2: loader.Storage(),
		Context:      t.Context(),
		NotifyFunc:   func(context.Context, string, ...*rules.Alert) {},
		Logger:       promslog.NewNopLogger(),
	})
	groups, errs := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errors.Join(errs...))
	}
	left := slices.Clone(tt.Checks)
	for at := time.Duration(0); len(left) > 0 && at <= day; at += interval {
		now := time.Unix(0, 0).UTC().Add(at)
		loader.WithSamplesTill(now, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		for _, g := range groups {
			g.Eval(loader.Context(), now)
			for _, r := range g.Rules() {
				if r.LastError() != nil {
					t.Fatalf("%s: %v", r.Name(), r.LastError())
				}
			}
		}
		left = slices.DeleteFunc(left, func(c check) bool {
			if time.Duration(c.At) != at {
				return false
			}
			c.compare(t, groups)

			return true
		})
	}
	if len(left) > 0 {
		t.Errorf("checks at times that were not reached: %+v", left)
	}
}

func (c check) compare(t *testing.T, groups map[string]*rules.Group) {
	t.Helper()
	got, known := fired(groups, c.Alert)
	if !known {
		t.Errorf("%s: no such alert", c.Alert)
	}
	for i := range c.Want {
		c.Want[i].Labels[labels.AlertName] = c.Alert
	}
	byLabels := func(a, b firing) int { return strings.Compare(fmt.Sprint(a.Labels), fmt.Sprint(b.Labels)) }
	slices.SortFunc(got, byLabels)
	slices.SortFunc(c.Want, byLabels)
	if diff := cmp.Diff(c.Want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s at %v (-want +got):\n%s", c.Alert, c.At, diff)
	}
}

func fired(groups map[string]*rules.Group, alert string) (found []firing, known bool) {
	for _, g := range groups {
		for _, r := range g.Rules() {
			a, ok := r.(*rules.AlertingRule)
			if !ok || a.Name() != alert {
				continue
			}
			known = true
			for _, active := range a.ActiveAlerts() {
				if active.State == rules.StateFiring {
					found = append(found, firing{Labels: active.Labels.Map(), Annotations: active.Annotations.Map()})
				}
			}
		}
	}

	return found, known
}

// Each alert is shown firing and silent, also where its series do not exist.
func TestAlertsAreCovered(t *testing.T) {
	t.Parallel()
	fires, silent, absent := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, tt := range readUnitTests(t).Tests {
		for _, c := range tt.Checks {
			switch {
			case len(c.Want) > 0:
				fires[c.Alert] = true
			case len(tt.Series) == 1 && strings.HasPrefix(tt.Series[0].Series, "up{"):
				absent[c.Alert] = true
			default:
				silent[c.Alert] = true
			}
		}
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if !fires[r.Alert] || !silent[r.Alert] || !absent[r.Alert] {
				t.Errorf("%s: fires %v, silent %v, without series %v", r.Alert, fires[r.Alert], silent[r.Alert], absent[r.Alert])
			}
		}
	}
}

var summaryLabel = regexp.MustCompile(`\$labels\.(\w+)`)

// Every rule names only what is exported, and its summary only labels that the
// result has.
func TestAlertQueries(t *testing.T) {
	t.Parallel()
	e := translated(t)
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			q, errs := e.checkQuery(r.Expr)
			for _, err := range errs {
				t.Errorf("%s: %v", r.Alert, err)
			}
			for _, l := range summaryLabel.FindAllStringSubmatch(r.Annotations["summary"], -1) {
				if !q.labels[l[1]] {
					t.Errorf("%s: the summary names %q, which the result has not", r.Alert, l[1])
				}
			}
			if len(q.metrics) == 0 {
				t.Errorf("%s reads nothing", r.Alert)
			}
		}
	}
}

// The series of the unit tests are such as are exported.
func TestAlertSeries(t *testing.T) {
	t.Parallel()
	e := translated(t)
	for _, tt := range readUnitTests(t).Tests {
		for _, s := range tt.Series {
			if strings.HasPrefix(s.Series, "up{") {
				continue
			}
			if _, errs := e.checkQuery(s.Series); len(errs) > 0 {
				t.Errorf("%s: %v", tt.Name, errs)
			}
		}
	}
}

// The check itself finds what is wrong with a query.
func TestCheckQuery(t *testing.T) {
	t.Parallel()
	e := translated(t)
	for name, tt := range map[string]struct{ expr, want string }{
		"syntax":        {`sum by (job`, "parse error"},
		"metric":        {`rate(interlock_decision_total[5m])`, `metric "interlock_decision_total" is not exported`},
		"histogram":     {`interlock_decision_duration_seconds`, "is not exported"},
		"label":         {`interlock_decisions_total{reason="ok"}`, `has no label "reason"`},
		"value":         {`interlock_admission_state{interlock_admission_state="halted"}`, `is never "halted"`},
		"one of values": {`interlock_admission_state{interlock_admission_state=~"stopped|halted"}`, `is never "halted"`},
		"grouping":      {`sum by (gen_ai_tool_name) (interlock_escalation_queue)`, `has the label "gen_ai_tool_name"`},
		"matching":      {`interlock_escalation_queue and on (pod) interlock_effects_in_flight`, `has the label "pod"`},
		"new labels":    {`label_replace(interlock_escalation_queue, "a", "b", "c", "d")`, "label_replace makes labels"},
	} {
		_, errs := e.checkQuery(tt.expr)
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, not %q", name, err, tt.want)
		}
	}
}
