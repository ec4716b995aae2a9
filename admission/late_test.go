package admission_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/middleware"
)

// lateContext is out of time from its n-th question on.
type lateContext struct {
	context.Context //nolint:containedctx // this is a context

	left atomic.Int64
}

func late(ctx context.Context, n int) *lateContext {
	c := &lateContext{Context: ctx}
	c.left.Store(int64(n))

	return c
}

func (c *lateContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}

	return nil
}

func (c *lateContext) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

// Time may run out at any point of a transition. The store is not to blame:
// the answer is that it could not be done in time, or that it was done.
func TestTimeRunsOut(t *testing.T) {
	t.Parallel()
	d := newStore(t)
	enable(t, d.controller(t), admission.Global())
	for n := range 40 {
		c := d.controller(t)
		before := c.Status(t.Context(), admission.Global())
		_, err := c.Stop(late(t.Context(), n), admission.Transition{Scope: admission.Global()})
		after := d.controller(t).Status(t.Context(), admission.Global())
		switch middleware.ReasonOf(err) {
		case 0:
			if after.State != admission.Stopped || after.Generation <= before.Generation {
				t.Errorf("after %d questions: a stop that returned was not recorded: %v", n, after)
			}
		case middleware.ReasonStoreBusy, middleware.ReasonCanceled:
			if after.Generation != before.Generation {
				t.Errorf("after %d questions: %v, but it was recorded", n, err)
			}
		default:
			t.Errorf("after %d questions: %v", n, err)
		}
		if got := c.Status(late(t.Context(), n), admission.Global()).Reason; got == middleware.ReasonUntrustedState {
			t.Errorf("a check that ran out of time after %d questions distrusts the store", n)
		}
	}
}
