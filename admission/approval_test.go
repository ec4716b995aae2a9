package admission_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
)

// approvedRun is a run whose tool needs approval. between stands between the approval
// and the gate.
type approvedRun struct {
	c       *admission.Controller
	ctx     context.Context //nolint:containedctx // that of the run
	run     *middleware.Run
	kind    middleware.Effect
	between middleware.ToolMiddleware
	outside middleware.ToolMiddleware
	effects atomic.Int64
}

func needsApproval(tb testing.TB, a admission.Approver, o ...middleware.Observer) *approvedRun {
	tb.Helper()
	s := newMemoryStore(tb)
	c := must(admission.New(admission.Config{Store: s, Approver: a, Observer: middleware.Observers(o...), Now: at}))
	enable(tb, c, global)
	ctx, run, err := middleware.StartRun(tb.Context(), middleware.RunConfig{Workflow: refunds, Previewer: c})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })
	pass := func(next middleware.ToolHandler) middleware.ToolHandler { return next }

	return &approvedRun{c: c, ctx: ctx, run: run, between: pass, outside: pass}
}

func (r *approvedRun) tool(tb testing.TB, name string) *middleware.GuardedTool {
	tb.Helper()
	chain := middleware.Chain(r.outside, r.c.Approvals().Tool(), r.between, r.c.Gate().Tool())
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: name, Effect: r.kind, Chain: chain},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			r.effects.Add(1)

			return &middleware.ToolResult{}, nil
		})
	if err != nil {
		tb.Fatal(err)
	}

	return tool
}

func (r *approvedRun) call(tb testing.TB, name, input string) error {
	tb.Helper()
	_, err := r.tool(tb, name).Do(r.ctx, "", input)

	return err
}

func yes(context.Context, *middleware.ToolCall, middleware.Preview) error { return nil }

// around makes middleware of what is done with a call on its way.
func around(f func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error) middleware.ToolMiddleware {
	return func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if err := f(ctx, call, next); err != nil {
				return nil, err
			}

			return &middleware.ToolResult{}, nil
		}
	}
}

func TestApprovalBinding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind    middleware.Effect
		between func(r *approvedRun) middleware.ToolMiddleware
		want    error
		effects int64
	}{
		"as approved": {effects: 1},
		"input changed": {want: admission.ErrApprovalRequired, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err := next(ctx, call.WithInput(call.Input()+" "))

				return err
			})
		}},
		"input changed, approval put back": {want: admission.ErrApprovalRequired, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err := next(ctx, call.WithInput("all of it").WithApproval(call.Approval()))

				return err
			})
		}},
		"dropped": {want: admission.ErrApprovalRequired, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err := next(ctx, call.WithApproval(middleware.Approval{}))

				return err
			})
		}},
		"made up": {want: admission.ErrApprovalRequired, between: func(r *approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err := next(ctx, call.WithApproval(middleware.NewApproval(r.run.CurrentPreview(), [32]byte{1})))

				return err
			})
		}},
		"used twice": {want: admission.ErrApprovalRequired, effects: 1, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err1 := next(ctx, call)
				_, err2 := next(ctx, call)

				return errors.Join(err1, err2)
			})
		}},
		"next attempt": {want: admission.ErrApprovalRequired, effects: 1, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err1 := next(ctx, call)
				_, err2 := next(ctx, call.NextAttempt())

				return errors.Join(err1, err2)
			})
		}},
		"fresh preview": {want: admission.ErrApprovalRequired, between: func(r *approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				must(r.c.Enable(ctx, admission.Transition{Scope: global}))
				must(r.run.Preview(ctx))
				_, err := next(ctx, call)

				return err
			})
		}},
		"stop after approval": {want: admission.ErrStopped, between: func(r *approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				must(r.c.Stop(ctx, admission.Transition{Scope: global}))
				_, err := next(ctx, call)

				return err
			})
		}},
		"stop and enable after approval": {want: admission.ErrStaleGeneration, between: func(r *approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				must(r.c.Stop(ctx, admission.Transition{Scope: global}))
				must(r.c.Enable(ctx, admission.Transition{Scope: global}))
				_, err := next(ctx, call)

				return err
			})
		}},
		// The gate has refused the call once: what was approved is spent, and a
		// preview that fits again does not bring it back.
		"spent by a refused dispatch": {want: admission.ErrApprovalRequired, between: func(r *approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				dead, cancel := context.WithCancel(ctx)
				cancel()
				if _, err := next(dead, call); err == nil {
					return nil
				}
				_, err := next(ctx, call)

				return err
			})
		}},
		"read only needs none": {kind: middleware.ReadOnly, effects: 1, between: func(*approvedRun) middleware.ToolMiddleware {
			return around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
				_, err := next(ctx, call.WithInput("other"))

				return err
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := needsApproval(t, admission.ApproverFunc(yes))
			r.kind = tc.kind
			if tc.between != nil {
				r.between = tc.between(r)
			}
			if err := r.call(t, "refund", "order 1"); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			if n := r.effects.Load(); n != tc.effects || r.c.InFlight() != 0 {
				t.Errorf("%d effects, want %d; %d in flight", n, tc.effects, r.c.InFlight())
			}
		})
	}
}

