package canary_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// exampleSlot is a way into the example, run as a program on a provider.
type exampleSlot struct {
	name  string
	reply func(n int, r *misbehave.Reply) // n: how many calls were answered
	model string
	path  string // of the provider's URL
	key   string
	keep  string
}

func exampleSlots() []exampleSlot {
	phrase, word := canary.Phrase(), canary.Word()
	first := func(tool, input string) func(int, *misbehave.Reply) {
		return func(n int, r *misbehave.Reply) {
			if n == 0 {
				*r = asks(functions, tool, input)
			}
		}
	}
	always := func(change func(*misbehave.Reply)) func(int, *misbehave.Reply) {
		return func(_ int, r *misbehave.Reply) { change(r) }
	}

	return []exampleSlot{
		{name: "answer", reply: func(n int, r *misbehave.Reply) {
			if n > 1 {
				*r = answers(functions, phrase)
			}
		}},
		{name: "arguments", reply: first("lookup_order", phrase)},
		{name: "arguments of an effect", reply: first("issue_refund", phrase)},
		{name: "name of an unknown tool", reply: first(word, "1001")},
		{name: "finish reason", reply: always(func(r *misbehave.Reply) { r.Finish = misbehave.Finish(phrase) })},
		{name: "response model", reply: always(func(r *misbehave.Reply) { r.Model = phrase })},
		{name: "provider's error", reply: always(apiError(http.StatusBadRequest, phrase))},
		{name: "HTML instead of JSON", reply: always(func(r *misbehave.Reply) {
			*r = misbehave.Reply{Raw: &misbehave.Raw{ContentType: "text/html", Body: "<p>" + phrase}}
		})},
		{name: "model name", model: word},
		{name: "URL of the provider", path: "/" + word + "/v1"},
		{name: "key of the provider", key: phrase},
		{name: "folder to keep", keep: word},
	}
}

// exampleOutlets are files below the folder that is kept, but for the first.
func exampleOutlets() []otelxtest.Outlet {
	return []otelxtest.Outlet{
		{Name: "standard output and error", Marker: "outcome"},
		{Name: "telemetry.jsonl", Marker: "invoke_agent refund-desk"},
		{Name: "ledger.db", Marker: "explicit_enable"},
		{Name: "anchor.db", Marker: "SQLite format 3"},
	}
}

// TestExample runs the example as a program, against a provider that says the
// secret. What the desk writes down itself (orders.db) is the application's.
func TestExample(t *testing.T) { //nolint:paralleltest // as TestMatrix
	program := build(t)
	var names []string
	for _, s := range exampleSlots() {
		names = append(names, s.name)
	}
	m := otelxtest.NewMatrix(t, canary, names, exampleOutlets())
	for _, s := range exampleSlots() { //nolint:paralleltest // as TestMatrix
		t.Run(s.name, func(t *testing.T) {
			out, dir := runExample(t, program, s)
			for _, o := range exampleOutlets() {
				data := out
				if strings.Contains(o.Name, ".") {
					data = read(t, filepath.Join(dir, "live", o.Name))
				}
				m.Scan(s.name, o.Name, data)
			}
		})
	}
	m.Finish()
	exampleActs(t, program)
	exampleFlags(t, program)
}

// build makes the example, with the race detector if this test has it: then its
// packages are there already.
func build(t *testing.T) string {
	t.Helper()
	args := []string{"build"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	program := filepath.Join(t.TempDir(), "example")
	cmd := exec.CommandContext(t.Context(), "go", append(args, "-o", program, "../../examples/langchaingo")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	return program
}

func runExample(t *testing.T, program string, s exampleSlot) (out []byte, dir string) {
	t.Helper()
	answered := 0
	srv, err := misbehave.Start(misbehave.Config{Lenient: true, Script: misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply {
		r := answers(functions, "done")
		switch answered {
		case 0:
			r = asks(functions, "lookup_order", "1001")
		case 1:
			r = asks(functions, "issue_refund", "1001")
		}
		if s.reply != nil {
			s.reply(answered, &r)
		}
		answered++

		return r
	})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	or := func(s, other string) string {
		if s == "" {
			return other
		}

		return s
	}
	dir = filepath.Join(tempDir(t), or(s.keep, "keep"))
	cmd := exec.CommandContext(t.Context(), program, "-provider", "openai", "-model", or(s.model, "a-model"), "-keep", dir)
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+or(s.key, "a-key"), "OPENAI_BASE_URL="+srv.URL()+or(s.path, "/v1"))
	out, _ = cmd.CombinedOutput() // it fails where the provider does
	if srv.Count() == 0 {
		t.Errorf("the provider was never asked: %s", out)
	}
	if s.reply == nil && !bytes.Contains(out, []byte("answered, 1 written")) {
		t.Errorf("the desk did not do its work: %s", out)
	}

	return out, dir
}
