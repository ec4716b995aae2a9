package middleware_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/middleware"
)

// total checks all 256 values of an enum: the members of its closed set have
// unique, well-formed names, everything else renders as invalid.
func total[E interface {
	~uint8
	fmt.Stringer
}](t *testing.T, all []E, zero string) {
	t.Helper()
	wellFormed := regexp.MustCompile(`^([a-z][a-z0-9]*(_[a-z0-9]+)*|_OTHER)$`)
	names := map[string]bool{}
	for v := range 256 {
		e := E(v)
		name := e.String()
		if !slices.Contains(all, e) {
			if name != "invalid" {
				t.Errorf("%T(%d) is outside of the set and renders %q", e, v, name)
			}

			continue
		}
		if name == "invalid" || names[name] || !wellFormed.MatchString(name) {
			t.Errorf("%T(%d) renders %q", e, v, name)
		}
		names[name] = true
	}
	if len(names) != len(all) || !slices.IsSorted(all) {
		t.Errorf("%T: %d names for %d members", all, len(names), len(all))
	}
	if got := E(0).String(); got != zero {
		t.Errorf("%T: the zero value renders %q, want %q", all, got, zero)
	}
}

func TestEnumsAreTotal(t *testing.T) {
	t.Parallel()
	total(t, middleware.Components(), "invalid")
	total(t, middleware.Verdicts(), "invalid")
	total(t, middleware.Actions(), "invalid")
	total(t, middleware.AttemptOutcomes(), "invalid")
	total(t, middleware.CircuitStates(), "invalid")
	total(t, middleware.FailModes(), "closed") // the most restrictive one
	total(t, middleware.FailureClasses(), "invalid")
	total(t, middleware.FinishReasons(), "invalid")
	total(t, middleware.ErrorTypes(), "invalid")
	total(t, middleware.Reasons(), "invalid")
	total(t, middleware.Effects(), "effectful") // the most restrictive one
	total(t, middleware.SignalKinds(), "invalid")
	total(t, middleware.Stages(), "invalid")
	total(t, middleware.Ops(), "invalid")
	total(t, middleware.GaugeKinds(), "invalid")
}

func TestParseReason(t *testing.T) {
	t.Parallel()
	for _, r := range middleware.Reasons() {
		if got, ok := middleware.ParseReason(r.String()); !ok || got != r {
			t.Errorf("%v came back as %v, %v", r, got, ok)
		}
		if r.Error() != "interlock: "+r.String() {
			t.Error(r.Error())
		}
	}
	for _, code := range []string{"", "invalid", "Loop", "loop ", secret} {
		if r, ok := middleware.ParseReason(code); ok || r != 0 {
			t.Errorf("%q is %v", code, r)
		}
	}
}

// Each reason has an error type by decision: one that is not listed here must
// not fall to _OTHER or to success by accident.
func TestReasonErrorTypes(t *testing.T) {
	t.Parallel()
	success := []middleware.Reason{middleware.ReasonOK, middleware.ReasonAdmissionEnabled, middleware.ReasonRecovered}
	other := []middleware.Reason{
		middleware.ReasonNilHandler, middleware.ReasonUnsafeOrder, middleware.ReasonNoRun, middleware.ReasonRunEnded,
		middleware.ReasonUnknownWorkflow, middleware.ReasonInvalidRunState, middleware.ReasonModelFailed, middleware.ReasonInvalidConfig,
		middleware.ReasonAlreadyWrapped, middleware.ReasonDuplicateTool, middleware.ReasonDuplicateLabel, middleware.ReasonInvalidLabel,
		middleware.ReasonInvalidThreshold, middleware.ReasonInvalidTimestamp, middleware.ReasonInvalidDigest, middleware.ReasonInvalidClass,
		middleware.ReasonFailureCounted, middleware.ReasonLowConfidence, middleware.ReasonHumanGate, middleware.ReasonSafetyReview,
		middleware.ReasonInvalidHandoff, middleware.ReasonHandoffExpired, middleware.ReasonHandoffFuture, middleware.ReasonSinkFailed,
		middleware.ReasonUnknownHandoff, middleware.ReasonHandoffDecided, middleware.ReasonInvalidDecision, middleware.ReasonQueueUnreadable,
		middleware.ReasonQueueBusy, middleware.ReasonQueueFull, middleware.ReasonQueueFailed,
		middleware.ReasonGuardrail, middleware.ReasonDuplicateAction, middleware.ReasonActionFailed, middleware.ReasonContextDrift,
		middleware.ReasonContextFull, middleware.ReasonSummaryFailed,
		middleware.ReasonTrial, middleware.ReasonProfileChanged, middleware.ReasonInvalidLimit,
		middleware.ReasonRegression, middleware.ReasonCustomDetector, middleware.ReasonDetectorFailed,
		middleware.ReasonUnknownError, middleware.ReasonBenched, middleware.ReasonProbe, middleware.ReasonIneligible,
		middleware.ReasonUnknownProvider, middleware.ReasonKeyAmbiguous, middleware.ReasonKeyMissing, middleware.ReasonAgentFailed,
	}
	used := map[middleware.ErrorType]bool{}
	for _, r := range middleware.Reasons() {
		got := r.ErrorType()
		used[got] = true
		if (got == 0) != slices.Contains(success, r) || (got == middleware.ErrorOther) != slices.Contains(other, r) {
			t.Errorf("%v is %v: decide on its error type, then list it here if that is success or _OTHER", r, got)
		}
	}
	for _, e := range middleware.ErrorTypes() {
		if !used[e] {
			t.Errorf("no reason is of type %v", e)
		}
	}
	if middleware.Reason(0).ErrorType() != 0 || middleware.Reason(255).ErrorType() != middleware.ErrorOther {
		t.Error("values outside of the set")
	}
	for r, want := range map[middleware.Reason]middleware.ErrorType{
		middleware.ReasonAdmissionStopped: middleware.ErrorAdmissionDenied, middleware.ReasonApprovalRequired: middleware.ErrorAdmissionDenied,
		middleware.ReasonToolTimeout: middleware.ErrorTimeout, middleware.ReasonAbandoned: middleware.ErrorOutcomeUnknown,
		middleware.ReasonQuota: middleware.ErrorProviderRateLimit, middleware.ReasonAuth: middleware.ErrorProviderRejected,
	} {
		if got := r.ErrorType(); got != want {
			t.Errorf("%v is %v, want %v", r, got, want)
		}
	}
}