// TestApprovalKept: an approval that was kept from one call is none for the
// next, not of the same tool with the same input either.
func TestApprovalKept(t *testing.T) {
	t.Parallel()
	r := needsApproval(t, admission.ApproverFunc(yes))
	var kept middleware.Approval
	r.between = around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
		if kept.IsZero() {
			kept = call.Approval()

			return errors.New("not now")
		}
		_, err := next(ctx, call.WithApproval(kept))

		return err
	})
	_ = r.call(t, "refund", "order 1")
	for _, name := range []string{"refund", "notify"} {
		wantErr(t, r.call(t, name, "order 1"), admission.ErrApprovalRequired)
	}
	if n := r.effects.Load(); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// TestApprovalOfEachAttempt: a retry outside asks anew.
func TestApprovalOfEachAttempt(t *testing.T) {
	t.Parallel()
	var attempts []int
	r := needsApproval(t, admission.ApproverFunc(func(_ context.Context, call *middleware.ToolCall, p middleware.Preview) error {
		attempts = append(attempts, call.Attempt())
		if p.Generation() != 2 || !call.Approval().IsZero() {
			t.Error("another preview, or approved already")
		}

		return nil
	}))
	r.outside = around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
		_, err1 := next(ctx, call)
		_, err2 := next(ctx, call.NextAttempt())

		return errors.Join(err1, err2)
	})
	if err := r.call(t, "refund", "1"); err != nil || len(attempts) != 2 || attempts[1] != 2 || r.effects.Load() != 2 {
		t.Errorf("%v, asked for %v, %d effects", err, attempts, r.effects.Load())
	}
}

func TestApproverSaysNo(t *testing.T) {
	t.Parallel()
	const content = "canary-7f3a"
	for name, tc := range map[string]struct {
		approver admission.Approver
		want     error
	}{
		"an error": {admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error { return errors.New(content) }), admission.ErrApprovalRefused},
		"a panic":  {admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error { panic(content) }), admission.ErrApprovalRefused},
		"nobody decided": {admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error {
			return admission.ErrApprovalRequired
		}), admission.ErrApprovalRequired},
		"a panic with a code": {admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error {
			panic(admission.ErrApprovalRequired)
		}), admission.ErrApprovalRefused},
		"a nil function": {admission.ApproverFunc(nil), admission.ErrApprovalRefused},
		"a nil approver": {(*admission.MemoryApprover)(nil), admission.ErrApprovalRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []middleware.Decision
			r := needsApproval(t, tc.approver, middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) { heard = append(heard, d) }))
			err := r.call(t, "refund", content)
			wantErr(t, err, tc.want)
			d, ok := errors.AsType[*middleware.Denial](err)
			if !ok || d.Soft() || d.Component() != middleware.ComponentApproval || d.Run() != r.run.ID() {
				t.Errorf("%#v", err)
			}
			if s := fmt.Sprintf("%v %+v %#v %+v", err, err, err, heard); strings.Contains(s, content) {
				t.Errorf("content in %s", s)
			}
			if len(heard) != 1 || heard[0].Component != middleware.ComponentApproval || heard[0].Verdict != middleware.VerdictDeny ||
				heard[0].Reason != d.Reason() || heard[0].Generation != 2 || heard[0].Attempt != 1 {
				t.Errorf("%+v", heard)
			}
			if r.effects.Load() != 0 || r.c.InFlight() != 0 {
				t.Error("the effect happened")
			}
		})
	}
}

