package looptrace_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/interlock-go/interlock/internal/looptrace"
)

const secret = "SECRET-content"

// line returns a small valid trace with one part replaced.
func line(part, by string) string {
	const valid = `{"v":1,"id":"a","family":"f","label":"loop","earliest":2,"stop_by":3,"tools":[{"name":"get","effect":"read_only"}],` +
		`"steps":[{"turn":1,"thought":"t","tool":"get","args":"x","result":"ok","text":"y"},` +
		`{"turn":1,"tool":"get","args":"","result":"error","text":""},{"turn":2,"infra":"timeout"},{"turn":3,"answer":"z","reply":"r"}]}`
	if part == "" {
		return valid
	}
	if !strings.Contains(valid, part) {
		panic("nothing to replace")
	}

	return strings.Replace(valid, part, by, 1)
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", looptrace.MaxText+1)
	tests := []struct {
		name, in string
		code     looptrace.Code
		line     int
	}{
		{"nothing", "", looptrace.CodeEmpty, 1},
		{"blank lines", "\n\n \n", looptrace.CodeEmpty, 3},
		{"a huge line", line("", "") + "\n" + strings.Repeat(" ", looptrace.MaxLine+1), looptrace.CodeTooLarge, 2},
		{"no JSON", "\n" + secret, looptrace.CodeNotJSON, 2},
		{"half of it", line("", "")[:100], looptrace.CodeNotJSON, 1},
		{"two values", line("", "") + line("", ""), looptrace.CodeNotJSON, 1},
		{"bad UTF-8", line(`"z"`, "\"\xff\""), looptrace.CodeNotJSON, 1},
		{"a list", "[]", looptrace.CodeNotObject, 1},
		{"a number", "1", looptrace.CodeNotObject, 1},
		{"a step that is a number", `{"v":1,"steps":[1]}`, looptrace.CodeNotObject, 1},
		{"an unknown field", line(`"v":1`, `"v":1,"`+secret+`":1`), looptrace.CodeUnknownField, 1},
		{"a field in upper case", line(`"label"`, `"Label"`), looptrace.CodeUnknownField, 1},
		{"an unknown field of a step", line(`"infra"`, `"infre"`), looptrace.CodeUnknownField, 1},
		{"a field twice", line(`"v":1`, `"v":1,"v":1`), looptrace.CodeTwice, 1},
		{"a field of a step twice", line(`"turn":3`, `"turn":3,"turn":3`), looptrace.CodeTwice, 1},
		{"null", line(`"reply":"r"`, `"reply":null`), looptrace.CodeType, 1},
		{"a text for a number", line(`"turn":2`, `"turn":"2"`), looptrace.CodeType, 1},
		{"a fraction of a turn", line(`"turn":2`, `"turn":2.5`), looptrace.CodeType, 1},
		{"an object for a text", line(`"z"`, `{"a":1}`), looptrace.CodeType, 1},
		{"a text for a list", `{"v":1,"steps":"x"}`, looptrace.CodeType, 1},
		{"another version", line(`"v":1`, `"v":2`), looptrace.CodeVersion, 1},
		{"no version", line(`"v":1,`, ``), looptrace.CodeVersion, 1},
		{"an id with spaces", line(`"id":"a"`, `"id":"a b"`), looptrace.CodeName, 1},
		{"no id", line(`"id":"a",`, ``), looptrace.CodeName, 1},
		{"a long family", line(`"f"`, `"`+strings.Repeat("f", looptrace.MaxName+1)+`"`), looptrace.CodeName, 1},
		{"the same id again", line("", "") + "\n\n" + line("", ""), looptrace.CodeDuplicate, 3},
		{"another label", line(`"loop"`, `"maybe"`), looptrace.CodeLabel, 1},
		{"marks of an honest trace", line(`"loop"`, `"ok"`), looptrace.CodeMarks, 1},
		{"no marks", line(`"earliest":2,"stop_by":3,`, ``), looptrace.CodeMarks, 1},
		{"a mark on the first step", line(`"earliest":2`, `"earliest":1`), looptrace.CodeMarks, 1},
		{"marks in the wrong order", line(`"earliest":2`, `"earliest":4`), looptrace.CodeMarks, 1},
		{"a mark behind the end", line(`"stop_by":3`, `"stop_by":5`), looptrace.CodeMarks, 1},
		{"another style", line(`"v":1`, `"v":1,"style":"song"`), looptrace.CodeStyle, 1},
		{"a tool twice", line(`"tools":[`, `"tools":[{"name":"GET","effect":"polling"},`), looptrace.CodeTools, 1},
		{"an unknown effect", line(`"read_only"`, `"harmless"`), looptrace.CodeTools, 1},
		{"a tool without a name", line(`"name":"get"`, `"name":""`), looptrace.CodeTools, 1},
		{"no steps", `{"v":1,"id":"a","family":"f","label":"ok","steps":[]}`, looptrace.CodeSteps, 1},
		{"a turn left out", line(`"turn":3`, `"turn":4`), looptrace.CodeTurn, 1},
		{"back a turn", line(`"turn":3`, `"turn":1`), looptrace.CodeTurn, 1},
		{"an answer in a turn of calls", line(`"turn":2,"infra":"timeout"`, `"turn":1,"answer":""`), looptrace.CodeTurn, 1},
		{"a call in a turn that failed", line(`"turn":3,"answer":"z","reply":"r"`, `"turn":2,"tool":"get","args":"","result":"refused"`), looptrace.CodeTurn, 1},
		{"a thought in the middle", line(`"turn":1,"tool"`, `"turn":1,"thought":"t","tool"`), looptrace.CodeTurn, 1},
		{"a call without arguments", line(`"args":"x",`, ``), looptrace.CodeStep, 1},
		{"a tool that is not registered", line(`"tool":"get"`, `"tool":"put"`), looptrace.CodeStep, 1},
		{"an empty step", line(`"infra":"timeout"`, `"thought":""`), looptrace.CodeStep, 1},
		{"an invention of a registered tool", line(`"result":"ok","text":"y"`, `"offered":false`), looptrace.CodeStep, 1},
		{"a failed request with words", line(`"infra":"timeout"`, `"infra":"timeout","thought":"t"`), looptrace.CodeStep, 1},
		{"an unparsable answer of a functions agent", line(`"reply":"r"`, `"unparsable":true`), looptrace.CodeStep, 1},
		{"no result", line(`"result":"ok",`, ``), looptrace.CodeResult, 1},
		{"another result", line(`"result":"ok"`, `"result":"fine"`), looptrace.CodeResult, 1},
		{"a result without text", line(`"result":"ok","text":"y"`, `"result":"ok"`), looptrace.CodeResult, 1},
		{"a refusal with text", line(`"result":"ok"`, `"result":"refused"`), looptrace.CodeResult, 1},
		{"a final error", line(`"result":"error"`, `"final":true,"result":"error"`), looptrace.CodeResult, 1},
		{"an unknown failure", line(`"infra":"timeout"`, `"infra":"rain"`), looptrace.CodeResult, 1},
		{"a negative signal", line(`"text":"y"`, `"text":"y","progress":-1`), looptrace.CodeBounds, 1},
		{"a signal beyond all numbers", line(`"text":"y"`, `"text":"y","progress":1e999`), looptrace.CodeType, 1},
		{"a huge text", line(`"z"`, `"`+long+`"`), looptrace.CodeBounds, 1},
		{"a long reason", line(`"v":1`, `"v":1,"why":"`+long[:looptrace.MaxWhy+1]+`"`), looptrace.CodeBounds, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := looptrace.Read(strings.NewReader(tt.in))
			e, ok := errors.AsType[*looptrace.ParseError](err)
			if !ok || got != nil {
				t.Fatalf("Read: %v, %v, want a ParseError and nothing", got, err)
			}
			if e.Code() != tt.code || e.Line() != tt.line {
				t.Errorf("%s in line %d, want %s in line %d", e.Code(), e.Line(), tt.code, tt.line)
			}
			if strings.Contains(e.Error(), secret) || !strings.Contains(e.Error(), string(tt.code)) {
				t.Errorf("the error says %q", e.Error())
			}
		})
	}
}

func TestReadRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := looptrace.Read(iotest.ErrReader(errors.New(secret)))
	e, ok := errors.AsType[*looptrace.ParseError](err)
	if !ok || e.Code() != looptrace.CodeUnreadable || strings.Contains(e.Error(), secret) {
		t.Errorf("Read: %v", err)
	}
}

// Reading and writing lose nothing, and what is committed is in the form that
// Write gives.
func TestWriteGivesBackWhatWasRead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{devPath, heldOutPath} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		traces, err := looptrace.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := looptrace.Write(&out, traces); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}

			continue
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Errorf("%s changes when it is read and written", path)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := looptrace.Write(&out, []*looptrace.Trace{{V: looptrace.Version}})
	if e, ok := errors.AsType[*looptrace.ParseError](err); !ok || e.Code() != looptrace.CodeName || out.Len() != 0 {
		t.Errorf("Write of an empty trace: %v, %d bytes", err, out.Len())
	}
}

// FuzzRead: whatever is read, is read again from what Write makes of it; what
// is refused, has a line and a code.
func FuzzRead(f *testing.F) {
	f.Add([]byte(line("", "")))
	f.Add([]byte(line(`"v":1`, `"v":1,"v":1`)))
	f.Add([]byte(line(`"reply":"r"`, `"reply":"<&\u2028>"`) + "\n\n" + line(`"id":"a"`, `"id":"b"`)))
	f.Add([]byte(`{"v":1,"id":"t","family":"f","label":"ok","style":"text","steps":[{"turn":1,"answer":"","unparsable":true}]}`))
	f.Add([]byte(`{"v":1,"id":"t","family":"f","label":"ok","steps":[{"turn":1,"tool":"x","args":"","offered":false}]}`))
	f.Add([]byte(`{"v":1,"tools":[{"name":{}}]}`))
	f.Add([]byte(`{"v":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		traces, err := looptrace.Read(bytes.NewReader(data))
		if err != nil {
			e, ok := errors.AsType[*looptrace.ParseError](err)
			if !ok || e.Line() < 1 || e.Code() == "" {
				t.Fatalf("Read: %v", err)
			}

			return
		}
		var out bytes.Buffer
		if err := looptrace.Write(&out, traces); err != nil {
			t.Fatalf("Write of what was read: %v", err)
		}
		again, err := looptrace.Read(&out)
		if err != nil {
			t.Fatalf("Read of what was written: %v", err)
		}
		if diff := cmp.Diff(traces, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
