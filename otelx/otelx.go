package otelx

import (
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Caps of the registry. They bound the series of every metric.
const (
	MaxAgents    = 16
	MaxTools     = 64
	MaxModels    = 32
	MaxWorkflows = 64
)

// Config says where telemetry goes and which names it may contain. Everything
// is copied by [New]; names that come later render as _OTHER.
type Config struct {
	// TracerProvider makes the spans. It stays the caller's: it is never shut
	// down here. Default nil: no spans, and nothing is spent on them; a provider
	// of the API's no-op package is as good as none.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the instruments. It stays the caller's. Default nil:
	// no metrics, and nothing is spent on them; a no-op one is as good as none.
	MeterProvider metric.MeterProvider

	// Agents are the labels that runs may have. Default none, at most 16.
	Agents []ident.Label
	// Tools are the labels that tools may have. Default none, at most 64.
	Tools []ident.Label
	// Candidates are the models that may be asked. Default none, at most 32.
	Candidates []Candidate
	// ResponseModels are further names under which providers may say they
	// answered, besides the models of Candidates. Default none, at most 32
	// different models in all.
	ResponseModels []ident.Label
	// Workflows are those that are registered with the guard. Default none, at
	// most 64.
	Workflows []ident.WorkflowID

	// DisableAllowSpans leaves decisions with verdict allow without a span of
	// their own; they are counted. Default false: they get one.
	DisableAllowSpans bool
	// Gauges are read whenever metrics are collected. Parts that are built after
	// the telemetry are added by [Telemetry.Watch]. Default none.
	Gauges []middleware.GaugeSource
	// Now is the monotonic clock behind durations. Spans carry the provider's
	// own times. Default nil: time.Now.
	Now func() time.Time
}

// Candidate maps the label of a candidate of the fallback to published names.
type Candidate struct {
	// Label of the candidate. Required.
	Label ident.Label
	// Provider is the value of gen_ai.provider.name: openai, anthropic,
	// mistral_ai, gcp.gemini, … Required.
	Provider ident.Label
	// Model is the value of gen_ai.request.model. A display name, a deployment
	// or a fine-tune identifier needs an alias. Default zero: Label.
	Model ident.Label
}

// Telemetry turns decisions and operations into spans and metrics. It is safe
// for concurrent use; a nil *Telemetry does nothing.
type Telemetry struct {
	tracer     trace.Tracer // nil: no spans
	meters     *meters      // nil: no metrics
	registry   *registry
	allowSpans bool
	now        func() time.Time
	slot       *middleware.PerRun[position] // where the traces of saved runs are
	gauges     gauges
}

var (
	_ middleware.Observer = (*Telemetry)(nil)
	_ middleware.Tracer   = (*Telemetry)(nil)
)

// New returns telemetry with a frozen registry. It fails with a [*ConfigError]
// that names the field, and the bound or the entry's index.
func New(cfg Config) (*Telemetry, error) {
	r, err := newRegistry(&cfg)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{registry: r, allowSpans: !cfg.DisableAllowSpans, now: cfg.Now, slot: newSlot()}
	if t.now == nil {
		t.now = time.Now
	}
	if err := t.Watch(cfg.Gauges...); err != nil {
		return nil, err
	}
	if cfg.TracerProvider != nil && !recordsNothing(cfg.TracerProvider) {
		if err := contained("TracerProvider", func() error { return t.openTracer(cfg.TracerProvider) }); err != nil {
			return nil, err
		}
	}
	if cfg.MeterProvider != nil && !recordsNothing(cfg.MeterProvider) {
		if err := contained("MeterProvider", func() error { return t.openMeter(cfg.MeterProvider) }); err != nil {
			return nil, err
		}
	}

	return t, nil
}

// recordsNothing reports whether p is a provider of OpenTelemetry's own no-op
// packages. It will never record anything, so it is as good as none, and a call
// pays for none. The global provider is not one: an SDK may be put behind it
// later.
func recordsNothing(p any) bool {
	switch p.(type) {
	case tracenoop.TracerProvider, *tracenoop.TracerProvider, metricnoop.MeterProvider, *metricnoop.MeterProvider:
		return true
	default:
		return false
	}
}

// Watch adds sources of gauges: a gate or a breaker that reports to this
// telemetry can only exist after it. It belongs to construction, takes effect
// with the next collection, and refuses a nil source.
func (t *Telemetry) Watch(sources ...middleware.GaugeSource) error {
	for i, s := range sources {
		if s == nil {
			return refuseEntry("Gauges", i, "", middleware.ReasonInvalidConfig)
		}
	}
	if t != nil && len(sources) > 0 {
		t.gauges.add(sources)
	}

	return nil
}

// Close stops reading the gauges. Spans and counters go on, and the providers
// stay open: they belong to the caller. Closing twice is harmless.
func (t *Telemetry) Close() error {
	if t == nil {
		return nil
	}
	unregister := t.gauges.close()
	if unregister == nil {
		return nil
	}

	return contained("MeterProvider", unregister)
}

func (t *Telemetry) openTracer(p trace.TracerProvider) error {
	if t.tracer = p.Tracer(scopeName); t.tracer == nil {
		return errNothing
	}

	return nil
}

func (t *Telemetry) openMeter(p metric.MeterProvider) error {
	meter := p.Meter(scopeName)
	if meter == nil {
		return errNothing
	}
	m, err := newMeters(meter, t.registry)
	if err != nil {
		return err
	}
	t.meters = m // before the callback, which may be called at once

	return t.gauges.open(meter, t)
}

var errNothing = errors.New("otelx: the provider gave nothing")

// contained runs f, which calls into a provider, and wraps what goes wrong.
func contained(field string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = refuseField(field, middleware.NewPanicError(v, nil))
		}
	}()
	if cause := f(); cause != nil {
		return refuseField(field, cause)
	}

	return nil
}

// gauges holds the sources, which may grow, and the registration of the
// callback that reads them.
type gauges struct {
	mu         sync.Mutex
	sources    []middleware.GaugeSource // replaced, never changed in place
	registered metric.Registration
	read       gaugeInstruments
}

func (g *gauges) add(sources []middleware.GaugeSource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources = slices.Concat(g.sources, sources)
}

func (g *gauges) current() []middleware.GaugeSource {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.sources
}

func (g *gauges) close() (unregister func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.registered
	g.registered = nil
	if r == nil {
		return nil
	}

	return r.Unregister
}
