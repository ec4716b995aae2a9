package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/misbehave"
)

func TestMain(m *testing.M) {
	if isOperator() { // the act "stop" executes this binary as the operator
		os.Exit(operate(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// sandbox makes everything that could be written land in one folder.
func sandbox(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Chdir(t.TempDir())

	return dir
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return names
}

func TestActs(t *testing.T) { //nolint:paralleltest // sets the environment and the working folder
	tmp := sandbox(t)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-json"}, &stdout, &stderr); code != 0 {
		t.Errorf("exit %d, standard error: %s", code, stderr.String())
	}
	dec := json.NewDecoder(&stdout)
	dec.DisallowUnknownFields()
	for _, a := range acts() {
		var r result
		if err := dec.Decode(&r); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		if r.Act != a.name || !r.OK || r.Outcome != a.want || r.Effects != a.effects || len(r.Decisions) == 0 {
			t.Errorf("%s: %+v", a.name, r)
		}
	}
	if dec.More() {
		t.Error("more objects than acts")
	}
	if left := files(t, tmp); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if left := files(t, "."); len(left) > 0 {
		t.Errorf("written to the working folder: %v", left)
	}
}

func TestKeep(t *testing.T) { //nolint:paralleltest // as TestActs
	sandbox(t)
	keep := filepath.Join(t.TempDir(), "kept")
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-act", "escalate", "-keep", keep}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	out := stdout.String()
	for _, want := range []string{"interlock.handoff.v1", "assess_safety", "circuit_open", "escalate/telemetry.jsonl"} {
		if !strings.Contains(out, want) {
			t.Errorf("the timeline lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, keep) || strings.Contains(out, "\x1b[") {
		t.Errorf("the timeline shows a path or colours:\n%s", out)
	}
	spans, err := os.ReadFile(filepath.Join(keep, "escalate", "telemetry.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"invoke_agent refund-desk", "execute_tool notify_customer", "interlock.escalation", "interlock.decisions"} {
		if !bytes.Contains(spans, []byte(want)) {
			t.Errorf("the telemetry lacks %q", want)
		}
	}
	for _, content := range []string{"mail relay", "damaged", "customer c-17", "order 1001"} {
		if bytes.Contains(spans, []byte(content)) || strings.Contains(out, content) {
			t.Errorf("content left the process: %q", content)
		}
	}
	// A second run must not write over what was kept.
	if code := run(t.Context(), []string{"-act", "escalate", "-keep", keep}, &stdout, &stderr); code != 1 {
		t.Errorf("exit %d for a folder that holds the act already", code)
	}
}

// What the acts about models show, and that nothing of what was said comes out.
func TestFallbackActs(t *testing.T) { //nolint:paralleltest // as TestActs
	for name, wants := range map[string][]string{ //nolint:paralleltest // as TestActs
		"stream-cut":      {"chunks are held back", "seen 92 of 92 bytes", "chunks are handed on at once", "seen 35 of 92 bytes"},
		"silent-provider": {"timeout · primary", "substitute timeout · secondary"},
		"cross-vendor":    {"success · primary", "substitute overloaded · secondary", "issue_refund ran", "notify_customer ran"},
		"parked": {
			"outcome_unknown · refund-desk", "circuit open", "parked · lookup_order", "waits for a human: safety_review",
			"0 waiting, 1 decided", "circuit half_open", "circuit closed",
		},
		"budget":  {"budget_exceeded · lookup_order · 3 of 3", "5 model calls, 3 tool calls"},
		"context": {"context_full", "15 requests, of which none held more than 7 of 14 results"},
		"flap":    {"probe · primary", "recovered · primary", "back 4s after it recovered; probes: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox(t)
			keep := filepath.Join(t.TempDir(), "kept")
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), []string{"-act", name, "-keep", keep}, &stdout, &stderr); code != 0 {
				t.Fatalf("exit %d: %s%s", code, stdout.String(), stderr.String())
			}
			for _, want := range wants {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("the timeline lacks %q:\n%s", want, stdout.String())
				}
			}
			spans, err := os.ReadFile(filepath.Join(keep, name, "telemetry.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			for _, content := range []string{"damaged", "order 1001", "refund it", "from the primary", "scripted"} {
				if strings.Contains(stdout.String(), content) || bytes.Contains(spans, []byte(content)) {
					t.Errorf("content left the process: %q", content)
				}
			}
			// The states are those of the guard that the act made, and every name is registered.
			if !bytes.Contains(spans, []byte(`"Key":"interlock.circuit.label","Value":{"Type":"STRING","Value":"primary"}`)) {
				t.Error("no state of the primary's breaker")
			}
			if bytes.Contains(spans, []byte("interlock.telemetry.rejected")) {
				t.Error("a name was not registered")
			}
			if waits := bytes.Contains(spans, []byte("interlock.escalation.queue")); waits != (name == "parked") {
				t.Errorf("handoffs that wait are told: %v", waits)
			}
		})
	}
}

func TestBadFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown act":         {"-act", "sekret"},
		"unknown flag":        {"-sekret"},
		"missing value":       {"-act"},
		"argument":            {"sekret"},
		"unknown provider":    {"-provider", "sekret", "-model", "m"},
		"provider, no model":  {"-provider", "openai"},
		"model, no provider":  {"-model", "sekret"},
		"provider with act":   {"-provider", "openai", "-model", "m", "-act", "loop"},
		"bad endpoint":        {"-otlp", "http://user:sekret@localhost:4318"},
		"empty endpoint":      {"-otlp", ""},
		"no key for provider": {"-provider", "openai", "-model", "m"},
	} {
		t.Run(name, func(t *testing.T) {
			sandbox(t)
			t.Setenv("OPENAI_API_KEY", "")
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), args, &stdout, &stderr); code != usageExit {
				t.Errorf("exit %d", code)
			}
			if msg := stderr.String(); strings.Count(msg, "\n") != 1 || strings.Contains(msg, "sekret") || stdout.Len() > 0 {
				t.Errorf("standard error %q, standard output %q", msg, stdout.String())
			}
		})
	}
}

// The desk on a "real" provider: the address and key come from the environment,
// as the clients read them.
func TestLive(t *testing.T) {
	for provider, variables := range map[string][2]string{
		"openai":    {"OPENAI_API_KEY", "OPENAI_BASE_URL"},
		"anthropic": {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
	} {
		t.Run(provider, func(t *testing.T) {
			sandbox(t)
			srv, err := misbehave.Start(misbehave.Config{Script: misbehave.ScriptFunc(refundScript)})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			t.Setenv(variables[0], "a-key")
			t.Setenv(variables[1], srv.URL()+"/v1")
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), []string{"-provider", provider, "-model", "any-model"}, &stdout, &stderr); code != 0 {
				t.Errorf("exit %d: %s", code, stderr.String())
			}
			if out := stdout.String(); !strings.Contains(out, "answered, 2 written") {
				t.Errorf("got %s", out)
			}
			for _, r := range srv.Requests() {
				if r.Model != "any-model" || r.Violation != misbehave.NoViolation {
					t.Errorf("request %d: model %q, violation %q", r.Index, r.Model, r.Violation)
				}
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		sandbox(t)
		t.Setenv("OLLAMA_HOST", "http://127.0.0.1:1")
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-provider", "ollama", "-model", "any-model"}, &stdout, &stderr); code != 1 {
			t.Errorf("exit %d: %s", code, stderr.String())
		}
		if out := stdout.String(); !strings.Contains(out, "exhausted, 0 written") {
			t.Errorf("got %s", out)
		}
	})
}
