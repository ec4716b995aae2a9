package fallback_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

// slowly is a client that streams chunks with a pause before each, and answers with all of them. It heeds its context.
func slowly(pauses ...time.Duration) ask {
	return func(ctx context.Context, _ []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		for _, p := range pauses {
			select {
			case <-time.After(p):
			case <-ctx.Done():
				if o.StreamingFunc != nil && o.StreamingFunc(context.Background(), []byte("late")) == nil {
					return says("a late chunk was taken")(ctx, nil, nil)
				}

				return nil, ctx.Err()
			}
			if o.StreamingFunc != nil {
				if err := o.StreamingFunc(ctx, []byte("x")); err != nil {
					return nil, err
				}
			}
		}

		return says(strings.Repeat("x", len(pauses)))(ctx, nil, nil)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type cfg = fallback.Config
	streaming := func(into *[]string) []llms.CallOption { return []llms.CallOption{collect(into)} }
	for name, tc := range map[string]struct {
		cfg    cfg
		first  ask
		plain  bool // the caller does not stream
		limit  fallback.Limit
		chunks int // delivered of the first
		took   time.Duration
	}{
		"healthy":              {cfg{}, slowly(9*s, 9*s, 9*s), false, 0, 3, 27 * s},
		"first token":          {cfg{}, slowly(11 * s), false, fallback.LimitFirstToken, 0, 10 * s},
		"idle":                 {cfg{}, slowly(s, 11*s), false, fallback.LimitIdle, 1, 11 * s},
		"idle, later":          {cfg{}, slowly(s, 9*s, 9*s, 12*s), false, fallback.LimitIdle, 3, 29 * s},
		"whole":                {cfg{}, slowly(9*s, 9*s, 9*s, 9*s, 9*s, 9*s, 9*s), false, fallback.LimitWhole, 6, 60 * s},
		"own":                  {cfg{AttemptTimeout: 5 * s, FirstToken: 2 * s, Idle: s}, slowly(s, 2*s), false, fallback.LimitIdle, 1, 2 * s},
		"own first":            {cfg{AttemptTimeout: 5 * s, FirstToken: 2 * s, Idle: s}, slowly(3 * s), false, fallback.LimitFirstToken, 0, 2 * s},
		"short whole":          {cfg{AttemptTimeout: 5 * s}, slowly(6 * s), false, fallback.LimitWhole, 0, 5 * s},
		"no first":             {cfg{FirstToken: fallback.NoLimit}, slowly(40 * s), false, 0, 1, 40 * s},
		"no first, but idle":   {cfg{FirstToken: fallback.NoLimit}, slowly(40*s, 11*s), false, fallback.LimitIdle, 1, 50 * s},
		"no idle":              {cfg{Idle: fallback.NoLimit}, slowly(s, 40*s), false, 0, 2, 41 * s},
		"no whole":             {cfg{AttemptTimeout: fallback.NoLimit}, slowly(9*s, 9*s, 9*s, 9*s, 9*s, 9*s, 9*s), false, 0, 7, 63 * s},
		"idle alone":           {cfg{AttemptTimeout: fallback.NoLimit, FirstToken: fallback.NoLimit}, slowly(99*s, 11*s), false, fallback.LimitIdle, 1, 109 * s},
		"none":                 {cfg{AttemptTimeout: fallback.NoLimit, FirstToken: fallback.NoLimit, Idle: fallback.NoLimit}, slowly(99*s, 99*s), false, 0, 2, 198 * s},
		"plain has no tokens":  {cfg{}, slowly(40 * s), true, 0, 0, 40 * s},
		"plain has a whole":    {cfg{}, slowly(70 * s), true, fallback.LimitWhole, 0, 60 * s},
		"plain without limits": {cfg{AttemptTimeout: fallback.NoLimit}, slowly(99 * s), true, 0, 0, 99 * s},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var chunks []string
				var options []llms.CallOption
				if !tc.plain {
					options = streaming(&chunks)
				}
				tc.cfg.Candidates = list(does(tc.first), does(streams(says("B"), "B")))
				var report fallback.Report
				begin := time.Now()
				_, err := text(fallback.WithReport(t.Context(), &report), build(t, tc.cfg), options...)
				took := time.Since(begin)
				a := report.Attempts()[0]
				if a.Limit != tc.limit || took != tc.took || (tc.limit != 0) != (a.Class == fallback.ClassTimeout) {
					t.Fatalf("limit %v, class %v after %v: %v", a.Limit, a.Class, took, err)
				}
				delivered := strings.Count(strings.Join(chunks, ""), "x")
				if delivered != tc.chunks {
					t.Errorf("chunks %q", chunks)
				}
				if (err != nil) != (tc.limit != 0 && tc.chunks > 0) || (err != nil && !errors.Is(err, middleware.ReasonInterrupted)) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The time that the caller's own function takes is not the provider's.
func TestSlowCallerIsNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := build(t, fallback.Config{Candidates: list(does(slowly(time.Second, time.Second, 9*time.Second)))})
		got, err := text(t.Context(), m, llms.WithStreamingFunc(func(context.Context, []byte) error {
			pass(15 * time.Second)

			return nil
		}))
		if err != nil || got != "xxx" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A limit looks like a deadline to the client, not like a caller who left.
func TestLimitIsADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen, cause, derived error
		var at time.Time
		begin := time.Now()
		look := func(ctx context.Context, _ []llms.MessageContent, _ *llms.CallOptions) (*llms.ContentResponse, error) {
			at, _ = ctx.Deadline()
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			seen, cause, derived = ctx.Err(), context.Cause(ctx), context.Cause(child)

			return nil, ctx.Err()
		}
		want(t, build(t, fallback.Config{Candidates: list(does(look), does(says("b")))}), "b")
		for _, err := range []error{seen, cause, derived} {
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		if at.Sub(begin) != time.Minute {
			t.Errorf("deadline after %v", at.Sub(begin))
		}
		// The nearer deadline of the caller is the one that counts.
		ctx, cancel := deadline(t, time.Second)
		defer cancel()
		begin = time.Now()
		_, err := text(ctx, build(t, fallback.Config{Candidates: list(does(look), does(says("b")))}))
		if at.Sub(begin) != time.Second || !errors.Is(err, middleware.ReasonCanceled) {
			t.Errorf("deadline after %v, %v", at.Sub(begin), err)
		}
	})
}

// What a client left running hears of the end of its attempt, whether it listened before or asks afterwards.
func TestAttemptEndsItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, limits := range []time.Duration{0, fallback.NoLimit} {
			for _, early := range []bool{true, false} {
				var kept context.Context
				f := does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
					if kept = ctx; early {
						if ctx.Done() == nil || ctx.Err() != nil {
							t.Error("ended before its time")
						}
					}

					return says("a")(ctx, m, o)
				})
				want(t, build(t, fallback.Config{Candidates: list(f), AttemptTimeout: limits}), "a")
				if !errors.Is(kept.Err(), context.Canceled) {
					t.Errorf("err %v", kept.Err())
				}
				select {
				case <-kept.Done():
				default:
					t.Error("not done")
				}
				if context.Cause(kept) == nil {
					t.Error("no cause")
				}
			}
		}
	})
}

