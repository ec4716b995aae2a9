package fallback

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"

	"github.com/interlock-go/interlock/middleware"
)

// room is what is known of the errors of one client: how it words a status, and what it says without one. There is one
// file for each, classify_<provider>.go; a further client is a file of its kind and a line in rooms.
//
// Every pattern is anchored at the begin of a text, because further inside of it may stand what the user wrote.
type room struct {
	// status finds the status and the provider's message in an error. nil: the client keeps no status.
	status *regexp.Regexp
	// inner finds the message in a body that the client prints whole. nil: it prints the message alone.
	inner *regexp.Regexp
	// messages decide where one status has several meanings.
	messages []form
	// bare decide about a message that comes without its status.
	bare []form
	// sentences are the client's own words, where the chain of its errors tells nothing.
	sentences []form
}

// form is a text and what it means.
type form struct {
	class Class
	text  *regexp.Regexp
}

func says(class Class, pattern string) form {
	return form{class, regexp.MustCompile("(?s)^(?:" + pattern + ")")}
}

var rooms = [providerEnd]*room{ //nolint:gochecknoglobals // compiled table
	ProviderOpenAI:      &openaiRoom,
	ProviderAnthropic:   &anthropicRoom,
	ProviderGoogleAI:    &googleaiRoom,
	ProviderMistral:     &mistralRoom,
	ProviderOllama:      &ollamaRoom,
	ProviderCohere:      &cohereRoom,
	ProviderHuggingFace: &huggingfaceRoom,
	ProviderCloudflare:  &cloudflareRoom,
	ProviderLlamafile:   &llamafileRoom,
	ProviderOther:       &otherRoom,
}

// otherRoom: nothing is known of the words of an unknown client.
var otherRoom = room{} //nolint:gochecknoglobals // compiled table

func roomOf(p Provider) *room {
	if !p.valid() {
		return &otherRoom
	}

	return rooms[p]
}

// classify reads a failed attempt whose caller and whose own limit are alive. What is certain comes first: the error
// code and status that Transport saw, the library's own errors, a typed status, the status in a message of known form,
// the error chain, the exact sentences of clients that hide it. It never looks for digits or words anywhere in a text:
// those may be a port, or what the user wrote.
func classify(p Provider, seen *capture, err error) Class {
	status, code := seen.verdict()
	if code != 0 {
		return code
	}
	if status < http.StatusBadRequest { // not seen, or the failure came after a good status
		if c := ownClass(err); c != 0 {
			return c
		}
	}
	r := roomOf(p)
	if status, message := statusOf(p, status, err); status >= http.StatusBadRequest {
		return r.statusClass(status, message)
	}
	if c := r.special(err); c != 0 {
		return c
	}
	if c := chainClass(err); c != 0 {
		return c
	}

	return r.sentence(err.Error())
}

// ownClass reads errors of the library that came out of an attempt: its checks, a contained panic, a model that is
// guarded itself.
func ownClass(err error) Class {
	if r := middleware.ReasonOf(err); r != 0 {
		return classOf(r)
	}

	return 0
}

// statusOf completes the status that Transport saw by what the error says, and returns the provider's message.
func statusOf(p Provider, seen int, err error) (status int, message string) {
	if err == nil {
		return seen, ""
	}
	status, message = roomOf(p).read(err.Error())
	if typed, ok := errors.AsType[interface {
		error
		HTTPCode() int
	}](err); ok && typed.HTTPCode() >= http.StatusBadRequest {
		status = typed.HTTPCode()
	}
	if seen >= http.StatusBadRequest {
		status = seen
	}

	return status, message
}

// read splits an error's text into status, 0 if it has none, and message.
func (r *room) read(text string) (status int, message string) {
	message = text
	if r.status != nil {
		if found := r.status.FindStringSubmatch(text); found != nil {
			if n, err := strconv.Atoi(found[1]); err == nil {
				status, message = n, found[2]
			}
		}
	}
	if r.inner != nil {
		if inner := r.inner.FindStringSubmatch(message); inner != nil {
			message = inner[1]
		}
	}

	return status, message
}

// statusClass reads a status; the message decides only where one status has several meanings.
func (r *room) statusClass(status int, message string) Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return ClassAuth
	case http.StatusPaymentRequired:
		return ClassQuota
	case http.StatusNotFound:
		return ClassNotFound
	case http.StatusRequestTimeout, http.StatusConflict:
		return ClassOverloaded
	case http.StatusTooManyRequests:
		if match(r.messages, message) == ClassQuota {
			return ClassQuota
		}

		return ClassRateLimited
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if c := match(r.messages, message); c != 0 {
			return c
		}

		return ClassInvalidRequest
	}
	if status >= http.StatusInternalServerError {
		return ClassOverloaded
	}

	return ClassUnknown
}

func match(forms []form, text string) Class {
	for i := range forms {
		if forms[i].text.MatchString(text) {
			return forms[i].class
		}
	}

	return 0
}

// sentence ends the classification: what nobody knows is unknown.
func (r *room) sentence(text string) Class {
	if c := match(r.sentences, text); c != 0 {
		return c
	}
	_, message := r.read(text)
	for _, forms := range [2][]form{r.bareMessages(), r.bare} {
		if c := match(forms, message); c != 0 {
			return c
		}
	}

	return ClassUnknown
}

// bareMessages are the messages, for a client that keeps no status.
func (r *room) bareMessages() []form {
	if r.bare == nil {
		return nil
	}

	return r.messages
}

// special reads what the chain of an error would hide.
func (r *room) special(err error) Class {
	if c := match(r.sentences, err.Error()); c == ClassOverloaded {
		return c // said by a client about a status that it has lost
	}

	return 0
}

// chainClass reads the error chain, where the client has kept it.
func chainClass(err error) Class {
	if errors.Is(err, context.DeadlineExceeded) { // a limit of the client's own
		return ClassTimeout
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, bufio.ErrTooLong) {
		return ClassBadResponse
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return ClassBadResponse
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return ClassTimeout
	}
	for _, e := range [...]error{
		io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE,
	} {
		if errors.Is(err, e) {
			return ClassNetwork
		}
	}
	if isNetwork(err) {
		return ClassNetwork
	}

	return 0
}

func isNetwork(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return true
	}
	_, ok := errors.AsType[tls.AlertError](err)

	return ok
}