// TestApproverExits: an approver that ends its goroutine takes nothing with it.
func TestApproverExits(t *testing.T) {
	t.Parallel()
	var resumed atomic.Int64
	first := true
	r := needsApproval(t, admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error {
		if first {
			first = false
			runtime.Goexit()
		}

		return nil
	}))
	r.ctx = middleware.ContextWithPauser(r.ctx, clock{&resumed})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.call(t, "refund", "1")
	}()
	<-done
	if r.effects.Load() != 0 || resumed.Load() != 1 || r.c.InFlight() != 0 {
		t.Errorf("%d effects, resumed %d times", r.effects.Load(), resumed.Load())
	}
	if err := r.call(t, "refund", "1"); err != nil {
		t.Error(err)
	}
}

type clock struct{ resumed *atomic.Int64 }

func (c clock) Pause() func() { return func() { c.resumed.Add(1) } }

// TestApproverPausesTheClock: only while it is asked.
func TestApproverPausesTheClock(t *testing.T) {
	t.Parallel()
	var resumed atomic.Int64
	r := needsApproval(t, admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error {
		if resumed.Load() != 0 {
			t.Error("resumed before the answer")
		}

		return nil
	}))
	r.between = around(func(ctx context.Context, call *middleware.ToolCall, next middleware.ToolHandler) error {
		if resumed.Load() != 1 {
			t.Error("not resumed after the answer")
		}
		_, err := next(ctx, call)

		return err
	})
	r.ctx = middleware.ContextWithPauser(r.ctx, clock{&resumed})
	if err := r.call(t, "refund", "1"); err != nil {
		t.Error(err)
	}
}

// TestApproverTooLate: a yes beside a context that is done is none.
func TestApproverTooLate(t *testing.T) {
	t.Parallel()
	for _, answer := range []error{nil, errors.New("no")} {
		ctx, cancel := context.WithCancel(t.Context())
		r := needsApproval(t, admission.ApproverFunc(func(context.Context, *middleware.ToolCall, middleware.Preview) error {
			cancel()

			return answer
		}))
		_, err := r.tool(t, "refund").Do(middleware.ContextWithRun(ctx, r.run), "", "1")
		wantErr(t, err, context.Canceled)
		wantErr(t, err, middleware.ReasonCanceled)
		if r.effects.Load() != 0 {
			t.Error("the effect happened")
		}
	}
}

// TestApprovalLayerMissing: with an Approver no call gets around it.
func TestApprovalLayerMissing(t *testing.T) {
	t.Parallel()
	r := needsApproval(t, admission.ApproverFunc(yes))
	tool := must(middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: r.c.Gate().Tool()},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{}, nil
		}))
	_, err := tool.Do(r.ctx, "", "")
	wantErr(t, err, admission.ErrApprovalRequired)
	_, err = admission.Dispatch(r.ctx, r.c, r.run.CurrentPreview(), func(context.Context) (int, error) { return 1, nil })
	wantErr(t, err, admission.ErrApprovalRequired)
	// The other way round the layers are in a wrong order.
	tool = must(middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: middleware.Chain(r.c.Gate().Tool(), r.c.Approvals().Tool())},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return &middleware.ToolResult{}, nil
		}))
	_, err = tool.Do(r.ctx, "", "")
	wantErr(t, err, admission.ErrApprovalRequired)
}

