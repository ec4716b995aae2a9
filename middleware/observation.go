package middleware

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/ident"
)

// Observable is an error whose text its author releases to the model: what
// Observation returns is given to the agent as the tool's result.
type Observable interface {
	error
	Observation() string
}

// Observation decides what an agent's executor gets for an error of Do, when
// that executor ends its run at any error of a tool, as langchaingo's does. It
// returns the text for the model and true, or false if the run has to end:
//
//   - a soft denial: its fixed sentence;
//   - an error of the tool: a fixed sentence with its class, or its text where
//     the developer released it ([Observable], ToolConfig.ErrorText);
//   - a denial of another run (a nested agent's), admission's excepted: as an
//     error of the tool;
//   - an unknown outcome, a panic, a hard denial, an ended run, a done context:
//     false. Whether the context is done is asked of ctx, never of the error: a
//     tool that ran out of its own time, or canceled its own work, is an error
//     of the tool.
func (t *GuardedTool) Observation(ctx context.Context, err error) (text string, told bool) {
	defer func() {
		if recover() != nil { // errors have methods of the tool's author
			text, told = "", false
		}
	}()
	reason := ReasonOf(err)
	if err == nil || ctx.Err() != nil || reason == ReasonPanic || errors.Is(err, ReasonOutcomeUnknown) {
		return "", false
	}
	if d, ok := errors.AsType[*Denial](err); ok {
		if run := RunFrom(ctx).ID(); stops(run, d) || stops(run, err) {
			return "", false
		}
		if d.Soft() {
			return d.Observation(), true
		}
	}
	switch reason {
	case ReasonUnsafeOrder, ReasonNilHandler, ReasonNoRun:
		return "", false // of a nested run too: somebody has to repair it
	case 0:
		reason = ReasonToolFailed
	default:
	}
	if text, ok := t.released(err); ok {
		return text, true
	}

	return "The tool failed (" + reason.String() + "). Nothing is known of a result. " +
		"Do not repeat the call unchanged more than once.", true
}

// stops reports whether err holds a hard denial that run has to end for. A tool
// may join several; those below a denial were that one's to judge.
func stops(run ident.RunID, err error) bool {
	switch e := err.(type) { //nolint:errorlint // this walks the chain itself
	case *Denial:
		foreign := !e.Run().IsZero() && e.Run() != run

		return !e.Soft() && (!foreign || e.Component() == ComponentAdmission || e.Component() == ComponentApproval)
	case interface{ Unwrap() error }:
		return stops(run, e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return stops(run, err) })
	default:
		return false
	}
}

// released returns the error text that the developer lets the model see: of
// this tool's own errors, not what a layer or a tool of a nested agent keeps.
func (t *GuardedTool) released(err error) (string, bool) {
	if _, denied := errors.AsType[*Denial](err); denied {
		return "", false
	}
	if o, ok := errors.AsType[Observable](err); ok {
		text := cleanText(o.Observation())

		return text, text != "" // an empty result is invalid on some wires
	}
	if !t.cfg.ErrorText {
		return "", false
	}
	f, ok := err.(*Failure) //nolint:errorlint // the adapter's own wrapping
	if !ok || f.component != ComponentTool || f.label != t.cfg.Label || len(f.Unwrap()) == 0 {
		return "", false
	}
	text := cleanText(f.Unwrap()[0].Error())

	return text, text != ""
}

const maxErrorText = 4096

// cleanText bounds text that a developer releases to the model: whole runes,
// at most 4 KiB, control characters (line ends too: they are syntax for textual
// agents) as spaces.
func cleanText(s string) string {
	if len(s) > maxErrorText {
		end := maxErrorText
		for end > maxErrorText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}

	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}

		return r
	}, strings.ToValidUTF8(s, "?"))
}
