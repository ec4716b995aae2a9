package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// secret stands in everything that must not get out.
const secret = "s3cret-canary"

var errSecret = errors.New("provider says " + secret)

type ask = func(ctx context.Context, messages []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error)

// fake is a model that does what a test says. Asked more often than it has answers, it repeats the last one.
type fake struct {
	answers []ask
	calls   atomic.Int64
	reasons bool
}

var _ llms.ReasoningModel = (*fake)(nil)

func (f *fake) GenerateContent(
	ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	n := int(f.calls.Add(1))
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}

	return f.answers[min(n, len(f.answers))-1](ctx, messages, &o)
}

func (f *fake) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func (f *fake) SupportsReasoning() bool { return f.reasons }

func does(answers ...ask) *fake { return &fake{answers: answers} }

func says(text string) ask {
	return gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{choice(text)}})
}

func choice(text string) *llms.ContentChoice {
	return &llms.ContentChoice{Content: text, StopReason: "stop", GenerationInfo: map[string]any{
		"PromptTokens": 3, "CompletionTokens": 2,
	}}
}

func gives(resp *llms.ContentResponse) ask {
	return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
		return resp, nil
	}
}

func fails(err error) ask {
	return func(context.Context, []llms.MessageContent, *llms.CallOptions) (*llms.ContentResponse, error) {
		return nil, err
	}
}

// status is an error of a client that tells the status by a method.
type status int

func (s status) Error() string { return fmt.Sprintf("status with %s in it", secret) }
func (s status) HTTPCode() int { return int(s) }

func hangs(ctx context.Context, _ []llms.MessageContent, _ *llms.CallOptions) (*llms.ContentResponse, error) {
	<-ctx.Done()

	return nil, errSecret // as a client that hides why
}

// list makes candidates of any provider, named in order.
func list(models ...llms.Model) []fallback.Candidate {
	var out []fallback.Candidate
	for i, m := range models {
		out = append(out, fallback.Candidate{
			Label: ident.MustLabel(name(i)), Provider: fallback.ProviderOther, ModelName: "model-" + name(i), Model: m,
		})
	}

	return out
}

func build(tb testing.TB, cfg fallback.Config) *fallback.Model {
	tb.Helper()
	m, err := fallback.New(cfg)
	if err != nil {
		tb.Fatalf("New: %v", err)
	}

	return m
}

func hello() []llms.MessageContent {
	return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "hello "+secret)}
}

// text asks m and returns the first choice.
func text(ctx context.Context, m llms.Model, options ...llms.CallOption) (string, error) {
	resp, err := m.GenerateContent(ctx, hello(), options...)
	if err != nil {
		return "", err
	}

	return resp.Choices[0].Content, nil
}

func want(tb testing.TB, m llms.Model, answer string) {
	tb.Helper()
	if got, err := text(tb.Context(), m); err != nil || got != answer {
		tb.Fatalf("got %q, %v; want %q", got, err, answer)
	}
}

// contentFree renders err in every way.
func contentFree(tb testing.TB, err error) {
	tb.Helper()
	all := fmt.Sprintf("%v|%+v|%#v|%s|%q", err, err, err, err, err)
	switch e := err.(type) {
	case *fallback.CandidateError:
		all += fmt.Sprintf("|%v|%+v|%#v", *e, *e, *e)
	case *fallback.ExhaustedError:
		all += fmt.Sprintf("|%v|%+v|%#v", *e, *e, *e)
	case *fallback.InterruptedError:
		all += fmt.Sprintf("|%v|%+v|%#v", *e, *e, *e)
	}
	if strings.Contains(all, secret) {
		tb.Errorf("the error shows content: %s", all)
	}
}

func classOf(tb testing.TB, err error) fallback.Class {
	tb.Helper()
	e, ok := errors.AsType[*fallback.CandidateError](err)
	if !ok {
		tb.Fatalf("%v (%T) is no CandidateError", err, err)
	}

	return e.Class()
}

// recorder is an observer and a tracer.
type recorder struct {
	mu        sync.Mutex
	decisions []middleware.Decision
	ops       []middleware.Op
	outcomes  []middleware.Outcome
	open      int
}

func (r *recorder) Observe(_ context.Context, d middleware.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decisions = append(r.decisions, d)
}

func (r *recorder) Start(ctx context.Context, op middleware.Op, _ ident.Label, _ int) (context.Context, middleware.End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
	r.open++

	return ctx, func(o middleware.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.outcomes = append(r.outcomes, o)
		r.open--
	}
}

// lines renders the decisions and forgets them.
func (r *recorder) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, d := range r.decisions {
		s := fmt.Sprintf("%s %s %s %s", d.Verdict, d.Action, d.Label, d.Reason.String())
		if d.Attempt > 0 {
			s += fmt.Sprintf(" #%d", d.Attempt)
		}
		if d.Outcome != 0 {
			s += " " + d.Outcome.String()
		}
		if d.Circuit != 0 {
			s += " " + d.Circuit.String()
		}
		out = append(out, s)
	}
	r.decisions = nil

	return out
}

func reasonIs(tb testing.TB, err error, r middleware.Reason) {
	tb.Helper()
	if !errors.Is(err, r) {
		tb.Fatalf("%v (%T) is not %v", err, err, r)
	}
	contentFree(tb, err)
}

func name(i int) string { return [...]string{"primary", "backup", "third"}[i] }

// said is an error of a provider, in its own words.
type said string

func (s said) Error() string { return string(s) }
