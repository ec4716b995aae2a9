package otelxtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// fakeTB takes the complaints of what is under test.
type fakeTB struct {
	testing.TB

	errors, logs []string
}

func (*fakeTB) Helper()             {}
func (f *fakeTB) Error(args ...any) { f.errors = append(f.errors, fmt.Sprint(args...)) }
func (f *fakeTB) Errorf(format string, a ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, a...))
}
func (f *fakeTB) Log(args ...any) { f.logs = append(f.logs, fmt.Sprint(args...)) }

func outlets(names ...string) []otelxtest.Outlet {
	var all []otelxtest.Outlet
	for _, n := range names {
		all = append(all, otelxtest.Outlet{Name: n, Marker: "marker"})
	}

	return all
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	c := otelxtest.NewCanary(6)
	clean, dirty := []byte("a marker"), []byte("a marker and "+c.Phrase())
	for name, tc := range map[string]struct {
		outlets []otelxtest.Outlet
		fill    func(m *otelxtest.Matrix)
		want    []string // a word of each complaint
	}{
		"clean":            {outlets("a"), func(m *otelxtest.Matrix) { m.Scan("s", "a", clean); m.Scan("s", "a", clean) }, nil},
		"by design":        {outlets("a"), func(m *otelxtest.Matrix) { m.ByDesign("s", "a", "it goes there", dirty) }, nil},
		"a finding":        {outlets("a"), func(m *otelxtest.Matrix) { m.Scan("s", "a", dirty) }, []string{"s → a holds the secret, plain"}},
		"open":             {outlets("a", "b"), func(m *otelxtest.Matrix) { m.Scan("s", "b", clean) }, []string{"s → a: not accounted for"}},
		"empty":            {outlets("a"), func(m *otelxtest.Matrix) { m.Scan("s", "a", nil) }, []string{"without the marker"}},
		"unreached":        {outlets("a"), func(m *otelxtest.Matrix) { m.ByDesign("s", "a", "r", []byte(c.Word())) }, []string{"without the marker"}},
		"unneeded":         {outlets("a"), func(m *otelxtest.Matrix) { m.ByDesign("s", "a", "r", clean) }, []string{"not needed"}},
		"without a reason": {outlets("a"), func(m *otelxtest.Matrix) { m.ByDesign("s", "a", "", dirty); m.Scan("s", "a", clean) }, []string{"needs a reason"}},
		"both":             {outlets("a"), func(m *otelxtest.Matrix) { m.ByDesign("s", "a", "r", dirty); m.Scan("s", "a", clean) }, []string{"scanned, and by design"}},
		"unknown":          {outlets("a"), func(m *otelxtest.Matrix) { m.Scan("s", "a", clean); m.Scan("s", "x", clean) }, []string{"not in the matrix"}},
		"no marker":        {[]otelxtest.Outlet{{Name: "a"}}, func(m *otelxtest.Matrix) { m.Scan("s", "a", clean) }, []string{"names are needed"}},
		"twice":            {outlets("a", "a"), func(m *otelxtest.Matrix) { m.Scan("s", "a", clean) }, []string{"names are needed"}},
	} {
		tb := &fakeTB{}
		m := otelxtest.NewMatrix(tb, c, []string{"s"}, tc.outlets)
		tc.fill(m)
		r := m.Finish()
		if len(tb.errors) != len(tc.want) {
			t.Errorf("%s: %q", name, tb.errors)

			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(tb.errors[i], want) {
				t.Errorf("%s: %q instead of %q", name, tb.errors[i], want)
			}
		}
		if len(tb.logs) != 1 || tb.logs[0] != r.String() {
			t.Errorf("%s: it prints %q", name, tb.logs)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{}
	c := otelxtest.NewCanary(6)
	m := otelxtest.NewMatrix(tb, c, []string{"s", "t"}, outlets("a", "b"))
	m.Scan("s", "a", []byte("marker"))
	m.Scan("t", "a", []byte("marker!"))
	m.ByDesign("s", "b", "the model is told", []byte("marker "+c.Phrase()))
	r := m.Finish()
	if r.Slots != 2 || r.Outlets != 2 || r.Scanned != 2 || r.ByDesign != 1 || r.Open != 1 || r.Bytes != 13 {
		t.Errorf("%+v", r)
	}
	if len(r.Exceptions) != 1 || r.Exceptions[0] != "s → b: the model is told" {
		t.Errorf("exceptions %q", r.Exceptions)
	}
}

// Whatever a span or a metric can hold is collected.
func TestTelemetryCollectsEverything(t *testing.T) {
	t.Parallel()
	c := otelxtest.NewCanary(8)
	secret := attribute.String("a", c.Phrase())
	for name, record := range map[string]func(*otelxtest.Telemetry){
		"name": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), c.Phrase())
			span.End()
		},
		"attribute": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), "x")
			span.SetAttributes(attribute.StringSlice("list", []string{"x", c.Phrase()}))
			span.End()
		},
		"key": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), "x")
			span.SetAttributes(attribute.Bool(c.Phrase(), true))
			span.End()
		},
		"event": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), "x")
			span.RecordError(errors.New(c.Phrase()))
			span.End()
		},
		"status": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer("x").Start(t.Context(), "x")
			span.SetStatus(1, c.Phrase())
			span.End()
		},
		"scope": func(tel *otelxtest.Telemetry) {
			_, span := tel.TracerProvider().Tracer(c.Phrase()).Start(t.Context(), "x")
			span.End()
		},
	} {
		tel := otelxtest.NewTelemetry(t)
		record(tel)
		if len(c.Scan("traces", tel.Traces())) == 0 {
			t.Errorf("the %s of a span is not collected", name)
		}
	}
	for name, record := range map[string]func(metric.Meter) error{
		"attribute": func(m metric.Meter) error {
			n, err := m.Int64Counter("n")
			n.Add(t.Context(), 1, metric.WithAttributes(secret))

			return err
		},
		"description": func(m metric.Meter) error {
			n, err := m.Float64Histogram("n", metric.WithDescription(c.Phrase()))
			n.Record(t.Context(), 1)

			return err
		},
	} {
		tel := otelxtest.NewTelemetry(t)
		if err := record(tel.MeterProvider().Meter("x")); err != nil {
			t.Fatal(err)
		}
		if len(c.Scan("metrics", tel.Metrics())) == 0 {
			t.Errorf("the %s of a metric is not collected", name)
		}
	}
}
