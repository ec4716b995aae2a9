package admission

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// subjectSize is room for what an approval is bound to; names may be longer.
const subjectSize = 256

// What errors.Is finds in what is refused for want of an approval.
var (
	// ErrApprovalRequired: nobody has approved this call as it is now.
	ErrApprovalRequired error = middleware.ReasonApprovalRequired
	// ErrApprovalRefused: whoever was asked said no.
	ErrApprovalRefused error = middleware.ReasonApprovalRefused
)

// Approver decides whether one call may be made, under one preview. nil is a
// yes, for this call alone and once. An error that carries approval_required
// says that nobody has decided yet; every other one, and a panic, is a no:
// approval_refused. Approve may take as long as a human does (the stall clock
// of the call stands still meanwhile), has to return when ctx is done, and is
// called by many goroutines. What it was shown of the call is content.
//
// [MemoryApprover] is a ready-made one.
type Approver interface {
	Approve(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error
}

// ApproverFunc makes an [Approver] of a function.
type ApproverFunc func(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error

var _ Approver = ApproverFunc(nil)

// Approve calls f; a nil f refuses.
func (f ApproverFunc) Approve(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error {
	if f == nil {
		return ErrApprovalRefused
	}

	return f(ctx, call, p)
}

// Approvals is the layer that asks [Config].Approver. It stands at
// [middleware.StageApproval]: inside of every retry, outside of the gate.
type Approvals struct{ c *Controller }

// Approvals returns the layer of c. Without an Approver it lets calls pass:
// none are needed.
func (c *Controller) Approvals() *Approvals { return &Approvals{c: c} }

// Tool returns the middleware. Calls of tools that change nothing pass. Every
// other call is approved anew at each attempt: the approval is bound to tool
// label, input and preview and is good for one passage of the gate, which looks
// at it immediately before the effect. Whoever changes the input, or takes a
// fresh preview, in between needs another one (approval_required), and so does
// a call that the gate has refused: an approval is spent by trying.
//
// A call of a run without a preview is passed on without asking: the gate
// refuses it, and says why.
func (a *Approvals) Tool() middleware.ToolMiddleware {
	return middleware.At(middleware.StageApproval, func(next middleware.ToolHandler) middleware.ToolHandler {
		if next == nil || a == nil || a.c == nil || a.c.approvals == nil {
			return next
		}

		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			preview := middleware.RunFrom(ctx).CurrentPreview()
			if !call.Effect().Changes() || preview.IsZero() {
				return next(ctx, call)
			}
			if err := a.c.askApprover(ctx, call, preview); err != nil {
				return nil, err
			}
			approval, forget := a.c.approvals.issue(call, preview)
			defer forget()

			return next(ctx, call.WithApproval(approval))
		}
	})
}

// askApprover asks, and reports a refusal.
func (c *Controller) askApprover(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error {
	run := middleware.RunFrom(ctx)
	if err := run.Check(); err != nil {
		return err //nolint:wrapcheck // a refusal of the run, as it is
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	var began time.Time
	if c.observer != nil {
		began = c.now()
	}
	cause := c.approvals.ask(ctx, call, p)
	if cause == nil && ctx.Err() == nil {
		return nil
	}
	reason := middleware.ReasonApprovalRefused
	var err error
	switch {
	case ctx.Err() != nil:
		reason = middleware.ReasonCanceled
		err = middleware.NewCanceled(ctx, middleware.ComponentApproval, call.Label(), cause)
	case middleware.ReasonOf(cause) == middleware.ReasonApprovalRequired:
		reason = middleware.ReasonApprovalRequired
	}
	if err == nil {
		err = denyApproval(ctx, reason, cause)
	}
	if c.observer != nil {
		c.notify(ctx, middleware.Decision{
			Component: middleware.ComponentApproval, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock,
			Reason: reason, Run: run.ID(), Workflow: run.Workflow(), Label: call.Label(), Turn: call.Turn(),
			Attempt: call.Attempt(), Generation: p.Generation(), Duration: c.now().Sub(began),
		})
	}

	return err
}

func denyApproval(ctx context.Context, r middleware.Reason, cause error) error {
	return middleware.NewDenial(middleware.Refusal{
		Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentApproval, Reason: r, Cause: cause,
	})
}

// approvals are the approvals of one controller that are on their way from the
// layer to the gate: at most one for each call in between.
type approvals struct {
	approver Approver
	sums     summer
	last     atomic.Uint64 // number: no two bindings are equal

	mu  sync.Mutex
	out map[[sha256.Size]byte]uint64 // number by binding
}

func newApprovals(a Approver) *approvals {
	if a == nil {
		return nil
	}

	return &approvals{approver: a, sums: newSummer(), out: make(map[[sha256.Size]byte]uint64)}
}

func (a *approvals) ask(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) (err error) {
	resume := middleware.Pause(ctx)
	defer resume()
	defer func() {
		if v := recover(); v != nil {
			err = middleware.NewDenial(middleware.Refusal{ // not the panic's own reason: whatever it carried is no answer
				Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentApproval,
				Reason: middleware.ReasonApprovalRefused, Cause: middleware.NewPanicError(v, debug.Stack()),
			})
		}
	}()

	return a.approver.Approve(ctx, call, p) //nolint:wrapcheck // becomes the cause of a refusal
}

// issue makes an approval, and what takes it back unless the gate has.
func (a *approvals) issue(call *middleware.ToolCall, p middleware.Preview) (approval middleware.Approval, forget func()) {
	number := a.last.Add(1)
	binding := a.sums.call(number, call, p)
	a.mu.Lock()
	a.out[binding] = number
	a.mu.Unlock()

	return middleware.NewApproval(p, binding), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.out, binding)
	}
}

// redeem spends the approval that a call carries and returns why it is not good
// for this call under p. It is not asked for where no Approver is configured. No
// call is no call that anybody approved.
func (a *approvals) redeem(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error {
	if a == nil {
		return nil
	}
	if call != nil {
		binding := call.Approval().Binding()
		a.mu.Lock()
		number, ok := a.out[binding]
		delete(a.out, binding)
		a.mu.Unlock()
		want := a.sums.call(number, call, p)
		if ok && hmac.Equal(want[:], binding[:]) {
			return nil
		}
	}

	return deny(ctx, middleware.ReasonApprovalRequired, nil)
}

// summer makes keyed digests that mean nothing to anybody else. The key is in a
// closure, as that of [Key] is.
type summer struct{ pool *sync.Pool }

func newSummer() summer {
	var key [sha256.Size]byte
	_, _ = rand.Read(key[:]) // never fails: it would end the program

	return summer{pool: &sync.Pool{New: func() any { return hmac.New(sha256.New, key[:]) }}}
}

// over returns the HMAC of a message.
func (s summer) over(message []byte) (sum [sha256.Size]byte) {
	m := s.pool.Get().(hash.Hash) //nolint:forcetypeassert // what New makes
	defer s.pool.Put(m)
	m.Reset()
	_, _ = m.Write(message) // a hash.Hash never fails
	m.Sum(sum[:0])

	return sum
}

// call is the digest of a tool with its input, byte for byte, and a preview.
func (s summer) call(number uint64, c *middleware.ToolCall, p middleware.Preview) [sha256.Size]byte {
	return s.subject(number, c.Label(), c.Input(), p)
}

func (s summer) subject(number uint64, tool ident.Label, input string, p middleware.Preview) [sha256.Size]byte {
	digest := sha256.Sum256([]byte(input))
	b := binary.BigEndian.AppendUint64(make([]byte, 0, subjectSize), number)
	for _, part := range [...]string{tool.String(), p.Workflow().String(), p.Digest().String()} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.BigEndian.AppendUint64(b, p.Generation())

	return s.over(append(b, digest[:]...))
}
