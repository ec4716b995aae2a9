package admission

import (
	"context"
	"sync"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// pageSize is how many receipts are asked for at once.
const pageSize = 1000

// Status is the answer about one scope at one moment.
type Status struct {
	Scope Scope
	// State is what checks of the scope go by; Stopped whenever it is not known.
	State State
	// Reason is admission_enabled, _disabled or _stopped, or why the state is not
	// known: untrusted_state, store_busy, canceled, invalid_scope.
	Reason middleware.Reason
	// Generation of the head; if the state is not known, the highest that is.
	Generation uint64
	// Digest of the head; zero if the state is not known.
	Digest ident.Digest
}

// known is what a controller has seen.
type known struct {
	mu   sync.Mutex
	view *view // of the last verified head; never changed, only replaced
	mark Head  // the highest head that was seen or proven
	last middleware.Reason
	seq  uint64
}

// reading is the outcome of reading the store once. view is nil if reason says
// why there is no state that may be trusted.
type reading struct {
	view       *view
	reason     middleware.Reason
	generation uint64
	cause      error
}

// Status returns the state of a scope. It reads the store, as a check does.
func (c *Controller) Status(ctx context.Context, scope Scope) Status {
	if scope.IsZero() {
		return Status{State: Stopped, Reason: middleware.ReasonInvalidScope}
	}
	r := c.read(ctx)
	if r.view == nil {
		return Status{Scope: scope, State: Stopped, Reason: r.reason, Generation: r.generation}
	}

	return statusOf(r.view, scope)
}

func statusOf(v *view, scope Scope) Status {
	s := v.state(scope)

	return Status{Scope: scope, State: s, Reason: s.reason(), Generation: v.head.Generation, Digest: v.head.Digest}
}

// Preview returns under which authority the workflow may act now. It is opaque:
// a check compares workflow, generation and receipt digest with the head of that
// moment. Of a workflow that may not act it is a [middleware.Denial] with the
// code; of the zero WorkflowID, invalid_scope.
func (c *Controller) Preview(ctx context.Context, workflow ident.WorkflowID) (middleware.Preview, error) {
	if workflow.IsZero() {
		return middleware.Preview{}, deny(ctx, middleware.ReasonInvalidScope, nil)
	}
	r := c.read(ctx)
	if r.view == nil {
		return middleware.Preview{}, r.refuse(ctx)
	}
	if s := r.view.state(Workflow(workflow)); s != Enabled {
		return middleware.Preview{}, deny(ctx, s.reason(), nil)
	}

	return middleware.NewPreview(workflow, r.view.head.Generation, r.view.head.Digest), nil
}

// Check returns nil if the workflow that p was taken for may act now under p.
// Else it returns a [middleware.Denial] with, in this order, untrusted_state or
// store_busy; admission_stopped; admission_disabled; stale_generation if
// anything at all was recorded since p was taken, or p is zero. A preview ahead
// of the store, or of the same generation with another digest, proves that the
// store went back: that is untrusted_state, and remembered. Under a context that
// is done it is a [middleware.Failure] with the reason canceled.
//
// A run that is resumed checks its saved preview with it before anything else.
func (c *Controller) Check(ctx context.Context, p middleware.Preview) error {
	_, err := c.check(ctx, p.Workflow(), p)

	return err
}

// check is Check for the workflow that acts, and returns the generation that
// the verdict stands for.
func (c *Controller) check(ctx context.Context, workflow ident.WorkflowID, p middleware.Preview) (uint64, error) {
	r := c.read(ctx)
	if r.view == nil {
		return r.generation, r.refuse(ctx)
	}
	head := r.view.head
	scope := Workflow(workflow)
	if workflow.IsZero() {
		scope = Global() // a run of no workflow is never admitted, but told the state
	}
	if s := r.view.state(scope); s != Enabled {
		return head.Generation, deny(ctx, s.reason(), nil)
	}
	switch {
	case p.IsZero() || p.Workflow().IsZero():
		return head.Generation, deny(ctx, middleware.ReasonStaleGeneration, nil)
	case p.Generation() > head.Generation, p.Generation() == head.Generation && p.Digest() != head.Digest:
		c.wentBack(Head{Generation: p.Generation(), Digest: p.Digest()})

		return p.Generation(), deny(ctx, middleware.ReasonUntrustedState, nil)
	case p.Generation() < head.Generation, p.Workflow() != workflow:
		return head.Generation, deny(ctx, middleware.ReasonStaleGeneration, nil)
	case ctx.Err() != nil:
		return head.Generation, canceled(ctx)
	}

	return head.Generation, nil
}

// read asks the store for its head and returns the state that belongs to it.
func (c *Controller) read(ctx context.Context) reading {
	if c == nil || c.store == nil {
		return reading{view: &view{global: Disabled}}
	}
	for {
		before, v := c.snapshot()
		head, err := c.head(ctx)
		if err != nil {
			return c.distrust(ctx, head, err)
		}
		if v == nil || v.head != head {
			if v, err = c.follow(ctx, v, head, before); err != nil {
				return c.distrust(ctx, Head{}, err)
			}
		}
		if r, ok := c.settle(before, v); ok {
			return r
		}
		// Another check or transition saw more while this one was reading: read
		// again, so that what is older than something seen is never the answer.
	}
}

// viewer is a store of this package that has verified a history already, so that
// a controller that knows nothing yet need not read it a second time.
type viewer interface{ viewAt(h Head) *view }

func (c *Controller) snapshot() (Head, *view) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()

	return c.known.mark, c.known.view
}

