package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func fixed(reason middleware.Reason) string {
	return "The tool failed (" + reason.String() + "). Nothing is known of a result. Do not repeat the call unchanged more than once."
}

// What a refused or failed call gives the executor: text for the model, or an
// error that ends the run. Each row for a read-only and for an effectful tool.
func TestWhatTheExecutorGets(t *testing.T) {
	t.Parallel()
	_, stranger := start(t, middleware.RunConfig{})
	refuse := func(v middleware.Verdict, c middleware.Component, r middleware.Reason, run ident.RunID) *middleware.Denial {
		return middleware.NewDenial(middleware.Refusal{Verdict: v, Component: c, Reason: r, Run: run, Cause: errSecret})
	}
	nudge := refuse(middleware.VerdictModify, middleware.ComponentWatchdog, middleware.ReasonLoop, ident.RunID{})
	type row struct {
		name      string
		err       func(own ident.RunID) error
		readOnly  string            // text for the model, "" for an error
		effectful string            // likewise
		reason    middleware.Reason // of the error of an effectful tool, if there is one
		text      bool              // ErrorText
	}
	always := func(err error) func(ident.RunID) error { return func(ident.RunID) error { return err } }
	failed, timeout := fixed(middleware.ReasonToolFailed), fixed(middleware.ReasonToolTimeout)
	for _, tc := range []row{
		{name: "soft denial", err: always(nudge), readOnly: nudge.Observation(), effectful: nudge.Observation()},
		{name: "soft denial, ErrorText", err: always(nudge), readOnly: nudge.Observation(), effectful: nudge.Observation(), text: true},
		{name: "tool error", err: always(errSecret), readOnly: failed, effectful: failed},
		{name: "tool error, ErrorText", err: always(errors.New("no such\norder")), readOnly: "no such order", effectful: "no such order", text: true},
		{name: "empty error, ErrorText", err: always(errors.New("")), readOnly: failed, effectful: failed, text: true},
		{name: "observable", err: always(observable{"try\tagain"}), readOnly: "try again", effectful: "try again"},
		{name: "wrapped observable", err: always(fmt.Errorf("%s: %w", secret, observable{"try"})), readOnly: "try", effectful: "try"},
		{name: "empty observable", err: always(observable{}), readOnly: failed, effectful: failed},
		{name: "own deadline", err: always(context.DeadlineExceeded), readOnly: timeout, reason: middleware.ReasonOutcomeUnknown},
		{
			name: "own deadline, ErrorText", err: always(fmt.Errorf("slow: %w", context.DeadlineExceeded)),
			readOnly: "slow: context deadline exceeded", reason: middleware.ReasonOutcomeUnknown, text: true,
		},
		{name: "own cancel", err: always(context.Canceled), readOnly: failed, reason: middleware.ReasonOutcomeUnknown},
		{
			name: "canceled nested call", err: always(middleware.NewFailure(middleware.ComponentModel, middleware.ReasonCanceled, ident.Label{}, context.Canceled)),
			readOnly: fixed(middleware.ReasonCanceled), reason: middleware.ReasonOutcomeUnknown,
		},
		{name: "panic", err: func(ident.RunID) error { panic(secret) }, reason: middleware.ReasonOutcomeUnknown},
		{name: "panic with a soft denial", err: func(ident.RunID) error { panic(nudge) }, reason: middleware.ReasonOutcomeUnknown},
		{name: "nested unknown outcome", err: always(fmt.Errorf("x: %w", middleware.NewFailure(
			middleware.ComponentTool, middleware.ReasonOutcomeUnknown, ident.Label{}))), reason: middleware.ReasonToolFailed},
		{name: "hard denial", err: always(refuse(0, middleware.ComponentWatchdog, middleware.ReasonLoop, ident.RunID{})), reason: middleware.ReasonLoop},
		{
			name: "hard denial of this run, wrapped",
			err: func(own ident.RunID) error {
				return fmt.Errorf("x: %w", refuse(0, middleware.ComponentWatchdog, middleware.ReasonLoop, own))
			},
			reason: middleware.ReasonToolFailed,
		},
		{
			name: "escalation", reason: middleware.ReasonHumanGate, text: true,
			err: always(refuse(middleware.VerdictEscalate, middleware.ComponentEscalation, middleware.ReasonHumanGate, ident.RunID{})),
		},
		{
			name:     "denial of another run",
			err:      always(refuse(0, middleware.ComponentWatchdog, middleware.ReasonLoop, stranger.ID())),
			readOnly: fixed(middleware.ReasonLoop), effectful: fixed(middleware.ReasonLoop), text: true,
		},
		{
			name: "admission's denial in another run", reason: middleware.ReasonAdmissionStopped,
			err: always(refuse(0, middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, stranger.ID())),
		},
		{
			name: "approval refused in another run", reason: middleware.ReasonApprovalRefused,
			err: always(refuse(0, middleware.ComponentApproval, middleware.ReasonApprovalRefused, stranger.ID())),
		},
		{
			name: "no run inside", reason: middleware.ReasonNoRun,
			err: always(refuse(0, middleware.ComponentRun, middleware.ReasonNoRun, ident.RunID{})),
		},
		{
			name: "wrong order in another run", reason: middleware.ReasonUnsafeOrder,
			err: always(refuse(0, middleware.ComponentChain, middleware.ReasonUnsafeOrder, stranger.ID())),
		},
		{
			name: "another run's denial first, admission's behind it", reason: middleware.ReasonToolFailed,
			err: always(errors.Join(
				refuse(0, middleware.ComponentWatchdog, middleware.ReasonLoop, stranger.ID()),
				refuse(0, middleware.ComponentAdmission, middleware.ReasonAdmissionStopped, stranger.ID()))),
		},
		{
			name: "a soft denial first, a hard one behind it", reason: middleware.ReasonToolFailed,
			err: func(own ident.RunID) error {
				return errors.Join(nudge, fmt.Errorf("x: %w", refuse(0, middleware.ComponentWatchdog, middleware.ReasonLoop, own)))
			},
		},
		{
			name: "nested tool's text", text: true, // its own registration does not release it
			err:      always(middleware.NewFailure(middleware.ComponentTool, middleware.ReasonToolFailed, ident.MustLabel("nested"), errSecret)),
			readOnly: failed, effectful: failed,
		},
		{
			name: "a layer's text", text: true,
			err:      always(middleware.NewFailure(middleware.ComponentWatchdog, middleware.ReasonDetectorFailed, ident.MustLabel("probe"), errSecret)),
			readOnly: fixed(middleware.ReasonDetectorFailed), effectful: fixed(middleware.ReasonDetectorFailed),
		},
		{name: "methods that panic", err: always(nasty{}), reason: middleware.ReasonOutcomeUnknown},
		{name: "methods that panic, ErrorText", err: always(loudPanic{}), reason: middleware.ReasonToolFailed, text: true},
	} {
		for effect, want := range map[middleware.Effect]string{middleware.ReadOnly: tc.readOnly, middleware.Effectful: tc.effectful} {
			t.Run(tc.name+"/"+effect.String(), func(t *testing.T) {
				t.Parallel()
				ctx, r := start(t, middleware.RunConfig{})
				w, err := middleware.WrapTool(plainTool{name: "probe", fn: func(context.Context, string) (string, error) {
					return secret, tc.err(r.ID())
				}}, middleware.ToolConfig{Effect: effect, ErrorText: tc.text})
				if err != nil {
					t.Fatal(err)
				}
				out, err := w.Call(ctx, secret)
				if out != want || (err == nil) != (want != "") {
					t.Fatalf("got %q, %v, want %q", out, err, want)
				}
				if err != nil && effect == middleware.Effectful && middleware.ReasonOf(err) != tc.reason {
					t.Errorf("got %v, want %v", err, tc.reason)
				}
				contentFree(t, err)
			})
		}
	}
}

