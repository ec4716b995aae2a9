package otelx_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// forms are the ways in which a secret may be written.
func forms(s string) map[string]string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	twice, err := json.Marshal(string(quoted[1 : len(quoted)-1]))
	if err != nil {
		panic(err)
	}

	return map[string]string{
		"plain": s, "lower": strings.ToLower(s), "upper": strings.ToUpper(s),
		"query": url.QueryEscape(s), "path": url.PathEscape(s),
		"hex": hex.EncodeToString([]byte(s)),
		// The middle of what base64 gives at each of the three alignments.
		"base64": inner64(s, 0), "base64+1": inner64(s, 1), "base64+2": inner64(s, 2),
		"json": string(quoted[1 : len(quoted)-1]), "json twice": string(twice[1 : len(twice)-1]),
		"ascii json": strings.Trim(fmt.Sprintf("%+q", s), `"`),
	}
}

func inner64(s string, shift int) string {
	const group = 3
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + s))
	from := 0
	if shift > 0 {
		from = 4
	}
	whole := (shift + len(s)) / group * 4

	return text[from:whole]
}

// leaks returns the forms of secret that are in outlet.
func leaks(outlet []byte, secret string) []string {
	var found []string
	for name, form := range forms(secret) {
		if bytes.Contains(outlet, []byte(form)) {
			found = append(found, name)
		}
	}

	return found
}

// outlets are the bytes that leave through traces and metrics.
type outlets struct {
	traces, metrics bytes.Buffer
	tracers         *sdktrace.TracerProvider
	meters          *sdkmetric.MeterProvider
}

func openOutlets(t *testing.T) *outlets {
	t.Helper()
	o := &outlets{}
	te, err := stdouttrace.New(stdouttrace.WithWriter(&o.traces), stdouttrace.WithPrettyPrint())
	if err != nil {
		t.Fatal(err)
	}
	me, err := stdoutmetric.New(stdoutmetric.WithWriter(&o.metrics))
	if err != nil {
		t.Fatal(err)
	}
	o.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(te))
	o.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(me)))

	return o
}

func (o *outlets) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(o.tracers.Shutdown(context.Background()), o.meters.Shutdown(context.Background())); err != nil {
		t.Fatal(err)
	}
}

// typedError says its own error type, as semconv.ErrorType would believe it.
type typedError struct{ text string }

func (e typedError) Error() string     { return e.text }
func (e typedError) ErrorType() string { return e.text }

// slots are the ways in which a tool can let a secret out.
func slots(canary string) map[string]middleware.ToolHandler {
	return map[string]middleware.ToolHandler{
		"output": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{Output: canary}, nil
		},
		"error text": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, fmt.Errorf("open /home/%s: %w", canary, io.ErrUnexpectedEOF)
		},
		"error type": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, typedError{canary}
		},
		"panic value": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(canary) },
		"panic error": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			panic(errors.New(canary))
		},
		"denial cause": func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, middleware.NewDenial(middleware.Refusal{
				Component: middleware.ComponentBudget, Reason: middleware.ReasonBudgetExceeded, Cause: errors.New(canary),
			})
		},
		"echo of input": func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, errors.New(call.Name() + call.Input() + call.ID())
		},
	}
}

const canary = "Canary 7f3a/9c21+\"Pässwort\"&key=sk-42"

func TestCanary(t *testing.T) {
	t.Parallel()
	o := openOutlets(t)
	cfg := config()
	cfg.TracerProvider, cfg.MeterProvider = o.tracers, o.meters
	tel, err := otelx.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := startRun(t)
	ctx, cancel := context.WithCancelCause(ctx)
	ctx, endRun := middleware.StartOp(ctx, tel, middleware.OpRun, ident.Label{}, 0)
	for _, effect := range middleware.Effects() {
		for name, fn := range slots(canary) {
			g := tool(t, tel, effect, fn)
			_, err := g.Do(ctx, canary, canary)
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); err != nil && len(leaks([]byte(text), canary)) > 0 {
				t.Errorf("%s: the error leaks", name)
			}
		}
	}
	driveModel(ctx, t, tel)
	cancel(errors.New(canary))
	_, _ = tool(t, tel, middleware.Effectful, slots(canary)["output"]).Do(ctx, canary, canary)
	endRun(middleware.Outcome{Decision: middleware.Decision{Reason: middleware.ReasonCanceled}})
	o.close(t)

	for name, outlet := range map[string]*bytes.Buffer{"traces": &o.traces, "metrics": &o.metrics} {
		if found := leaks(outlet.Bytes(), canary); len(found) > 0 {
			t.Errorf("%s: the canary is there in the forms %v", name, found)
		}
	}
	for _, there := range []string{"execute_tool issue_refund", "invoke_agent refund-desk", "chat primary", "outcome_unknown"} {
		if !strings.Contains(o.traces.String(), there) {
			t.Errorf("%q is missing: the test does not reach the outlet", there)
		}
	}
	if !strings.Contains(o.metrics.String(), "gen_ai.execute_tool.duration") {
		t.Error("no metrics: the test does not reach the outlet")
	}
}

