package fallback_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func jsonError(s string) error {
	var v struct{ A int }

	return json.Unmarshal([]byte(s), &v)
}

func opError(errno syscall.Errno) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", errno)}
}

type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return false }

// The messages are those that the clients gave in measurement.
func TestClasses(t *testing.T) {
	t.Parallel()
	const (
		openai    = "API returned unexpected status code: "
		anthropic = "anthropic: failed to create message: API returned unexpected status code: "
	)
	post := func(err error) error {
		return fmt.Errorf("anthropic: failed to create message: send request: %w",
			&url.Error{Op: "Post", URL: "http://host:40123/messages?key=" + secret, Err: err})
	}
	for i, tc := range []struct {
		provider fallback.Provider
		err      error
		want     fallback.Class
	}{
		{fallback.ProviderOpenAI, said(openai + "400: Invalid value for 'temperature': must be between 0 and 2."), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, said(openai + "400: This model's maximum context length is 8192 tokens. However, your messages resulted in 10425 tokens. Please reduce the length of the messages."), fallback.ClassContextLength},
		{fallback.ProviderOpenAI, said(openai + "400: The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry."), fallback.ClassContentFilter},
		{fallback.ProviderOpenAI, said(openai + "400: Your account is not active, please check your billing details on our website."), fallback.ClassQuota},
		{fallback.ProviderOpenAI, said(openai + "401: Incorrect API key provided: sk-abc***def. You can find your API key at https://platform.openai.com/account/api-keys."), fallback.ClassAuth},
		{fallback.ProviderOpenAI, said(openai + "402"), fallback.ClassQuota},
		{fallback.ProviderOpenAI, said(openai + "403: Country, region, or territory not supported"), fallback.ClassAuth},
		{fallback.ProviderOpenAI, said(openai + "404: The model 'own-model' does not exist or you do not have access to it."), fallback.ClassNotFound},
		{fallback.ProviderOpenAI, said(openai + "408: Request timed out."), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "409: The resource was updated by another request."), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "413: Payload too large"), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, said(openai + "418: I'm a teapot"), fallback.ClassUnknown},
		{fallback.ProviderOpenAI, said(openai + "422: "), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, said(openai + "429: Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 7s."), fallback.ClassRateLimited},
		{fallback.ProviderOpenAI, said(openai + "429: You exceeded your current quota, please check your plan and billing details."), fallback.ClassQuota},
		{fallback.ProviderOpenAI, said(openai + "429"), fallback.ClassRateLimited},
		{fallback.ProviderOpenAI, said(openai + "500: The server had an error while processing your request. Sorry about that!"), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "500: timed out after 40000 ms"), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "502"), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "503: <html>\n429\n</html>"), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said(openai + "529: Overloaded"), fallback.ClassOverloaded},
		{fallback.ProviderOpenAI, said("network error: failed to reach API server"), fallback.ClassNetwork},
		{fallback.ProviderOpenAI, said("request timeout: API call exceeded deadline"), fallback.ClassTimeout},
		{fallback.ProviderOpenAI, said("request timeout: network operation exceeded timeout"), fallback.ClassTimeout},
		{fallback.ProviderOpenAI, said("request cancelled"), fallback.ClassUnknown},
		{fallback.ProviderOpenAI, said("empty response"), fallback.ClassBadResponse},
		{fallback.ProviderOpenAI, said("role robot not supported"), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, said("expected exactly one part for role tool, got 2"), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, jsonError("<html>"), fallback.ClassBadResponse},
		{fallback.ProviderOpenAI, io.EOF, fallback.ClassNetwork},
		{fallback.ProviderOpenAI, fmt.Errorf("error reading streaming response: %w", io.ErrUnexpectedEOF), fallback.ClassNetwork},
		{fallback.ProviderOpenAI, fmt.Errorf("error reading streaming response: %w", bufio.ErrTooLong), fallback.ClassBadResponse},
		{fallback.ProviderOpenAI, opError(syscall.ECONNRESET), fallback.ClassNetwork},
		{fallback.ProviderOpenAI, context.DeadlineExceeded, fallback.ClassTimeout},
		// What stands inside of a text decides nothing.
		{fallback.ProviderOpenAI, said("port 429: maximum context length, invalid api key 401"), fallback.ClassUnknown},
		{fallback.ProviderOpenAI, said(openai + "400: Unknown name 'You exceeded your current quota'"), fallback.ClassInvalidRequest},
		{fallback.ProviderOpenAI, said("x " + openai + "503"), fallback.ClassUnknown},
		{fallback.ProviderOpenAI, said(anthropic + "503"), fallback.ClassUnknown},

		{fallback.ProviderAnthropic, said(anthropic + "400: max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens"), fallback.ClassInvalidRequest},
		{fallback.ProviderAnthropic, said(anthropic + "400: prompt is too long: 215000 tokens > 200000 maximum"), fallback.ClassContextLength},
		{fallback.ProviderAnthropic, said(anthropic + "400: Output blocked by content filtering policy"), fallback.ClassContentFilter},
		{fallback.ProviderAnthropic, said(anthropic + "400: Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), fallback.ClassQuota},
		{fallback.ProviderAnthropic, said(anthropic + "401: invalid x-api-key"), fallback.ClassAuth},
		{fallback.ProviderAnthropic, said(anthropic + "404: model: own-model"), fallback.ClassNotFound},
		{fallback.ProviderAnthropic, said(anthropic + "429: This request would exceed your organization's rate limit of 40,000 input tokens per minute."), fallback.ClassRateLimited},
		{fallback.ProviderAnthropic, said(anthropic + "429: Number of request tokens has exceeded your daily rate limit"), fallback.ClassQuota},
		{fallback.ProviderAnthropic, said(anthropic + "529: Overloaded"), fallback.ClassOverloaded},
		{fallback.ProviderAnthropic, fmt.Errorf("anthropic: failed to create message: parse response: %w", jsonError("<")), fallback.ClassBadResponse},
		{fallback.ProviderAnthropic, said("anthropic: failed to create message: received error event: map[error:map[message:Overloaded type:overloaded_error] type:error]"), fallback.ClassBadResponse},
		{fallback.ProviderAnthropic, said("no response"), fallback.ClassBadResponse},
		{fallback.ProviderAnthropic, said("anthropic: failed to process messages: anthropic: failed to handle AI message"), fallback.ClassInvalidRequest},
		{fallback.ProviderAnthropic, post(opError(syscall.ECONNREFUSED)), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(io.EOF), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(&net.DNSError{Err: "no such host", Name: "host"}), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(timeoutError{}), fallback.ClassTimeout},
		{fallback.ProviderAnthropic, post(x509.UnknownAuthorityError{}), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(&tls.CertificateVerificationError{Err: errors.New("x")}), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(tls.RecordHeaderError{Msg: "x"}), fallback.ClassNetwork},
		{fallback.ProviderAnthropic, post(tls.AlertError(40)), fallback.ClassNetwork},

		{fallback.ProviderGoogleAI, status(429), fallback.ClassRateLimited},
		{fallback.ProviderGoogleAI, fmt.Errorf("wrapped: %w", status(503)), fallback.ClassOverloaded},
		{fallback.ProviderGoogleAI, status(200), fallback.ClassUnknown},
		{fallback.ProviderGoogleAI, said("googleapi: Error 400: This model's maximum context length is 8192 tokens."), fallback.ClassContextLength},
		{fallback.ProviderGoogleAI, said("googleapi: Error 529: Overloaded"), fallback.ClassOverloaded},
		{fallback.ProviderGoogleAI, said("blocked: candidate: FinishReasonSafety"), fallback.ClassContentFilter},
		{fallback.ProviderGoogleAI, said("blocked: prompt: BlockReasonSafety"), fallback.ClassContentFilter},
		{fallback.ProviderGoogleAI, said("no content in generation response"), fallback.ClassBadResponse},

		{fallback.ProviderMistral, said(`(HTTP Error 429) `), fallback.ClassRateLimited},
		{fallback.ProviderMistral, said(`(HTTP Error 400) {"object":"error","message":"This model's maximum context length is 8192 tokens."}`), fallback.ClassContextLength},
		{fallback.ProviderMistral, said(`(HTTP Error 422) {"detail":[{"loc":["body","messages",0,"role"]}]}`), fallback.ClassInvalidRequest},
		{fallback.ProviderMistral, said("unexpected response from Mistral SDK, length of the Choices slice must be greater than or equal 1"), fallback.ClassBadResponse},

		{fallback.ProviderHuggingFace, said(`failed to run inference: unexpected status code: 503, body: {"estimated_time":20}`), fallback.ClassOverloaded},
		{fallback.ProviderOllama, said("This model's maximum context length is 8192 tokens."), fallback.ClassContextLength},
		{fallback.ProviderOllama, said("Overloaded"), fallback.ClassOverloaded},
		{fallback.ProviderCohere, said("empty response"), fallback.ClassBadResponse},
		{fallback.ProviderCohere, said("model not found, make sure the correct model ID was used"), fallback.ClassNotFound},
		{fallback.ProviderCloudflare, said(`error: {"errors":[]}`), fallback.ClassUnknown},
		{fallback.ProviderLlamafile, jsonError(`{"A":{}}`), fallback.ClassBadResponse},

		{fallback.ProviderOther, said(""), fallback.ClassUnknown},
		{fallback.ProviderOther, context.Canceled, fallback.ClassUnknown},
		{fallback.ProviderOther, net.ErrClosed, fallback.ClassNetwork},
		{fallback.ProviderOther, opError(syscall.EHOSTUNREACH), fallback.ClassNetwork},
		{fallback.ProviderOther, middleware.ReasonQuota, fallback.ClassQuota},
		{fallback.ProviderOther, middleware.NewPanicError("x", nil), fallback.ClassBadResponse},
		{fallback.ProviderOther, middleware.NewFailure(middleware.ComponentModel, middleware.ReasonCanceled, ident.Label{}), fallback.ClassUnknown},
		{fallback.ProviderOther, middleware.NewFailure(middleware.ComponentModel, middleware.ReasonModelFailed, ident.Label{}), fallback.ClassUnknown},
	} {
		l := list(does(fails(tc.err)))
		l[0].Provider, l[0].Deaf = tc.provider, false
		_, err := text(t.Context(), build(t, fallback.Config{NoRetry: true, Candidates: l}))
		if got := classOf(t, err); got != tc.want {
			t.Errorf("%d: %v of %q: class %v, want %v", i, tc.provider, tc.err, got, tc.want)
		}
		if !errors.Is(err, tc.err) {
			t.Errorf("%d: the cause is lost", i)
		}
		contentFree(t, err)
	}
}
