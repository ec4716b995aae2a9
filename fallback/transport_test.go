package fallback_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(body)}
}

// reads is a client that makes one request through t and calls everything a success.
func reads(t *fallback.Transport, got *string, failed *error) ask {
	return func(ctx context.Context, m []llms.MessageContent, o *llms.CallOptions) (*llms.ContentResponse, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.invalid/"+secret, http.NoBody)
		if err != nil {
			return nil, err
		}
		resp, err := t.RoundTrip(req)
		if err != nil {
			*failed = err

			return nil, errors.New("network error: failed to reach API server")
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		*got, *failed = string(body), err

		return says("fine")(ctx, m, o)
	}
}

func watched(tb testing.TB, body io.Reader) (read string, failed, err error) {
	tb.Helper()
	tr := &fallback.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) { return response(http.StatusOK, body), nil })}
	l := list(does(reads(tr, &read, &failed)))
	l[0].Provider = fallback.ProviderOpenAI
	m := build(tb, fallback.Config{NoRetry: true, Candidates: l})
	_, err = m.GenerateContent(tb.Context(), hello(), llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))

	return read, failed, err
}

func TestStreamWatch(t *testing.T) {
	t.Parallel()
	const (
		chunk = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
		last  = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		start = "event: message_start\n" + `data: {"type":"message_start"}` + "\n\n"
		stop  = `data: {"type":"message_stop"}` + "\n"
	)
	bad, fine := fallback.ClassBadResponse, fallback.Class(0)
	for name, tc := range map[string]struct {
		body  string
		read  string
		class fallback.Class
	}{
		"done":              {chunk + last + "data: [DONE]\n\n", chunk + last + "data: [DONE]\n", fine},
		"no space":          {chunk + "data:[DONE]\r\n", chunk + "data:[DONE]\r\n", fine},
		"reason only":       {chunk + last, chunk + last, fine},
		"no newline":        {chunk + strings.TrimSpace(last), chunk + strings.TrimSpace(last), fine},
		"comments":          {": ping\n" + chunk + "data:\n" + "id: 3\nretry: 1\n" + last, ": ping\n" + chunk + "id: 3\nretry: 1\n" + last, fine},
		"no end":            {chunk, chunk, bad},
		"nothing":           {"", "", bad},
		"html":              {"<html>\n</html>\n", "<html>\n</html>\n", bad},
		"error":             {chunk + `data: {"error":{"message":"x"}}` + "\n" + last, chunk, bad},
		"error of a kind":   {`data: {"error":{"type":"server_error"}}` + "\n", "", fallback.ClassOverloaded},
		"error with a code": {`data: {"error":{"type":"x","code":"rate_limit_exceeded"}}` + "\n", "", fallback.ClassRateLimited},
		"error text":        {`data: {"error":"x"}` + "\n", "", bad},
		"no error":          {`data: {"error":null,"choices":[{"finish_reason":"stop"}]}` + "\n", `data: {"error":null,"choices":[{"finish_reason":"stop"}]}` + "\n", fine},
		"malformed":         {chunk + `data: {"choices":[{"del` + "\n" + last, chunk, bad},
		"not an object":     {"data: 5\n", "", bad},
		"too long":          {"data: " + strings.Repeat("x", 2<<20), "", bad},
		"anthropic":         {start + stop + "\n", start + stop, fine},
		"anthropic cut":     {start, start, bad},
		"anthropic trailer": {start + stop + "data: [DONE]\n", start + stop, fine},
		"early trailer":     {start + "data: [DONE]\n", start, bad},
		"anthropic unknown": {start + `data: {"type":"new_thing","x":"` + secret + `"}` + "\n" + stop, start + stop, fine},
		"anthropic known":   {start + `data: {"type":"ping"}` + "\n" + stop, start + `data: {"type":"ping"}` + "\n" + stop, fine},
		"anthropic error":   {start + `data: {"type":"error","error":{"type":"overloaded_error"}}` + "\n", start, fallback.ClassOverloaded},
		"stop of nobody":    {stop, stop, bad},
		"reason is no end":  {start + last, start + "\n", bad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []io.Reader{strings.NewReader(tc.body), iotest.OneByteReader(strings.NewReader(tc.body))} {
				read, failed, err := watched(t, body)
				if read != tc.read {
					t.Errorf("the client read %q, want %q", read, tc.read)
				}
				if tc.class == 0 {
					if err != nil || failed != nil {
						t.Errorf("got %v, %v", err, failed)
					}

					continue
				}
				if c := classOf(t, err); c != tc.class || failed == nil {
					t.Errorf("class %v, the client saw %v", c, failed)
				}
			}
		})
	}
}

