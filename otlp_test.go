package interlock_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/otelx"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// What a guard does goes over the network as OTLP, with the exporters that
// applications use: the whole tree of spans arrives, and of the content nothing.
func TestOTLP(t *testing.T) {
	t.Parallel()
	for _, protocol := range otlpsink.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			canary := otelxtest.NewCanary(11)
			sink := otlpsink.Start(t)
			export := sink.Export(t, protocol)
			act(t, export, canary.Phrase())
			export.Shutdown(t)

			spans := sink.Spans()
			want := []string{
				"invoke_agent desk (internal)",
				"  execute_tool pay (internal)",
				"  interlock.admission (internal) allow admission_enabled",
				"  interlock.fallback (internal) allow ok", // the first turn moves to the backup
				"    chat backup (client) allow ok",
				"    chat primary (client, error provider_overloaded) allow overloaded",
				"    interlock.fallback (internal) deny overloaded", // the primary is left alone for a while
				"    interlock.fallback (internal) modify overloaded",
				"  interlock.fallback (internal) allow ok", // the second one asks it at once
				"    chat backup (client) allow ok",
				"    interlock.fallback (internal) abstain benched",
				"invoke_agent desk (internal, error admission_denied)", // after the stop: no execute_tool
				"  interlock.admission (internal) deny admission_stopped",
				"  interlock.escalation (internal) abstain failure_counted",
				"  interlock.fallback (internal) allow ok",
				"    chat backup (client) allow ok",
				"    interlock.fallback (internal) abstain benched",
			}
			if diff := cmp.Diff(want, tree(spans)); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
			checkChat(t, spans)
			for _, s := range spans {
				if len(s.GetEvents()) != 0 || s.GetStatus().GetMessage() != "" || s.GetTraceState() != "" {
					t.Errorf("%s has events, a description or a trace state: %v", s.GetName(), s)
				}
			}
			for _, i := range otelx.Instruments()[:6] {
				m := sink.Instruments()[i.Name]
				if m.GetUnit() != i.Unit || m.GetSum() == nil && m.GetHistogram() == nil {
					t.Errorf("%s arrived as %v", i.Name, m)
				}
			}
			for _, f := range canary.Scan(string(protocol), sink.Raw()) {
				t.Error(f)
			}
			// The scan is of what came: a text that is there is found in it.
			there, err := otelxtest.CanaryOf("interlock.admission")
			if err != nil {
				t.Fatal(err)
			}
			if len(there.Scan(string(protocol), sink.Raw())) == 0 {
				t.Error("the scan finds nothing at all")
			}
		})
	}
}

// act makes one run that pays, behind a primary that is overloaded, and one that
// is refused after a stop. The secret is in everything that an agent handles.
func act(t *testing.T, export *otlpsink.Providers, secret string) {
	t.Helper()
	tel, err := otelx.New(otelx.Config{
		TracerProvider: export.Traces, MeterProvider: export.Metrics,
		Agents: []ident.Label{ident.MustLabel("desk")}, Tools: []ident.Label{ident.MustLabel("pay")},
		Candidates: []otelx.Candidate{
			{Label: ident.MustLabel("primary"), Provider: ident.MustLabel("openai"), Model: ident.MustModelLabel("gpt-4o")},
			{Label: ident.MustLabel("backup"), Provider: ident.MustLabel("openai"), Model: ident.MustModelLabel("gpt-4o-mini")},
		},
		Workflows: []ident.WorkflowID{desk},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Close() })
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer, c.Tracer, c.Fallback.NoRetry = tel, tel, true
		c.Admission = aStore(t)
	})
	scope := admission.Transition{Scope: admission.Global()}
	if _, err := g.Admission().Enable(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	asks := misbehave.Reply{Calls: []misbehave.Call{{Name: "pay", Arguments: fmt.Sprintf(`{"__arg1":%q}`, secret)}}}
	down, up := started(t, misbehave.Replies(misbehave.Reply{Status: 503, Error: &misbehave.APIError{Message: secret}})),
		started(t, misbehave.Replies(asks, misbehave.Reply{Text: secret, Model: secret, Finish: misbehave.Finish(secret)}, asks))
	primary, backup := candidate(t, down), candidate(t, up)
	backup.Label = ident.MustLabel("backup")
	model, err := g.Model(primary, backup)
	if err != nil {
		t.Fatal(err)
	}
	pay := guardTools(t, g, aTool{"pay", func(context.Context, string) (string, error) { return secret, nil }})
	chain := g.Chain(desk, agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, pay)))
	if _, err := chains.Run(t.Context(), chain, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admission().Stop(t.Context(), scope); err != nil {
		t.Fatal(err)
	}
	if _, err := chains.Run(t.Context(), chain, secret); err == nil {
		t.Error("the effect was not refused")
	}
}

