package cli_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/internal/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"interlock": func() {
			limitFileSize()
			os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
		"hold": func() { hold(os.Args[1], os.Args[2]) },
	})
}

// TestScripts run the command as a program of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// corrupt FILE writes noise over the end of a file.
			"corrupt": func(ts *testscript.TestScript, _ bool, args []string) {
				path := ts.MkAbs(args[0])
				data, err := os.ReadFile(path)
				ts.Check(err)
				copy(data[len(data)-600:], bytes.Repeat([]byte("canary "), 80))
				ts.Check(os.WriteFile(path, data, 0o600))
			},
			// sql FILE STATEMENT changes a database behind the program's back.
			"sql": func(ts *testscript.TestScript, _ bool, args []string) {
				db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
				ts.Check(err)
				defer db.Close()
				_, err = db.Exec(args[1])
				ts.Check(err)
			},
			// handoff FILE CLASS AGE NAME delivers a handoff, and sets NAME to its digest.
			"handoff": func(ts *testscript.TestScript, _ bool, args []string) {
				age, err := time.ParseDuration(args[2])
				ts.Check(err)
				h, err := deliver(ts.MkAbs(args[0]), args[1], time.Now().Add(-age))
				ts.Check(err)
				ts.Setenv(args[3], h.Digest().String())
			},
			// append FILE TEXT writes behind the program's back.
			"append": func(ts *testscript.TestScript, _ bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_APPEND, 0)
				ts.Check(err)
				_, err = f.WriteString(strings.ReplaceAll(args[1], `\n`, "\n"))
				ts.Check(err)
				ts.Check(f.Close())
			},
		},
	})
}

// place is a folder with the files of one store. Its name is a canary.
type place struct{ dir, state, anchor, key string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "canary-folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	return place{dir, filepath.Join(dir, "canary-ledger"), filepath.Join(dir, "canary-anchor"), filepath.Join(dir, "canary-key")}
}

func (p place) args(args ...string) []string {
	return append(args, "--state", p.state, "--anchor", p.anchor, "--key-file", p.key)
}

func (p place) env() map[string]string {
	return map[string]string{"INTERLOCK_STATE": p.state, "INTERLOCK_ANCHOR": p.anchor, "INTERLOCK_KEY_FILE": p.key}
}

type result struct {
	code           int
	stdout, stderr string
	object         map[string]any
}

// run executes a command and verifies what holds for every one: an object on
// exactly one of the two streams, and no canary on either.
func run(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.RunEnv(args, strings.NewReader("canary-stdin"), &stdout, &stderr, func(name string) string { return env[name] })
	r := result{code: code, stdout: stdout.String(), stderr: stderr.String()}
	if (r.stdout == "") == (r.stderr == "") || r.stderr != "" && code != 1 {
		t.Errorf("%v: exit %d, %q and %q", args, code, r.stdout, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout+r.stderr), &r.object); err != nil || strings.Count(r.stdout+r.stderr, "\n") != 1 {
		t.Errorf("%v: not one object: %q", args, r.stdout+r.stderr)
	}
	lower := strings.ToLower(r.stdout + r.stderr)
	for _, leak := range []string{"canary", "sqlite", "/", "open ", "flag", "unknown", "usage"} {
		leak = strings.ReplaceAll(leak, "/", string(filepath.Separator))
		if strings.Contains(strings.ReplaceAll(lower, "workflow:org.example/", ""), leak) {
			t.Errorf("%v: %q in %q", args, leak, lower)
		}
	}

	return r
}

func (r result) want(t *testing.T, code int, reason string) result {
	t.Helper()
	if got := r.object["reason_code"]; r.code != code || got != reason {
		t.Errorf("exit %d with %v, want %d with %s", r.code, got, code, reason)
	}

	return r
}

