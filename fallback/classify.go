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
	"syscall"

	"github.com/interlock-go/interlock/middleware"
)

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
	if status, message := statusOf(p, status, err); status >= http.StatusBadRequest {
		return statusClass(status, message)
	}
	if c := chainClass(err); c != 0 {
		return c
	}

	return sentenceClass(p, err.Error())
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
	status, message = messageStatus(p, err.Error())
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

// statusClass reads a status; the message decides only where one status has several meanings.
func statusClass(status int, message string) Class {
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
		if messageClass(message) == ClassQuota {
			return ClassQuota
		}

		return ClassRateLimited
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if c := messageClass(message); c != 0 {
			return c
		}

		return ClassInvalidRequest
	}
	if status >= http.StatusInternalServerError {
		return ClassOverloaded
	}

	return ClassUnknown
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
