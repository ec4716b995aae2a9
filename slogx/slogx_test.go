package slogx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
	"github.com/interlock-go/interlock/otelx/otelxtest"
	"github.com/interlock-go/interlock/slogx"
)

func refund() ident.Label       { return ident.MustLabel("issue_refund") }
func refunds() ident.WorkflowID { return ident.MustWorkflowID("workflow:org.example/refunds@1.0.0") }
func noon() time.Time           { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// open returns an observer whose lines of every level go to b.
func open(tb testing.TB, b io.Writer, change ...func(*slogx.Config)) *slogx.Observer {
	tb.Helper()
	cfg := slogx.Config{
		Logger: slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Labels: []ident.Label{refund()}, Workflows: []ident.WorkflowID{refunds()}, Now: noon,
	}
	for _, c := range change {
		c(&cfg)
	}
	o, err := slogx.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}

	return o
}

func aRun() ident.RunID {
	r, err := ident.GenerateRunID(bytes.NewReader([]byte("0123456789abcdef")))
	if err != nil {
		panic(err)
	}

	return r
}

func full() middleware.Decision {
	return middleware.Decision{
		Seq: 1, Component: middleware.ComponentFallback, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
		Reason: middleware.ReasonPanic, Workflow: refunds(), Label: refund(), Turn: 2, Attempt: 3, Outcome: middleware.OutcomeSkipped,
		Class: middleware.FailureTool, Circuit: middleware.CircuitOpen, FailMode: middleware.FailOpen, Generation: 4, Count: 5, Limit: 6,
		Severity: 0.5, Fill: 0.25, Drift: 0.125, Duration: 250 * time.Millisecond,
		Run: aRun(),
	}
}

// The line of a decision, byte for byte, with both handlers of log/slog.
func TestLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		handler func(io.Writer) slog.Handler
		want    string
	}{
		"json": {
			func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, &slog.HandlerOptions{AddSource: true}) },
			`{"time":"2026-01-02T12:00:00Z","level":"WARN","msg":"interlock decision","service":"desk",` +
				`"interlock.decision.component":"fallback","interlock.decision.verdict":"deny","interlock.decision.action":"block",` +
				`"interlock.decision.reason":"panic","interlock.attempt.outcome":"skipped","interlock.circuit.state":"open",` +
				`"interlock.escalation.class":"tool_failure","interlock.fail_mode":"open","interlock.decision.seq":1,` +
				`"interlock.admission.generation":4,"interlock.attempt.count":3,"interlock.decision.turn":2,"interlock.decision.count":5,` +
				`"interlock.decision.limit":6,"interlock.decision.severity":0.5,"interlock.context.fill":0.25,"interlock.context.drift":0.125,` +
				`"interlock.decision.duration":0.25,"interlock.decision.label":"issue_refund",` +
				`"interlock.workflow.id":"workflow:org.example/refunds@1.0.0","interlock.run.id":"run_30313233343536373839616263646566"}` + "\n",
		},
		"text": {
			func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, &slog.HandlerOptions{AddSource: true}) },
			`time=2026-01-02T12:00:00.000Z level=WARN msg="interlock decision" service=desk ` +
				`interlock.decision.component=fallback interlock.decision.verdict=deny interlock.decision.action=block ` +
				`interlock.decision.reason=panic interlock.attempt.outcome=skipped interlock.circuit.state=open ` +
				`interlock.escalation.class=tool_failure interlock.fail_mode=open interlock.decision.seq=1 ` +
				`interlock.admission.generation=4 interlock.attempt.count=3 interlock.decision.turn=2 interlock.decision.count=5 ` +
				`interlock.decision.limit=6 interlock.decision.severity=0.5 interlock.context.fill=0.25 interlock.context.drift=0.125 ` +
				`interlock.decision.duration=0.25 interlock.decision.label=issue_refund ` +
				`interlock.workflow.id=workflow:org.example/refunds@1.0.0 interlock.run.id=run_30313233343536373839616263646566` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			o := open(t, io.Discard, func(c *slogx.Config) { c.Logger = slog.New(tt.handler(&b)).With("service", "desk") })
			o.Observe(context.Background(), full())
			// AddSource has nothing to say, or says so emptily.
			got := strings.Replace(strings.Replace(b.String(), `"source":{},`, "", 1), `source="" `, "", 1)
			got = strings.Replace(got, "source=:0 ", "", 1)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Rejected() != 0 || o.Failed() != 0 {
				t.Errorf("rejected %d, failed %d", o.Rejected(), o.Failed())
			}
		})
	}
}

