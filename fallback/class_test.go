package fallback_test

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fallback"
)

// The table in the documentation of Class says what the code does.
func TestClassTable(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for _, group := range file.Comments {
		for line := range strings.Lines(group.Text()) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 4 {
				continue
			}
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[cells[0]] = cells[1:]
		}
	}
	delete(rows, "class") // the head
	again := map[int]string{0: "no", 1: "once", 2: "twice"}
	for _, c := range fallback.Classes() {
		row, ok := rows[c.String()]
		delete(rows, c.String())
		n, next, bench := fallback.ClassRow(c)
		if next == "only with AuthNext" {
			bench += " with AuthNext"
		}
		if ok && row[1] == "no" { // as never
			row[1] = "never"
		}
		if !ok || row[0] != again[n] || row[1] != next || row[2] != bench {
			t.Errorf("%v: the documentation says %q, the code %s, %s, %s", c, row, again[n], next, bench)
		}
	}
	if len(rows) > 0 {
		t.Errorf("the documentation knows more: %v", rows)
	}
	for l, name := range map[fallback.Limit]string{
		0: "invalid", fallback.LimitWhole: "whole", fallback.LimitFirstToken: "first_token", fallback.LimitIdle: "idle", 9: "invalid",
	} {
		if l.String() != name {
			t.Errorf("limit %d is %q", l, l.String())
		}
	}
}