// TestApprovalNotAsked: nobody is asked for what could not happen anyway, and
// nothing is needed where no Approver is configured.
func TestApprovalNotAsked(t *testing.T) {
	t.Parallel()
	asked := 0
	c := must(admission.New(admission.Config{Store: newMemoryStore(t), Now: at, Approver: admission.ApproverFunc(
		func(context.Context, *middleware.ToolCall, middleware.Preview) error { asked++; return nil })}))
	run := startRun(t, c, refunds)
	run.gate = middleware.Chain(c.Approvals().Tool(), c.Gate().Tool())
	wantErr(t, run.effect(t), admission.ErrDisabled)

	c = newController(t, newMemoryStore(t))
	enable(t, c, global)
	run = startRun(t, c, refunds)
	run.gate = middleware.Chain(c.Approvals().Tool(), c.Gate().Tool())
	if err := run.effect(t); err != nil || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	var none *admission.Controller
	run.gate = middleware.Chain(none.Approvals().Tool(), none.Gate().Tool())
	wantErr(t, run.effect(t), admission.ErrDisabled)
}

func TestApprovalsConformance(t *testing.T) {
	t.Parallel()
	c := must(admission.New(admission.Config{Store: newMemoryStore(t), Approver: admission.ApproverFunc(yes), Now: at}))
	enable(t, c, global)
	suite := conformance.ToolSuite{
		New: func(*testing.T) middleware.ToolMiddleware { return c.Approvals().Tool() },
		Run: func(*testing.T) middleware.RunConfig { return middleware.RunConfig{Previewer: c} },
	}
	t.Run("alone", func(t *testing.T) { t.Parallel(); conformance.Tool(t, suite) })
	suite.New = func(*testing.T) middleware.ToolMiddleware {
		return middleware.Chain(c.Approvals().Tool(), c.Gate().Tool())
	}
	t.Run("with the gate", func(t *testing.T) { t.Parallel(); conformance.Tool(t, suite) })
}

// ---- the ready-made one

func newApprover(tb testing.TB, cfg admission.MemoryApproverConfig) *admission.MemoryApprover {
	tb.Helper()

	return must(admission.NewMemoryApprover(cfg))
}

func TestMemoryApprover(t *testing.T) {
	t.Parallel()
	now := at()
	a := newApprover(t, admission.MemoryApproverConfig{TTL: time.Minute, Limit: 3, Now: func() time.Time { return now }})
	r := needsApproval(t, a)
	refund, p := ident.MustLabel("refund"), r.run.CurrentPreview()

	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired)
	ticket := a.Ticket(refund, "1", p)
	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired) // a ticket is no grant
	try(a.Grant(ticket))
	for _, other := range [][2]string{{"notify", "1"}, {"refund", "2"}, {"refund", "1 "}, {"refund", ""}} {
		wantErr(t, r.call(t, other[0], other[1]), admission.ErrApprovalRequired)
	}
	if err := r.call(t, "refund", "1"); err != nil {
		t.Error(err)
	}
	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired) // single-use
	wantErr(t, a.Grant(ticket), admission.ErrApprovalRefused)           // the ticket too
	wantErr(t, a.Refuse(ticket), admission.ErrApprovalRefused)

	// Granted twice by two tickets: good for two calls.
	try(a.Grant(a.Ticket(refund, "1", p)))
	try(a.Grant(a.Ticket(refund, "1", p)))
	wantErr(t, a.Grant(a.Ticket(refund, "1", p)), admission.ErrApprovalRefused) // Limit
	for _, want := range []error{nil, nil, admission.ErrApprovalRequired} {
		if err := r.call(t, "refund", "1"); !errors.Is(err, want) {
			t.Errorf("error is %v, want %v", err, want)
		}
	}

	// What was granted expires, and makes room.
	now = now.Add(time.Minute)
	late := a.Ticket(refund, "1", p)
	try(a.Grant(late))
	now = now.Add(time.Minute)
	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired)
	wantErr(t, a.Grant(late), admission.ErrApprovalRefused)

	// Refused beforehand: the ticket is spent.
	no := a.Ticket(refund, "1", p)
	try(a.Refuse(no))
	wantErr(t, a.Grant(no), admission.ErrApprovalRefused)

	// Under another preview it is another call.
	try(a.Grant(a.Ticket(refund, "1", p)))
	enable(t, r.c, global)
	must(r.run.Preview(r.ctx))
	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired)
	if n := r.effects.Load(); n != 3 {
		t.Errorf("%d effects", n)
	}
}

