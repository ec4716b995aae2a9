package fallback

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Attempt is one line of the account of a call. It holds no content.
type Attempt struct {
	Candidate ident.Label
	Provider  Provider
	// Class of the failure; zero for the attempt that answered.
	Class Class
	// Status is the HTTP status, where it is known, else 0.
	Status int
	// Duration of the attempt, or of the wait for a shared one.
	Duration time.Duration
	// Limit that ended it, with ClassTimeout; zero if none did.
	Limit Limit
	// InputTokens and OutputTokens are the provider's count, 0 if it is not known.
	InputTokens, OutputTokens int
	// Shared: another call's probe failed on behalf of this one.
	Shared bool
}

// hidden is the content of an error. It is behind a pointer, so that no dump of the structure shows it.
type hidden struct {
	text   string
	causes []error
}

func hide(text string, causes ...error) *hidden {
	h := &hidden{text: text}
	for _, c := range causes {
		if c != nil {
			h.causes = append(h.causes, c)
		}
	}

	return h
}

func (h *hidden) unwrap() []error {
	if h == nil {
		return nil
	}

	return h.causes
}

// CandidateError is the failure of one candidate that is returned: it is not moved on from, or there is no other.
type CandidateError struct {
	attempt Attempt
	hidden  *hidden
}

var _ middleware.Reasoned = (*CandidateError)(nil)

// Candidate returns the label of the candidate that failed.
func (e *CandidateError) Candidate() ident.Label { return e.attempt.Candidate }

// Class returns what kind of failure it was.
func (e *CandidateError) Class() Class { return e.attempt.Class }

// Attempt returns the attempt that failed.
func (e *CandidateError) Attempt() Attempt { return e.attempt }

// Reason returns the code of the class.
func (e *CandidateError) Reason() middleware.Reason { return e.attempt.Class.Reason() }

// Error returns label and class.
func (e *CandidateError) Error() string {
	return "interlock: fallback: " + e.attempt.Candidate.String() + ": " + e.attempt.Class.String()
}

// Format prints Error for every verb and flag, so that none shows a cause.
func (e *CandidateError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns what the client returned and, if the caller canceled, its context's error and cause. Their texts are
// content.
func (e *CandidateError) Unwrap() []error { return e.hidden.unwrap() }

// Is reports whether target is the reason of e.
func (e *CandidateError) Is(target error) bool { return isReason(target, e.Reason()) }

// ExhaustedError says that nobody is left to ask.
type ExhaustedError struct {
	attempts []Attempt
	causes   []error
}

var _ middleware.Reasoned = (*ExhaustedError)(nil)

// Attempts returns a copy of the account, in order.
func (e *ExhaustedError) Attempts() []Attempt { return append([]Attempt(nil), e.attempts...) }

// Reason returns ReasonExhausted.
func (e *ExhaustedError) Reason() middleware.Reason { return middleware.ReasonExhausted }

// Error returns label and class of every attempt.
func (e *ExhaustedError) Error() string {
	var b strings.Builder
	b.WriteString("interlock: fallback: exhausted")
	for i, a := range e.attempts {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + a.Candidate.String() + " " + a.Class.String())
	}

	return b.String()
}

// Format prints Error for every verb and flag, so that none shows a cause.
func (e *ExhaustedError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns a [CandidateError] for every attempt, with what its client returned as cause.
func (e *ExhaustedError) Unwrap() []error { return e.causes }

// Is reports whether target is ReasonExhausted.
func (e *ExhaustedError) Is(target error) bool { return isReason(target, middleware.ReasonExhausted) }

// InterruptedError says that an answer broke off after text of it had reached the caller. The call was not moved to
// another candidate: the caller decides what to do with half an answer.
type InterruptedError struct {
	attempt Attempt
	chunks  int
	hidden  *hidden
}

var _ middleware.Reasoned = (*InterruptedError)(nil)

// Candidate returns the label of the candidate whose answer broke off.
func (e *InterruptedError) Candidate() ident.Label { return e.attempt.Candidate }

// Class returns what kind of failure broke it off.
func (e *InterruptedError) Class() Class { return e.attempt.Class }

// Chunks returns how many chunks of text were delivered.
func (e *InterruptedError) Chunks() int { return e.chunks }

// Bytes returns how many bytes of text were delivered.
func (e *InterruptedError) Bytes() int { return len(e.Text()) }

// Text returns the text that was delivered. It is content.
func (e *InterruptedError) Text() string {
	if e.hidden == nil {
		return ""
	}

	return e.hidden.text
}

// Attempt returns the attempt that broke off.
func (e *InterruptedError) Attempt() Attempt { return e.attempt }

// Reason returns ReasonInterrupted.
func (e *InterruptedError) Reason() middleware.Reason { return middleware.ReasonInterrupted }

// Error returns label, class and counts.
func (e *InterruptedError) Error() string {
	return "interlock: fallback: " + e.attempt.Candidate.String() + ": interrupted after " + strconv.Itoa(e.chunks) +
		" chunks: " + e.attempt.Class.String()
}

// Format prints Error for every verb and flag, so that none shows a cause or the text.
func (e *InterruptedError) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, e.Error()) }

// Unwrap returns what the client returned, if it returned an error.
func (e *InterruptedError) Unwrap() []error { return e.hidden.unwrap() }

// Is reports whether target is ReasonInterrupted or the reason of the class.
func (e *InterruptedError) Is(target error) bool {
	return isReason(target, middleware.ReasonInterrupted) || isReason(target, e.attempt.Class.Reason())
}

func isReason(target error, r middleware.Reason) bool {
	t, ok := target.(middleware.Reason) //nolint:errorlint // Is is asked per link of the chain

	return ok && t == r && r != 0
}

// rejectedError is a response that a check of the user rejected.
type rejectedError struct{ hidden *hidden }

var _ middleware.Reasoned = (*rejectedError)(nil)

func (e *rejectedError) Error() string { return "interlock: fallback: response: rejected by a check" }

func (e *rejectedError) Reason() middleware.Reason { return middleware.ReasonBadResponse }

func (e *rejectedError) Is(target error) bool { return isReason(target, middleware.ReasonBadResponse) }

func (e *rejectedError) Unwrap() []error { return e.hidden.unwrap() }

// configError is what New returns.
type configError struct {
	field  string
	text   string
	reason middleware.Reason
}

var _ middleware.Reasoned = (*configError)(nil)

func invalid(field string, reason middleware.Reason, text string) error {
	return &configError{field: field, text: text, reason: reason}
}

func (e *configError) Error() string { return "interlock: fallback: " + e.field + ": " + e.text }

func (e *configError) Reason() middleware.Reason { return e.reason }

func (e *configError) Is(target error) bool { return isReason(target, e.reason) }

// responseError is a response that a client called a success and that is none. It holds no content.
type responseError struct {
	what  string // a word of this source
	class Class
}

var _ middleware.Reasoned = (*responseError)(nil)

func (e *responseError) Error() string { return "interlock: fallback: response: " + e.what }

func (e *responseError) Reason() middleware.Reason { return e.class.Reason() }

func (e *responseError) Is(target error) bool { return isReason(target, e.class.Reason()) }
