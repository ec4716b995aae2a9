package ops_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's format that the test reads.
//
//nolint:tagliatelle // Grafana's names
type dashboard struct {
	Title      string  `json:"title"`
	UID        string  `json:"uid"`
	Schema     int     `json:"schemaVersion"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string     `json:"name"`
			Type       string     `json:"type"`
			Definition string     `json:"definition"`
			Source     datasource `json:"datasource"`
		} `json:"list"`
	} `json:"templating"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

//nolint:tagliatelle // Grafana's names
type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Source      datasource `json:"datasource"`
	Grid        struct {
		H, W, X, Y int
	} `json:"gridPos"`
	Targets []struct {
		RefID  string     `json:"refId"`
		Expr   string     `json:"expr"`
		Legend string     `json:"legendFormat"`
		Source datasource `json:"datasource"`
	} `json:"targets"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}

	return d
}

// variables are what Grafana puts in before it asks.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$job", ".*")

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// Every query of a panel names only what is exported, and every metric that is
// exported is on a panel.
func TestDashboardQueries(t *testing.T) {
	t.Parallel()
	e := translated(t)
	shown, queries := map[string]bool{}, 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries++
			expr := variables.Replace(target.Expr)
			q, errs := e.checkQuery(expr)
			for _, err := range errs {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			if strings.Contains(expr, "$") || !strings.Contains(target.Expr, `job=~"$job"`) {
				t.Errorf("panel %q: variables in %s", p.Title, target.Expr)
			}
			for _, l := range legendLabel.FindAllStringSubmatch(target.Legend, -1) {
				if !q.labels[l[1]] {
					t.Errorf("panel %q: the legend names %q, which the result has not", p.Title, l[1])
				}
			}
			for name := range q.metrics {
				shown[base(name)] = true
			}
		}
	}
	if queries == 0 {
		t.Error("no queries")
	}
	for name := range e {
		if !shown[base(name)] {
			t.Errorf("%s is on no panel", name)
		}
	}
}

// What Grafana needs to import it anywhere.
func TestDashboardForm(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	source := datasource{Type: "prometheus", UID: "${datasource}"}
	if d.Title == "" || d.UID == "" || d.Schema == 0 || len(d.Panels) == 0 {
		t.Errorf("title %q, uid %q, schema %d, %d panels", d.Title, d.UID, d.Schema, len(d.Panels))
	}
	vars := map[string]string{}
	for _, v := range d.Templating.List {
		vars[v.Name] = v.Type
		if v.Type == "query" && (v.Source != source || v.Definition != "label_values(interlock_decisions_total, job)") {
			t.Errorf("variable %s: %+v", v.Name, v)
		}
	}
	if vars["datasource"] != "datasource" || vars["job"] != "query" {
		t.Errorf("variables %v", vars)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Grid.W < 1 || p.Grid.H < 1 || p.Grid.X < 0 || p.Grid.X+p.Grid.W > 24 {
			t.Errorf("panel %q lies at %+v", p.Title, p.Grid)
		}
		for x := p.Grid.X; x < p.Grid.X+p.Grid.W; x++ {
			for y := p.Grid.Y; y < p.Grid.Y+p.Grid.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Source != source || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q: source %+v, description %q, %d targets", p.Title, p.Source, p.Description, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Source != source || target.RefID == "" || refs[target.RefID] || target.Legend == "" {
				t.Errorf("panel %q: target %+v", p.Title, target)
			}
			refs[target.RefID] = true
		}
	}
}