func TestCommands(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, nil, "status").want(t, 0, "admission_disabled")
	run(t, nil, p.args("keygen")...).want(t, 0, "ok")
	run(t, nil, p.args("keygen")...).want(t, 1, "already_initialized")
	r := run(t, nil, p.args("init", "--role", "incident_commander")...).want(t, 0, "admission_disabled")
	if got := slices.Sorted(maps.Keys(r.object)); !slices.Equal(got, []string{"generation", "reason_code", "receipt_digest", "scope"}) {
		t.Error(got)
	}
	pin, _ := r.object["receipt_digest"].(string)
	run(t, nil, p.args("init")...).want(t, 1, "already_initialized")
	run(t, p.env(), "resume", "--pin", pin).want(t, 0, "admission_enabled")
	env := p.env()
	env["INTERLOCK_PIN"] = "sha256:" + strings.Repeat("1", 64)
	run(t, env, "status").want(t, 1, "untrusted_state")
	run(t, env, "status", "--pin", pin).want(t, 0, "admission_enabled")
	run(t, env, "stop").want(t, 1, "untrusted_state")

	const scope = "workflow:org.example/refunds"
	r = run(t, p.env(), "stop", "--scope", scope, "--reason", "maintenance", "--role", "operator").want(t, 0, "admission_stopped")
	if r.object["scope"] != scope || r.object["generation"] != float64(3) {
		t.Error(r.object)
	}
	run(t, p.env(), "status").want(t, 0, "admission_enabled")
	run(t, p.env(), "status", "--scope", scope).want(t, 0, "admission_stopped")
	run(t, p.env(), "stop").want(t, 0, "admission_stopped")
	run(t, p.env(), "resume", "--scope", scope).want(t, 1, "admission_stopped")
	run(t, p.env(), "resume").want(t, 0, "admission_enabled")
	run(t, p.env(), "status", "--scope", scope).want(t, 0, "admission_stopped")

	r = run(t, p.env(), "status", "--json")
	data, _ := r.object["data"].(map[string]any)
	if r.code != 0 || r.object["ok"] != true || r.object["command"] != "status" || data["reason_code"] != "admission_enabled" || len(r.object) != 3 {
		t.Error(r)
	}
	if err := os.Remove(p.state); err != nil {
		t.Fatal(err)
	}
	r = run(t, p.env(), "status").want(t, 1, "untrusted_state")
	if r.stdout == "" || r.object["generation"] != float64(5) || r.object["receipt_digest"] != "sha256:"+strings.Repeat("0", 64) {
		t.Error(r)
	}
	if r = run(t, p.env(), "status", "--json"); r.code != 1 || r.object["ok"] != false {
		t.Error(r)
	}
	run(t, p.env(), "resume").want(t, 1, "untrusted_state")
	run(t, p.env(), "resume", "--initialize").want(t, 1, "already_initialized")
}

func TestInitializeAndResume(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "resume").want(t, 1, "untrusted_state")
	r := run(t, p.env(), "resume", "--initialize", "--scope", "workflow:org.example/refunds").want(t, 0, "admission_enabled")
	if r.object["generation"] != float64(2) {
		t.Error(r.object)
	}
	run(t, p.env(), "status").want(t, 0, "admission_disabled")
	run(t, p.env(), "resume", "--initialize").want(t, 1, "already_initialized")
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "init").want(t, 0, "admission_disabled")
	other := newPlace(t)
	if err := os.WriteFile(other.key, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := newPlace(t)
	run(t, open.env(), "keygen").want(t, 0, "ok")
	if err := os.Chmod(open.key, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"unknown command":     {p.env(), []string{"canary"}, "invalid_control_metadata"},
		"unknown flag":        {p.env(), []string{"stop", "--canary=canary"}, "invalid_control_metadata"},
		"flag of another":     {p.env(), []string{"status", "--initialize"}, "invalid_control_metadata"},
		"flag without value":  {p.env(), []string{"stop", "--scope"}, "invalid_control_metadata"},
		"argument":            {p.env(), []string{"stop", "canary"}, "invalid_control_metadata"},
		"argument of root":    {p.env(), []string{"--json", "canary"}, "invalid_control_metadata"},
		"help topic":          {p.env(), []string{"help", "canary"}, "invalid_control_metadata"},
		"timeout":             {p.env(), []string{"stop", "--timeout", "canary"}, "invalid_control_metadata"},
		"no timeout":          {p.env(), []string{"stop", "--timeout", "0s"}, "invalid_control_metadata"},
		"negative timeout":    {p.env(), []string{"status", "--timeout=-1s"}, "invalid_control_metadata"},
		"boolean":             {p.env(), []string{"status", "--json=canary"}, "invalid_control_metadata"},
		"role":                {p.env(), []string{"stop", "--role", "canary"}, "invalid_control_metadata"},
		"role of init":        {other.env(), []string{"init", "--role", "canary"}, "invalid_control_metadata"},
		"empty role":          {p.env(), []string{"resume", "--role", ""}, "invalid_control_metadata"},
		"reason":              {p.env(), []string{"stop", "--reason", "canary"}, "invalid_control_metadata"},
		"empty reason":        {p.env(), []string{"stop", "--reason", ""}, "invalid_control_metadata"},
		"reason of an enable": {p.env(), []string{"stop", "--reason", "explicit_enable"}, "invalid_transition"},
		"scope":               {p.env(), []string{"stop", "--scope", "canary"}, "invalid_scope"},
		"scope of status":     {p.env(), []string{"status", "--scope", "workflow:canary"}, "invalid_scope"},
		"empty scope":         {p.env(), []string{"resume", "--scope", ""}, "invalid_scope"},
		"pin":                 {p.env(), []string{"status", "--pin", "canary"}, "invalid_control_metadata"},
		"zero pin":            {p.env(), []string{"status", "--pin", "sha256:" + strings.Repeat("0", 64)}, "invalid_control_metadata"},
		"other pin":           {p.env(), []string{"stop", "--pin", "sha256:" + strings.Repeat("1", 64)}, "untrusted_state"},
		"pin of init":         {other.env(), []string{"init", "--pin", "sha256:" + strings.Repeat("1", 64)}, "invalid_key"},
		"nothing for stop":    {nil, []string{"stop"}, "not_configured"},
		"nothing for resume":  {nil, []string{"resume", "--initialize"}, "not_configured"},
		"nothing for init":    {nil, []string{"init"}, "not_configured"},
		"nothing for keygen":  {nil, []string{"keygen"}, "not_configured"},
		"only a key":          {map[string]string{"INTERLOCK_KEY_FILE": p.key}, []string{"status"}, "not_configured"},
		"no key":              {nil, []string{"status", "--state", p.state, "--anchor", p.anchor}, "not_configured"},
		"key missing":         {p.env(), []string{"status", "--key-file", filepath.Join(p.dir, "none")}, "unreadable_key"},
		"key is a folder":     {p.env(), []string{"status", "--key-file", p.dir}, "unreadable_key"},
		"key of all":          {open.env(), []string{"init"}, "unreadable_key"},
		"short key":           {other.env(), []string{"init"}, "invalid_key"},
		"anchor is ledger":    {p.env(), []string{"status", "--anchor", p.state}, "invalid_anchor"},
		"anchor is a folder":  {p.env(), []string{"stop", "--anchor", p.dir}, "invalid_anchor"},
		"ledger is a folder":  {p.env(), []string{"stop", "--state", p.dir}, "untrusted_state"},
		"ledger in memory":    {p.env(), []string{"stop", "--state", ":memory:"}, "untrusted_state"},
		"key exists":          {p.env(), []string{"keygen"}, "already_initialized"},
		"no folder for a key": {nil, []string{"keygen", "--key-file", filepath.Join(p.dir, "none", "key")}, "unreadable_key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, tc.env, tc.args...).want(t, 1, tc.want); r.stdout != "" || len(r.object) != 1 {
				t.Error(r)
			}
		})
	}
}

