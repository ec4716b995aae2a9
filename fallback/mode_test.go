package fallback_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

func TestBuffered(t *testing.T) {
	t.Parallel()
	broken := fails(errSecret) // not asked again
	for name, tc := range map[string]struct {
		first       ask
		bytes       int
		options     []llms.CallOption
		chunks      string
		interrupted string
	}{
		"whole":              {streams(says("ab"), "", "a", "b"), 0, nil, "a|b", ""},
		"breaks off":         {streams(broken, "a", "b"), 0, nil, "B", ""},
		"fits":               {streams(broken, "aa", "bb"), 4, nil, "B", ""},
		"does not fit":       {streams(broken, "aa", "bb", "c"), 4, nil, "aa|bb|c", "aabbc"},
		"goes on":            {streams(broken, "aaaaa", "b"), 4, nil, "aaaaa|b", "aaaaab"},
		"whole, past it":     {streams(says("aabbc"), "aa", "bb", "c"), 4, nil, "aa|bb|c", ""},
		"delta":              {streams(calls(), delta), 0, []llms.CallOption{offered()}, delta, ""},
		"delta, breaks off":  {streams(broken, delta, "a"), 0, []llms.CallOption{offered()}, "B", ""},
		"thought counts too": {streams(broken, "~hmmmm", "a"), 4, nil, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			options := append([]llms.CallOption{collect(&got)}, tc.options...)
			if strings.Contains(name, "thought") {
				options = append(options, llms.WithStreamingReasoningFunc(func(context.Context, []byte, []byte) error { return nil }))
			}
			m := build(t, fallback.Config{
				Candidates: list(does(tc.first), does(streams(says("B"), "B"))), Stream: fallback.Buffered{MaxBytes: tc.bytes},
			})
			_, err := m.GenerateContent(t.Context(), hello(), options...)
			if s := strings.Join(got, "|"); s != tc.chunks {
				t.Errorf("chunks %q, want %q", s, tc.chunks)
			}
			if tc.interrupted == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}

				return
			}
			e, ok := errors.AsType[*fallback.InterruptedError](err)
			if !ok || e.Text() != tc.interrupted {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Nothing reaches the caller before the attempt has succeeded, and the caller may still refuse.
func TestReplay(t *testing.T) {
	t.Parallel()
	own := errors.New("enough")
	delivered, answered := 0, false
	m := build(t, fallback.Config{Stream: fallback.Buffered{}, Candidates: list(does(
		func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
			for range 3 {
				if err := o.StreamingFunc(ctx, []byte("x")); err != nil {
					t.Error(err)
				}
			}
			answered = true

			return says("xxx")(ctx, m, o)
		}))})
	_, err := m.GenerateContent(t.Context(), hello(), llms.WithStreamingFunc(func(ctx context.Context, _ []byte) error {
		if !answered || ctx.Err() != nil {
			t.Error("too early, or with a dead context")
		}
		if delivered++; delivered == 2 {
			return own
		}

		return nil
	}))
	if !errors.Is(err, own) || !errors.Is(err, middleware.ReasonCanceled) || delivered != 2 {
		t.Errorf("got %v after %d", err, delivered)
	}
	// A caller who leaves during the replay has no answer.
	ctx, cancel := context.WithCancel(t.Context())
	m = build(t, fallback.Config{Stream: fallback.Buffered{}, Candidates: list(does(streams(says("a"), "a")))})
	_, err = m.GenerateContent(ctx, hello(), llms.WithStreamingFunc(func(context.Context, []byte) error {
		cancel()

		return nil
	}))
	reasonIs(t, err, middleware.ReasonCanceled)
}

func TestChecks(t *testing.T) {
	t.Parallel()
	reject := errors.New("not good enough: " + secret)
	bad := func(_ context.Context, r *llms.ContentResponse) error {
		if r.Choices[0].Content == "bad" {
			return reject
		}

		return nil
	}
	for name, check := range map[string]fallback.ResponseCheck{
		"error": bad,
		"panic": func(ctx context.Context, r *llms.ContentResponse) error {
			if err := bad(ctx, r); err != nil {
				panic(err)
			}

			return nil
		},
	} {
		primary := does(says("bad"))
		cfg := fallback.Config{Candidates: list(primary, does(says("good"))), Checks: []fallback.ResponseCheck{check}, Rand: noJitter}
		m := build(t, cfg)
		res, err := m.Handle(t.Context(), middleware.NewModelCall(hello()))
		if err != nil || res.Response.Choices[0].Content != "good" || primary.calls.Load() != 2 { // once again, as bad_response
			t.Fatalf("%s: got %v, %v", name, res, err)
		}
		if res.InputTokens != 9 || m.Active().String() != "backup" {
			t.Errorf("%s: %d tokens, active %v", name, res.InputTokens, m.Active())
		}
		cfg.Candidates = list(does(says("bad")))
		_, err = text(t.Context(), build(t, cfg))
		if !errors.Is(err, reject) || !errors.Is(err, middleware.ReasonBadResponse) {
			t.Errorf("%s: got %v", name, err)
		}
		contentFree(t, err)
		var got []string
		_, err = text(t.Context(), build(t, fallback.Config{
			Candidates: list(does(streams(says("bad"), "bad")), does(says("good"))), Checks: cfg.Checks,
		}), collect(&got))
		if !errors.Is(err, middleware.ReasonInterrupted) { // it has reached the caller already
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A check that takes too long for the caller does not turn the caller's end into a failure of the candidate.
func TestCheckOutlivesTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m := build(t, fallback.Config{
		Candidates: list(does(says("a")), does(says("b"))),
		Checks: []fallback.ResponseCheck{func(ctx context.Context, _ *llms.ContentResponse) error {
			cancel()
			<-ctx.Done()

			return ctx.Err()
		}},
	})
	_, err := text(ctx, m)
	reasonIs(t, err, middleware.ReasonCanceled)
	if m.Active().String() != "primary" {
		t.Error("the candidate is benched")
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	l := list(does(gives(&llms.ContentResponse{Choices: []*llms.ContentChoice{choice("")}})), does(says("ok")))
	l[0].Provider = fallback.ProviderMistral
	m := build(t, fallback.Config{Candidates: l, Rand: noJitter})
	var r fallback.Report
	ctx := fallback.WithReport(t.Context(), &r)
	if r.Candidate().String() != "" || r.Attempts() != nil || r.Total() != (fallback.Usage{}) {
		t.Error("a new report is not empty")
	}
	if got, err := text(ctx, m); err != nil || got != "ok" {
		t.Fatal(got, err)
	}
	if r.Candidate().String() != "backup" || len(r.Attempts()) != 3 {
		t.Errorf("%v, %+v", r.Candidate(), r.Attempts())
	}
	if a := r.Attempts(); a[0].Class != fallback.ClassBadResponse || a[0].InputTokens != 3 || a[2].Class != 0 || a[2].Provider != fallback.ProviderOther {
		t.Errorf("%+v", a)
	}
	if u := r.Usage(fallback.ProviderMistral); u != (fallback.Usage{Attempts: 2, InputTokens: 6, OutputTokens: 4}) {
		t.Errorf("%+v", u)
	}
	_, _ = text(ctx, m) // adds up
	if u := r.Total(); u != (fallback.Usage{Attempts: 4, InputTokens: 12, OutputTokens: 8}) || len(r.Attempts()) != 1 {
		t.Errorf("%+v", u)
	}
	if r.Usage(99) != (fallback.Usage{}) || r.Usage(0) != (fallback.Usage{}) {
		t.Error("usage of nobody")
	}
	_, err := text(ctx, build(t, fallback.Config{Candidates: list(does(fails(status(401))))}))
	if err == nil || !r.Candidate().IsZero() || len(r.Attempts()) != 1 {
		t.Errorf("a failed call: %v, %v", r.Candidate(), err)
	}
	if fallback.WithReport(t.Context(), nil) != t.Context() {
		t.Error("a nil report changes the context")
	}
}

func TestRouteByWindow(t *testing.T) {
	t.Parallel()
	small, large := does(says("small")), does(says("large"))
	l := list(small, large)
	l[0].Window, l[1].Window = 1000, 2000
	m := build(t, fallback.Config{Candidates: l, RouteByWindow: true})
	ask := func(bytes int, options ...llms.CallOption) string {
		resp, err := m.GenerateContent(t.Context(), []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeHuman, strings.Repeat("x", bytes)),
		}, options...)
		if err != nil {
			t.Fatal(err)
		}

		return resp.Choices[0].Content
	}
	for _, tc := range []struct {
		bytes  int
		max    int
		answer string
	}{{100, 0, "small"}, {8000, 0, "small"}, {8008, 0, "large"}, {100, 990, "large"}, {1 << 20, 0, "large"}} {
		if got := ask(tc.bytes, llms.WithMaxTokens(tc.max)); got != tc.answer {
			t.Errorf("%d bytes, %d tokens: %s", tc.bytes, tc.max, got)
		}
	}
}

func TestNewRefusesLimitsAndModes(t *testing.T) {
	t.Parallel()
	const s = 1e9
	windows := func(w ...int) []fallback.Candidate {
		l := list(does(says("a")), does(says("b")))
		l[0].Window, l[1].Window = w[0], w[1]

		return l
	}
	one := list(does(says("a")))
	for name, tc := range map[string]struct {
		cfg   fallback.Config
		field string
	}{
		"first > whole":         {fallback.Config{Candidates: one, AttemptTimeout: s, FirstToken: 2 * s}, "FirstToken: longer than AttemptTimeout"},
		"idle > whole":          {fallback.Config{Candidates: one, AttemptTimeout: s, Idle: 2 * s}, "Idle: longer than AttemptTimeout"},
		"first > default whole": {fallback.Config{Candidates: one, FirstToken: 61 * s}, "FirstToken: longer than AttemptTimeout"},
		"first too short":       {fallback.Config{Candidates: one, FirstToken: 1}, "FirstToken: outside"},
		"idle too long":         {fallback.Config{Candidates: one, AttemptTimeout: fallback.NoLimit, Idle: 3601 * s}, "Idle: outside"},
		"negative":              {fallback.Config{Candidates: one, AttemptTimeout: -2}, "AttemptTimeout: outside"},
		"no window":             {fallback.Config{Candidates: windows(8, 0), RouteByWindow: true}, "Candidates[1].Window: missing for RouteByWindow"},
		"negative buffer":       {fallback.Config{Candidates: one, Stream: fallback.Buffered{MaxBytes: -1}}, "Stream.MaxBytes: outside"},
		"huge buffer":           {fallback.Config{Candidates: one, Stream: fallback.Buffered{MaxBytes: 1 << 30}}, "Stream.MaxBytes: outside"},
		"nil check":             {fallback.Config{Candidates: one, Checks: []fallback.ResponseCheck{nil}}, "Checks[0]: nil"},
	} {
		m, err := fallback.New(tc.cfg)
		if m != nil || err == nil || !strings.HasPrefix(err.Error(), "interlock: fallback: "+tc.field) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, cfg := range map[string]fallback.Config{
		"default longer than whole": {Candidates: one, AttemptTimeout: s},
		"no whole":                  {Candidates: one, AttemptTimeout: fallback.NoLimit, FirstToken: 3600 * s},
		"passthrough":               {Candidates: one, Stream: fallback.Passthrough{}},
		"windows":                   {Candidates: windows(8, 16), RouteByWindow: true},
	} {
		if _, err := fallback.New(cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
