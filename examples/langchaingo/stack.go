package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
	"github.com/interlock-go/interlock/watchdog"
)

const (
	stallTimeout = 300 * time.Millisecond
	grace        = 50 * time.Millisecond
)

// refunds is the workflow of the desk, agentLabel its agent's name in telemetry.
func refunds() ident.WorkflowID {
	return ident.MustWorkflowID("workflow:org.example/refund-desk@1.0.0")
}
func agentLabel() ident.Label { return ident.MustLabel("refund-desk") }

// stack is all that one act runs on. Everything in it is real but the model's
// wit: files, sockets, clients, spans.
type stack struct {
	dir      string
	timeline *timeline
	desk     *desk
	guard    *interlock.Guard
	spans    *otelx.Telemetry
	store    admission.Store // nil without a ledger
	ledger   ledgerFiles
	servers  []*misbehave.Server
	closers  []func() error // run backwards
}

var _ middleware.GaugeSource = (*stack)(nil)

// newStack builds what the act runs on in dir.
func newStack(ctx context.Context, dir string, a act, out *collector) (s *stack, err error) {
	s = &stack{dir: dir, timeline: newTimeline()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.desk, err = openDesk(ctx, dir, s.timeline.ran); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.desk.close)
	if s.spans, err = s.openTelemetry(a.name, out); err != nil {
		return s, err
	}
	if a.ledger {
		if err = s.openLedger(ctx); err != nil {
			return s, err
		}
	}
	if err = s.newGuard(a.adjust); err != nil {
		return s, err
	}
	if a.ledger {
		if _, err = s.guard.Admission().Enable(ctx, admission.Transition{Scope: admission.Global()}); err != nil {
			return s, err
		}
	}
	if err = s.spans.Watch(s); err != nil {
		return s, err
	}

	return s, nil
}

// Gauges returns the states of the guard that the act has now.
func (s *stack) Gauges() []middleware.Gauge { return s.guard.Gauges() }

// newGuard makes the act's guard, or another one in its place.
func (s *stack) newGuard(adjust func(*interlock.Config)) (err error) {
	cfg := interlock.Config{
		Workflows: []interlock.Workflow{{ID: refunds(), Label: agentLabel()}},
		Admission: s.store,
		Watchdog:  watchdog.Config{StallTimeout: stallTimeout},
		Observer:  middleware.Observers(s.timeline, s.spans),
		Tracer:    s.spans,
	}
	if adjust != nil {
		adjust(&cfg)
	}
	s.guard, err = interlock.New(cfg)

	return err //nolint:wrapcheck // content-free
}

// openTelemetry writes spans and metrics to a file in the act's folder, and
// sends them to out too, unless that is nil.
func (s *stack) openTelemetry(act string, out *collector) (*otelx.Telemetry, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, "telemetry.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("telemetry file: %w", err)
	}
	s.closers = append(s.closers, f.Close)
	spans, err := stdouttrace.New(stdouttrace.WithWriter(f))
	if err != nil {
		return nil, fmt.Errorf("trace exporter: %w", err)
	}
	metrics, err := stdoutmetric.New(stdoutmetric.WithWriter(f))
	if err != nil {
		return nil, fmt.Errorf("metric exporter: %w", err)
	}
	// Each act is an instance of its own, whose counters begin at 0.
	desk := resource.NewSchemaless(attribute.String("service.name", "refund-desk"), attribute.String("service.instance.id", act))
	onceAtTheEnd := sdkmetric.WithInterval(time.Hour)
	traceOptions := []sdktrace.TracerProviderOption{sdktrace.WithResource(desk), sdktrace.WithSyncer(spans)}
	meterOptions := []sdkmetric.Option{
		sdkmetric.WithResource(desk), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, onceAtTheEnd)),
	}
	if out != nil {
		traceOptions = append(traceOptions, sdktrace.WithBatcher(spanSender{out}))
		meterOptions = append(meterOptions, sdkmetric.WithReader(
			sdkmetric.NewPeriodicReader(metricSender{out.metrics, out}, onceAtTheEnd)))
	}
	traces, meters := sdktrace.NewTracerProvider(traceOptions...), sdkmetric.NewMeterProvider(meterOptions...)
	s.closers = append(s.closers,
		func() error { return traces.Shutdown(context.Background()) },
		func() error { return meters.Shutdown(context.Background()) })

	return otelx.New(otelx.Config{ //nolint:wrapcheck // content-free
		TracerProvider: traces, MeterProvider: meters,
		Agents: []ident.Label{agentLabel()},
		Tools: []ident.Label{
			ident.MustLabel("lookup_order"), ident.MustLabel("issue_refund"), ident.MustLabel("notify_customer"),
			ident.MustLabel("refund_status"),
		},
		Candidates: []otelx.Candidate{
			{Label: ident.MustLabel("primary"), Provider: ident.MustLabel("openai"), Model: ident.MustModelLabel("gpt-4o")},
			{Label: ident.MustLabel("secondary"), Provider: ident.MustLabel("anthropic"), Model: ident.MustModelLabel("claude-sonnet-4-5")},
			{Label: ident.MustLabel("live"), Provider: ident.MustLabel("live")},
		},
		Workflows: []ident.WorkflowID{refunds()},
	})
}

// provider starts a provider that answers as script says, and returns its URL.
func (s *stack) provider(script misbehave.ScriptFunc) (string, error) {
	srv, err := misbehave.Start(misbehave.Config{Script: script})
	if err != nil {
		return "", fmt.Errorf("provider: %w", err)
	}
	s.servers = append(s.servers, srv)
	s.closers = append(s.closers, func() error { srv.Close(); return nil })

	return srv.URL() + "/v1", nil
}

// model returns a guarded model: langchaingo's openai client against a provider
// with the primary script and, if there is a second one, its anthropic client
// as fallback.
func (s *stack) model(primary, secondary misbehave.ScriptFunc) (llms.Model, error) {
	base, err := s.provider(primary)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &fallback.Transport{}}
	gpt, err := openai.New(openai.WithBaseURL(base), openai.WithToken("scripted"), openai.WithModel("gpt-4o"),
		openai.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("openai client: %w", err)
	}
	candidates := []interlock.Candidate{{
		Label: ident.MustLabel("primary"), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: gpt,
	}}
	if secondary != nil {
		if base, err = s.provider(secondary); err != nil {
			return nil, err
		}
		claude, err := anthropic.New(anthropic.WithBaseURL(base), anthropic.WithToken("scripted"),
			anthropic.WithModel("claude-sonnet-4-5"), anthropic.WithHTTPClient(client))
		if err != nil {
			return nil, fmt.Errorf("anthropic client: %w", err)
		}
		candidates = append(candidates, interlock.Candidate{
			Label: ident.MustLabel("secondary"), Provider: fallback.ProviderAnthropic, ModelName: "claude-sonnet-4-5", Model: claude,
		})
	}

	return s.guard.Model(candidates...) //nolint:wrapcheck // content-free
}

func (s *stack) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	s.closers = nil

	return errors.Join(errs...)
}
