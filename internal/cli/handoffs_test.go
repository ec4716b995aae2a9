package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/middleware"
)

// deliver appends the handoff of a run that was halted then.
func deliver(path, class string, at time.Time) (h escalation.Handoff, err error) {
	run, err := ident.NewRunID()
	if err != nil {
		return h, err
	}
	b, err := escalation.NewBreaker(escalation.BreakerConfig{
		Run: run, Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Policy: escalation.DefaultPolicy(),
	})
	if err != nil {
		return h, err
	}
	var c escalation.Class
	for _, known := range middleware.FailureClasses() {
		if known.String() == class {
			c = known
		}
	}
	tripped, err := b.Trip(c, strings.Repeat("ab", 32), at.UTC().Truncate(time.Second))
	if err != nil {
		return h, err
	}
	s, err := escalation.NewFileSink(path)
	if err != nil {
		return h, err
	}

	return *tripped, s.Deliver(context.Background(), *tripped)
}

// shelf is a queue file whose name is a canary, and the digests of the handoffs
// in it: a tool failure that waits, and one that is expired.
type shelf struct{ path, waiting, expired string }

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{path: filepath.Join(newPlace(t).dir, "canary-handoffs")}
	for to, age := range map[*string]time.Duration{&s.waiting: time.Minute, &s.expired: time.Hour} {
		h, err := deliver(s.path, "tool_failure", time.Now().Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		*to = h.Digest().String()
	}

	return s
}

func (s shelf) env() map[string]string { return map[string]string{"INTERLOCK_HANDOFFS": s.path} }

func (s shelf) decide(id, decision string) []string {
	return []string{"handoffs", "decide", id, "--decision", decision, "--reviewer", "night-desk"}
}

// list returns the objects that list prints, the summary last.
func (s shelf) list(t *testing.T, args ...string) (code int, objects []map[string]any) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.RunEnv(append([]string{"handoffs", "list"}, args...), nil, &stdout, &stderr, func(n string) string { return s.env()[n] })
	if strings.Contains(stdout.String()+stderr.String(), "canary") || stderr.Len() > 0 {
		t.Errorf("%q and %q", &stdout, &stderr)
	}
	for line := range bytes.Lines(stdout.Bytes()) {
		var object map[string]any
		if err := json.Unmarshal(line, &object); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 {
		t.Fatal("nothing is printed")
	}

	return code, objects
}

func TestHandoffsBadInput(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	before, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	other := newShelf(t)
	if err := os.Chmod(other.path, 0o604); err != nil {
		t.Fatal(err)
	}
	none := map[string]string{"INTERLOCK_HANDOFFS": s.path + "-none"}
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"no file":             {nil, []string{"handoffs", "list"}, "not_configured"},
		"no file to show":     {nil, []string{"handoffs", "show", s.waiting}, "not_configured"},
		"no file to decide":   {nil, s.decide(s.waiting, "dismissed"), "not_configured"},
		"missing":             {none, []string{"handoffs", "list"}, "queue_unreadable"},
		"missing to decide":   {none, s.decide(s.waiting, "dismissed"), "queue_unreadable"},
		"open to others":      {other.env(), []string{"handoffs", "show", other.waiting}, "queue_unreadable"},
		"folder":              {nil, []string{"handoffs", "list", "--file", filepath.Dir(s.path)}, "queue_unreadable"},
		"expired":             {s.env(), s.decide(s.expired, "dismissed"), "handoff_expired"},
		"not offered":         {s.env(), s.decide(s.waiting, "recheck_permissions"), "invalid_decision"},
		"unknown decision":    {s.env(), s.decide(s.waiting, "canary"), "invalid_decision"},
		"no decision":         {s.env(), s.decide(s.waiting, ""), "invalid_decision"},
		"invalid decision":    {s.env(), s.decide(s.waiting, "invalid"), "invalid_decision"},
		"no reviewer":         {s.env(), []string{"handoffs", "decide", s.waiting, "--decision", "dismissed"}, "invalid_label"},
		"reviewer":            {s.env(), []string{"handoffs", "decide", s.waiting, "--decision", "dismissed", "--reviewer", "Canary"}, "invalid_label"},
		"long reviewer":       {s.env(), []string{"handoffs", "decide", s.waiting, "--decision", "dismissed", "--reviewer", strings.Repeat("a", 65)}, "invalid_label"},
		"digest":              {s.env(), []string{"handoffs", "show", "canary"}, "invalid_digest"},
		"bare digest":         {s.env(), []string{"handoffs", "show", strings.TrimPrefix(s.waiting, "sha256:")}, "invalid_digest"},
		"run as digest":       {s.env(), s.decide("run_"+strings.Repeat("ab", 16), "dismissed"), "invalid_digest"},
		"two digests":         {s.env(), []string{"handoffs", "show", s.waiting, s.expired}, "invalid_control_metadata"},
		"no digest":           {s.env(), []string{"handoffs", "show"}, "invalid_control_metadata"},
		"state":               {s.env(), []string{"handoffs", "list", "--only", "canary"}, "invalid_control_metadata"},
		"invalid state":       {s.env(), []string{"handoffs", "list", "--only", "invalid"}, "invalid_control_metadata"},
		"unknown command":     {s.env(), []string{"handoffs", "canary"}, "invalid_control_metadata"},
		"unknown flag":        {s.env(), []string{"handoffs", "list", "--canary"}, "invalid_control_metadata"},
		"flag of another":     {s.env(), []string{"handoffs", "show", s.waiting, "--decision", "dismissed"}, "invalid_control_metadata"},
		"flag of the group":   {s.env(), []string{"status", "--file", s.path}, "invalid_control_metadata"},
		"argument of list":    {s.env(), []string{"handoffs", "list", "canary"}, "invalid_control_metadata"},
		"no timeout":          {s.env(), []string{"handoffs", "list", "--timeout", "0s"}, "invalid_control_metadata"},
		"no time at all":      {s.env(), []string{"handoffs", "list", "--timeout", "1ns"}, "queue_busy"},
		"no time to decide":   {s.env(), append(s.decide(s.waiting, "dismissed"), "--timeout", "1ns"), "queue_busy"},
		"help about no topic": {s.env(), []string{"help", "handoffs", "canary"}, "invalid_control_metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, tc.env, tc.args...).want(t, 1, tc.want); r.stdout != "" || len(r.object) != 1 {
				t.Error(r)
			}
		})
	}
	t.Cleanup(func() {
		if after, err := os.ReadFile(s.path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("something was written: %v", err)
		}
	})
}

