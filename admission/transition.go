package admission

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

const defaultTransitionTimeout = 5 * time.Second

// Transition is what an operator asks for.
type Transition struct {
	// Scope that changes. Required.
	Scope Scope
	// Role is recorded as asserted. Default IncidentCommander for a stop,
	// Operator for an enable.
	Role Role
	// Reason is recorded. Default EmergencyStop for a stop, where Maintenance is
	// the other one, and ExplicitEnable, the only one, for an enable.
	Reason TransitionReason
}

// Stop stops a scope, from any state. When it returns nil, every check that
// begins afterwards refuses, in any process of the host; effects that have begun
// are not recalled (see [Controller.Drain]). It waits for locks until ctx is
// done, 5 s without a deadline, and on store_busy admission may still be open.
//
// Errors are a [middleware.Failure] with not_configured, untrusted_state,
// store_busy, store_failed, invalid_scope, invalid_transition, invalid_time,
// invalid_control_metadata or canceled. Nothing changed then.
func (c *Controller) Stop(ctx context.Context, t Transition) (Status, error) {
	if t.Role == 0 {
		t.Role = IncidentCommander
	}
	if t.Reason == 0 {
		t.Reason = EmergencyStop
	}

	return c.transition(ctx, t, Stopped)
}

// Enable enables a scope. It is a fresh act: a preview taken before it stays
// stale, and a stop that was recorded between reading the store and writing to
// it makes it stale_generation, so that whoever enables knows of the stop.
// While all is stopped a workflow cannot be enabled: admission_stopped. Other
// errors are those of [Controller.Stop].
func (c *Controller) Enable(ctx context.Context, t Transition) (Status, error) {
	if t.Role == 0 {
		t.Role = Operator
	}
	if t.Reason == 0 {
		t.Reason = ExplicitEnable
	}

	return c.transition(ctx, t, Enabled)
}

func (c *Controller) transition(ctx context.Context, t Transition, to State) (Status, error) {
	if c == nil || c.store == nil {
		return Status{}, fail(middleware.ReasonNotConfigured, nil)
	}
	if err := t.check(); err != nil {
		return Status{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTransitionTimeout)
		defer cancel()
	}
	for {
		status, err := c.attempt(ctx, t, to)
		if err == nil {
			return status, nil
		}
		switch middleware.ReasonOf(err) {
		case middleware.ReasonStoreBusy, middleware.ReasonCanceled:
		case middleware.ReasonStaleGeneration:
			if to != Stopped {
				return Status{}, err
			}
		default:
			return Status{}, err
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return Status{}, canceled(ctx)
		}
		if ctx.Err() != nil {
			return Status{}, fail(middleware.ReasonStoreBusy, err)
		}
	}
}

// attempt makes the transition once, on the head of this moment.
func (c *Controller) attempt(ctx context.Context, t Transition, to State) (Status, error) {
	r := c.read(ctx)
	if r.view == nil {
		return Status{}, fail(r.reason, r.cause)
	}
	if reason := r.view.permit(t.Scope, to, t.Reason); reason != 0 {
		return Status{}, fail(reason, nil)
	}
	now := c.now().Unix()
	if now < 0 {
		return Status{}, fail(middleware.ReasonInvalidTime, nil)
	}
	receipt, err := c.append(ctx, r.view.head, Entry{Scope: t.Scope, State: to, Role: t.Role, Reason: t.Reason, Time: now})
	if err != nil {
		return Status{}, err
	}
	head := Head{Generation: receipt.Generation, Digest: receipt.Digest()}
	if head.Generation <= r.view.head.Generation {
		return Status{}, fail(middleware.ReasonUntrustedState, nil)
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.raise(head) // a later check cannot see less
	if t.Scope.IsGlobal() {
		c.known.last = to.reason()
	}

	return Status{Scope: t.Scope, State: to, Reason: to.reason(), Generation: head.Generation, Digest: head.Digest}, nil
}

func (c *Controller) append(ctx context.Context, after Head, e Entry) (r Receipt, err error) {
	defer containStore(&err)

	if r, err = c.store.Append(ctx, after, e); err != nil && middleware.ReasonOf(err) == 0 {
		err = fail(middleware.ReasonStoreFailed, err)
	}

	return r, err
}

func (t Transition) check() error {
	if t.Scope.IsZero() {
		return fail(middleware.ReasonInvalidScope, nil)
	}
	if t.Role.String() == invalid || t.Reason.String() == invalid {
		return fail(middleware.ReasonInvalidControlMetadata, nil)
	}

	return nil
}