// TestStarvedStop: somebody reads the ledger for ever. The stop says that it was
// not recorded, and what that means.
func TestStarvedStop(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	run(t, p.env(), "resume", "--initialize").want(t, 0, "admission_enabled")
	db, err := sql.Open("sqlite", p.state)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var n int
	if err := tx.QueryRow("SELECT count(*) FROM receipts").Scan(&n); err != nil {
		t.Fatal(err)
	}
	r := run(t, p.env(), "stop", "--timeout", "200ms").want(t, 1, "store_busy")
	if r.object["admission"] != "may_still_be_open" {
		t.Error(r)
	}
	r = run(t, p.env(), "resume", "--timeout", "200ms").want(t, 1, "store_busy")
	if len(r.object) != 1 {
		t.Error(r)
	}
	run(t, p.env(), "status").want(t, 0, "admission_enabled")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	run(t, p.env(), "stop").want(t, 0, "admission_stopped")
}

// TestUntrustedStatus: an object on standard output, also where there is no
// store to open at all.
func TestUntrustedStatus(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	run(t, p.env(), "keygen").want(t, 0, "ok")
	for _, state := range []string{p.state, ":memory:", filepath.Join(p.dir, "none", "ledger")} {
		r := run(t, p.env(), "status", "--state", state).want(t, 1, "untrusted_state")
		if r.stdout == "" || r.object["scope"] != "global" || r.object["generation"] != float64(0) {
			t.Error(r)
		}
	}
}

// TestHelp: what a command does and does not promise, and no value of ours.
func TestHelp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"help", "stop"}, {"stop", "--help"}, {"status", "-h"}} {
		var stdout, stderr bytes.Buffer
		code := cli.RunEnv(args, nil, &stdout, &stderr, func(n string) string { return p.env()[n] })
		if code != 0 || stderr.Len() > 0 || !strings.Contains(stdout.String(), "not recalled") && !strings.Contains(stdout.String(), "Usage:") {
			t.Errorf("%v: exit %d, %q, %q", args, code, &stdout, &stderr)
		}
		if strings.Contains(stdout.String(), "canary") {
			t.Errorf("%v: a path in the help", args)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("canary") }

// TestNobodyListens: an answer that cannot be printed is not a success.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	if code := cli.RunEnv([]string{"status"}, nil, brokenWriter{}, &stderr, func(string) string { return "" }); code != 1 || stderr.String() != "{\"reason_code\":\"store_failed\"}\n" {
		t.Errorf("exit %d, %q", code, &stderr)
	}
}