func TestStreamThatFailsToBeRead(t *testing.T) {
	t.Parallel()
	done := "data: {\"choices\":[]}\ndata: [DONE]\n"
	for body, whole := range map[string]bool{done: true, "data: {\"choices\":[]}\ndata: {\"cho": false} {
		_, failed, err := watched(t, io.MultiReader(strings.NewReader(body), iotest.ErrReader(errSecret)))
		if whole != (err == nil) || whole != (failed == nil) {
			t.Errorf("%q: %v, %v", body, err, failed)
		}
		if !whole && (!errors.Is(failed, errSecret) || classOf(t, err) != fallback.ClassNetwork) {
			t.Errorf("%q: %v, %v", body, err, failed)
		}
	}
}

// A client that calls an error status a success is not believed.
func TestHiddenStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  int
		body  io.Reader
		class fallback.Class
	}{
		"429":      {429, strings.NewReader(""), fallback.ClassRateLimited},
		"503":      {503, strings.NewReader("x"), fallback.ClassOverloaded},
		"by code":  {400, strings.NewReader(`{"error":{"code":"context_length_exceeded"}}`), fallback.ClassContextLength},
		"no. code": {400, strings.NewReader(`{"error":{"code":17,"type":"x"}}`), fallback.ClassInvalidRequest},
		"cut":      {401, iotest.ErrReader(errSecret), fallback.ClassAuth},
	} {
		var read string
		var failed error
		tr := &fallback.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) { return response(tc.code, tc.body), nil })}
		l := list(does(reads(tr, &read, &failed)))
		l[0].Provider = fallback.ProviderOpenAI
		_, err := text(t.Context(), build(t, fallback.Config{NoRetry: true, Candidates: l}))
		e, ok := errors.AsType[*fallback.CandidateError](err)
		if !ok || e.Class() != tc.class || e.Attempt().Status != tc.code || e.Candidate().String() != "primary" {
			t.Errorf("%s: %v", name, err)
		}
		if name == "cut" && !errors.Is(failed, errSecret) {
			t.Errorf("the client does not see that the body is cut: %v", failed)
		}
		if name == "503" && read != "x" {
			t.Errorf("the client read %q", read)
		}
		contentFree(t, err)
	}
}

func TestTransportOutsideOfAnAttempt(t *testing.T) {
	t.Parallel()
	const body = "data: broken"
	tr := &fallback.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		return response(http.StatusOK, strings.NewReader(body)), nil
	})}
	client := &http.Client{Transport: tr}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://provider.invalid", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestTransportPassesErrors(t *testing.T) {
	t.Parallel()
	var read string
	var failed error
	tr := &fallback.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errSecret })}
	l := list(does(reads(tr, &read, &failed)))
	l[0].Provider = fallback.ProviderOpenAI
	_, err := text(t.Context(), build(t, fallback.Config{NoRetry: true, Candidates: l}))
	if classOf(t, err) != fallback.ClassNetwork || !errors.Is(failed, errSecret) {
		t.Errorf("got %v, the client saw %v", err, failed)
	}
	if !errors.Is(err, middleware.ReasonNetwork) {
		t.Errorf("got %v", err)
	}
}
