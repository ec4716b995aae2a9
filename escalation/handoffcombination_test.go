package escalation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// actionLists returns every list of up to n of the actions and of one that is
// none.
func actionLists(n int) [][]string {
	words := []string{"review_evidence", "recheck_permissions", "review_tool_failure", "abort_run", "resume_run"}
	lists := [][]string{{}}
	for first := 0; n > 0; n-- {
		end := len(lists)
		for _, list := range lists[first:end] {
			for _, w := range words {
				lists = append(lists, append(slices.Clone(list), w))
			}
		}
		first = end
	}

	return lists
}

// Of everything that could be said with the words of the table, and with every
// other reason of the library, only its three rows are handoffs. All else is
// wrong_combination.
func TestHandoffCombinationsAreClosed(t *testing.T) {
	t.Parallel()
	var reasons, decisions []string
	for _, row := range routes {
		reasons, decisions = append(reasons, row[0]), append(decisions, row[1])
	}
	short, long := actionLists(2), actionLists(3)
	if len(short) != 1+5+25 || len(long) != len(short)+125 {
		t.Fatal(len(short), len(long))
	}
	parsed, refused := 0, 0
	try := func(class escalation.Class, reason, decision string, actions []string) {
		row := routes[class]
		list, err := json.Marshal(actions)
		if err != nil {
			t.Fatal(err)
		}
		data := golden(t, class)
		for _, swap := range [][2]string{
			{`"reason_code":"` + row[0] + `"`, `"reason_code":"` + reason + `"`},
			{`"requested_decision":"` + row[1] + `"`, `"requested_decision":"` + decision + `"`},
			{`"recovery_actions":["` + row[2] + `","` + row[3] + `"]`, `"recovery_actions":` + string(list)},
		} {
			if strings.Count(data, swap[0]) != 1 {
				t.Fatalf("%s is not once in the golden file", swap[0])
			}
			data = strings.Replace(data, swap[0], swap[1], 1)
		}
		h, err := escalation.ParseHandoff([]byte(data), at)
		if slices.Equal(append([]string{reason, decision}, actions...), row) {
			if parsed++; err != nil || h.Class() != class {
				t.Errorf("%v: %v, %v", class, h, err)
			}

			return
		}
		refused++
		e, ok := errors.AsType[*escalation.HandoffError](err)
		if !ok || e.Defect() != escalation.DefectWrongCombination || !errors.Is(err, escalation.ErrInvalidHandoff) || !h.IsZero() {
			t.Errorf("%v %s %s %v: %v, %v", class, reason, decision, actions, h, err)
		}
	}
	for class, row := range routes {
		for _, reason := range reasons {
			for _, decision := range decisions {
				for _, actions := range short {
					try(class, reason, decision, actions)
				}
			}
		}
		for _, actions := range long[len(short):] {
			try(class, row[0], row[1], actions)
		}
		for _, reason := range middleware.Reasons() {
			if !slices.Contains(reasons, reason.String()) {
				try(class, reason.String(), row[1], row[2:])
			}
		}
		for _, decision := range []string{"", "invalid", "approve", "resume_run", row[2] + " "} {
			try(class, row[0], decision, row[2:])
		}
	}
	if want := 27*len(short) + 3*125 + 3*(len(middleware.Reasons())-3) + 15; parsed != 3 || parsed+refused != want {
		t.Errorf("%d parsed, %d refused of %d", parsed, refused, want)
	}
}

// What a breaker makes is of the table too, for every policy that trips, and
// exactly what a reader gets back.
func TestHandoffsOfEveryLength(t *testing.T) {
	t.Parallel()
	for class, row := range routes {
		for n := 1; n <= escalation.MaxThreshold; n++ {
			b := newBreaker(t, escalation.Policy{Uncertainty: n, PermissionDenial: n, ToolFailure: n, Total: n})
			var h *escalation.Handoff
			for i := range n {
				var err error
				if h, err = b.RecordFailure(class, digest(i), at); err != nil || (h != nil) != (i == n-1) {
					t.Fatalf("%v, %d of %d: %v, %v", class, i+1, n, h, err)
				}
			}
			data, err := h.MarshalJSON()
			if err != nil || !strings.Contains(string(data), `"reason_code":"`+row[0]+`","recovery_actions":["`+row[2]+`","`+row[3]+`"],"requested_decision":"`+row[1]+`"`) {
				t.Fatalf("%v: %s, %v", class, data, err)
			}
			again, err := escalation.ParseHandoff(data, at)
			if err != nil || len(again.StepDigests()) != n || again.Digest() != h.Digest() || again.Digest() != ident.DigestOf(data) {
				t.Errorf("%v, %d steps: %v, %v", class, n, again, err)
			}
		}
	}
}

// The longest handoff that there can be, far below the bound of a line.
func TestHandoffGoldenLongest(t *testing.T) {
	t.Parallel()
	label := "." + strings.Repeat("a", 63)
	namespace := strings.Repeat("b", 61) + strings.Repeat(label, 3)
	workflow, err := ident.ParseWorkflowID(fmt.Sprintf("workflow:%s/%s@%s", namespace, "c"+strings.Repeat("-", 63), strings.Repeat("9", 60)+"."+strings.Repeat("9", 60)+"."+strings.Repeat("9", 60)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := escalation.NewBreaker(escalation.BreakerConfig{
		Run: runID(t, "f"), Workflow: workflow, Policy: escalation.Policy{Uncertainty: 32, PermissionDenial: 32, ToolFailure: 32, Total: 32},
	})
	if err != nil {
		t.Fatal(err)
	}
	var h *escalation.Handoff
	last := time.Date(9999, 12, 31, 23, 29, 59, 0, time.UTC)
	for i := range escalation.MaxThreshold {
		if h, err = b.RecordFailure(permission, digest(i), last); err != nil {
			t.Fatal(err)
		}
	}
	data, err := h.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/handoff_longest.json")
	if err != nil || string(data) != string(want) {
		t.Errorf("%v\n got %s\nwant %s", err, data, want)
	}
	if len(data) > escalation.MaxHandoffBytes/4 {
		t.Errorf("%d bytes", len(data))
	}
	if again, err := escalation.ParseHandoff(data, last); err != nil || again.Digest() != h.Digest() {
		t.Errorf("%v, %v", again, err)
	}
}
