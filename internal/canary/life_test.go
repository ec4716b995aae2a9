package canary_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// live does everything that a world does.
func (w *world) live() {
	w.t.Helper()
	w.agent(functions, misbehave.VendorOpenAI)
	w.agent(mrkl, misbehave.VendorAnthropic)
	w.streamed(misbehave.VendorOpenAI)
	if !w.plan.half {
		w.agent(mrkl, misbehave.VendorOpenAI)
		w.agent(functions, misbehave.VendorAnthropic)
		w.streamed(misbehave.VendorAnthropic)
	}
	w.trip()
	w.park()
	w.bound()
	if w.plan.also != nil {
		w.err(w.guard.Do(w.t.Context(), workflow("also"), func(ctx context.Context) error { w.plan.also(w, ctx); return nil }))
	}
	w.stop()
	w.value(w.guard.Gauges())
	w.value(w.bounded.Gauges())
	for _, part := range []any{
		w.guard, w.guard.Actions(), w.guard.Budget(), w.guard.Watchdog(), w.guard.Admission(),
		w.bounded, w.bounded.Actions(), w.store,
	} {
		w.value(part)
	}
	w.providers.Shutdown(w.t)
	w.err(w.tel.Close(), w.store.Close())
	w.commands()
	w.reviews()
}

func vendorName(v misbehave.Vendor) string {
	if v == misbehave.VendorAnthropic {
		return "anthropic"
	}

	return "openai"
}

func (w *world) agent(kind string, vendor misbehave.Vendor) {
	w.t.Helper()
	guard, id, ts, turns := w.guard, workflow(kind+"-"+vendorName(vendor)), w.tools, 6
	if kind == curious {
		guard, id, ts, turns = w.bounded, workflow(curious), w.guarded(w.bounded, filler), 12
	}
	model, done := w.model(guard, kind, vendor)
	defer done()
	ctx, run, err := guard.StartRun(w.t.Context(), id)
	w.must(err)
	executor := agents.NewExecutor(newAgent(kind, model, ts), agents.WithMaxIterations(turns),
		agents.WithCallbacksHandler(guard.Callbacks()))
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.cancel = cancel
	_, err = chains.Run(inner, guard.Chain(id, executor), w.plan.prompt)
	w.err(err)
	w.save(ctx)
	w.value(guard.Budget().Used(middleware.RunFrom(ctx)))
	if h, tripped := run.Handoff(); tripped {
		w.value(h)
	}
	run.End(err)
	_, err = run.Save() // it has ended
	w.err(err)
}

func (w *world) streamed(vendor misbehave.Vendor) {
	w.t.Helper()
	model, done := w.model(w.guard, stream, vendor)
	defer done()
	w.err(w.guard.Do(w.t.Context(), workflow(stream+"-"+vendorName(vendor)), func(ctx context.Context) error {
		resp, err := model.GenerateContent(ctx, w.plan.messages,
			llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
		_ = resp // the program's own: it may hold anything

		return err
	}))
	_, err := model.GenerateContent(w.t.Context(), w.plan.messages) // without a run
	w.err(err)
}

// trip lets a tool fail until the run is halted.
func (w *world) trip() {
	w.t.Helper()
	err := w.guard.Do(w.t.Context(), workflow("halted"), func(ctx context.Context) error {
		for i := range 5 {
			_, err := w.tools[2].Call(ctx, w.plan.input+strconv.Itoa(i))
			w.err(err)
		}
		w.save(ctx)
		_, err := w.tools[0].Call(ctx, w.plan.input)

		return err
	})
	w.err(err)
	if h, ok := escalation.HandoffOf(err); ok {
		w.value(h)
	}
}

// park lets a tool end in a way that parks its workflow, and tries it again.
func (w *world) park() {
	w.t.Helper()
	id := workflow("parked")
	for range hard {
		w.do(w.guard, id, crash, w.plan.input)
	}
	w.do(w.guard, id, look, w.plan.input)
	w.breaker(w.guard, id)
}

// do calls a tool in a run of its own.
func (w *world) do(guard *interlock.Guard, id ident.WorkflowID, t int, input string) {
	w.t.Helper()
	ts := w.tools
	if guard == w.bounded {
		ts = w.guarded(guard, "")
	}
	w.err(guard.Do(w.t.Context(), id, func(ctx context.Context) error {
		_, err := ts[t].Call(ctx, inside.enter(input))
		w.save(ctx)
		w.value(guard.Budget().Used(middleware.RunFrom(ctx)))

		return err
	}))
}

// breaker notes what an action breaker says of a workflow.
func (w *world) breaker(guard *interlock.Guard, id ident.WorkflowID) {
	w.value(guard.Actions().State(id))
	w.value(guard.Actions().History(id))
	if h, parked := guard.Actions().Handoff(id); parked {
		w.value(h)
	}
}

// stop stops all effects, and tries one.
func (w *world) stop() {
	w.t.Helper()
	status, err := w.guard.Admission().Stop(w.t.Context(), admission.Transition{Scope: admission.Global()})
	w.must(err)
	w.value(status)
	w.do(w.guard, workflow("stopped"), pay, w.plan.input)
	w.err(w.guard.Do(w.t.Context(), workflow("unknown"), func(context.Context) error { return nil }))
	receipts, err := w.store.Receipts(w.t.Context(), 0, 100)
	w.must(err)
	w.value(fmt.Sprint(receipts))
}
