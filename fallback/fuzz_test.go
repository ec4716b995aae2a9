package fallback_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// Whatever a provider sends: a client sees lines of it in order and nothing else, and an end that looks healthy only
// where the stream said that it ends.
func FuzzStreamWatch(f *testing.F) {
	for _, s := range []string{
		"", "data: [DONE]\n", "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", "data: {\"error\":{}}\n", "data: {\n",
		"data: {\"type\":\"message_start\"}\ndata: {\"type\":\"x\"}\ndata: {\"type\":\"message_stop\"}\ndata: [DONE]\n",
		": c\r\nevent: x\r\ndata:\r\n", "\n\n\n", "data: {\"choices\":null}", "data: [DONE]x\n", "data: {\"type\":\"error\"}\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read, failed, err := watched(t, strings.NewReader(body))
		rest := body
		for line := range strings.Lines(read) {
			i := strings.Index(rest, line)
			if i < 0 {
				t.Fatalf("the client read %q, which is no line of the rest", line)
			}
			rest = rest[i+len(line):]
		}
		if (failed == nil) != (err == nil) {
			t.Fatalf("the client saw %v, the caller %v", failed, err)
		}
		if err == nil && !strings.Contains(read, "[DONE]") && !strings.Contains(read, "message_stop") && !strings.Contains(read, "finish_reason") {
			// Keys may be escaped or in another case.
			if !strings.Contains(strings.ToLower(read), "finish") && !strings.Contains(read, `\u`) {
				t.Fatalf("a stream without an end is whole: %q", read)
			}
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", "5", "null", `"x"`, "[1]", `{"__arg1":"x"}`, `{"a":`, " {} ", "\x00", "é", "{}{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var o llms.CallOptions
		var got []llms.MessageContent
		m := build(t, fallback.Config{Candidates: list(does(spy(&o, &got)))})
		pass := func(arguments string) string {
			_, err := m.GenerateContent(t.Context(), []llms.MessageContent{{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{
				llms.ToolCall{ID: "1", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: arguments}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			call, _ := got[0].Parts[0].(llms.ToolCall)

			return call.FunctionCall.Arguments
		}
		once := pass(s)
		var object map[string]any
		if err := json.Unmarshal([]byte(once), &object); err != nil || object == nil {
			t.Fatalf("%q became %q, which is no object", s, once)
		}
		if again := pass(once); again != once {
			t.Fatalf("%q changed again to %q", once, again)
		}
		if once != s && utf8.ValidString(s) && object["__arg1"] != s {
			t.Fatalf("%q became %q", s, once)
		}
	})
}

// FuzzBench runs a sequence of calls and compares who is asked with a model of the rules: one byte is the pause before
// a call and what each candidate does in it.
func FuzzBench(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 255, 128, 64})
	f.Add([]byte("the quick brown fox jumps over the lazy dog"))
	f.Add([]byte{5, 5, 5, 245, 245, 0, 250, 10, 15, 20, 21, 22, 23, 24})
	kinds := []struct {
		err   error
		bench time.Duration
		moves bool
	}{
		{nil, 0, false},
		{status(503), 30 * time.Second, true},
		{status(404), 10 * time.Minute, true},
		{status(422), 0, false},
	}
	pauses := []time.Duration{0, 10 * time.Second, 31 * time.Second, 11 * time.Minute}
	f.Fuzz(func(t *testing.T, script []byte) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var asked []int
		var kind [2]int
		models := make([]llms.Model, 2)
		for i := range models {
			models[i] = does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				asked = append(asked, i)
				if err := kinds[kind[i]].err; err != nil {
					return nil, err
				}

				return says("ok")(ctx, m, o)
			})
		}
		m := build(t, fallback.Config{NoRetry: true, Candidates: list(models...), Now: func() time.Time { return now }})
		var benched [2]bool
		var until [2]time.Time
		for step, b := range script {
			now = now.Add(pauses[b&3])
			kind = [2]int{int(b>>2) & 3, int(b>>4) & 3}
			asked = nil
			_, err := text(t.Context(), m)

			var expect []int
			free := func(i int) bool { return !benched[i] || !now.Before(until[i]) }
			start := 0
			for start < 2 && !free(start) {
				start++
			}
			if start == 2 { // nobody is free: the one whose bench ends soonest, alone
				start = 0
				if until[1].Before(until[0]) {
					start = 1
				}
			}
			answered := false
			for i := start; i < 2; i++ {
				if i != start && !free(i) {
					continue
				}
				expect = append(expect, i)
				k := kinds[kind[i]]
				if k.err == nil {
					benched[i], answered = false, true
				}
				if k.bench > 0 {
					benched[i], until[i] = true, now.Add(k.bench)
				}
				if !k.moves {
					break
				}
			}
			if len(asked) != len(expect) || asked[0] != expect[0] || asked[len(asked)-1] != expect[len(expect)-1] {
				t.Fatalf("step %d (%08b): asked %v, want %v", step, b, asked, expect)
			}
			if answered != (err == nil) {
				t.Fatalf("step %d: %v", step, err)
			}
			if err != nil && middleware.ReasonOf(err) == 0 {
				t.Fatalf("step %d: %v has no reason", step, err)
			}
			for i, g := range m.Gauges() {
				if (g.Circuit == middleware.CircuitClosed) == benched[i] {
					t.Fatalf("step %d: candidate %d is %v", step, i, g.Circuit)
				}
			}
		}
	})
}

