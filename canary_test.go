package interlock_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/tools"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// secret is planted wherever content goes in, and looked for wherever something
// comes out.
const secret = "canary-4F7a SECRET/+?"

// found returns the forms of the secret that stand in data.
func found(data []byte) []string {
	var forms []string
	lower := bytes.ToLower(data)
	for name, form := range map[string]string{
		"plain": secret, "url": url.QueryEscape(secret), "hex": hex.EncodeToString([]byte(secret)),
		"base64": base64.StdEncoding.EncodeToString([]byte(secret))[:20], "json": strings.Trim(fmt.Sprintf("%q", secret), `"`),
	} {
		if bytes.Contains(lower, []byte(strings.ToLower(form))) {
			forms = append(forms, name)
		}
	}

	return forms
}

type canaryCase struct {
	script []misbehave.Reply
	tool   func(ctx context.Context, in string) (string, error)
	// released says that the secret may be in requests after the first: the
	// tool's result goes to the model by design.
	released bool
}

func canaryCases() map[string]canaryCase {
	asks := misbehave.Reply{Calls: []misbehave.Call{{Name: "look", Arguments: `{"__arg1":"1001"}`}}}
	asksSecret := misbehave.Reply{Calls: []misbehave.Call{{Name: "look", Arguments: fmt.Sprintf(`{"__arg1":%q}`, secret)}}}
	done := misbehave.Reply{Text: "done"}
	ok := func(context.Context, string) (string, error) { return "fine", nil }

	return map[string]canaryCase{
		"answer":         {[]misbehave.Reply{{Text: secret}}, ok, false},
		"arguments":      {[]misbehave.Reply{asksSecret, done}, ok, true},
		"tool name":      {[]misbehave.Reply{{Calls: []misbehave.Call{{Name: "x" + hex.EncodeToString([]byte(secret)), Arguments: `{}`}}}, done}, ok, true},
		"finish reason":  {[]misbehave.Reply{{Text: "x", Finish: misbehave.Finish(secret)}}, ok, false},
		"model name":     {[]misbehave.Reply{{Text: "x", Model: secret}}, ok, false},
		"provider error": {[]misbehave.Reply{{Status: 400, Error: &misbehave.APIError{Message: secret}}}, ok, false},
		"html":           {[]misbehave.Reply{{Raw: &misbehave.Raw{ContentType: "text/html", Body: "<p>" + secret}}}, ok, false},
		"result": {[]misbehave.Reply{asks, done}, func(context.Context, string) (string, error) {
			return secret, nil
		}, true},
		"tool error": {[]misbehave.Reply{asks, done}, func(context.Context, string) (string, error) {
			return "", errors.New(secret)
		}, false},
		"typed tool error": {[]misbehave.Reply{asks, done}, func(context.Context, string) (string, error) {
			return "", talkative{}
		}, false},
		"tool error, three times": {[]misbehave.Reply{asks}, func(context.Context, string) (string, error) {
			return "", errors.New(secret)
		}, false},
		"panic": {[]misbehave.Reply{asks, done}, func(context.Context, string) (string, error) {
			panic(secret)
		}, false},
		"panic with an error": {[]misbehave.Reply{asks, done}, func(context.Context, string) (string, error) {
			panic(errors.New(secret))
		}, false},
		"own deadline": {[]misbehave.Reply{asks, done}, func(ctx context.Context, _ string) (string, error) {
			return "", fmt.Errorf("%s: %w", secret, context.DeadlineExceeded)
		}, false},
	}
}

// talkative says its type and text in every way that telemetry might ask for.
type talkative struct{}

func (talkative) Error() string     { return secret }
func (talkative) ErrorType() string { return secret }
func (talkative) String() string    { return secret }
func (talkative) GoString() string  { return secret }

// TestCanary plants a secret in prompts, arguments, results, errors, panics and
// provider bodies, and looks for it in spans, metrics, decisions, error strings,
// logs, handoffs, saved runs, and in the next request to the provider where it
// was not released.
func TestCanary(t *testing.T) {
	t.Parallel()
	for name, tc := range canaryCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := leak(t, tc, newTelemetry)
			for outlet, data := range out {
				if forms := found(data); len(forms) > 0 {
					t.Errorf("%s holds the secret, %v: %.2000s", outlet, forms, data)
				}
			}
			if len(out["spans and metrics"]) < 1000 {
				t.Errorf("hardly any telemetry: %s", out["spans and metrics"])
			}
		})
	}
}

