package misbehave_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/misbehave"
)

// openaiBody is a request with the given history; more is appended to its fields.
func openaiBody(messages, more string) string {
	return `{"model":"m","messages":[` + messages + `]` + more + `}`
}

func anthropicBody(messages, more string) string {
	return `{"model":"m","max_tokens":9,"messages":[` + messages + `]` + more + `}`
}

const (
	user = `{"role":"user","content":"x"}`

	call1   = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	call12  = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	result1 = `{"role":"tool","tool_call_id":"c1","content":"r"}`
	result2 = `{"role":"tool","tool_call_id":"c2","content":"r"}`

	legacyCall   = `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`
	legacyResult = `{"role":"function","name":"f","content":"r"}`

	use1    = `{"type":"tool_use","id":"c1","name":"f","input":{}}`
	use2    = `{"type":"tool_use","id":"c2","name":"f","input":{}}`
	gave1   = `{"type":"tool_result","tool_use_id":"c1","content":"r"}`
	gave2   = `{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"r"}]}`
	text    = `{"type":"text","text":"t"}`
	toolsA  = `,"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	toolsO  = `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	comma   = ","
	another = `{"role":"user","content":"y"}`
)

func assistant(blocks ...string) string {
	return `{"role":"assistant","content":[` + strings.Join(blocks, comma) + `]}`
}

func human(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, comma) + `]}`
}

func history(messages ...string) string { return strings.Join(messages, comma) }