// FuzzShare compares the bound of retries with what it promises: whatever comes when, the retries of any ten seconds are
// at most ten and a fifth of the calls of the same ten seconds and the second before, in which a count may begin.
func FuzzShare(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Add([]byte("a retry after each call, and then a long pause"))
	f.Add([]byte{1, 1, 1, 255, 1, 0, 0, 0, 0, 0, 1, 1, 129, 1, 1, 1, 65, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		var s fallback.Share
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var calls, retries []time.Time
		within := func(of []time.Time, d time.Duration) (n int) {
			for _, at := range of {
				if now.Sub(at) < d {
					n++
				}
			}

			return n
		}
		for _, b := range script {
			now = now.Add(time.Duration(b>>1) * 20 * time.Millisecond)
			if b&1 == 0 {
				s.Call(now)
				calls = append(calls, now)

				continue
			}
			before := within(retries, 10*time.Second)
			if s.Retry(now) {
				if retries = append(retries, now); before+1 > 10+within(calls, 10*time.Second)/5 {
					t.Fatalf("retry %d of %d calls", before+1, within(calls, 10*time.Second))
				}
			} else if within(retries, 11*time.Second) < 10 {
				t.Fatalf("refused after %d retries", within(retries, 11*time.Second))
			}
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "2", "2.5", "-1", "NaN", "Inf", "1e309", "0x10", "Thu, 01 Jan 2026 00:02:00 GMT", "soon", "99999999999999999999"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, header string) {
		if d := fallback.RetryAfter(header, now); d < 0 || d > 10*time.Minute {
			t.Fatalf("%q: %v", header, d)
		}
	})
}

// FuzzClassify: whatever a client says, it is one of the classes, and none of it shows.
func FuzzClassify(f *testing.F) {
	for i, s := range []string{
		"API returned unexpected status code: 503: x", "googleapi: Error 400: API key not valid", "(HTTP Error 429) {", "", "empty response",
		`failed to run inference: unexpected status code: 999, body: {"error":"x`, `error: {"errors":[{"message":"Overloaded","code":1}]}`,
		"422 Unprocessable Entity", "anthropic: failed to create message: API returned unexpected status code: 000",
	} {
		f.Add(uint8(i), s)
	}
	f.Fuzz(func(t *testing.T, p uint8, words string) {
		all := fallback.Providers()
		l := list(does(fails(said(words + secret))))
		l[0].Provider = all[int(p)%len(all)]
		_, err := text(t.Context(), build(t, fallback.Config{Candidates: l, NoRetry: true}))
		if c := classOf(t, err); c.Reason().String() != c.String() || c == fallback.ClassCanceled {
			t.Fatalf("class %v", c)
		}
		contentFree(t, err)
	})
}
