package macro_test

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/macro"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every row gives its figure: each batch sees to it that all runs were answered
// and called the tool.
func TestRows(t *testing.T) {
	t.Parallel()
	rows := macro.Rows(fixture.NewLedgers())
	if err := row.Check(rows); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, r := range rows {
		if strings.Contains(r.Name, "/at-once-16/") {
			got[r.Name] = figure(t, r)
		}
	}
	for _, load := range []string{"mrkl/bare", "mrkl/guarded", "functions/bare", "functions/guarded"} {
		at := func(q string) float64 { return got["macro/"+load+"/at-once-16/"+q] }
		if at("p50") > at("p90") || at("p90") > at("p99") {
			t.Errorf("%s: %v %v %v", load, at("p50"), at("p90"), at("p99"))
		}
	}
}

func figure(t *testing.T, r row.Row) float64 {
	t.Helper()
	v, err := r.Measure()
	if err != nil || v <= 0 {
		t.Errorf("%s: %v %v", r.Name, v, err)
	}

	return v
}

// By hand, every run asks the provider that is down; the fallback leaves it alone.
func TestOutage(t *testing.T) {
	t.Parallel()
	const runs, atOnce = 400, 50
	got := map[string]float64{}
	for _, r := range macro.Outage(fixture.NewLedgers(), runs, atOnce) {
		got[r.Name] = figure(t, r)
	}
	if n := got["macro/outage/by-hand/requests"]; n < runs {
		t.Errorf("by hand the provider got %v requests", n)
	}
	if ours, theirs := got["macro/outage/fallback/requests"], got["macro/outage/by-hand/requests"]; ours >= theirs/2 {
		t.Errorf("the fallback sent %v requests, by hand it were %v", ours, theirs)
	}
}

func TestTargetsNameRows(t *testing.T) {
	t.Parallel()
	rows := macro.Rows(fixture.NewLedgers())
	for _, target := range macro.Targets() {
		for _, name := range []string{target.Row, target.To} {
			if !slices.ContainsFunc(rows, func(r row.Row) bool { return r.Name == name }) {
				t.Errorf("%s: no row %s", target.Name, name)
			}
		}
	}
}