// driveModel makes an attempt whose prompt, error and panic hold the canary,
// the way in which the fallback makes one.
func driveModel(ctx context.Context, t *testing.T, tel *otelx.Telemetry) {
	t.Helper()
	trace := func(next middleware.ModelHandler) middleware.ModelHandler {
		return func(ctx context.Context, call *middleware.ModelCall) (res *middleware.ModelResult, err error) {
			ctx, end := middleware.StartOp(ctx, tel, middleware.OpAttempt, call.Candidate(), call.Attempt())
			defer func() {
				d := middleware.Decision{
					Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Outcome: middleware.OutcomeError,
					Reason: middleware.FailureReason(err, middleware.ReasonUnknownError), Label: call.Candidate(),
				}
				end(middleware.Outcome{Decision: d, Finish: middleware.FinishOther})
				middleware.Notify(ctx, tel, d)
			}()

			return next(ctx, call)
		}
	}
	prompt := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, canary)}
	call := middleware.NewModelCall(prompt, llms.WithModel(canary)).WithCandidate(primary, 1)
	for _, fail := range []func(){func() {}, func() { panic(canary) }} {
		h := middleware.Chain(trace, middleware.Recover)(func(_ context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			fail()

			return nil, fmt.Errorf("provider said %v", call.Messages())
		})
		if _, err := h(ctx, call); err == nil {
			t.Error("the model did not fail")
		}
	}
}

// The scanner has to find what the usual way lets out, in every slot by itself.
func TestCanaryNaiveTwin(t *testing.T) {
	t.Parallel()
	for name, fn := range slots(canary) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := openOutlets(t)
			ctx, _ := startRun(t)
			g, err := middleware.NewTool(middleware.ToolConfig{Name: "issue_refund"}, naive(o, fn))
			if err != nil {
				t.Fatal(err)
			}
			input := "harmless"
			if name == "echo of input" {
				input = canary
			}
			_, _ = g.Do(ctx, "", input)
			o.close(t)
			if len(leaks(o.traces.Bytes(), canary)) == 0 {
				t.Error("traces: the scanner does not see the usual leak")
			}
			if len(leaks(o.metrics.Bytes(), canary)) == 0 {
				t.Error("metrics: the scanner does not see the usual leak")
			}
		})
	}
}

// naive instruments a tool the way in which it is usually done.
func naive(o *outlets, next middleware.ToolHandler) middleware.ToolHandler {
	tracer := o.tracers.Tracer("naive")
	calls, err := o.meters.Meter("naive").Int64Counter("calls")
	if err != nil {
		panic(err)
	}
	count := func(ctx context.Context, outcome string) {
		calls.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	}

	return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		ctx, span := tracer.Start(ctx, "tool "+call.Name())
		defer span.End() // takes a panic's value into an event
		defer func() {
			if v := recover(); v != nil {
				count(ctx, fmt.Sprint(v))
				panic(v)
			}
		}()
		res, err := next(ctx, call)
		if err == nil {
			span.SetAttributes(attribute.String("output", res.Output))
			count(ctx, res.Output)

			return res, nil
		}
		root := err
		for errors.Unwrap(root) != nil && !errors.Is(root, io.ErrUnexpectedEOF) {
			root = errors.Unwrap(root)
		}
		span.RecordError(root)
		span.SetStatus(codes.Error, root.Error())
		count(ctx, root.Error())

		return nil, err
	}
}

// Each form is found by itself, and another secret is not.
func TestScanner(t *testing.T) {
	t.Parallel()
	for name, form := range forms(canary) {
		if len(leaks([]byte("before "+form+" after"), canary)) == 0 {
			t.Errorf("%s is not found", name)
		}
		if len(form) < len(canary)/2 {
			t.Errorf("%s is too short to mean anything: %q", name, form)
		}
	}
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("-", shift) + canary + "--"))
		if len(leaks([]byte(text), canary)) == 0 {
			t.Errorf("base64 at alignment %d is not found", shift)
		}
	}
	if found := leaks([]byte("Canary 7f3b/9c21 and other text"), canary); len(found) > 0 {
		t.Errorf("another text is taken for the canary: %v", found)
	}
}
