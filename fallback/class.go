package fallback

import (
	"github.com/interlock-go/interlock/middleware"
)

// Class says what kind of failure an attempt was, and so what follows. The zero value is no class. The table is checked
// against the code by a test.
//
//	class           | same again             | next                     | bench
//	canceled        | no                     | never                    | no
//	rate_limited    | twice                  | yes                      | 30 s or Retry-After
//	overloaded      | once                   | yes                      | 30 s or Retry-After
//	network         | once                   | yes                      | 30 s or Retry-After
//	timeout         | no                     | yes                      | 30 s or Retry-After
//	bad_response    | once                   | yes                      | 30 s or Retry-After
//	quota           | no                     | yes                      | 10 min
//	not_found       | no                     | yes                      | 10 min
//	auth            | no                     | only with AuthNext       | 10 min with AuthNext
//	context_length  | no                     | only to a larger Window  | no
//	content_filter  | no                     | never                    | no
//	invalid_request | no                     | no                       | no
//	unknown         | no                     | yes                      | 30 s or Retry-After
type Class uint8

// The classes.
const (
	_ Class = iota
	// ClassCanceled: the caller's context is done, or its StreamingFunc returned an error.
	ClassCanceled
	// ClassRateLimited: 429.
	ClassRateLimited
	// ClassOverloaded: 5xx, 408, 409.
	ClassOverloaded
	// ClassNetwork: refused, reset, DNS, TLS, unexpected end.
	ClassNetwork
	// ClassTimeout: a limit of the attempt's own while the caller is alive.
	ClassTimeout
	// ClassBadResponse: malformed, empty, truncated, cut tool calls, or the client panicked.
	ClassBadResponse
	// ClassQuota: money or quota is used up.
	ClassQuota
	// ClassNotFound: the provider does not know the model.
	ClassNotFound
	// ClassAuth: 401, 403.
	ClassAuth
	// ClassContextLength: the request is too long for the model.
	ClassContextLength
	// ClassContentFilter: a safety system refused, by error or by finish reason. A refusal is not routed around.
	ClassContentFilter
	// ClassInvalidRequest: other 400, 413, 422, or refused by the client before anything was sent.
	ClassInvalidRequest
	// ClassUnknown: anything else.
	ClassUnknown

	classEnd
)

type benchRule uint8

const (
	benchNever benchRule = iota
	benchShort           // or Retry-After, if that is longer
	benchLong
)

type moveRule uint8

const (
	moveNever moveRule = iota
	moveNext
	moveAuth
	moveLarger
)

type classRow struct {
	reason middleware.Reason // gives the name too
	move   moveRule
	again  int // how often the same candidate may be asked again in a call
	bench  benchRule
}

var classTable = [classEnd]classRow{ //nolint:gochecknoglobals // compiled table
	ClassCanceled:       {middleware.ReasonCanceled, moveNever, 0, benchNever},
	ClassRateLimited:    {middleware.ReasonRateLimited, moveNext, 2, benchShort},
	ClassOverloaded:     {middleware.ReasonOverloaded, moveNext, 1, benchShort},
	ClassNetwork:        {middleware.ReasonNetwork, moveNext, 1, benchShort},
	ClassTimeout:        {middleware.ReasonTimeout, moveNext, 0, benchShort},
	ClassBadResponse:    {middleware.ReasonBadResponse, moveNext, 1, benchShort},
	ClassQuota:          {middleware.ReasonQuota, moveNext, 0, benchLong},
	ClassNotFound:       {middleware.ReasonNotFound, moveNext, 0, benchLong},
	ClassAuth:           {middleware.ReasonAuth, moveAuth, 0, benchLong},
	ClassContextLength:  {middleware.ReasonContextLength, moveLarger, 0, benchNever},
	ClassContentFilter:  {middleware.ReasonContentFilter, moveNever, 0, benchNever},
	ClassInvalidRequest: {middleware.ReasonInvalidRequest, moveNever, 0, benchNever},
	ClassUnknown:        {middleware.ReasonUnknownError, moveNext, 0, benchShort},
}

// Classes returns the closed set, for tables and tests.
func Classes() []Class {
	all := make([]Class, 0, int(classEnd))
	for c := ClassCanceled; c < classEnd; c++ {
		all = append(all, c)
	}

	return all
}

func (c Class) valid() bool { return c > 0 && c < classEnd }

// Reason returns the code of the class in the common list; of no class, the code of ClassUnknown.
func (c Class) Reason() middleware.Reason {
	if !c.valid() {
		return middleware.ReasonUnknownError
	}

	return classTable[c].reason
}

// String returns the name of the class, or "invalid".
func (c Class) String() string {
	if !c.valid() {
		return middleware.Reason(0).String()
	}

	return classTable[c].reason.String()
}

// outcome is the class as telemetry counts attempts.
func (c Class) outcome() middleware.AttemptOutcome {
	switch c {
	case ClassCanceled:
		return middleware.OutcomeCanceled
	case ClassTimeout:
		return middleware.OutcomeTimeout
	default:
		return middleware.OutcomeError
	}
}

// classOf is the inverse of Reason, for failures of the library's own parts inside of an attempt.
func classOf(r middleware.Reason) Class {
	switch r {
	case middleware.ReasonPanic, middleware.ReasonInterrupted:
		return ClassBadResponse
	case middleware.ReasonCanceled:
		return ClassUnknown // the caller is alive: it was not the caller who canceled
	default:
	}
	for c := ClassCanceled; c < classEnd; c++ {
		if classTable[c].reason == r {
			return c
		}
	}

	return ClassUnknown
}
