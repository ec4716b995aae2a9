package admission

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// What errors.Is finds in the refusals and failures of this package.
var (
	// ErrDisabled: nobody has enabled this workflow, nor all of them.
	ErrDisabled error = middleware.ReasonAdmissionDisabled
	// ErrStopped: the workflow, or all of them, were stopped.
	ErrStopped error = middleware.ReasonAdmissionStopped
	// ErrStaleGeneration: something was recorded since the preview was taken, or
	// since the head was read that an enable is based on.
	ErrStaleGeneration error = middleware.ReasonStaleGeneration
	// ErrUntrustedState: what is stored cannot be trusted, or not be read.
	ErrUntrustedState error = middleware.ReasonUntrustedState
	// ErrStoreBusy: somebody held the store locked for longer than the bound.
	ErrStoreBusy error = middleware.ReasonStoreBusy
	// ErrInvalidScope: neither global nor a workflow.
	ErrInvalidScope error = middleware.ReasonInvalidScope
	// ErrInvalidTransition: the transition does not exist.
	ErrInvalidTransition error = middleware.ReasonInvalidTransition
	// ErrInvalidTime: the clock is outside of what a receipt holds.
	ErrInvalidTime error = middleware.ReasonInvalidTime
	// ErrInvalidKey: the key is too short, too long or all equal bytes.
	ErrInvalidKey error = middleware.ReasonInvalidKey
	// ErrUnreadableKey: the key file is missing, not a regular file, or open to others.
	ErrUnreadableKey error = middleware.ReasonUnreadableKey
	// ErrInvalidAnchor: the anchor's path, folder or file system is refused.
	ErrInvalidAnchor error = middleware.ReasonInvalidAnchor
	// ErrStoreFailed: a commit failed, and nothing changed.
	ErrStoreFailed error = middleware.ReasonStoreFailed
	// ErrAlreadyInitialized: a file exists where a new one was to be made.
	ErrAlreadyInitialized error = middleware.ReasonAlreadyInitialized
	// ErrNotConfigured: there is no store.
	ErrNotConfigured error = middleware.ReasonNotConfigured
	// ErrInvalidControlMetadata: a role or reason outside of the closed lists.
	ErrInvalidControlMetadata error = middleware.ReasonInvalidControlMetadata
)

var errNilStore = errors.New("admission: Config.Store is a nil *SQLiteStore; leave it out for a disabled controller")

// Config configures a [Controller].
type Config struct {
	// Store holds the receipts. The controller does not close it. Default none:
	// the controller is disabled, and stays so.
	Store Store
	// Approver decides about each effect before the gate does; it is asked by
	// [Controller.Approvals]. Default none: no approvals are needed. With one, the
	// gate refuses every call that did not come through that layer, and so does
	// [Dispatch]: approvals are of tool calls. Effects that need none go through
	// another controller over the same store.
	Approver Approver
	// Observer hears one decision for each effect, allowed or refused. Default
	// none.
	Observer middleware.Observer
	// Now is the clock for receipts and durations. Default time.Now.
	Now func() time.Time
}

// Controller answers whether a workflow may act now. It is safe for concurrent
// use. A nil *Controller, and one without a store, is disabled: it refuses
// every effect with admission_disabled.
type Controller struct {
	store     Store
	approvals *approvals // nil: none are needed
	observer  middleware.Observer
	now       func() time.Time
	flying    inflight
	known     known
}

var (
	_ middleware.Previewer   = (*Controller)(nil)
	_ middleware.GaugeSource = (*Controller)(nil)
	_ Checker                = (*Controller)(nil)
)

// New returns a controller over cfg.Store. It reads nothing: what is wrong with
// a store shows in [Controller.Status] and at every check. It fails if Store is
// a nil pointer, which is a mistake and not "no store".
func New(cfg Config) (*Controller, error) {
	if s, ok := cfg.Store.(*SQLiteStore); ok && s == nil {
		return nil, errNilStore
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}

	return &Controller{store: cfg.Store, approvals: newApprovals(cfg.Approver), observer: cfg.Observer, now: cfg.Now}, nil
}

// Code returns the reason code that err carries, as command output spells it;
// "" if err is nil or not of the library, whose text may then be content.
func Code(err error) string {
	if r := middleware.ReasonOf(err); r != 0 {
		return r.String()
	}

	return ""
}

// fail returns the error of an operation that was not a call of an agent.
func fail(r middleware.Reason, cause error) error {
	return middleware.NewFailure(middleware.ComponentAdmission, r, ident.Label{}, cause)
}