// leak runs the case and returns what came out, by outlet.
func leak(t *testing.T, tc canaryCase, telemetry func(*testing.T, *bytes.Buffer) (*otelx.Telemetry, func())) map[string][]byte {
	t.Helper()
	var spans, handoffs, decisions bytes.Buffer
	tel, flush := telemetry(t, &spans)
	sink, err := escalation.NewWriterSink(&handoffs)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(t, func(c *interlock.Config) {
		c.Observer = middleware.Observers(tel, middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
			fmt.Fprintf(&decisions, "%+v %#v\n", d, d)
		}))
		c.Tracer, c.Handoffs = tel, sink
	})
	model, srv := serve(t, g, misbehave.Replies(tc.script...))
	ts := guardTools(t, g, interlock.ReadOnly(aTool{"look", tc.tool}))
	ctx, run, err := g.StartRun(t.Context(), desk)
	if err != nil {
		t.Fatal(err)
	}
	agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, ts), agents.WithCallbacksHandler(g.Callbacks()))
	_, err = chains.Run(ctx, agent, "a question about "+strings.ToLower("nothing secret"))
	state, saveErr := run.Save()
	if saveErr != nil {
		t.Error(saveErr)
	}
	run.End(err)
	flush()
	out := map[string][]byte{
		"spans and metrics": spans.Bytes(), "handoffs": handoffs.Bytes(), "decisions": decisions.Bytes(), "saved run": state,
	}
	if err != nil {
		out["error"] = printed(err)
	}
	if requests := srv.Requests(); !tc.released {
		for i := 1; i < len(requests); i++ {
			out[fmt.Sprint("request ", i+1)] = requests[i].Raw()
		}
	}

	return out
}

// printed gives err in every form in which errors are printed and logged.
func printed(err error) []byte {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&b, verb+"\n", err)
	}
	slog.New(slog.NewTextHandler(&b, nil)).Error("x", "err", err)
	slog.New(slog.NewJSONHandler(&b, nil)).Error("x", "err", err)

	return b.Bytes()
}

func newTelemetry(t *testing.T, w *bytes.Buffer) (*otelx.Telemetry, func()) {
	t.Helper()
	spans, err := stdouttrace.New(stdouttrace.WithWriter(w))
	if err != nil {
		t.Fatal(err)
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	metrics, err := stdoutmetric.New(stdoutmetric.WithWriter(w))
	if err != nil {
		t.Fatal(err)
	}
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tel, err := otelx.New(otelx.Config{
		TracerProvider: traces, MeterProvider: meters,
		Agents: []ident.Label{ident.MustLabel("desk")}, Tools: []ident.Label{ident.MustLabel("look")},
		Candidates: []otelx.Candidate{{Label: ident.MustLabel("primary"), Provider: ident.MustLabel("openai")}},
		Workflows:  []ident.WorkflowID{desk},
	})
	if err != nil {
		t.Fatal(err)
	}

	return tel, func() {
		var rm metricdata.ResourceMetrics
		if err := reader.Collect(context.Background(), &rm); err != nil {
			t.Error(err)
		}
		err := errors.Join(metrics.Export(context.Background(), &rm), traces.Shutdown(context.Background()),
			meters.Shutdown(context.Background()), tel.Close())
		if err != nil {
			t.Error(err)
		}
	}
}

// TestCanaryTwin is the usual way of doing it, without the guard. If the same
// scanner does not catch it, TestCanary proves nothing.
func TestCanaryTwin(t *testing.T) {
	t.Parallel()
	var spans bytes.Buffer
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(&spans))
	if err != nil {
		t.Fatal(err)
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	_, span := traces.Tracer("twin").Start(t.Context(), "tool "+secret)
	span.RecordError(errors.New(secret))
	span.End()
	if err := traces.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(found(spans.Bytes())) == 0 {
		t.Error("the scanner misses a secret in a span")
	}
	if len(found(printed(fmt.Errorf("the tool failed: %w", errors.New(secret))))) == 0 {
		t.Error("the scanner misses a secret in an error")
	}
	// The agent without a guard: a tool error ends the run with its text, and one
	// that is returned as a result is in the next request.
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(calling("look"), misbehave.Reply{Text: "done"})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	model, err := clientOf(srv)
	if err != nil {
		t.Fatal(err)
	}
	bare := func(tool func(context.Context, string) (string, error)) error {
		agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, []tools.Tool{aTool{"look", tool}}))
		_, err := chains.Run(t.Context(), agent, "x")

		return err
	}
	if err := bare(func(context.Context, string) (string, error) { return "", errors.New(secret) }); len(found(printed(err))) == 0 {
		t.Error("the scanner misses a secret in the bare agent's error")
	}
	srv.Script(misbehave.Replies(misbehave.Reply{Calls: []misbehave.Call{{Name: "look", Arguments: `{"__arg1":"{}"}`}}}, misbehave.Reply{Text: "done"}))
	before := srv.Count()
	if err := bare(func(context.Context, string) (string, error) { return secret, nil }); err != nil {
		t.Fatal(err)
	}
	if requests := srv.Requests(); len(found(requests[before+1].Raw())) == 0 {
		t.Error("the scanner misses a secret in the next request")
	}
}
