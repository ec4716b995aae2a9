package interlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// spanLedger counts how often each span started and ended, and notes how.
type spanLedger struct {
	mu      sync.Mutex
	started map[trace.SpanID]int
	ended   map[trace.SpanID]int
	how     map[string][]string // error types of operations by name
	extras  int                 // events and descriptions
}

func (l *spanLedger) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started[s.SpanContext().SpanID()]++
}

func (l *spanLedger) OnEnd(s sdktrace.ReadOnlySpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[s.SpanContext().SpanID()]++
	l.extras += len(s.Events()) + len(s.Status().Description)
	attrs := attribute.NewSet(s.Attributes()...)
	if attrs.HasValue("gen_ai.operation.name") {
		kind, _ := attrs.Value("error.type")
		l.how[s.Name()] = append(l.how[s.Name()], kind.AsString())
	}
}

func (*spanLedger) Shutdown(context.Context) error   { return nil }
func (*spanLedger) ForceFlush(context.Context) error { return nil }

// stub is a model in the process.
type stub func(ctx context.Context) (*llms.ContentResponse, error)

func (s stub) GenerateContent(ctx context.Context, _ []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	return s(ctx)
}

func (s stub) Call(ctx context.Context, prompt string, o ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, s, prompt, o...)
}

// spanWorld is a guard with one tool and a model over two candidates.
type spanWorld struct {
	guard *interlock.Guard
	spans *spanLedger
	tool  func(ctx context.Context) (string, error)
	model stub // of the primary; the backup answers
}

func newSpanWorld(t *testing.T) *spanWorld {
	t.Helper()
	w := &spanWorld{spans: &spanLedger{
		started: make(map[trace.SpanID]int), ended: make(map[trace.SpanID]int), how: make(map[string][]string),
	}}
	tel, err := otelx.New(otelx.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)),
		Agents:         []ident.Label{ident.MustLabel("desk")}, Tools: []ident.Label{ident.MustLabel("look")},
		Candidates: []otelx.Candidate{
			{Label: ident.MustLabel("primary"), Provider: ident.MustLabel("openai")},
			{Label: ident.MustLabel("backup"), Provider: ident.MustLabel("openai")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = newGuard(t, func(c *interlock.Config) {
		c.Observer, c.Tracer, c.Fallback.NoRetry = tel, tel, true
		c.Watchdog.Detach = time.Second
	})

	return w
}

// callTool calls the tool in the run of ctx.
func (w *spanWorld) callTool(ctx context.Context, t *testing.T) error {
	t.Helper()
	ts := guardTools(t, w.guard, interlock.ReadOnly(aTool{"look", func(ctx context.Context, _ string) (string, error) { return w.tool(ctx) }}))
	_, err := ts[0].Call(ctx, "x")

	return err
}

// askModel asks the model in the run of ctx.
func (w *spanWorld) askModel(ctx context.Context, t *testing.T) error {
	t.Helper()
	candidateOf := func(label string, m llms.Model, deaf bool) interlock.Candidate {
		return interlock.Candidate{
			Label: ident.MustLabel(label), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: m, Deaf: deaf,
		}
	}
	model, err := w.guard.Model(candidateOf("primary", w.model, true), candidateOf("backup", stub(answers), false))
	if err != nil {
		t.Fatal(err)
	}
	_, err = llms.GenerateFromSinglePrompt(ctx, model, "x")

	return err
}

func answers(context.Context) (*llms.ContentResponse, error) {
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "done", StopReason: "stop"}}}, nil
}

func waits(ctx context.Context) error {
	<-ctx.Done()

	return ctx.Err()
}

var errBoom = errors.New("boom")