// When a call that does not stream is streamed inwardly.
func TestInwardStreaming(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		provider fallback.Provider
		watched  bool
		options  []llms.CallOption
		cfg      fallback.Config
		inward   bool
	}{
		"openai watched":     {fallback.ProviderOpenAI, true, nil, fallback.Config{}, true},
		"openai":             {fallback.ProviderOpenAI, false, nil, fallback.Config{}, false},
		"anthropic watched":  {fallback.ProviderAnthropic, true, nil, fallback.Config{}, true},
		"tools":              {fallback.ProviderOpenAI, true, []llms.CallOption{offered()}, fallback.Config{}, false},
		"functions":          {fallback.ProviderOpenAI, true, []llms.CallOption{llms.WithFunctions([]llms.FunctionDefinition{{Name: "f"}})}, fallback.Config{}, false},
		"two answers":        {fallback.ProviderOpenAI, true, []llms.CallOption{llms.WithN(2)}, fallback.Config{}, false},
		"no limits to watch": {fallback.ProviderOpenAI, true, nil, fallback.Config{FirstToken: fallback.NoLimit, Idle: fallback.NoLimit}, false},
		"ollama":             {fallback.ProviderOllama, false, nil, fallback.Config{}, true},
		"googleai":           {fallback.ProviderGoogleAI, false, nil, fallback.Config{}, true},
		"mistral":            {fallback.ProviderMistral, true, nil, fallback.Config{}, false},
		"cloudflare":         {fallback.ProviderCloudflare, true, nil, fallback.Config{}, false},
		"llamafile":          {fallback.ProviderLlamafile, true, nil, fallback.Config{}, false},
		"other":              {fallback.ProviderOther, true, nil, fallback.Config{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inward := false
			l := list(does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				if inward = o.StreamingFunc != nil; inward {
					if err := o.StreamingFunc(ctx, []byte("text")); err != nil {
						return nil, err
					}
				}

				return nil, status(422)
			}))
			l[0].Provider, l[0].Watched = tc.provider, tc.watched
			tc.cfg.Candidates = l
			_, err := text(t.Context(), build(t, tc.cfg), tc.options...)
			if inward != tc.inward {
				t.Errorf("inward %v", inward)
			}
			if classOf(t, err) != fallback.ClassInvalidRequest { // and not interrupted: nothing was delivered
				t.Errorf("got %v", err)
			}
		})
	}
}

// Inwardly streamed, a call has the limits of a stream.
func TestInwardLimits(t *testing.T) {
	t.Parallel()
	for first, limit := range map[string]fallback.Limit{"11s": fallback.LimitFirstToken, "1s 11s": fallback.LimitIdle, "9s 9s 9s": 0} {
		synctest.Test(t, func(t *testing.T) {
			var pauses []time.Duration
			for p := range strings.FieldsSeq(first) {
				d, _ := time.ParseDuration(p)
				pauses = append(pauses, d)
			}
			l := list(does(slowly(pauses...)), does(says("b")))
			l[0].Provider = fallback.ProviderGoogleAI
			var report fallback.Report
			_, err := text(fallback.WithReport(t.Context(), &report), build(t, fallback.Config{Candidates: l}))
			if err != nil || report.Attempts()[0].Limit != limit {
				t.Errorf("%s: %v, %v", first, report.Attempts(), err)
			}
		})
	}
}

// A client that does not tell of the tool call that it reads is not thought idle, unless a Transport sees it.
func TestSilentToolCallsAreNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for p, limit := range map[fallback.Provider]fallback.Limit{
			fallback.ProviderAnthropic: 0, fallback.ProviderOpenAI: fallback.LimitFirstToken,
		} {
			l := list(does(func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
				select {
				case <-time.After(30 * time.Second):
					return calls()(ctx, m, o)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}))
			l[0].Provider = p
			var chunks []string
			var report fallback.Report
			_, _ = text(fallback.WithReport(t.Context(), &report), build(t, fallback.Config{Candidates: l}), offered(), collect(&chunks))
			if got := report.Attempts()[0].Limit; got != limit {
				t.Errorf("%v: limit %v", p, got)
			}
		}
	})
}