func oneCall(id, kind, name, arguments string) string {
	quoted, _ := json.Marshal(arguments)
	return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"` + kind + `","function":{"name":"` + name +
		`","arguments":` + string(quoted) + `}}]}`
}

type violationCase struct {
	name, path, body string
	want             misbehave.Violation
}

func openaiViolations() []violationCase {
	cases := []violationCase{
		{"text", "", openaiBody(user, ""), misbehave.NoViolation},
		{"parts", "", openaiBody(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"u"}}]}`, ""), misbehave.NoViolation},
		{"tools and stop", "", openaiBody(user, toolsO+`,"tool_choice":"auto","stop":"a","temperature":2`), misbehave.NoViolation},
		{"call and result", "", openaiBody(history(user, call1, result1), ""), misbehave.NoViolation},
		{"parallel in any order", "", openaiBody(history(user, call12, result2, result1, user), ""), misbehave.NoViolation},
		{"same id again", "", openaiBody(history(user, call1, result1, call1, result1), ""), misbehave.NoViolation},
		{"legacy", "", openaiBody(history(user, legacyCall, legacyResult, legacyCall, legacyResult), `,"functions":[{"name":"f"}],"function_call":"auto"`), misbehave.NoViolation},

		{"not JSON", "", `{"model":`, misbehave.BadJSON},
		{"arguments not text", "", openaiBody(strings.Replace(call1, `"{}"`, `{}`, 1), ""), misbehave.BadJSON},
		{"stop of numbers", "", openaiBody(user, `,"stop":[1]`), misbehave.BadJSON},
		{"no model", "", `{"messages":[` + user + `]}`, misbehave.ModelMissing},
		{"no messages", "", openaiBody("", ""), misbehave.EmptyMessages},
		{"hot", "", openaiBody(user, `,"temperature":2.1`), misbehave.BadTemperature},
		{"cold", "", openaiBody(user, `,"temperature":-1`), misbehave.BadTemperature},
		{"five stops", "", openaiBody(user, `,"stop":["a","b","c","d","e"]`), misbehave.BadStop},
		{"tool name with dot", "", openaiBody(user, strings.Replace(toolsO, `"f"`, `"f.g"`, 1)), misbehave.BadToolName},
		{"tool name too long", "", openaiBody(user, strings.Replace(toolsO, `"f"`, `"`+strings.Repeat("f", 65)+`"`, 1)), misbehave.BadToolName},
		{"tool twice", "", openaiBody(user, `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), misbehave.DuplicateToolName},
		{"tool and function of one name", "", openaiBody(user, toolsO+`,"functions":[{"name":"f"}]`), misbehave.DuplicateToolName},
		{"schema a text", "", openaiBody(user, strings.Replace(toolsO, `{"type":"object"}`, `"x"`, 1)), misbehave.BadToolSchema},
		{"function schema a text", "", openaiBody(user, `,"functions":[{"name":"f","parameters":1}]`), misbehave.BadToolSchema},
		{"choice without tools", "", openaiBody(user, `,"tool_choice":"auto"`), misbehave.ToolChoiceWithoutTools},
		{"function_call without functions", "", openaiBody(user, toolsO+`,"function_call":"auto"`), misbehave.ToolChoiceWithoutTools},
		{"tool without type", "", openaiBody(user, strings.Replace(toolsO, `"function"`, `""`, 1)), misbehave.BadCallType},
		{"unknown role", "", openaiBody(`{"role":"human","content":"x"}`, ""), misbehave.BadRole},
		{"content a number", "", openaiBody(`{"role":"user","content":1}`, ""), misbehave.BadContent},
		{"user without content", "", openaiBody(`{"role":"user"}`, ""), misbehave.BadContent},
		{"assistant saying nothing", "", openaiBody(history(user, `{"role":"assistant","content":null}`), ""), misbehave.BadContent},
		{"call without id", "", openaiBody(history(user, oneCall("", "function", "f", "{}")), ""), misbehave.EmptyCallID},
		{"result without id", "", openaiBody(history(user, call1, `{"role":"tool","content":"r"}`), ""), misbehave.EmptyCallID},
		{"id twice", "", openaiBody(history(user, strings.Replace(call12, "c2", "c1", 1), result1), ""), misbehave.DuplicateCallID},
		{"call without type", "", openaiBody(history(user, oneCall("c1", "", "f", "{}"), result1), ""), misbehave.BadCallType},
		{"call without name", "", openaiBody(history(user, oneCall("c1", "function", "", "{}"), result1), ""), misbehave.EmptyCallName},
		{"legacy call without name", "", openaiBody(history(user, strings.Replace(legacyCall, `"f"`, `""`, 1)), ""), misbehave.EmptyCallName},
		{"legacy result without name", "", openaiBody(history(user, legacyCall, `{"role":"function","content":"r"}`), ""), misbehave.EmptyCallName},
		{"call unanswered at the end", "", openaiBody(history(user, call1), ""), misbehave.CallWithoutResult},
		{"call unanswered before user", "", openaiBody(history(user, call1, user, result1), ""), misbehave.CallWithoutResult},
		{"one of two unanswered", "", openaiBody(history(user, call12, result1, user), ""), misbehave.CallWithoutResult},
		{"legacy call unanswered", "", openaiBody(history(user, legacyCall, user), ""), misbehave.CallWithoutResult},
		{"result first", "", openaiBody(history(result1), ""), misbehave.ResultWithoutCall},
		{"result of another id", "", openaiBody(history(user, call1, result2), ""), misbehave.ResultWithoutCall},
		{"legacy result of another name", "", openaiBody(history(user, legacyCall, strings.Replace(legacyResult, `"f"`, `"g"`, 1)), ""), misbehave.ResultWithoutCall},
		{"result late", "", openaiBody(history(user, call1, result1, user, result1), ""), misbehave.UnexpectedToolResult},
		{"result twice", "", openaiBody(history(user, call1, result1, result1), ""), misbehave.DuplicateResult},
	}
	for _, arguments := range []string{"", "Oslo", `"Oslo"`, "5", "null", "[1]", `{"a":`, `{} {}`} {
		cases = append(cases, violationCase{
			"arguments " + arguments, "", openaiBody(history(user, oneCall("c1", "function", "f", arguments), result1), ""),
			misbehave.ArgumentsNotObject,
		})
	}
	cases = append(cases, violationCase{
		"legacy arguments", "", openaiBody(history(user, strings.Replace(legacyCall, `"{}"`, `"x"`, 1), legacyResult), ""),
		misbehave.ArgumentsNotObject,
	})
	for i := range cases {
		cases[i].path = openaiPath
	}
	return cases
}