// follow returns the state at head, from the receipts after v. They have to
// link v to head, and to pass through mark on the way: a state is never put
// together from two histories, and a longer history without what was seen
// before is not the continuation of it.
func (c *Controller) follow(ctx context.Context, v *view, head, mark Head) (*view, error) {
	if s, ok := c.store.(viewer); ok && v == nil && mark == (Head{}) {
		if verified := s.viewAt(head); verified != nil {
			return verified, nil // the store has just put it together itself
		}
	}
	if v == nil || v.head.Generation >= head.Generation {
		v = &view{} // also when the head moved back: the mark decides, not this
	} else {
		v = v.clone()
	}
	for v.head.Generation < head.Generation {
		page, err := c.page(ctx, v.head.Generation)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return nil, fail(middleware.ReasonUntrustedState, nil)
		}
		for _, r := range page[:min(uint64(len(page)), head.Generation-v.head.Generation)] {
			if !v.apply(r) || v.head.Generation == mark.Generation && v.head != mark {
				return nil, fail(middleware.ReasonUntrustedState, nil)
			}
		}
	}
	if v.head != head {
		return nil, fail(middleware.ReasonUntrustedState, nil)
	}

	return v, nil
}

// settle compares what was read with what is known. before is the mark of the
// moment at which reading began. It is not ok if the mark has moved since, to
// something that v has not been compared with.
func (c *Controller) settle(before Head, v *view) (reading, bool) {
	k := &c.known
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case v.head.Generation < before.Generation, v.head.Generation == before.Generation && v.head != before:
		k.last = middleware.ReasonUntrustedState

		return reading{reason: k.last, generation: k.mark.Generation}, true
	case k.mark != before && k.mark != v.head:
		return reading{}, false
	}
	k.mark, k.view, k.last = v.head, v, v.global.reason()

	return reading{view: v}, true
}

// distrust answers for a store that failed. proven is a head that it can still
// vouch for.
func (c *Controller) distrust(ctx context.Context, proven Head, cause error) reading {
	r := reading{reason: middleware.ReasonUntrustedState, cause: cause}
	switch {
	case middleware.ReasonOf(cause) == middleware.ReasonStoreBusy:
		r.reason = middleware.ReasonStoreBusy
	case ctx.Err() != nil:
		r.reason = middleware.ReasonCanceled
	}
	k := &c.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.reason == middleware.ReasonUntrustedState {
		k.raise(proven)
		k.last = r.reason
	}
	r.generation = k.mark.Generation

	return r
}

// wentBack remembers the evidence that the store once was at h.
func (c *Controller) wentBack(h Head) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if h.Generation == c.known.mark.Generation {
		c.known.mark = h // both cannot be true: neither digest is admitted as this one
		c.known.view = nil
	}
	c.known.raise(h)
	c.known.last = middleware.ReasonUntrustedState
}

func (k *known) raise(h Head) {
	if h.Generation > k.mark.Generation {
		k.mark = h
	}
}

func (c *Controller) head(ctx context.Context) (h Head, err error) {
	defer containStore(&err)
	if h, err = c.store.Head(ctx); err == nil && (h.Generation == 0 || h.Digest.IsZero()) {
		return Head{}, fail(middleware.ReasonUntrustedState, nil)
	}

	return h, err
}

func (c *Controller) page(ctx context.Context, after uint64) (rs []Receipt, err error) {
	defer containStore(&err)

	return c.store.Receipts(ctx, after, pageSize)
}

// containStore turns a panic of a store into untrusted_state.
func containStore(err *error) {
	if v := recover(); v != nil {
		*err = fail(middleware.ReasonUntrustedState, middleware.NewPanicError(v, nil))
	}
}

func (r reading) refuse(ctx context.Context) error {
	if r.reason == middleware.ReasonCanceled {
		return canceled(ctx)
	}

	return deny(ctx, r.reason, r.cause)
}

func deny(ctx context.Context, r middleware.Reason, cause error) error {
	return middleware.NewDenial(middleware.Refusal{
		Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentAdmission, Reason: r, Cause: cause,
	})
}

func canceled(ctx context.Context) error {
	return middleware.NewCanceled(ctx, middleware.ComponentAdmission, ident.Label{}, nil)
}
