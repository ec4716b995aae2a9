package canary_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// exampleActs plays the acts in which work is bounded, and looks for what their
// models and tools say, and for the folder, in all that leaves them: what a
// collector gets, too.
func exampleActs(t *testing.T, program string) {
	t.Helper()
	said, err := otelxtest.CanaryOf(canary.Word(),
		"Order 1001 arrived damaged", "please refund it in full", "You have looked at earlier orders", "The order was refunded")
	if err != nil {
		t.Fatal(err)
	}
	acts := []string{"parked", "budget", "context"}
	outlets := []otelxtest.Outlet{
		{Name: "standard output and error", Marker: "as it should"},
		{Name: "telemetry.jsonl", Marker: "invoke_agent refund-desk"},
		{Name: "traces as OTLP", Marker: "invoke_agent refund-desk"},
		{Name: "metrics as OTLP", Marker: "interlock.decisions"},
	}
	m := otelxtest.NewMatrix(t, said, acts, outlets)
	for i, act := range acts {
		t.Run(act, func(t *testing.T) {
			sink := otlpsink.Start(t)
			endpoint := sink.Endpoint(otlpsink.GRPC)
			if i%2 > 0 {
				endpoint = sink.URL(otlpsink.HTTP)
			}
			dir := filepath.Join(tempDir(t), canary.Word())
			out, err := exec.CommandContext(t.Context(), program, "-act", act, "-keep", dir, "-otlp", endpoint).CombinedOutput()
			if err != nil || bytes.Contains(out, []byte("warning")) {
				t.Errorf("%v: %s", err, out)
			}
			for i, data := range [][]byte{
				out, read(t, filepath.Join(dir, act, "telemetry.jsonl")), exported(sink, "race"), exported(sink, "etrics"),
			} {
				m.Scan(act, outlets[i].Name, data)
			}
			if act == "parked" {
				for _, f := range said.Scan("handoffs.jsonl", read(t, filepath.Join(dir, act, "handoffs.jsonl"))) {
					t.Error(f)
				}
			}
		})
	}
	m.Finish()
}

// exampleFlags: a flag that is not understood is not repeated.
func exampleFlags(t *testing.T, program string) {
	t.Helper()
	for _, args := range [][]string{
		{"-act", canary.Phrase()}, {"-" + canary.Word()}, {canary.Phrase()}, {"-provider", canary.Phrase(), "-model", canary.Word()},
		{"-keep", "/dev/null/" + canary.Phrase(), "-act", "stop"},
		{"-otlp", canary.Phrase()}, {"-otlp", "http://" + canary.Word() + ":4318/" + canary.Word()}, {"-otlp", canary.Word() + ":" + canary.Word()},
		{"-otlp", "http://" + canary.Word() + ":" + canary.Word() + "@localhost:4318"}, {"-otlp", canary.Word() + "://localhost:4317"},
	} {
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("langchaingo: ")) {
			t.Errorf("%v: %s", err, out)
		}
		for _, f := range canary.Scan("the example", out) {
			t.Error(f)
		}
	}
	for _, endpoint := range []string{canary.Word() + ".invalid:4317", "http://" + canary.Word() + ".invalid:4318"} { // nobody is there
		out, err := exec.CommandContext(t.Context(), program, "-act", "budget", "-otlp", endpoint).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("langchaingo: warning: ")) {
			t.Errorf("%v: %s", err, out)
		}
		for _, f := range canary.Scan("the example without a collector", out) {
			t.Error(f)
		}
	}
}