// TestHandoffsExpiry: the clock of the command decides.
func TestHandoffsExpiry(t *testing.T) {
	t.Parallel()
	s := shelf{path: filepath.Join(newPlace(t).dir, "canary-handoffs")}
	issued := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	h, err := deliver(s.path, "uncertainty", issued)
	if err != nil {
		t.Fatal(err)
	}
	at := func(now time.Time, args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := cli.RunAt(t.Context(), func() time.Time { return now }, args, &stdout, &stderr, func(n string) string { return s.env()[n] })

		return code, stdout.String() + stderr.String()
	}
	decide := s.decide(h.Digest().String(), "review_evidence")
	if code, out := at(issued.Add(-time.Hour), decide...); code != 1 || out != "{\"reason_code\":\"handoff_not_yet_valid\"}\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out := at(issued.Add(30*time.Minute), decide...); code != 1 || out != "{\"reason_code\":\"handoff_expired\"}\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out := at(time.Time{}, decide...); code != 1 || out != "{\"reason_code\":\"invalid_timestamp\"}\n" {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out := at(issued.Add(30*time.Minute-1), decide...); code != 0 || !strings.HasSuffix(out, `"decided_at":1772602566}`+"\n") {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, out := at(issued.Add(time.Hour), "handoffs", "list", "--only", "decided"); code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("exit %d, %s", code, out)
	}
}

// TestHandoffsCanary puts a secret into the file and everything that is typed,
// and looks for it in the answers.
func TestHandoffsCanary(t *testing.T) {
	t.Parallel()
	c := newCanaries(t, []byte("canary-key-0123456789-abcdefghijklmnop"))
	s := newShelf(t)
	good, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	c.look("the file", string(good))
	whole, _, _ := strings.Cut(string(good), "\n")
	for name, prepare := range map[string]func() error{
		"good": func() error { return nil },
		"junk": func() error { return os.WriteFile(s.path, []byte("canary\n"+string(good)+"canary"), 0o600) },
		"another form": func() error {
			return os.WriteFile(s.path, []byte(strings.ReplaceAll(string(good), "tool_failure", "canary")), 0o600)
		},
		"evidence": func() error {
			return os.WriteFile(s.path, []byte(strings.Replace(whole, `[]`, `["canary"]`, 1)+"\n"), 0o600)
		},
		"decision": func() error { return os.WriteFile(s.path, []byte(whole+"\n{\"decided_at\":\"canary\"}\n"), 0o600) },
		"a folder": func() error { return os.Mkdir(s.path, 0o700) },
		"a link":   func() error { return os.Symlink("canary", s.path) },
		"open":     func() error { return errors.Join(os.WriteFile(s.path, good, 0o600), os.Chmod(s.path, 0o666)) },
		"gone":     func() error { return nil },
	} {
		if name != "good" {
			if err := os.RemoveAll(s.path); err != nil {
				t.Fatal(err)
			}
		}
		if err := prepare(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"handoffs", "list"}, {"handoffs", "list", "--json"}, {"handoffs", "list", "--only", "canary"}, {"handoffs", "show", s.waiting},
			{"handoffs", "show", "canary"}, {"handoffs", "show", s.expired, "--json"}, s.decide(s.waiting, "canary"), s.decide("canary", "dismissed"),
			s.decide(s.expired, "abort_run"), s.decide(s.waiting, "dismissed"), s.decide(s.waiting, "dismissed"), {"handoffs", "canary"},
			{"handoffs"}, {"handoffs", "decide", "--help"}, {"handoffs", "decide", s.waiting, "--decision", "dismissed", "--reviewer", "canary/x"},
			{"__complete", "handoffs", "show", "canary"}, {"__complete", "handoffs", "decide", "--file", s.path, "--decision", ""},
		} {
			var stdout, stderr bytes.Buffer
			cli.RunEnv(args, strings.NewReader("canary-stdin"), &stdout, &stderr, func(n string) string { return s.env()[n] })
			if stdout.Len()+stderr.Len() == 0 {
				t.Errorf("%s: %v says nothing", name, args)
			}
			// The defect of a line is a word of ours.
			c.look(name, strings.ReplaceAll(stdout.String()+stderr.String(), `"defect":"malformed"`, ""))
		}
	}
}

// TestNobodyListensToHandoffs: a list that cannot be printed is not a success.
func TestNobodyListensToHandoffs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, args := range [][]string{{"handoffs", "list"}, {"handoffs", "show", s.waiting}, s.decide(s.waiting, "dismissed")} {
		var stderr bytes.Buffer
		code := cli.RunEnv(args, nil, brokenWriter{}, &stderr, func(n string) string { return s.env()[n] })
		if code != 1 || stderr.String() != "{\"reason_code\":\"store_failed\"}\n" {
			t.Errorf("%v: exit %d, %q", args, code, &stderr)
		}
	}
	if code, objects := s.list(t); code != 0 || objects[2]["decided"] != float64(1) {
		t.Errorf("exit %d, %v", code, objects)
	}
}