// A line says what a span says, whatever the decision.
func TestLineIsTheSpan(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	tel, err := otelx.New(otelx.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Tools:          []ident.Label{refund()}, Workflows: []ident.WorkflowID{refunds()},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	o := open(t, &b)
	random := rand.New(rand.NewPCG(5, 6))
	label, workflow := ident.MustLabel("unknown"), ident.MustWorkflowID("workflow:org.secret/jane")
	pick := func(n int) int { return random.IntN(n) }
	for range 3000 {
		d := middleware.Decision{
			Component: middleware.Components()[pick(len(middleware.Components()))],
			Verdict:   middleware.Verdict(pick(8)), Action: middleware.Action(pick(8)), Reason: middleware.Reason(pick(256)),
			Outcome: middleware.AttemptOutcome(pick(2) * int(middleware.OutcomeSkipped)), Class: middleware.FailureClass(pick(6)),
			Circuit: middleware.CircuitState(pick(6)), FailMode: middleware.FailMode(pick(3)),
			Seq: uint64(pick(3)), Generation: []uint64{0, 7, math.MaxUint64}[pick(3)], Turn: pick(3) - 1, Attempt: pick(3) - 1,
			Count: pick(3) - 1, Limit: pick(3) - 1, Severity: []float64{0, 0.25, 1, 1.5, -1, math.NaN(), math.Inf(1)}[pick(7)],
			Label: []ident.Label{{}, refund(), label}[pick(3)], Workflow: []ident.WorkflowID{{}, refunds(), workflow}[pick(3)],
		}
		if d.Component == middleware.ComponentContext {
			d.Verdict = middleware.VerdictDeny // readings have no span
		}
		b.Reset()
		spans.Reset()
		o.Observe(context.Background(), d)
		tel.Observe(context.Background(), d)
		line := make(map[string]any)
		if err := json.Unmarshal(b.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", &b, err)
		}
		for _, k := range []string{"time", "level", "msg"} {
			delete(line, k)
		}
		want := make(map[string]any)
		for _, kv := range spans.Ended()[0].Attributes() {
			switch {
			case kv.Key == "interlock.decision.id" || kv.Key == "error.type":
			case kv.Value.Type() == attribute.INT64:
				want[string(kv.Key)] = float64(kv.Value.AsInt64())
			default:
				want[string(kv.Key)] = kv.Value.AsInterface()
			}
		}
		if diff := cmp.Diff(want, line); diff != "" {
			t.Fatalf("%+v (-span +line):\n%s", d, diff)
		}
	}
	if o.Rejected() == 0 || o.Failed() != 0 {
		t.Errorf("rejected %d, failed %d", o.Rejected(), o.Failed())
	}
}

// Each key of a line is described by otelx, as an attribute or as a metric.
func TestKeys(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	open(t, &b).Observe(context.Background(), full())
	line := make(map[string]any)
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	described := []string{"time", "level", "msg"}
	for _, a := range otelx.Attributes() {
		described = append(described, a.Key)
	}
	for _, i := range otelx.Instruments() {
		described = append(described, i.Name)
	}
	for k := range line {
		if !slices.Contains(described, k) {
			t.Errorf("%s is described nowhere", k)
		}
	}
	if len(line) != 3+21 {
		t.Errorf("%d keys: %v", len(line), slices.Sorted(maps.Keys(line)))
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	levels := func(o func(*slogx.Config)) map[string]string {
		var b bytes.Buffer
		observer := open(t, &b, o)
		got := make(map[string]string)
		for _, v := range append([]middleware.Verdict{0, 200}, middleware.Verdicts()...) {
			b.Reset()
			observer.Observe(context.Background(), middleware.Decision{Component: middleware.ComponentBudget, Verdict: v})
			var line struct{ Level string }
			if err := json.Unmarshal(b.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			got[v.String()] += line.Level
		}

		return got
	}
	want := map[string]string{
		"allow": "DEBUG", "abstain": "DEBUG", "modify": "INFO", "deny": "WARN", "escalate": "WARN", "invalid": "ERRORERROR",
	}
	if diff := cmp.Diff(want, levels(func(*slogx.Config) {})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	want["allow"], want["escalate"] = "INFO", "ERROR+4"
	own := map[middleware.Verdict]slog.Level{middleware.VerdictAllow: slog.LevelInfo, middleware.VerdictEscalate: slog.LevelError + 4}
	got := levels(func(c *slogx.Config) { c.Levels = own })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("own levels (-want +got):\n%s", diff)
	}
}

// A level that is not enabled writes nothing, and looks nothing up.
func TestNotEnabled(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := open(t, &b, func(c *slogx.Config) { c.Logger = slog.New(slog.NewJSONHandler(&b, nil)) })
	o.Observe(context.Background(), middleware.Decision{
		Component: middleware.ComponentAdmission, Verdict: middleware.VerdictAllow, Label: ident.MustLabel("unknown"),
	})
	if b.Len() != 0 || o.Rejected() != 0 || o.Failed() != 0 {
		t.Errorf("wrote %s, rejected %d", &b, o.Rejected())
	}
}

// Names and values that nobody registered are not written and are counted.
func TestRejected(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := open(t, &b)
	o.Observe(context.Background(), middleware.Decision{
		Component: 99, Verdict: 99, Action: 99, Reason: 255, Outcome: 99, Class: 99, Circuit: 99, FailMode: 99,
		Label: ident.MustLabel("patient-jane-doe"), Workflow: ident.MustWorkflowID("workflow:org.secret/patient-jane-doe"),
	})
	if strings.Contains(b.String(), "jane") || strings.Count(b.String(), `"_OTHER"`) != 10 || o.Rejected() != 10 {
		t.Errorf("rejected %d: %s", o.Rejected(), &b)
	}
}

// handler does what it is told to instead of writing.
type handler struct {
	slog.Handler

	enabled func() bool
	handle  func() error
}

func (h handler) Enabled(context.Context, slog.Level) bool  { return h.enabled() }
func (h handler) Handle(context.Context, slog.Record) error { return h.handle() }
func (h handler) WithAttrs([]slog.Attr) slog.Handler        { return h }
func (h handler) WithGroup(string) slog.Handler             { return h }

// What a handler does wrong is contained and counted.
func TestHostileHandler(t *testing.T) {
	t.Parallel()
	fine := func() bool { return true }
	for name, h := range map[string]handler{
		"panics":               {enabled: fine, handle: func() error { panic("x") }},
		"panics with an error": {enabled: fine, handle: func() error { panic(io.ErrUnexpectedEOF) }},
		"panics early":         {enabled: func() bool { panic("x") }},
		"fails":                {enabled: fine, handle: func() error { return io.ErrClosedPipe }},
		"exits":                {enabled: fine, handle: func() error { runtime.Goexit(); return nil }},
	} {
		o := open(t, io.Discard, func(c *slogx.Config) { c.Logger = slog.New(h) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			o.Observe(context.Background(), full())
		}()
		<-done
		if o.Failed() != 1 {
			t.Errorf("%s: counted %d times", name, o.Failed())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	logger := slog.New(slog.DiscardHandler)
	for want, cfg := range map[string]slogx.Config{
		"slogx: Config.Logger: must be not nil":           {},
		"slogx: Config.Labels: must be at most 128":       {Logger: logger, Labels: make([]ident.Label, 129)},
		"slogx: Config.Labels[1]: must be not zero":       {Logger: logger, Labels: []ident.Label{refund(), {}}},
		"slogx: Config.Workflows: must be at most 64":     {Logger: logger, Workflows: make([]ident.WorkflowID, 65)},
		"slogx: Config.Workflows[0]: must be not zero":    {Logger: logger, Workflows: make([]ident.WorkflowID, 1)},
		"slogx: Config.Levels: must be keyed by verdicts": {Logger: logger, Levels: map[middleware.Verdict]slog.Level{0: 0}},
	} {
		o, err := slogx.New(cfg)
		ce, is := errors.AsType[*slogx.ConfigError](err)
		if o != nil || !is || err.Error() != want || !errors.Is(err, middleware.ReasonInvalidConfig) || ce.Bound() == "" {
			t.Errorf("got %v, %v, want %s", o, err, want)
		}
		if is && (fmt.Sprintf("%#v", err) != want || !strings.HasPrefix(want, "slogx: Config."+ce.Field())) {
			t.Errorf("%#v, field %s", err, ce.Field())
		}
	}
	if _, err := slogx.New(slogx.Config{Logger: logger, Levels: map[middleware.Verdict]slog.Level{200: 0}}); err == nil {
		t.Error("a level of no verdict was taken")
	}
}

// What the caller keeps does not reach the observer.
func TestConfigIsCopied(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	labels := []ident.Label{refund()}
	o := open(t, &b, func(c *slogx.Config) { c.Labels = labels })
	labels[0] = ident.MustLabel("other")
	o.Observe(context.Background(), full())
	if !strings.Contains(b.String(), `"issue_refund"`) {
		t.Errorf("wrote %s", &b)
	}
}

func TestNil(t *testing.T) {
	t.Parallel()
	var o *slogx.Observer
	o.Observe(context.Background(), full())
	if o.Rejected() != 0 || o.Failed() != 0 {
		t.Error("a nil observer counts")
	}
}

// No function on the request path takes a string, an error or an any; the
// decision's own shape is otelx's test.
func TestShape(t *testing.T) {
	t.Parallel()
	typ := reflect.TypeFor[*slogx.Observer]()
	for m := range typ.Methods() {
		switch m.Name {
		case "Observe":
			if m.Type.In(2) != reflect.TypeFor[middleware.Decision]() || m.Type.NumIn() != 3 {
				t.Errorf("Observe takes %v", m.Type)
			}
		default:
			if m.Type.NumIn() != 1 {
				t.Errorf("%s takes something: is it called on the request path? Say so here", m.Name)
			}
		}
	}
}

// A secret in everything that a tool handles is in no line.
func TestCanary(t *testing.T) {
	t.Parallel()
	canary := otelxtest.NewCanary(12)
	secret := canary.Phrase()
	for name, format := range map[string]func(io.Writer) slog.Handler{
		"json": func(w io.Writer) slog.Handler {
			return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
		"text": func(w io.Writer) slog.Handler {
			return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
		},
	} {
		var b bytes.Buffer
		o := open(t, io.Discard, func(c *slogx.Config) { c.Logger = slog.New(format(&b)) })
		ctx, cancel := context.WithCancelCause(context.Background())
		ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{Workflow: refunds(), Label: ident.MustModelLabel(canary.Word())})
		if err != nil {
			t.Fatal(err)
		}
		tool, err := middleware.NewTool(middleware.ToolConfig{
			Name: canary.Word(), Label: ident.MustModelLabel(canary.Word()), Effect: middleware.ReadOnly, Observer: o,
			Chain: func(next middleware.ToolHandler) middleware.ToolHandler {
				return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
					res, err := next(ctx, call)
					d := full()
					d.Label, d.Run, d.Reason = call.Label(), run.ID(), middleware.FailureReason(err, middleware.ReasonToolFailed)
					middleware.Notify(ctx, o, d)

					return res, err
				}
			},
		}, func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			switch call.ID() {
			case "error":
				return nil, errors.New(secret)
			case "panic":
				panic(secret)
			default:
				return &middleware.ToolResult{Output: secret}, nil
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"error", "panic", secret} {
			_, _ = tool.Do(ctx, id, secret)
		}
		cancel(errors.New(secret))
		middleware.Notify(ctx, o, full()) // under a context whose cause is the secret
		run.End()
		for _, f := range canary.Scan(name, b.Bytes()) {
			t.Error(f)
		}
		if strings.Count(b.String(), slogx.Message) < 4 || !strings.Contains(b.String(), "_OTHER") {
			t.Errorf("the test does not reach the lines: %s", &b)
		}
		// The usual way is caught by the same scan.
		slog.New(format(&b)).Error("tool failed", "err", errors.New(secret))
		if len(canary.Scan(name, b.Bytes())) == 0 {
			t.Error("the scan does not see the usual leak")
		}
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := open(t, &b)
	done := make(chan struct{})
	const workers, each = 8, 100
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for range each {
				o.Observe(context.Background(), middleware.Decision{Component: middleware.ComponentBudget, Label: ident.MustLabel("unknown")})
			}
		}()
	}
	for range workers {
		<-done
	}
	if n := strings.Count(b.String(), "\n"); n != workers*each || o.Rejected() != 2*workers*each {
		t.Errorf("%d lines, %d rejected", n, o.Rejected())
	}
}