func started(t *testing.T, script misbehave.Script) *misbehave.Server {
	t.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)

	return srv
}

// aStore is a new ledger, in which nothing is enabled.
func aStore(t *testing.T) admission.Store {
	t.Helper()
	dir := t.TempDir()
	cfg := admission.StoreConfig{Ledger: filepath.Join(dir, "ledger.db"), Anchor: filepath.Join(dir, "anchor.db")}
	keyFile := filepath.Join(dir, "key")
	if err := provision(t.Context(), cfg.Ledger, cfg.Anchor, keyFile); err != nil {
		t.Fatal(err)
	}
	var err error
	if cfg.Key, err = admission.LoadKeyFile(keyFile); err != nil {
		t.Fatal(err)
	}
	store, err := admission.OpenStore(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })

	return store
}

// tree renders spans below their parents, siblings by name and traces by time.
func tree(spans []*tracepb.Span) []string {
	children := make(map[string][]*tracepb.Span)
	for _, s := range spans {
		children[string(s.GetParentSpanId())] = append(children[string(s.GetParentSpanId())], s)
	}
	var lines []string
	var walk func(indent string, of []*tracepb.Span)
	walk = func(indent string, of []*tracepb.Span) {
		slices.SortStableFunc(of, func(a, b *tracepb.Span) int {
			if c := strings.Compare(a.GetName(), b.GetName()); c != 0 {
				return c
			}

			return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
		})
		for _, s := range of {
			lines = append(lines, indent+describe(s))
			walk(indent+"  ", children[string(s.GetSpanId())])
		}
	}
	walk("", children[""])

	return lines
}

func describe(s *tracepb.Span) string {
	kind := map[tracepb.Span_SpanKind]string{tracepb.Span_SPAN_KIND_INTERNAL: "internal", tracepb.Span_SPAN_KIND_CLIENT: "client"}[s.GetKind()]
	if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		kind += ", error " + attr(s, "error.type").GetStringValue()
	}
	line := s.GetName() + " (" + kind + ")"
	if v := attr(s, "interlock.decision.verdict").GetStringValue(); v != "" {
		line += " " + v + " " + attr(s, "interlock.decision.reason").GetStringValue()
	}

	return line
}

func attr(s *tracepb.Span, key string) *commonpb.AnyValue {
	for _, kv := range s.GetAttributes() {
		if kv.GetKey() == key {
			return kv.GetValue()
		}
	}

	return nil
}

// checkChat looks at the published attributes of the attempt that failed and of
// those that did not.
func checkChat(t *testing.T, spans []*tracepb.Span) {
	t.Helper()
	for _, s := range spans {
		if s.GetKind() != tracepb.Span_SPAN_KIND_CLIENT {
			continue
		}
		for key, want := range map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
			"gen_ai.request.model": map[string]string{"chat primary": "gpt-4o", "chat backup": "gpt-4o-mini"}[s.GetName()],
		} {
			if got := attr(s, key).GetStringValue(); got != want {
				t.Errorf("%s: %s = %q, want %q", s.GetName(), key, got, want)
			}
		}
		if n := attr(s, "gen_ai.usage.output_tokens").GetIntValue(); (n > 0) != (s.GetName() == "chat backup") {
			t.Errorf("%s: %d output tokens", s.GetName(), n)
		}
	}
}
