package looptrace_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/looptrace"
)

// A trace in which one call is made six times, with the answer that it had.
func ExampleReplay() {
	const corpus = `{"v":1,"id":"again","family":"plain_repeat","label":"loop","earliest":3,"stop_by":6,` +
		`"tools":[{"name":"get","effect":"read_only"}],"steps":[` +
		`{"turn":1,"tool":"get","args":"{\"id\": 7}","result":"ok","text":"none"},` +
		`{"turn":2,"tool":"get","args":"{\"id\":7}","result":"ok","text":"none"},` +
		`{"turn":3,"tool":"get","args":"{\"id\": 7.0}","result":"ok","text":"none"},` +
		`{"turn":4,"infra":"rate_limited"},` +
		`{"turn":5,"tool":"get","args":"{ \"id\":7}","result":"ok","text":"none"},` +
		`{"turn":6,"tool":"get","args":"{\"id\":7}","result":"ok","text":"none"}]}`
	traces, err := looptrace.Read(strings.NewReader(corpus))
	if err != nil {
		fmt.Println(err)

		return
	}
	var report looptrace.Report
	for _, t := range traces {
		firings, err := looptrace.Replay(context.Background(), looptrace.Repeat, t)
		if err != nil {
			fmt.Println(err)

			return
		}
		report.Add(t, firings)
		fmt.Println(looptrace.Judge(t, firings), "at step", firings[0].Step, "by", firings[0].Reason.String())
	}
	precision, _ := report.Total().Precision()
	fmt.Println("precision", precision)
	// Output:
	// hit at step 5 by loop
	// precision 1
}
