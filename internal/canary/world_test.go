package canary_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// plan says what the world around the guard says and does. A slot changes it.
type plan struct {
	prompt   string
	messages []llms.MessageContent // of the streamed call
	reply    func(t turn, r *misbehave.Reply)
	wrap     func(llms.Model) llms.Model // around each client

	look, pay  tool
	onLook     func(w *world) // before look is called
	fail       error          // of a tool that fails whenever it is called
	apiKey     string
	basePath   string
	modelName  string
	agentLabel ident.Label
	guard      func(*interlock.Config)
	bounds     func(*interlock.Config) // of the guard of bounds
	observe    func(middleware.Decision)

	input   string // of calls that no model asks for
	crash   any    // what a tool panics with, whose workflow is parked
	pattern string // of a risk
	risky   string // an input that it is found in

	folder    string // part of the paths of ledger, anchor, key and handoffs
	signature []byte // the key of the ledger
	half      bool   // not every agent on every wire
	operator  bool   // every command is tried, not a few of them
	args      [][]string
	reviewer  string

	handoffArgs [][]string // of the commands about handoffs
	foreign     string     // what somebody else has put into a file of handoffs
	stdin       string
	also        func(w *world, ctx context.Context) // in a run of its own
}

// world is what one slot is tried in: everything in it is real but the wit of
// the model.
type world struct {
	t    *testing.T
	plan plan

	sink      *otlpsink.Sink
	providers *otlpsink.Providers
	tel       *otelx.Telemetry
	guard     *interlock.Guard
	bounded   *interlock.Guard // with bounds that are reached
	store     *admission.SQLiteStore
	tools     []tools.Tool // look, pay, fail, crash
	dir       string
	passed    atomic.Int64 // time that the clock of the guard of bounds is ahead

	cancel context.CancelCauseFunc // of the agent's run

	mu        sync.Mutex
	errs      []error
	decisions []middleware.Decision
	values    []any // what else a program can print
	states    []byte
	requests  []byte
	stdout    []byte // of the command line
	stderr    []byte
	queueOut  []byte // of its commands about handoffs
	queueErr  []byte
	text      lines // of slog
	json      lines
}

func newWorld(t *testing.T, change func(*plan), protocol otlpsink.Protocol) *world {
	t.Helper()
	fine := func(context.Context, string) (string, error) { return "fine", nil }
	w := &world{t: t, plan: plan{
		prompt: "a question", folder: "store", signature: []byte("thirty-two bytes that are not one"),
		look: tool{"look", "Looks up.", fine}, pay: tool{"pay", "Pays.", fine}, fail: errors.New("not today"),
		apiKey: "a-key", basePath: "/v1", modelName: "a-model", agentLabel: ident.MustLabel("desk"), reviewer: "night-desk",
		input: "1001", crash: "a crash", pattern: "(?i)drop table", risky: "drop table orders",
	}}
	if change != nil {
		change(&w.plan)
	}
	if w.plan.messages == nil {
		w.plan.messages = []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, w.plan.prompt)}
	}
	w.dir = filepath.Join(tempDir(t), w.plan.folder)
	w.must(os.MkdirAll(w.dir, 0o700))
	w.telemetry(protocol)
	w.ledger()
	w.build()

	return w
}

// tempDir is in memory where that is possible: a world waits for the disk forty
// times, and what survives a loss of power is not the question here.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "interlock-canary-") //nolint:usetesting // see above
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	return dir
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string {
	return filepath.Join(w.dir, filepath.Base(w.plan.folder)+"-"+name)
}

// err notes what a program gets to print.
func (w *world) err(errs ...error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range errs {
		if err != nil {
			w.errs = append(w.errs, err)
		}
	}
}

func (w *world) value(v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values = append(w.values, v)
}

// save notes the state of the run of ctx.
func (w *world) save(ctx context.Context) {
	state, err := middleware.RunFrom(ctx).Save()
	w.err(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, state...)
}
