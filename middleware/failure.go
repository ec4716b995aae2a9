package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/ident"
)

// Reasoned is implemented by every error of the library: its text is
// content-free and its reason is one of the closed list. An error that does not
// implement it is wrapped before it leaves an adapter.
type Reasoned interface {
	error
	Reason() Reason
}

// Failure is an error of a part of the library that is not a refusal: something
// was tried and went wrong. It is immutable.
type Failure struct {
	component Component
	reason    Reason
	label     ident.Label
	causes    *[]error // behind a pointer: a dump of the structure does not show them
}

var _ Reasoned = (*Failure)(nil)

// NewFailure returns a failure. The causes are reachable by errors.Is and
// errors.As; their text is not rendered. nil causes are dropped.
func NewFailure(c Component, r Reason, label ident.Label, causes ...error) *Failure {
	f := &Failure{component: c, reason: r, label: label}
	var kept []error
	for _, cause := range causes {
		if cause != nil {
			kept = append(kept, cause)
		}
	}
	if kept != nil {
		f.causes = &kept
	}

	return f
}

// Component returns the part that failed.
func (f *Failure) Component() Component { return f.component }

// Reason returns what went wrong.
func (f *Failure) Reason() Reason { return f.reason }

// Label returns the registered name of the tool or model, zero if there is none.
func (f *Failure) Label() ident.Label { return f.label }

// Error returns component, label and reason.
func (f *Failure) Error() string {
	s := "interlock: " + f.component.String()
	if !f.label.IsZero() {
		s += " " + f.label.String()
	}

	return s + ": " + f.reason.String()
}

// Format prints Error for every verb and flag, so that none shows a cause.
func (f *Failure) Format(s fmt.State, _ rune) { printError(s, f) }

// Unwrap returns the causes.
func (f *Failure) Unwrap() []error {
	if f.causes == nil {
		return nil
	}

	return *f.causes
}

// Is reports whether target is the reason of f.
func (f *Failure) Is(target error) bool { return isReason(target, f.reason) }

// PanicError is a panic that was turned into an error. Its text does not
// contain the panic's value, which may hold content.
type PanicError struct{ p *panicked } // behind a pointer: a dump does not show it

type panicked struct {
	value any
	stack []byte
}

var _ Reasoned = (*PanicError)(nil)

// NewPanicError wraps a recovered value. stack may be nil.
func NewPanicError(value any, stack []byte) *PanicError {
	return &PanicError{p: &panicked{value: value, stack: stack}}
}

func (p *PanicError) get() panicked {
	if p.p == nil {
		return panicked{}
	}

	return *p.p
}

// Value returns what was given to panic. It may hold content.
func (p *PanicError) Value() any { return p.get().value }

// Stack returns the stack trace of the panicking goroutine. It holds paths of
// the machine and addresses.
func (p *PanicError) Stack() []byte { return p.get().stack }

// Reason returns ReasonPanic.
func (p *PanicError) Reason() Reason { return ReasonPanic }

// Error returns a fixed text.
func (p *PanicError) Error() string { return "interlock: panic" }

// Format prints Error for every verb and flag, so that none shows the value.
func (p *PanicError) Format(s fmt.State, _ rune) { printError(s, p) }

// Unwrap returns the value if it is an error, else nil.
func (p *PanicError) Unwrap() error {
	err, _ := p.get().value.(error)

	return err
}

// Is reports whether target is ReasonPanic.
func (p *PanicError) Is(target error) bool { return isReason(target, ReasonPanic) }

// NewCanceled returns the failure for a call whose context is done: errors.Is
// finds the context's error and its cause, and also err, what the callee
// returned (several clients hide that a call was canceled).
func NewCanceled(ctx context.Context, c Component, label ident.Label, err error) *Failure {
	cause := context.Cause(ctx)
	if cause == ctx.Err() { //nolint:errorlint // the same error; a cause that wraps it is one of its own
		cause = nil
	}

	return NewFailure(c, ReasonCanceled, label, ctx.Err(), cause, err)
}

func printError(s fmt.State, err error) { _, _ = io.WriteString(s, err.Error()) }

// ReasonOf returns the reason that err carries, or 0: of the outermost error of
// the library in its chain.
func ReasonOf(err error) Reason {
	if r, ok := errors.AsType[Reasoned](err); ok {
		return r.Reason()
	}
	if r, ok := errors.AsType[Reason](err); ok {
		return r
	}

	return 0
}