func anthropicViolations() []violationCase {
	cases := []violationCase{
		{"text", "", anthropicBody(user, `,"system":"s","temperature":1,"stop_sequences":["\nObservation:"]`), misbehave.NoViolation},
		{"neighbours of one role", "", anthropicBody(history(user, another, assistant(text), assistant(text), user), ""), misbehave.NoViolation},
		{"call and result", "", anthropicBody(history(user, assistant(text, use1), human(gave1, text)), toolsA), misbehave.NoViolation},
		{"parallel in neighbours", "", anthropicBody(history(user, assistant(use1), assistant(use2), human(gave2), human(gave1)), toolsA), misbehave.NoViolation},

		{"not JSON", "", `[]`, misbehave.BadJSON},
		{"no model", "", `{"max_tokens":9,"messages":[` + user + `]}`, misbehave.ModelMissing},
		{"no max_tokens", "", `{"model":"m","messages":[` + user + `]}`, misbehave.MaxTokensMissing},
		{"no messages", "", anthropicBody("", ""), misbehave.EmptyMessages},
		{"hot", "", anthropicBody(user, `,"temperature":1.5`), misbehave.BadTemperature},
		{"blank stop", "", anthropicBody(user, `,"stop_sequences":["\n"]`), misbehave.BadStop},
		{"tool without name", "", anthropicBody(user, strings.Replace(toolsA, `"f"`, `""`, 1)), misbehave.BadToolName},
		{"tool twice", "", anthropicBody(user, `,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}]`), misbehave.DuplicateToolName},
		{"no schema", "", anthropicBody(user, `,"tools":[{"name":"f"}]`), misbehave.BadToolSchema},
		{"schema without type", "", anthropicBody(user, `,"tools":[{"name":"f","input_schema":{}}]`), misbehave.BadToolSchema},
		{"history without tools", "", anthropicBody(history(user, assistant(use1), human(gave1)), ""), misbehave.ToolsMissing},
		{"system role", "", anthropicBody(`{"role":"system","content":"x"}`, ""), misbehave.BadRole},
		{"assistant first", "", anthropicBody(history(assistant(text), user), ""), misbehave.RoleOrder},
		{"content a number", "", anthropicBody(`{"role":"user","content":1}`, ""), misbehave.BadContent},
		{"system a number", "", anthropicBody(user, `,"system":1`), misbehave.BadContent},
		{"call by user", "", anthropicBody(human(use1), toolsA), misbehave.BadContent},
		{"result by assistant", "", anthropicBody(history(user, assistant(gave1)), toolsA), misbehave.BadContent},
		{"result a number", "", anthropicBody(history(user, assistant(use1), human(strings.Replace(gave1, `"r"`, `1`, 1))), toolsA), misbehave.BadContent},
		{"no content", "", anthropicBody(human(), ""), misbehave.EmptyText},
		{"empty text", "", anthropicBody(`{"role":"user","content":""}`, ""), misbehave.EmptyText},
		{"empty text of assistant", "", anthropicBody(history(user, assistant(`{"type":"text","text":""}`), user), ""), misbehave.EmptyText},
		{"call without id", "", anthropicBody(history(user, assistant(strings.Replace(use1, "c1", "", 1))), toolsA), misbehave.EmptyCallID},
		{"result without id", "", anthropicBody(history(user, assistant(use1), human(strings.Replace(gave1, "c1", "", 1))), toolsA), misbehave.EmptyCallID},
		{"id with colon", "", anthropicBody(history(user, assistant(strings.Replace(use1, "c1", "c:1", 1))), toolsA), misbehave.BadCallID},
		{"id twice in a message", "", anthropicBody(history(user, assistant(use1, use1), human(gave1)), toolsA), misbehave.DuplicateCallID},
		{"id twice in the history", "", anthropicBody(history(user, assistant(use1), human(gave1), assistant(use1), human(gave1)), toolsA), misbehave.DuplicateCallID},
		{"call without name", "", anthropicBody(history(user, assistant(strings.Replace(use1, `"f"`, `""`, 1))), toolsA), misbehave.EmptyCallName},
		{"call unanswered at the end", "", anthropicBody(history(user, assistant(use1)), toolsA), misbehave.CallWithoutResult},
		{"one of two unanswered", "", anthropicBody(history(user, assistant(use1, use2), human(gave1), user), toolsA), misbehave.CallWithoutResult},
		{"answered too late", "", anthropicBody(history(user, assistant(use1), user, assistant(text), human(gave1)), toolsA), misbehave.CallWithoutResult},
		// The client drops all but the first of parallel calls and keeps the results.
		{"result of a dropped call", "", anthropicBody(history(user, assistant(use1), human(gave1), human(gave2)), toolsA), misbehave.ResultWithoutCall},
		{"result late", "", anthropicBody(history(user, assistant(use1), human(gave1), assistant(text), human(gave1)), toolsA), misbehave.UnexpectedToolResult},
		{"result twice", "", anthropicBody(history(user, assistant(use1), human(gave1, gave1)), toolsA), misbehave.DuplicateResult},
		{"text before result", "", anthropicBody(history(user, assistant(use1), human(text, gave1)), toolsA), misbehave.ResultAfterText},
	}
	for _, input := range []string{`"x"`, "5", "null", "[1]"} {
		cases = append(cases, violationCase{
			"input " + input, "",
			anthropicBody(history(user, assistant(strings.Replace(use1, "{}", input, 1)), human(gave1)), toolsA),
			misbehave.ArgumentsNotObject,
		})
	}
	for i := range cases {
		cases[i].path = anthropicPath
	}
	return cases
}