// Whatever a tool, a model or the function of a run does, every span that was
// opened is ended, once, and says how.
func TestEverySpanEndsOnce(t *testing.T) {
	t.Parallel()
	const (
		run, look       = "invoke_agent desk", "execute_tool look"
		primary, backup = "chat primary", "chat backup"
	)
	type how map[string][]string // error types by span; "" is success
	tests := map[string]struct {
		tool  func(ctx context.Context) (string, error)
		model stub
		do    func(ctx context.Context, t *testing.T, w *spanWorld) error // nil: the tool, or the model, is called
		want  how
	}{
		"tool returns": {tool: func(context.Context) (string, error) { return "fine", nil }, want: how{run: {""}, look: {""}}},
		"tool fails":   {tool: func(context.Context) (string, error) { return "", errBoom }, want: how{run: {""}, look: {"tool_failed"}}},
		"tool panics":  {tool: func(context.Context) (string, error) { panic(errBoom) }, want: how{run: {"panic"}, look: {"panic"}}},
		"tool exits": {tool: func(context.Context) (string, error) {
			runtime.Goexit()

			return "", nil
		}, want: how{run: {""}, look: {"panic"}}},
		"tool is cancelled": {
			tool: func(ctx context.Context) (string, error) { return "", waits(ctx) },
			do: func(ctx context.Context, t *testing.T, w *spanWorld) error {
				t.Helper()
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()

				return w.callTool(ctx, t)
			},
			want: how{run: {"canceled"}, look: {"canceled"}},
		},
		"tool stalls": {
			tool: func(ctx context.Context) (string, error) { return "", waits(ctx) },
			want: how{run: {"stalled"}, look: {"canceled"}},
		},
		"tool is left behind": { // its span ends when it does
			tool: func(context.Context) (string, error) { <-time.After(time.Hour); return "late", nil },
			want: how{run: {"stalled"}, look: {""}},
		},
		"tool is refused": {
			tool: func(context.Context) (string, error) { return "fine", nil },
			do: func(ctx context.Context, t *testing.T, w *spanWorld) error {
				t.Helper()
				middleware.RunFrom(ctx).Halt(middleware.ComponentRun, middleware.ReasonAdmissionStopped)

				return w.callTool(ctx, t)
			},
			want: how{run: {"admission_denied"}},
		},

		"model answers": {model: answers, want: how{run: {""}, primary: {""}}},
		"model fails": {
			model: func(context.Context) (*llms.ContentResponse, error) { return nil, errBoom },
			want:  how{run: {""}, primary: {"_OTHER"}, backup: {""}},
		},
		"model panics": {
			model: func(context.Context) (*llms.ContentResponse, error) { panic(errBoom) },
			want:  how{run: {""}, primary: {"provider_bad_response"}, backup: {""}},
		},
		"model exits": {
			model: func(context.Context) (*llms.ContentResponse, error) { runtime.Goexit(); return nil, nil },
			want:  how{run: {""}, primary: {"provider_bad_response"}, backup: {""}},
		},
		"model is cancelled": {
			model: func(ctx context.Context) (*llms.ContentResponse, error) { return nil, waits(ctx) },
			do: func(ctx context.Context, t *testing.T, w *spanWorld) error {
				t.Helper()
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()

				return w.askModel(ctx, t)
			},
			want: how{run: {"canceled"}, primary: {"canceled"}},
		},
		"model is too slow": {
			model: func(ctx context.Context) (*llms.ContentResponse, error) { return nil, waits(ctx) },
			want:  how{run: {""}, primary: {"timeout"}, backup: {""}},
		},
		"model is left behind": {
			model: func(ctx context.Context) (*llms.ContentResponse, error) { <-time.After(time.Hour); return answers(ctx) },
			want:  how{run: {""}, primary: {"timeout"}, backup: {""}},
		},

		"run fails": {
			do:   func(context.Context, *testing.T, *spanWorld) error { return errBoom },
			want: how{run: {"_OTHER"}},
		},
		"run panics": {
			do:   func(context.Context, *testing.T, *spanWorld) error { panic(errBoom) },
			want: how{run: {"panic"}},
		},
		"run exits": {
			do:   func(context.Context, *testing.T, *spanWorld) error { runtime.Goexit(); return nil },
			want: how{run: {"panic"}},
		},
		"runs are nested": {
			do: func(ctx context.Context, t *testing.T, w *spanWorld) error {
				t.Helper()

				return w.guard.Do(ctx, desk, func(context.Context) error { return errBoom })
			},
			want: how{run: {"_OTHER", "_OTHER"}},
		},
		"the outer run ends first": {
			do: func(ctx context.Context, t *testing.T, w *spanWorld) error {
				t.Helper()
				_, inner, err := w.guard.StartRun(ctx, desk)
				if err != nil {
					return err
				}
				middleware.RunFrom(ctx).End()
				inner.End(nil)
				inner.End(nil)

				return nil
			},
			want: how{run: {"", ""}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSpanWorld(t)
				w.tool, w.model = tt.tool, tt.model
				do := tt.do
				if do == nil && tt.tool != nil {
					do = func(ctx context.Context, t *testing.T, w *spanWorld) error { t.Helper(); return w.callTool(ctx, t) }
				} else if do == nil {
					do = func(ctx context.Context, t *testing.T, w *spanWorld) error { t.Helper(); return w.askModel(ctx, t) }
				}
				var gone sync.WaitGroup
				gone.Go(func() { // may exit
					defer func() { _ = recover() }()
					_ = w.guard.Do(t.Context(), desk, func(ctx context.Context) error { return do(ctx, t, w) })
				})
				gone.Wait()
				<-time.After(2 * time.Hour) // what was left behind has ended

				w.spans.mu.Lock()
				defer w.spans.mu.Unlock()
				if diff := cmp.Diff(map[string][]string(tt.want), w.spans.how); diff != "" {
					t.Errorf("how the operations ended (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(w.spans.started, w.spans.ended); diff != "" {
					t.Errorf("spans (-started +ended):\n%s", diff)
				}
				for id, n := range w.spans.ended {
					if n != 1 {
						t.Errorf("%v ended %d times", id, n)
					}
				}
				if w.spans.extras != 0 {
					t.Error("a span has an event or a description")
				}
			})
		})
	}
}
