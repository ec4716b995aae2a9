package fallback

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Transport is an [http.RoundTripper] that sees what a client hides: it records status, Retry-After and error code of
// the answer for the attempt that the request belongs to, and watches event streams of OpenAI's and Anthropic's kind,
// so that a stream which breaks off, or carries an error or a damaged event, is never taken for a whole answer. It also
// drops events that a client does not know and would print.
//
//	client := &http.Client{Transport: &fallback.Transport{}}
//	model, err := openai.New(openai.WithHTTPClient(client), …)
//
// A request that belongs to no attempt passes unchanged. One Transport may serve many clients.
type Transport struct {
	// Base makes the requests. Default nil: http.DefaultTransport.
	Base http.RoundTripper
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	a := attemptFrom(req.Context())
	if a == nil {
		return base.RoundTrip(req)
	}
	a.seeTransport()
	resp, err := base.RoundTrip(req)
	if err != nil || resp == nil {
		a.seen.record(0, 0)

		return resp, err
	}
	a.seen.record(resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"), a.model.wall()))
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		if a.c.sse { // the two whose error bodies we know
			a.seen.peek(resp)
		}
	case a.seen.stream:
		resp.Body = newWatch(resp.Body, a)
		resp.ContentLength = -1 // lines may be dropped
	}

	return resp, nil
}

// seeTransport notes that the client has a Transport.
func (a *attempt) seeTransport() {
	a.c.watched.Store(true)
	if !a.seen.present.Swap(true) && a.blind {
		a.arm() // from now on tokens are seen
	}
}

// capture is what Transport saw of an attempt. Clients read bodies on goroutines of their own.
type capture struct {
	stream  bool        // an event stream is expected; set before the attempt starts
	present atomic.Bool // a Transport was there

	mu         sync.Mutex
	status     int
	retryAfter time.Duration
	class      Class // by the error code in the body, or by a fault of the stream
	ended      bool  // the stream ended as it should
	broken     bool  // the stream did not
}

// record starts anew: of several requests of a client, the last one counts.
func (s *capture) record(status int, retryAfter time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.retryAfter = status, retryAfter
	s.class, s.ended, s.broken = 0, false, false
}

func (s *capture) fault(c Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.class = true, c
}

func (s *capture) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// whole reports whether a stream was seen to its proper end.
func (s *capture) whole() bool {
	if !s.present.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.ended && !s.broken
}

// hidden returns the failure that a client reported as a success, or nil.
func (s *capture) hidden() error {
	if !s.present.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken:
		return &responseError{what: "broken stream", class: s.class}
	case s.status >= http.StatusBadRequest:
		return &responseError{what: "error status", class: ClassUnknown} // classified by the status
	default:
		return nil
	}
}

// answer returns status and Retry-After: as seen, else as err knows them.
func (s *capture) answer(p Provider, err error) (status int, wait time.Duration) {
	if s.present.Load() {
		s.mu.Lock()
		status, wait = s.status, s.retryAfter
		s.mu.Unlock()
	}
	if err == nil {
		return status, wait
	}
	status, _ = statusOf(p, status, err)
	if wait == 0 {
		wait = retryAfterOf(err)
	}

	return status, wait
}

// verdict returns what was seen, for the classifier.
func (s *capture) verdict() (status int, class Class) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.status, s.class
}

// maxErrorBody bounds what is read of an error's body.
const maxErrorBody = 64 << 10

// peek reads the code of an error body and gives the body back to the client.
func (s *capture) peek(resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failedReader{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), resp.Body}
	var e struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return
	}
	code, _ := e.Error.Code.(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.class = codeClass(code, e.Error.Type)
}

type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }

// codeClass maps the error codes of OpenAI and Anthropic. The code says more than the type.
func codeClass(code, kind string) Class {
	for _, word := range [2]string{code, kind} {
		switch word {
		case "context_length_exceeded", "string_above_max_length":
			return ClassContextLength
		case "content_filter", "content_policy_violation":
			return ClassContentFilter
		case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error":
			return ClassQuota
		case "model_not_found", "not_found_error":
			return ClassNotFound
		case "rate_limit_exceeded", "rate_limit_error":
			return ClassRateLimited
		case "overloaded_error", "server_error", "api_error", "timeout_error":
			return ClassOverloaded
		case "invalid_api_key", "authentication_error", "permission_error":
			return ClassAuth
		}
	}

	return 0
}

// maxRetryAfter is what a provider may ask for: longer is not waited for, and benches no longer.
const maxRetryAfter = 10 * time.Minute

// retryAfter reads the header: seconds or a date. What is absent, past or unreadable is 0.
func retryAfter(header string, now time.Time) time.Duration {
	if header == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(header, 64); err == nil {
		if !(n > 0) { // also NaN
			return 0
		}
		if n > maxRetryAfter.Seconds() {
			return maxRetryAfter
		}

		return time.Duration(n * float64(time.Second))
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}

	return min(max(at.Sub(now), 0), maxRetryAfter)
}
