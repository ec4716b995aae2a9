package looptrace_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/internal/looptrace"
	"github.com/interlock-go/interlock/middleware"
)

func at(steps ...int) []looptrace.Firing {
	var all []looptrace.Firing
	for _, s := range steps {
		all = append(all, looptrace.Firing{Step: s, Reason: middleware.ReasonCycle, Count: 3, Limit: 3})
	}

	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	loop := &looptrace.Trace{ID: "l", Family: "f", Label: looptrace.LabelLoop, Earliest: 3, StopBy: 5}
	honest := &looptrace.Trace{ID: "h", Family: "g", Label: looptrace.LabelOK}
	tests := []struct {
		name    string
		trace   *looptrace.Trace
		firings []looptrace.Firing
		want    looptrace.Verdict
	}{
		{"a loop before", loop, at(2, 4), looptrace.Premature},
		{"a loop at the earliest", loop, at(3), looptrace.Hit},
		{"a loop at the last", loop, at(5, 6), looptrace.Hit},
		{"a loop after", loop, at(6), looptrace.Miss},
		{"a loop never", loop, nil, looptrace.Miss},
		{"honest", honest, nil, looptrace.Quiet},
		{"honest and stopped", honest, at(80), looptrace.FalseStop},
	}
	var r looptrace.Report
	for _, tt := range tests {
		if got := looptrace.Judge(tt.trace, tt.firings); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		r.Add(tt.trace, tt.firings)
	}
	want := looptrace.Tally{Traces: 7, Loops: 5, Hits: 2, Premature: 1, Misses: 2, FalseStops: 1}
	if diff := cmp.Diff(want, r.Total()); diff != "" {
		t.Error(diff)
	}
	if p, ok := r.Total().Precision(); !ok || p != 0.5 {
		t.Errorf("precision %v, want 2 of 4", p)
	}
	if p, ok := r.Total().Recall(); !ok || p != 0.4 {
		t.Errorf("recall %v, want 2 of 5", p)
	}
	if _, ok := r.Family("g").Recall(); ok {
		t.Error("a family without loops has a recall")
	}
	if diff := cmp.Diff([]string{"f", "g"}, r.Families()); diff != "" {
		t.Error(diff)
	}
	if n := len(r.Wrong()); n != 4 {
		t.Errorf("%d traces are wrong, want 4", n)
	}
	checkOutput(t, &r)
}

func checkOutput(t *testing.T, r *looptrace.Report) {
	t.Helper()
	var table bytes.Buffer
	if err := looptrace.Table(&table, looptrace.Column{Name: "a", Report: r}, looptrace.Column{Name: "b", Report: r}); err != nil {
		t.Fatal(err)
	}
	want := "all                        7     5 |    2     1    2     1     0.500  0.400 |    2     1    2     1     0.500  0.400\n"
	if !strings.HasSuffix(table.String(), want) {
		t.Errorf("the table is\n%s", table.String())
	}
	var out bytes.Buffer
	if err := r.JSON(&out, "a"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Detector string
		Families []struct {
			Family            string
			Precision, Recall *float64
		}
		All   struct{ Hits, Misses int }
		Wrong []struct{ ID, Verdict string }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Detector != "a" || len(got.Families) != 2 || got.Families[1].Recall != nil || got.All.Hits != 2 || len(got.Wrong) != 4 {
		t.Errorf("the report is %s", out.String())
	}
}

func TestNamesOfClosedSets(t *testing.T) {
	t.Parallel()
	for _, d := range looptrace.Detectors() {
		if got, ok := looptrace.ParseDetector(d.String()); !ok || got != d {
			t.Errorf("%s is read as %s", d, got)
		}
	}
	if _, ok := looptrace.ParseDetector("invalid"); ok {
		t.Error("invalid is a detector")
	}
	if got := looptrace.Verdict(99).String() + looptrace.Detector(99).String() + looptrace.Verdict(0).String(); got != "invalidinvalidinvalid" {
		t.Errorf("unknown values are called %s", got)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	trace := read(t, `{"v":1,"id":"a","family":"f","label":"loop","earliest":2,"stop_by":3,"why":"w","prompt":"p`+"\\u001b[2J"+`",`+
		`"tools":[{"name":"get","effect":"read_only"}],"steps":[{"turn":1,"thought":"hm","tool":"get","args":"{}","result":"ok","text":"`+
		strings.Repeat("long ", 40)+`","final":true,"progress":0.5},{"turn":1,"tool":"put","args":"","offered":false},{"turn":2,"infra":"timeout"},`+
		`{"turn":3,"answer":"two\nlines","reply":"r"}]}`)[0]
	var out bytes.Buffer
	if err := looptrace.Timeline(&out, trace, looptrace.Fired{Detector: looptrace.Progress, Firings: at(2)}); err != nil {
		t.Fatal(err)
	}
	want := `a  family f  loop  stop from step 2, by step 3
     why  w
  prompt  p [2J
   tools  get read_only
              " hm
   1 turn 1   get({})
              -> ok: ` + strings.Repeat("long ", 14) + `lo… (final) (progress 0.5)
-------- earliest
   2          put() was not offered
              ! progress fired: cycle, 3 of 3
   3 turn 2   the model failed: timeout
-------- stop by
   4 turn 3   answer: two⏎lines
              <- r
progress  hit
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
