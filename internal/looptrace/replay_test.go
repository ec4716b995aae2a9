package looptrace_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/looptrace"
	"github.com/interlock-go/interlock/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(tb testing.TB, corpus string) []*looptrace.Trace {
	tb.Helper()
	traces, err := looptrace.Read(strings.NewReader(corpus))
	if err != nil {
		tb.Fatalf("Read: %v", err)
	}

	return traces
}

func readFile(tb testing.TB, path string) []*looptrace.Trace {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}

	return read(tb, string(data))
}

// repeats is a trace of one call, n times.
func repeats(n int) string {
	step := func(turn string) string {
		return `{"turn":` + turn + `,"tool":"get","args":"{}","result":"ok","text":"x"}`
	}
	steps := make([]string, 0, n)
	for i := range n {
		steps = append(steps, step(string(rune('1'+i))))
	}

	return `{"v":1,"id":"r","family":"f","label":"loop","earliest":3,"stop_by":5,"tools":[{"name":"get","effect":"read_only"}],"steps":[` +
		strings.Join(steps, ",") + `]}`
}

func TestReplayTellsTheStepOfAFiring(t *testing.T) {
	t.Parallel()
	trace := read(t, repeats(6))[0]
	got, err := looptrace.Replay(t.Context(), looptrace.Repeat, trace)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) == 0 || got[0] != (looptrace.Firing{Step: 4, Reason: middleware.ReasonLoop, Count: 4, Limit: 3}) {
		t.Errorf("firings %+v, want the first at step 4", got)
	}
	again, err := looptrace.Replay(t.Context(), looptrace.Repeat, trace)
	if err != nil || len(again) != len(got) {
		t.Errorf("the second replay gives %+v, %v", again, err)
	}
}

// Every kind of step is replayed: a step that came out otherwise would be an
// error.
func TestReplayKnowsEveryKindOfStep(t *testing.T) {
	t.Parallel()
	for _, corpus := range []string{
		`{"v":1,"id":"a","family":"f","label":"ok","tools":[{"name":"Get-it","effect":"idempotent"},{"name":"get_it","effect":"polling"},{"name":"9","effect":"effectful"}],"steps":[
		 {"turn":1,"thought":"t","tool":"Get-it","args":"","result":"ok","text":"","progress":0.5},
		 {"turn":1,"tool":"get_it","args":"{}","result":"ok","text":"x","final":true},
		 {"turn":1,"tool":"nobody","args":"{}","offered":false},
		 {"turn":2,"infra":"network"},{"turn":3,"infra":"rate_limited"},
		 {"turn":4,"tool":"9","args":"[1]","result":"error","text":"context deadline exceeded"},
		 {"turn":5,"tool":"9","args":"[1]","result":"refused"},
		 {"turn":6,"tool":"GET_IT","args":"1","result":"error","text":"e","infra":"overloaded","progress":1},
		 {"turn":7,"answer":"a","reply":"r"},{"turn":8,"answer":""}]}`,
		`{"v":1,"id":"a","family":"f","label":"ok","style":"text","prompt":"p","tools":[{"name":"get","effect":"read_only"}],"steps":[
		 {"turn":1,"answer":"?","unparsable":true},{"turn":2,"thought":"t","tool":"get","args":"x","result":"ok","text":"y"},
		 {"turn":3,"infra":"timeout"},{"turn":4,"answer":"Final Answer: y","reply":"thanks"}]}`,
	} {
		trace := read(t, strings.ReplaceAll(corpus, "\n", " "))[0]
		for _, d := range looptrace.Detectors() {
			if _, err := looptrace.Replay(t.Context(), d, trace); err != nil {
				t.Errorf("%s: %v", d, err)
			}
		}
	}
}

func TestReplayFails(t *testing.T) {
	t.Parallel()
	trace := read(t, repeats(5))[0]
	if _, err := looptrace.Replay(t.Context(), 0, trace); !errors.Is(err, looptrace.ErrDetector) {
		t.Errorf("without a detector: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := looptrace.Replay(done, looptrace.Repeat, trace)
	e, ok := errors.AsType[*looptrace.ReplayError](err)
	if !ok || e.Step() != 1 || !errors.Is(err, middleware.ReasonCanceled) {
		t.Errorf("under a context that is done: %v", err)
	}
}

// Each watchdog draws a key of its own; what a trace is judged to be may not
// depend on it.
func TestReplayJudgesAlike(t *testing.T) {
	t.Parallel()
	for _, trace := range readFile(t, heldOutPath) {
		first, err := looptrace.Replay(t.Context(), looptrace.Progress, trace)
		if err != nil {
			t.Fatalf("%s: %v", trace.ID, err)
		}
		second, err := looptrace.Replay(t.Context(), looptrace.Progress, trace)
		if err != nil {
			t.Fatalf("%s: %v", trace.ID, err)
		}
		if looptrace.Judge(trace, first) != looptrace.Judge(trace, second) {
			t.Errorf("%s: two replays are judged differently", trace.ID)
		}
	}
}

// FuzzReplay: whatever the schema allows can be replayed with each detector,
// and its firings are in order and within the trace.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(line("", "")))
	f.Add([]byte(repeats(7)))
	f.Add([]byte(line(`"read_only"`, `"effectful"`)))
	f.Add([]byte(line(`"text":"y"`, `"text":"y","final":true,"progress":3`)))
	f.Add([]byte(`{"v":1,"id":"t","family":"f","label":"ok","style":"text","steps":[{"turn":1,"answer":"","unparsable":true},{"turn":2,"answer":"x","reply":""}]}`))
	f.Add([]byte(`{"v":1,"id":"t","family":"f","label":"ok","tools":[{"name":"a-b","effect":"effectful"},{"name":"a_b","effect":"polling"},{"name":"-","effect":"idempotent"}],"steps":[{"turn":1,"tool":"-","args":"","result":"error","text":"","infra":"timeout"},{"turn":1,"tool":"A_B","args":"{\"a\":1e9}","result":"refused"},{"turn":1,"tool":"x","args":"","offered":false}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		traces, err := looptrace.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, trace := range traces {
			for _, d := range looptrace.Detectors() {
				firings, err := looptrace.Replay(t.Context(), d, trace)
				if err != nil {
					t.Fatalf("%s: %v", d, err)
				}
				last := 1
				for _, f := range firings {
					if f.Step < last || f.Step > len(trace.Steps) {
						t.Fatalf("%s fired at step %d after %d of %d", d, f.Step, last, len(trace.Steps))
					}
					last = f.Step
				}
			}
		}
	})
}
