package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/cli"
	"github.com/interlock-go/interlock/middleware"
)

// canaries are what may be found nowhere: names of files and folders, the key in
// every spelling, the input of a call, and words of the database and the system.
type canaries struct {
	t     *testing.T
	words []string
}

func newCanaries(t *testing.T, key []byte) *canaries {
	t.Helper()

	return &canaries{t, []string{
		"canary", string(key[:16]), hex.EncodeToString(key[:16]),
		base64.StdEncoding.EncodeToString(key)[:20], "no such file", "permission denied", "is a directory", "not a database",
		"malformed", "database", "disk i/o", "constraint", "modernc", "goroutine",
	}}
}

func (c *canaries) look(where, text string) {
	c.t.Helper()
	text = strings.ToLower(text)
	for _, word := range c.words {
		if strings.Contains(text, strings.ToLower(word)) {
			c.t.Errorf("%q in %s: %q", word, where, text)
		}
	}
}

func (c *canaries) err(where string, err error) {
	c.t.Helper()
	if err == nil {
		return
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		c.look(where, fmt.Sprintf(verb, err))
	}
}

func (c *canaries) command(p place, args ...string) {
	c.t.Helper()
	var stdout, stderr bytes.Buffer
	_ = cli.RunEnv(args, strings.NewReader("canary-stdin"), &stdout, &stderr, func(n string) string { return p.env()[n] })
	c.look(fmt.Sprint(args), stdout.String()+stderr.String())
}

// TestCanary puts a secret into everything that goes in, and looks for it in
// everything that comes out: ledger, anchor, the answers of all commands, errors
// and decisions, also when the files are not what they should be.
func TestCanary(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	key := []byte("canary-key-0123456789-abcdefghijklmnop")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(p.key, key, 0o600))
	c := newCanaries(t, key)
	every := func() {
		t.Helper()
		for _, args := range [][]string{
			{"status"}, {"verify"}, {"log"}, {"resume"}, {"stop"}, {"stop", "--force"}, {"resume"}, {"init"}, {"keygen"},
			{"resume", "--initialize"}, {"status", "--json"}, {"log", "--json"}, {"verify", "--json"},
			{"stop", "--scope", "canary"}, {"stop", "--role", "canary"}, {"stop", "--reason", "canary"}, {"stop", "--pin", "canary"},
			{"--canary"}, {"canary"}, {"help", "canary"}, {"stop", "canary"}, {"completion", "canary"}, {"stop", "--timeout", "canary"},
			{"status", "--state", p.dir}, {"status", "--anchor", p.dir}, {"status", "--key-file", p.dir},
			{"help"}, {"stop", "--help"}, {"completion"},
		} {
			c.command(p, args...)
		}
	}
	c.command(p, "init")
	every()
	c.library(p, key)
	for _, path := range []string{p.state, p.anchor} {
		data, err := os.ReadFile(path)
		must(err)
		c.look("a file of the store", string(data))
	}

	ledger, err := os.ReadFile(p.state)
	must(err)
	for name, damage := range map[string]func() error{
		"noise":      func() error { return os.WriteFile(p.state, bytes.Repeat([]byte("canary "), 3000), 0o600) },
		"cut":        func() error { return os.WriteFile(p.state, ledger[:len(ledger)-100], 0o600) },
		"gone":       func() error { return os.Remove(p.state) },
		"a folder":   func() error { return errors.Join(os.Remove(p.state), os.Mkdir(p.state, 0o700)) },
		"a link":     func() error { return errors.Join(os.Remove(p.state), os.Symlink(p.anchor, p.state)) },
		"open":       func() error { return os.Chmod(p.state, 0o666) },
		"not ours":   func() error { return os.Chmod(p.dir, 0o777) },
		"no anchor":  func() error { return os.Remove(p.anchor) },
		"no key":     func() error { return os.Remove(p.key) },
		"a long key": func() error { return os.WriteFile(p.key, bytes.Repeat([]byte("canary"), 1000), 0o600) },
	} {
		anchor, err := os.ReadFile(p.anchor)
		must(err)
		must(damage())
		t.Log(name)
		every()
		c.library(p, key)
		must(os.Chmod(p.dir, 0o700))
		for path, data := range map[string][]byte{p.state: ledger, p.anchor: anchor, p.key: key} {
			must(os.RemoveAll(path))
			must(os.WriteFile(path, data, 0o600))
		}
	}
}

// library looks at what a program sees that uses the package.
func (c *canaries) library(p place, secret []byte) {
	c.t.Helper()
	ctx := c.t.Context()
	var mu sync.Mutex
	observer := middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
		mu.Lock()
		defer mu.Unlock()
		c.look("a decision", fmt.Sprintf("%+v %#v", d, d))
	})
	_, err := admission.LoadKeyFile(p.key)
	c.err("the key file", err)
	key, err := admission.ParseKey(secret)
	c.err("the key", err)
	c.look("the key", fmt.Sprintf("%v %+v %#v %s %x %d", key, key, key, key, key, key))
	cfg := admission.StoreConfig{Ledger: p.state, Anchor: p.anchor, Key: key}
	_, err = admission.Initialize(ctx, cfg)
	c.err("Initialize", err)
	for _, open := range []func(context.Context, admission.StoreConfig) (*admission.SQLiteStore, error){admission.OpenStore, admission.OpenChecker} {
		s, err := open(ctx, cfg)
		c.err("open", err)
		if err != nil {
			continue
		}
		approver, err := admission.NewMemoryApprover(admission.MemoryApproverConfig{})
		c.err("NewMemoryApprover", err)
		control, err := admission.New(admission.Config{Store: s, Approver: approver, Observer: observer})
		c.err("New", err)
		c.act(control, approver)
		_, err = admission.Verify(ctx, s)
		c.err("Verify", err)
		_, err = s.Receipts(ctx, 0, 1000)
		c.err("Receipts", err)
		_ = s.Close()
	}
}

func (c *canaries) act(control *admission.Controller, approver *admission.MemoryApprover) {
	c.t.Helper()
	workflow := ident.MustWorkflowID("workflow:org.example/refunds")
	_, err := control.Enable(c.t.Context(), admission.Transition{Scope: admission.Global()})
	c.err("Enable", err)
	ctx, run, err := middleware.StartRun(c.t.Context(), middleware.RunConfig{Workflow: workflow, Previewer: control})
	c.err("StartRun", err)
	defer run.End()
	c.look("a status", fmt.Sprintf("%+v", control.Status(ctx, admission.Global())))
	tool, err := middleware.NewTool(middleware.ToolConfig{
		Name: "refund", Chain: middleware.Chain(control.Approvals().Tool(), control.Gate().Tool()),
	}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, &fs.PathError{Op: "canary", Path: "canary", Err: errors.New("canary")}
	})
	c.err("NewTool", err)
	for _, approved := range []bool{false, true} {
		if ticket := approver.Ticket(ident.MustLabel("refund"), "canary", run.CurrentPreview()); approved {
			c.look("a ticket", ticket)
			c.err("Grant", approver.Grant(ticket))
		}
		_, err = tool.Do(ctx, "canary", "canary")
		c.err("the gate", err)
	}
	_, err = admission.Dispatch(ctx, control, run.CurrentPreview(), func(context.Context) (int, error) { panic("canary") })
	c.err("Dispatch", err)
	_, err = control.Stop(ctx, admission.Transition{Scope: admission.Global()})
	c.err("Stop", err)
	_, err = control.Preview(ctx, workflow)
	c.err("Preview", err)
}
