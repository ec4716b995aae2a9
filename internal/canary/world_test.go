package canary_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
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
	observe    func(middleware.Decision)

	folder    string // part of the paths of ledger, anchor, key and handoffs
	signature []byte // the key of the ledger
	half      bool   // not every agent on every wire
	operator  bool   // every command is tried, not three of them
	args      [][]string
	stdin     string
	also      func(w *world, ctx context.Context) // in a run of its own
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
	store     *admission.SQLiteStore
	tools     []tools.Tool // look, pay, fail
	dir       string

	cancel context.CancelCauseFunc // of the agent's run

	mu        sync.Mutex
	errs      []error
	decisions []middleware.Decision
	values    []any // what else a program can print
	states    []byte
	requests  []byte
	stdout    []byte // of the command line
	stderr    []byte
}

func newWorld(t *testing.T, change func(*plan), protocol otlpsink.Protocol) *world {
	t.Helper()
	fine := func(context.Context, string) (string, error) { return "fine", nil }
	w := &world{t: t, plan: plan{
		prompt: "a question", folder: "store", signature: []byte("thirty-two bytes that are not one"),
		look: tool{"look", "Looks up.", fine}, pay: tool{"pay", "Pays.", fine}, fail: errors.New("not today"),
		apiKey: "a-key", basePath: "/v1", modelName: "a-model", agentLabel: ident.MustLabel("desk"),
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

func (w *world) telemetry(protocol otlpsink.Protocol) {
	w.t.Helper()
	w.sink = otlpsink.Start(w.t)
	w.providers = w.sink.Export(w.t, protocol)
	var err error
	w.tel, err = otelx.New(otelx.Config{
		TracerProvider: w.providers.Traces, MeterProvider: w.providers.Metrics,
		Agents: []ident.Label{ident.MustLabel("desk")},
		Tools:  []ident.Label{ident.MustLabel("look"), ident.MustLabel("pay"), ident.MustLabel("fail")},
		Candidates: []otelx.Candidate{
			{Label: primary, Provider: ident.MustLabel("openai")}, {Label: backup, Provider: ident.MustLabel("anthropic")},
		},
		Workflows: []ident.WorkflowID{desk},
	})
	w.must(err)
}

func (w *world) ledger() {
	w.t.Helper()
	w.must(os.WriteFile(w.path("key"), w.plan.signature, 0o600))
	key, err := admission.LoadKeyFile(w.path("key"))
	w.must(err)
	inside.enter(w.path("key") + string(w.plan.signature))
	w.value(key)
	cfg := admission.StoreConfig{Ledger: w.path("ledger"), Anchor: w.path("anchor"), Key: key}
	_, err = admission.Initialize(w.t.Context(), cfg)
	w.must(err)
	_, err = admission.Initialize(w.t.Context(), cfg) // it is there already
	w.err(err)
	w.store, err = admission.OpenStore(w.t.Context(), cfg)
	w.must(err)
	w.t.Cleanup(func() { _ = w.store.Close() })
	cfg.Ledger = w.path("nowhere")
	_, err = admission.OpenChecker(w.t.Context(), cfg)
	w.err(err)
	_, err = admission.LoadKeyFile(w.path("nowhere"))
	w.err(err)
}

func (w *world) build() {
	w.t.Helper()
	handoffs, err := escalation.NewFileSink(w.path("handoffs"))
	w.must(err)
	observer := middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
		w.mu.Lock()
		w.decisions = append(w.decisions, d)
		w.mu.Unlock()
		if w.plan.observe != nil {
			w.plan.observe(d)
		}
	})
	cfg := interlock.Config{
		Workflows: []interlock.Workflow{{ID: desk, Label: w.plan.agentLabel}}, Admission: w.store, Handoffs: handoffs,
		Observer: middleware.Observers(w.tel, observer), Tracer: w.tel, Fallback: interlock.Fallback{NoRetry: true},
	}
	inside.enter(w.plan.agentLabel.String())
	if w.plan.guard != nil {
		w.plan.guard(&cfg)
	}
	w.guard, err = interlock.New(cfg)
	w.must(err)
	w.must(w.tel.Watch(w.guard))
	call := w.plan.look.call
	w.plan.look.call = func(ctx context.Context, in string) (string, error) {
		if w.plan.onLook != nil {
			w.plan.onLook(w)
		}

		return call(ctx, in)
	}
	look := interlock.ReadOnly(watched(w.plan.look))
	if w.plan.look.name != "look" {
		look = interlock.Alias(look, ident.MustLabel("look"))
	}
	w.tools, err = w.guard.Tools(look, watched(w.plan.pay), interlock.ReadOnly(watched(tool{"fail", "Fails.",
		func(context.Context, string) (string, error) { return "", w.plan.fail }})))
	w.must(err)
	_, err = w.guard.Tools(w.tools[0]) // wrapped twice
	w.err(err)
	_, err = w.guard.Admission().Enable(w.t.Context(), admission.Transition{Scope: admission.Global()})
	w.must(err)
}

// model returns a guarded model that asks vendor first and the other one next.
func (w *world) model(kind string, first misbehave.Vendor) (llms.Model, func()) {
	w.t.Helper()
	var mu sync.Mutex
	answered := 0
	second := misbehave.VendorAnthropic
	if first == second {
		second = misbehave.VendorOpenAI
	}
	var candidates []interlock.Candidate
	var servers []*misbehave.Server
	for i, vendor := range []misbehave.Vendor{first, second} {
		srv, err := misbehave.Start(misbehave.Config{Lenient: true, Script: misbehave.ScriptFunc(func(misbehave.Request) misbehave.Reply {
			mu.Lock()
			defer mu.Unlock()
			t := turn{kind, answered, i > 0, vendor}
			r := harmless(t)
			if w.plan.reply != nil {
				w.plan.reply(t, &r)
			}
			inside.enterReply(r)
			if r.Status == 0 && r.Raw == nil && r.Fault == misbehave.FaultNone {
				answered++
			}

			return r
		})})
		w.must(err)
		servers = append(servers, srv)
		c, err := client(vendor, srv.URL()+w.plan.basePath, w.plan.apiKey)
		w.must(err)
		if w.plan.wrap != nil {
			c = w.plan.wrap(c)
		}
		candidates = append(candidates, candidate(vendor, i > 0, w.plan.modelName, c))
	}
	model, err := w.guard.Model(candidates...)
	w.must(err)

	return model, func() {
		for _, srv := range servers {
			srv.Close()
			for _, r := range srv.Requests() {
				w.requests = append(append(w.requests, r.Raw()...), '\n')
				inside.enter(fmt.Sprint(r.Path, r.Header()) + string(r.Raw()))
			}
		}
	}
}

// live does everything that a world does.
func (w *world) live() {
	w.t.Helper()
	w.agent(functions, misbehave.VendorOpenAI)
	w.agent(mrkl, misbehave.VendorAnthropic)
	w.streamed(misbehave.VendorOpenAI)
	if !w.plan.half {
		w.agent(mrkl, misbehave.VendorOpenAI)
		w.agent(functions, misbehave.VendorAnthropic)
		w.streamed(misbehave.VendorAnthropic)
	}
	w.trip()
	if w.plan.also != nil {
		w.err(w.guard.Do(w.t.Context(), desk, func(ctx context.Context) error { w.plan.also(w, ctx); return nil }))
	}
	w.stop()
	w.value(w.guard.Gauges())
	w.providers.Shutdown(w.t)
	w.err(w.tel.Close(), w.store.Close())
	w.commands()
}

func (w *world) agent(kind string, vendor misbehave.Vendor) {
	w.t.Helper()
	model, done := w.model(kind, vendor)
	defer done()
	ctx, run, err := w.guard.StartRun(w.t.Context(), desk)
	w.must(err)
	executor := agents.NewExecutor(newAgent(kind, model, w.tools), agents.WithMaxIterations(6),
		agents.WithCallbacksHandler(w.guard.Callbacks()))
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.cancel = cancel
	_, err = chains.Run(inner, w.guard.Chain(desk, executor), w.plan.prompt)
	w.err(err)
	w.save(ctx)
	if h, tripped := run.Handoff(); tripped {
		w.value(h)
	}
	run.End(err)
	_, err = run.Save() // it has ended
	w.err(err)
}

func (w *world) streamed(vendor misbehave.Vendor) {
	w.t.Helper()
	model, done := w.model(stream, vendor)
	defer done()
	w.err(w.guard.Do(w.t.Context(), desk, func(ctx context.Context) error {
		resp, err := model.GenerateContent(ctx, w.plan.messages,
			llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
		_ = resp // the program's own: it may hold anything

		return err
	}))
	_, err := model.GenerateContent(w.t.Context(), w.plan.messages) // without a run
	w.err(err)
}

// trip lets a tool fail until the run is halted.
func (w *world) trip() {
	w.t.Helper()
	err := w.guard.Do(w.t.Context(), desk, func(ctx context.Context) error {
		for i := range 5 {
			_, err := w.tools[2].Call(ctx, strconv.Itoa(i))
			w.err(err)
		}
		w.save(ctx)
		_, err := w.tools[0].Call(ctx, "1001")

		return err
	})
	w.err(err)
	if h, ok := escalation.HandoffOf(err); ok {
		w.value(h)
	}
}

// stop stops all effects, and tries one.
func (w *world) stop() {
	w.t.Helper()
	status, err := w.guard.Admission().Stop(w.t.Context(), admission.Transition{Scope: admission.Global()})
	w.must(err)
	w.value(status)
	w.err(w.guard.Do(w.t.Context(), desk, func(ctx context.Context) error {
		_, err := w.tools[1].Call(ctx, "1001")

		return err
	}))
	w.err(w.guard.Do(w.t.Context(), ident.MustWorkflowID("workflow:org.example/unknown"), func(context.Context) error { return nil }))
	receipts, err := w.store.Receipts(w.t.Context(), 0, 100)
	w.must(err)
	w.value(fmt.Sprint(receipts))
}