// TestMemoryApproverRefusedDispatch: the gate refused the call, and the grant is
// gone with it.
func TestMemoryApproverRefusedDispatch(t *testing.T) {
	t.Parallel()
	a := newApprover(t, admission.MemoryApproverConfig{})
	r := needsApproval(t, a)
	try(a.Grant(a.Ticket(ident.MustLabel("refund"), "1", r.run.CurrentPreview())))
	stop(t, r.c, admission.Workflow(refunds))
	wantErr(t, r.call(t, "refund", "1"), admission.ErrStopped)
	wantErr(t, r.call(t, "refund", "1"), admission.ErrApprovalRequired)
}

func TestMemoryApproverTickets(t *testing.T) {
	t.Parallel()
	a, other := newApprover(t, admission.MemoryApproverConfig{}), newApprover(t, admission.MemoryApproverConfig{})
	p := middleware.NewPreview(refunds, 2, ident.DigestOf([]byte("x")))
	good := a.Ticket(ident.MustLabel("refund"), "canary", p)
	for i := range len(good) {
		bad := []byte(good)
		bad[i] ^= 1
		wantErr(t, a.Grant(string(bad)), admission.ErrApprovalRefused)
	}
	for _, bad := range []string{"", "canary", good[1:], good + "A", good + "\n", "\n" + good[1:], other.Ticket(ident.MustLabel("refund"), "canary", p), strings.Repeat("A", len(good))} {
		err := a.Grant(bad)
		wantErr(t, err, admission.ErrApprovalRefused)
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "canary") {
			t.Error(err)
		}
	}
	try(a.Grant(good))
	if strings.Contains(fmt.Sprintf("%v %+v %#v", a, a, a), "canary") {
		t.Error("content is kept")
	}
	var none *admission.MemoryApprover
	wantErr(t, none.Grant(good), admission.ErrApprovalRefused)
	if none.Ticket(ident.MustLabel("refund"), "", p) != "" {
		t.Error("a ticket of nobody")
	}
	for _, cfg := range []admission.MemoryApproverConfig{{TTL: -1}, {TTL: time.Millisecond}, {TTL: 25 * time.Hour}, {Limit: -1}, {Limit: 65537}} {
		if _, err := admission.NewMemoryApprover(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func FuzzTicket(f *testing.F) {
	a := must(admission.NewMemoryApprover(admission.MemoryApproverConfig{Now: at}))
	p := middleware.NewPreview(refunds, 2, ident.DigestOf([]byte("x")))
	good := a.Ticket(ident.MustLabel("refund"), "1", p)
	f.Add("")
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(strings.Repeat("_", len(good)))
	f.Fuzz(func(t *testing.T, ticket string) {
		other := must(admission.NewMemoryApprover(admission.MemoryApproverConfig{Now: at}))
		if other.Grant(ticket) == nil {
			t.Error("a ticket that nobody made is good")
		}
	})
}

// TestMemoryApproverAsks: a call that waits goes on with the decision about it.
func TestMemoryApproverAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		decide func(a *admission.MemoryApprover, ticket string)
		want   error
		after  time.Duration
	}{
		"yes, at once": {decide: func(a *admission.MemoryApprover, ticket string) { try(a.Grant(ticket)) }},
		"yes, later": {decide: func(a *admission.MemoryApprover, ticket string) {
			time.AfterFunc(time.Hour, func() { try(a.Grant(ticket)) })
		}, after: time.Hour},
		"no":      {decide: func(a *admission.MemoryApprover, ticket string) { try(a.Refuse(ticket)) }, want: admission.ErrApprovalRefused},
		"nobody":  {decide: func(*admission.MemoryApprover, string) {}, want: admission.ErrApprovalRequired, after: 2 * time.Hour},
		"a panic": {decide: func(*admission.MemoryApprover, string) { panic("canary") }, want: admission.ErrApprovalRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var a *admission.MemoryApprover
				asked := 0
				a = newApprover(t, admission.MemoryApproverConfig{TTL: 2 * time.Hour, Ask: func(_ context.Context, call *middleware.ToolCall, ticket string) {
					asked++
					if call.Input() != "1" {
						t.Error("another call")
					}
					tc.decide(a, ticket)
				}})
				r := needsApproval(t, a)
				began := time.Now()
				err := r.call(t, "refund", "1")
				if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || time.Since(began) != tc.after || asked != 1 {
					t.Errorf("%v after %v, asked %d times", err, time.Since(began), asked)
				}
			})
		})
	}
}

