package watchdog_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/looptrace"
)

// The bar for LoopProgress, on each part and over all.
const (
	barPrecision = 0.98
	barRecall    = 0.95
)

// corpusFamilies are the families of the specification.
var corpusFamilies = []string{
	"plain_repeat", "canonical_arguments", "volatile_results", "thought_drift", "ping_pong", "cycle_3", "cycle_4",
	"cycle_5", "cycle_long", "cycle_variant", "edit_test_same", "edit_test_moving", "paging", "polling", "batch",
	"exploration", "parallel_reads", "reread_after_edit", "verification", "guessing", "unknown_tool", "empty_arguments",
	"rotating_tools", "own_refusal", "infrastructure", "monologue", "slow_drift", "resolved", "long_honest",
	"progress_signal",
}

// corpusPart is a part of the corpus.
type corpusPart struct {
	name   string
	traces []*looptrace.Trace
}

func corpusParts(tb testing.TB) []corpusPart {
	tb.Helper()
	parts := []corpusPart{{name: "dev"}, {name: "heldout"}, {name: "fresh"}}
	for i := range parts[:2] {
		data, err := os.ReadFile("testdata/corpus/" + parts[i].name + ".jsonl")
		if err != nil {
			tb.Fatal(err)
		}
		if parts[i].traces, err = looptrace.Read(bytes.NewReader(data)); err != nil {
			tb.Fatalf("%s: %v", parts[i].name, err)
		}
	}
	// Nobody has seen these when the detector was built: another seed.
	parts[2].traces = looptrace.Generate(looptrace.HeldOutSeed + 1)

	return parts
}

// TestCorpus is the measurement: both detectors on each part, and the bar for
// LoopProgress.
func TestCorpus(t *testing.T) {
	t.Parallel()
	total := map[looptrace.Detector]looptrace.Tally{}
	for _, part := range corpusParts(t) {
		var columns []looptrace.Column
		for _, d := range looptrace.Detectors() {
			r := scoreCorpus(t, d, part.traces)
			columns = append(columns, looptrace.Column{Name: d.String(), Report: r})
			if part.name != "fresh" {
				total[d] = total[d].Plus(r.Total())
			}
		}
		var table strings.Builder
		if err := looptrace.Table(&table, columns...); err != nil {
			t.Fatal(err)
		}
		t.Logf("part %s\n%s", part.name, table.String())
		progress := columns[1].Report
		for _, w := range progress.Wrong() {
			t.Logf("part %s: %s: %s at step %d %s, marks %d to %d",
				part.name, w.ID, w.Verdict, w.Step, w.Reason, w.Earliest, w.StopBy)
		}
		holdBar(t, "part "+part.name, progress.Total())
	}
	for _, d := range looptrace.Detectors() {
		precision, _ := total[d].Precision()
		recall, _ := total[d].Recall()
		t.Logf("dev and heldout, %s: %+v precision %.3f recall %.3f", d, total[d], precision, recall)
	}
	holdBar(t, "dev and heldout", total[looptrace.Progress])
}

func scoreCorpus(tb testing.TB, d looptrace.Detector, traces []*looptrace.Trace) *looptrace.Report {
	tb.Helper()
	var r looptrace.Report
	for _, trace := range traces {
		firings, err := looptrace.Replay(tb.Context(), d, trace)
		if err != nil {
			tb.Fatalf("%s with %s: %v", trace.ID, d, err)
		}
		r.Add(trace, firings)
	}

	return &r
}

func holdBar(tb testing.TB, what string, tally looptrace.Tally) {
	tb.Helper()
	if v, ok := tally.Precision(); !ok || v < barPrecision {
		tb.Errorf("%s: precision %.3f, want at least %.2f", what, v, barPrecision)
	}
	if v, ok := tally.Recall(); !ok || v < barRecall {
		tb.Errorf("%s: recall %.3f, want at least %.2f", what, v, barRecall)
	}
}

// TestCorpusIsWhatItClaims holds the corpus against its own description: a
// measurement on a thin or lopsided corpus is none.
func TestCorpusIsWhatItClaims(t *testing.T) {
	t.Parallel()
	parts := corpusParts(t)
	families, loops, all := map[string]int{}, 0, 0
	ids := map[string]struct{}{}
	for _, part := range parts[:2] {
		partLoops := 0
		for _, trace := range part.traces {
			if _, twice := ids[trace.ID]; twice {
				t.Errorf("%s is in two parts", trace.ID)
			}
			ids[trace.ID] = struct{}{}
			if n := len(trace.Steps); n < 4 || n > 80 {
				t.Errorf("%s has %d steps, want 4 to 80", trace.ID, n)
			}
			if trace.Why == "" {
				t.Errorf("%s does not say why it is labelled %s", trace.ID, trace.Label)
			}
			if trace.Loop() {
				partLoops++
			}
			if part.name == "dev" {
				families[trace.Family]++
			}
		}
		loops, all = loops+partLoops, all+len(part.traces)
		if share := float64(partLoops) / float64(len(part.traces)); share < 0.45 || share > 0.55 {
			t.Errorf("part %s: %.2f of the traces are loops, want 0.45 to 0.55", part.name, share)
		}
	}
	if n := len(parts[0].traces); n < 200 {
		t.Errorf("%d traces made by hand, want at least 200", n)
	}
	if share := float64(len(parts[1].traces)) / float64(all); share < 0.28 || share > 0.38 {
		t.Errorf("%.2f of the traces are generated, want a third", share)
	}
	for _, f := range corpusFamilies {
		if families[f] < 6 {
			t.Errorf("family %s has %d traces made by hand, want at least 6", f, families[f])
		}
		delete(families, f)
	}
	if len(families) > 0 {
		t.Errorf("%d families are not in the specification", len(families))
	}
	t.Logf("%d traces, %d loops", all, loops)
}
