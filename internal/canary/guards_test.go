package canary_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

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
	"github.com/interlock-go/interlock/slogx"
)

// The workflows. Each piece of work has its own: what fails in one would park
// the next otherwise, and little of the secret would get far.
func workflow(name string) ident.WorkflowID {
	return ident.MustWorkflowID("workflow:org.example/" + name + "@1.0.0")
}

func workflows() []ident.WorkflowID {
	var all []ident.WorkflowID
	for _, name := range []string{
		functions + "-openai", functions + "-anthropic", mrkl + "-openai", mrkl + "-anthropic", stream + "-openai", stream + "-anthropic",
		curious, "halted", "parked", "risky", "sliced", "stopped", "also",
	} {
		all = append(all, workflow(name))
	}

	return all
}

func labels(names ...string) []ident.Label {
	var all []ident.Label
	for _, name := range names {
		all = append(all, ident.MustLabel(name))
	}

	return all
}

// hard is how many hard failures park a workflow of the first guard.
const hard = 4

// lines is what a handler of slog writes to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(p)
}

func (w *world) telemetry(protocol otlpsink.Protocol) {
	w.t.Helper()
	w.sink = otlpsink.Start(w.t)
	w.providers = w.sink.Export(w.t, protocol)
	var err error
	w.tel, err = otelx.New(otelx.Config{
		TracerProvider: w.providers.Traces, MeterProvider: w.providers.Metrics,
		Agents: labels("desk"), Tools: labels("look", "pay", "fail", "crash"),
		Candidates: []otelx.Candidate{
			{Label: primary, Provider: ident.MustLabel("openai")}, {Label: backup, Provider: ident.MustLabel("anthropic")},
		},
		Workflows: workflows(),
	})
	w.must(err)
}

// observer hears everything: it is telemetry, lines of slog, and what a program
// would print.
func (w *world) observer() middleware.Observer {
	w.t.Helper()
	all := []middleware.Observer{w.tel, middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
		w.mu.Lock()
		w.decisions = append(w.decisions, d)
		w.mu.Unlock()
		if w.plan.observe != nil {
			w.plan.observe(d)
		}
	})}
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	for _, h := range []slog.Handler{slog.NewTextHandler(&w.text, options), slog.NewJSONHandler(&w.json, options)} {
		o, err := slogx.New(slogx.Config{
			Logger: slog.New(h), Workflows: workflows(), Labels: labels("desk", "look", "pay", "fail", "crash", "primary", "backup"),
		})
		w.must(err)
		all = append(all, o)
	}

	return middleware.Observers(all...)
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
	_, err = escalation.NewFileSink(w.path("nowhere") + "/file")
	w.err(err)
	_, err = escalation.NewQueue(escalation.QueueConfig{Path: w.path("nowhere")})
	w.err(err)
}

// build makes the guards: one that guards as it does by itself, and one whose
// bounds are reached.
func (w *world) build() {
	w.t.Helper()
	handoffs, err := escalation.NewFileSink(w.path("handoffs"))
	w.must(err)
	parked, err := escalation.NewFileSink(w.path("parked"))
	w.must(err)
	counts, err := escalation.New(escalation.Config{Sink: parked})
	w.must(err)
	w.value(parked)
	w.value(counts)
	var registered []interlock.Workflow
	for _, id := range workflows() {
		registered = append(registered, interlock.Workflow{ID: id, Label: w.plan.agentLabel})
	}
	inside.enter(w.plan.agentLabel.String())
	cfg := interlock.Config{
		Workflows: registered, Admission: w.store, Handoffs: handoffs,
		Actions:  escalation.ActionConfig{Sink: parked, HardFailures: hard}, // so that a run is halted before its workflow is parked
		Observer: w.observer(), Tracer: w.tel, Fallback: interlock.Fallback{NoRetry: true},
	}
	bounds := cfg
	w.bounds(&bounds)
	if w.plan.bounds != nil {
		w.plan.bounds(&bounds)
	}
	if w.plan.guard != nil {
		w.plan.guard(&cfg)
	}
	w.guard, err = interlock.New(cfg)
	w.must(err)
	w.bounded, err = interlock.New(bounds)
	w.must(err)
	w.must(w.tel.Watch(w.guard))
	w.tools = w.guarded(w.guard, "")
	_, err = w.guard.Tools(w.tools[0]) // wrapped twice
	w.err(err)
	_, err = w.guard.Admission().Enable(w.t.Context(), admission.Transition{Scope: admission.Global()})
	w.must(err)
}

// guarded returns the tools behind a guard. more is what look says besides.
func (w *world) guarded(guard *interlock.Guard, more string) []tools.Tool {
	w.t.Helper()
	looks := w.plan.look
	looks.call = func(ctx context.Context, in string) (string, error) {
		if w.plan.onLook != nil {
			w.plan.onLook(w)
		}
		out, err := w.plan.look.call(ctx, in)

		return out + more, err
	}
	look := interlock.ReadOnly(watched(looks))
	if looks.name != "look" {
		look = interlock.Alias(look, ident.MustLabel("look"))
	}
	all, err := guard.Tools(look, watched(w.plan.pay), interlock.ReadOnly(watched(tool{"fail", "Fails.",
		func(context.Context, string) (string, error) { return "", w.plan.fail }})),
		watched(tool{"crash", "Crashes.", panics(w.plan.crash)}))
	w.must(err)

	return all
}

// model returns a guarded model that asks vendor first and the other one next.
func (w *world) model(guard *interlock.Guard, kind string, first misbehave.Vendor) (llms.Model, func()) {
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
		srv, err := misbehave.Start(misbehave.Config{Lenient: true, Script: misbehave.ScriptFunc(func(ask misbehave.Request) misbehave.Reply {
			mu.Lock()
			defer mu.Unlock()
			t := turn{kind, answered, i > 0, vendor, len(ask.Tools) == 0}
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
	model, err := guard.Model(candidates...)
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
