package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/cli"
)

// TestLog: what was recorded, in order, one line each.
func TestLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	run(t, p.env(), "resume").want(t, 0, "admission_enabled")
	const scope = "workflow:org.example/refunds"
	last := run(t, p.env(), "stop", "--scope", scope, "--reason", "maintenance", "--role", "operator").want(t, 0, "admission_stopped")
	for _, wrapped := range []bool{false, true} {
		args := []string{"log"}
		if wrapped {
			args = append(args, "--json")
		}
		var stdout, stderr bytes.Buffer
		if code := cli.RunEnv(args, nil, &stdout, &stderr, func(n string) string { return p.env()[n] }); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit %d, %q", code, &stderr)
		}
		lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
		want := [][4]string{
			{"global", "disabled", "operator", "initialized"},
			{"global", "enabled", "operator", "explicit_enable"},
			{scope, "stopped", "operator", "maintenance"},
		}
		if len(lines) != len(want) {
			t.Fatalf("%q", lines)
		}
		for i, text := range lines {
			var got struct {
				Generation           int
				Scope                string
				State                string
				Role                 string
				Reason               string `json:"reason_code"`
				Time                 int64
				Digest               string `json:"receipt_digest"`
				OK                   bool
				Command              string
				Data                 json.RawMessage
				Unused, UnusedAsWell struct{}
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if wrapped {
				if !got.OK || got.Command != "log" {
					t.Error(text)
				}
				if err := json.Unmarshal(got.Data, &got); err != nil {
					t.Fatal(err)
				}
			}
			if [4]string{got.Scope, got.State, got.Role, got.Reason} != want[i] || got.Generation != i+1 ||
				time.Since(time.Unix(got.Time, 0)) > time.Hour || !strings.HasPrefix(got.Digest, "sha256:") {
				t.Error(text)
			}
			if i == 2 && got.Digest != last.object["receipt_digest"] {
				t.Error(text)
			}
		}
	}
	if err := os.WriteFile(p.anchor, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, p.env(), "log").want(t, 1, "untrusted_state"); r.stdout != "" {
		t.Error("something was listed of a store that cannot be trusted")
	}
}

// TestVerifyCounts: what verify says of a store that holds, and of another one.
func TestVerifyCounts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	first := run(t, p.env(), "init").want(t, 0, "admission_disabled")
	last := run(t, p.env(), "resume").want(t, 0, "admission_enabled")
	r := run(t, p.env(), "verify").want(t, 0, "ok")
	if r.object["generation"] != float64(2) || r.object["receipt_digest"] != last.object["receipt_digest"] ||
		r.object["first_receipt_digest"] != first.object["receipt_digest"] || len(r.object) != 4 {
		t.Error(r)
	}
	r = run(t, p.env(), "verify", "--pin", last.object["receipt_digest"].(string)).want(t, 1, "untrusted_state")
	if r.object["first_bad_generation"] != float64(1) {
		t.Error(r)
	}
	run(t, p.env(), "verify", "--pin", first.object["receipt_digest"].(string)).want(t, 0, "ok")
}

// watcher runs watch until it is stopped, and gives its lines.
type watcher struct {
	lines *bufio.Scanner
	stop  context.CancelFunc
	code  chan int
	fail  *bytes.Buffer
}

func watch(t *testing.T, p place, args ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, w := io.Pipe()
	v := &watcher{lines: bufio.NewScanner(r), stop: cancel, code: make(chan int, 1), fail: new(bytes.Buffer)}
	go func() {
		code := cli.RunAt(ctx, time.Now, append([]string{"watch"}, args...), w, v.fail, func(n string) string { return p.env()[n] })
		_ = w.Close()
		v.code <- code
	}()

	return v
}

func (w *watcher) want(t *testing.T, scope, reason string, generation int) {
	t.Helper()
	if !w.lines.Scan() {
		t.Fatalf("no line; exit %d, %q", <-w.code, w.fail)
	}
	var got struct {
		Scope      string
		Reason     string `json:"reason_code"`
		Generation int
		Digest     string `json:"receipt_digest"`
	}
	if err := json.Unmarshal(w.lines.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Scope != scope || got.Reason != reason || got.Generation != generation || !strings.HasPrefix(got.Digest, "sha256:") {
		t.Errorf("%s, want %s %s %d", w.lines.Text(), scope, reason, generation)
	}
}

func (w *watcher) end(t *testing.T, code int) {
	t.Helper()
	if w.lines.Scan() {
		t.Errorf("one more line: %s", w.lines.Text())
	}
	if got := <-w.code; got != code || w.fail.Len() > 0 {
		t.Errorf("exit %d, want %d; %q", got, code, w.fail)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const refunds, billing = "workflow:org.example/refunds", "workflow:org.example/billing"
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	all, one, interrupted := watch(t, p), watch(t, p, "--scope", billing), watch(t, p)
	all.want(t, "global", "admission_disabled", 1)
	one.want(t, billing, "admission_disabled", 1)
	interrupted.want(t, "global", "admission_disabled", 1)
	interrupted.stop()
	interrupted.end(t, 0)

	run(t, p.env(), "resume").want(t, 0, "admission_enabled")
	run(t, p.env(), "stop", "--scope", refunds).want(t, 0, "admission_stopped")
	run(t, p.env(), "stop", "--scope", billing).want(t, 0, "admission_stopped")
	all.want(t, "global", "admission_enabled", 2)
	all.want(t, refunds, "admission_stopped", 3)
	all.want(t, billing, "admission_stopped", 4)
	one.want(t, "global", "admission_enabled", 2)
	one.want(t, billing, "admission_stopped", 4)

	if err := os.Remove(p.anchor); err != nil {
		t.Fatal(err)
	}
	all.want(t, "global", "untrusted_state", 4)
	all.end(t, 1)
	one.want(t, billing, "untrusted_state", 4)
	one.end(t, 1)
	again := watch(t, p)
	again.want(t, "global", "untrusted_state", 0)
	again.end(t, 1)

	run(t, p.env(), "watch", "--scope", "canary").want(t, 1, "invalid_scope")
	run(t, nil, "watch").want(t, 1, "not_configured")
	run(t, nil, "verify").want(t, 1, "not_configured")
	run(t, nil, "log").want(t, 1, "not_configured")
}

// TestClock: a clock before 1970 records nothing.
func TestClock(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	early := func() time.Time { return time.Unix(-1, 0) }
	at := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		if code := cli.RunAt(t.Context(), early, args, &stdout, &stderr, func(n string) string { return p.env()[n] }); code != 1 || stdout.Len() > 0 {
			t.Errorf("exit %d, %q", code, &stdout)
		}

		return stderr.String()
	}
	const want = `{"reason_code":"invalid_time"}` + "\n"
	if got := at("init"); got != want {
		t.Error(got)
	}
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	if got := at("resume"); got != want {
		t.Error(got)
	}
	if got := at("stop"); got != want {
		t.Error(got)
	}
	run(t, p.env(), "status").want(t, 0, "admission_disabled")
}