// TestMemoryApproverCanceled: the one who waited is gone, and a late yes finds
// nobody. The grant stays good for the same call, until it expires.
func TestMemoryApproverCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tickets := make(chan string, 2)
		a := newApprover(t, admission.MemoryApproverConfig{Ask: func(_ context.Context, _ *middleware.ToolCall, ticket string) { tickets <- ticket }})
		r := needsApproval(t, a)
		ctx, cancel := context.WithTimeout(middleware.ContextWithRun(t.Context(), r.run), time.Second)
		defer cancel()
		_, err := r.tool(t, "refund").Do(ctx, "", "1")
		wantErr(t, err, context.DeadlineExceeded)
		try(a.Grant(<-tickets))
		if err := r.call(t, "refund", "1"); err != nil {
			t.Error(err)
		}
	})
}

// TestMemoryApproverConcurrent: as many effects as grants, whoever comes first.
func TestMemoryApproverConcurrent(t *testing.T) {
	t.Parallel()
	a := newApprover(t, admission.MemoryApproverConfig{})
	r := needsApproval(t, a)
	for range 7 {
		try(a.Grant(a.Ticket(ident.MustLabel("refund"), "1", r.run.CurrentPreview())))
	}
	tool := r.tool(t, "refund")
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { _, _ = tool.Do(r.ctx, "", "1") })
	}
	wg.Wait()
	if n := r.effects.Load(); n != 7 {
		t.Errorf("%d effects of 7 grants", n)
	}
}

// BenchmarkApprovals is what an approver adds to the gate, by itself.
func BenchmarkApprovals(b *testing.B) {
	for name, approver := range map[string]admission.Approver{"none": nil, "yes": admission.ApproverFunc(yes)} {
		b.Run(name, func(b *testing.B) {
			r := needsApproval(b, approver)
			call := must(middleware.NewTool(middleware.ToolConfig{
				Name: "refund", Chain: middleware.Chain(r.c.Approvals().Tool(), r.c.Gate().Tool()),
			}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
				return &middleware.ToolResult{}, nil
			}))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := call.Do(r.ctx, "", `{"order":"A-1007"}`); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleMemoryApprover() {
	store := must(memoryLedger())
	approver, err := admission.NewMemoryApprover(admission.MemoryApproverConfig{
		Ask: func(_ context.Context, call *middleware.ToolCall, ticket string) {
			fmt.Println("a human is shown:", call.Label(), call.Input()) // and gives the ticket back with the answer
			go func() { _ = approve(ticket) }()
		},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	approve = approver.Grant
	control, err := admission.New(admission.Config{Store: store, Approver: approver})
	if err != nil {
		fmt.Println(err)

		return
	}
	refund, err := middleware.NewTool(middleware.ToolConfig{
		Name: "refund", Chain: middleware.Chain(control.Approvals().Tool(), control.Gate().Tool()),
	}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "paid"}, nil
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: refunds, Previewer: control})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	result, err := refund.Do(ctx, "", "order 7")
	fmt.Println(result.Output, err)
	// Output:
	// a human is shown: refund order 7
	// paid <nil>
}

// approve is what the desk of the example calls.
var approve func(ticket string) error

func memoryLedger() (admission.Store, error) {
	s := &memoryStore{}
	key, err := admission.ParseKey([]byte("an example key of more than 32 bytes"))
	if err != nil {
		return nil, err
	}
	s.key = key
	first, err := key.Sign(admission.Receipt{
		Generation: 1, Scope: global, State: admission.Disabled, Role: admission.Operator, Reason: admission.Initialized,
	})
	if err != nil {
		return nil, err
	}
	second, err := key.Sign(admission.Receipt{
		Generation: 2, Previous: first.Digest(), Scope: global, State: admission.Enabled, Role: admission.Operator, Reason: admission.ExplicitEnable,
	})
	s.receipts = append(s.receipts, first, second)

	return s, err
}