// loudPanic is an error that cannot even be printed.
type loudPanic struct{}

func (loudPanic) Error() string { panic(secret) }

// A soft denial of a layer becomes its sentence, the tool is not called.
func TestLayersDenial(t *testing.T) {
	t.Parallel()
	nudge := middleware.NewDenial(middleware.Refusal{
		Verdict: middleware.VerdictModify, Component: middleware.ComponentBudget, Reason: middleware.ReasonBudgetExceeded,
	})
	w, err := middleware.WrapTool(plainTool{name: "probe", fn: func(context.Context, string) (string, error) {
		t.Error("the tool was called")

		return "", nil
	}}, middleware.ToolConfig{Chain: func(toolHandler) toolHandler { return failing(nudge) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := start(t, middleware.RunConfig{})
	if out, err := w.Call(ctx, ""); err != nil || out != nudge.Observation() {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := w.Do(ctx, "", ""); !errors.Is(err, middleware.ReasonBudgetExceeded) {
		t.Errorf("Do hides the denial: %v", err)
	}
}

func TestObservationOfADoneContext(t *testing.T) {
	t.Parallel()
	ctx, _ := start(t, middleware.RunConfig{})
	tool := newTool(t, middleware.ToolConfig{}, echo)
	if _, ok := tool.Observation(ctx, nil); ok {
		t.Error("no error is an observation")
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for _, err := range []error{
		errSecret, observable{"x"}, middleware.NewDenial(middleware.Refusal{Verdict: middleware.VerdictModify, Reason: middleware.ReasonLoop}),
	} {
		if text, ok := tool.Observation(ctx, err); !ok || text == "" {
			t.Errorf("%v: got %q, %v", err, text, ok)
		}
		if text, ok := tool.Observation(dead, err); ok || text != "" {
			t.Errorf("%v: a run under a dead context goes on: %q", err, text)
		}
	}
}

// The sentences that may reach a model are fixed: one per class, none with
// content, each names what can be done.
func TestObservationSentences(t *testing.T) {
	t.Parallel()
	for reason, want := range map[middleware.Reason]string{
		middleware.ReasonLoop:           "repeats earlier calls",
		middleware.ReasonBudgetExceeded: "limit for this run is reached",
		middleware.ReasonToolLimit:      "limit for this tool is reached",
		middleware.ReasonUnknownTool:    "there is no such tool",
		middleware.ReasonParked:         "refused (parked)",
	} {
		if got := middleware.NewDenial(middleware.Refusal{Reason: reason}).Observation(); !strings.Contains(got, want) {
			t.Errorf("%v: %q", reason, got)
		}
	}
}

func released(tb testing.TB, text string) string {
	tb.Helper()
	got, ok := newTool(tb, middleware.ToolConfig{}, echo).Observation(tb.Context(), observable{text})
	if !ok {
		tb.Fatal("not released")
	}

	return got
}

func TestReleasedText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"short", "no such order", "no such order"},
		{"control characters", "a\nb\r\nc\td\x00e\x1b[31mf\u0085g\x7f", "a b  c d e [31mf g "},
		{"not UTF-8", "a\xffb", "a?b"},
		{"exactly 4 KiB", strings.Repeat("a", 4096), strings.Repeat("a", 4096)},
		{"one byte more", strings.Repeat("a", 4097), strings.Repeat("a", 4096)},
		{"two-byte runes", strings.Repeat("é", 3000), strings.Repeat("é", 2048)},
		{"two-byte runes, odd", "a" + strings.Repeat("é", 3000), "a" + strings.Repeat("é", 2047)},
		{"three-byte runes", strings.Repeat("語", 2000), strings.Repeat("語", 1365)},
		{"four-byte runes, shifted", "abc" + strings.Repeat("🙂", 2000), "abc" + strings.Repeat("🙂", 1023)},
		{"continuation bytes only", strings.Repeat("\x80", 5000), "?"},
	} {
		if got := released(t, tc.in); got != tc.want {
			t.Errorf("%s: %d bytes %.20q…, want %d bytes", tc.name, len(got), got, len(tc.want))
		}
	}
}

func FuzzReleasedText(f *testing.F) {
	for _, seed := range []string{"a", "a\nb", "\xff", strings.Repeat("語", 1366), strings.Repeat("a", 4095) + "🙂", "\u2028", strings.Repeat("\x80", 4100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if in == "" {
			return
		}
		got := released(t, in)
		if len(got) > 4096 || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("got %q", got)
		}
		if !utf8.ValidString(in) || strings.ContainsFunc(in, unicode.IsControl) {
			return
		}
		if !strings.HasPrefix(in, got) || (len(in) <= 4096 && got != in) || (len(in) > 4096 && len(got) <= 4096-utf8.UTFMax) {
			t.Errorf("%d bytes became %d", len(in), len(got))
		}
	})
}