func TestViolations(t *testing.T) {
	t.Parallel()
	srv, lenient := start(t, misbehave.Config{}), start(t, misbehave.Config{Lenient: true})
	missing := map[misbehave.Violation]bool{}
	for _, v := range misbehave.Violations() {
		missing[v] = true
	}
	for _, test := range append(openaiViolations(), anthropicViolations()...) {
		delete(missing, test.want)
		t.Run(test.path+"/"+test.name, func(t *testing.T) {
			status, body := post(t, srv, test.path, test.body)
			got := srv.Requests()[srv.Count()-1]
			if got.Violation != test.want {
				t.Fatalf("violation %q, want %q", got.Violation, test.want)
			}
			if test.want == misbehave.NoViolation {
				if status != http.StatusOK || got.Answer != misbehave.AnswerScripted {
					t.Errorf("answer %q: %d %s", got.Answer, status, body)
				}
				return
			}
			var shape struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(body), &shape); err != nil {
				t.Fatal(err)
			}
			if status != http.StatusBadRequest || got.Answer != misbehave.AnswerViolation ||
				shape.Error.Type != "invalid_request_error" || !strings.Contains(shape.Error.Message, string(test.want)) ||
				(shape.Type == "error") != (test.path == anthropicPath) {
				t.Errorf("answer %q: %d %s", got.Answer, status, body)
			}
			status, _ = post(t, lenient, test.path, test.body)
			got = lenient.Requests()[lenient.Count()-1]
			if status != http.StatusOK || got.Violation != test.want || got.Answer != misbehave.AnswerScripted {
				t.Errorf("lenient: %d, violation %q, answer %q", status, got.Violation, got.Answer)
			}
		})
	}
	for _, test := range []struct {
		path, header string
		want         misbehave.Violation
		status       int
	}{
		{openaiPath, "", misbehave.AuthMissing, http.StatusUnauthorized},
		{anthropicPath, "", misbehave.AuthMissing, http.StatusUnauthorized},
		{anthropicPath, "X-Api-Key", misbehave.VersionMissing, http.StatusBadRequest},
	} {
		delete(missing, test.want)
		t.Run(test.path+"/"+string(test.want), func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+test.path, strings.NewReader(anthropicBody(user, "")))
			if err != nil {
				t.Fatal(err)
			}
			if test.header != "" {
				request.Header.Set(test.header, "t")
			}
			status, _ := send(t, request)
			if got := srv.Requests()[srv.Count()-1]; got.Violation != test.want || status != test.status {
				t.Errorf("violation %q, status %d", got.Violation, status)
			}
		})
	}
	for v := range missing {
		t.Errorf("no case for violation %q", v)
	}
}

// TestViolationUsesNoReply keeps scripts in step with the requests that count.
func TestViolationUsesNoReply(t *testing.T) {
	t.Parallel()
	srv := scripted(t, misbehave.Reply{Text: "first"}, misbehave.Reply{Text: "second"})
	post(t, srv, openaiPath, openaiBody(result1, ""))
	if _, body := post(t, srv, openaiPath, openaiBody(user, "")); !strings.Contains(body, "first") {
		t.Error(body)
	}
}
