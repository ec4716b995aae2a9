package escalation_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

var deskLabel = ident.MustLabel("refunds_desk")

// handClock is a clock that tests move.
type handClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig is an action breaker with all that a test looks at.
type rig struct {
	*escalation.ActionBreaker

	log   *log
	sink  *escalation.MemorySink
	clock *handClock
}

func newRig(tb testing.TB, change func(*escalation.ActionConfig)) *rig {
	tb.Helper()
	sink, err := escalation.NewMemorySink(1000)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{log: &log{}, sink: sink, clock: &handClock{now: at}}
	cfg := escalation.ActionConfig{
		Workflows: map[ident.WorkflowID]ident.Label{workflow: deskLabel}, Observer: r.log, Sink: sink, Now: r.clock.Now,
	}
	if change != nil {
		change(&cfg)
	}
	if r.ActionBreaker, err = escalation.NewActionBreaker(cfg); err != nil {
		tb.Fatal(err)
	}

	return r
}

func (r *rig) start(tb testing.TB) (context.Context, *middleware.Run) {
	tb.Helper()

	return r.startOf(tb, workflow)
}

func (r *rig) startOf(tb testing.TB, w ident.WorkflowID) (context.Context, *middleware.Run) {
	tb.Helper()
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: w, Label: ident.MustLabel("desk"), Receivers: []middleware.SignalReceiver{r},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { run.End() })

	return ctx, run
}

// tool registers a function behind the breaker alone.
func (r *rig) tool(tb testing.TB, name string, effect middleware.Effect, fn middleware.ToolHandler) *middleware.GuardedTool {
	tb.Helper()

	return r.inner(tb, name, effect, nil, fn)
}

// inner puts a layer between the breaker and the tool.
func (r *rig) inner(
	tb testing.TB, name string, effect middleware.Effect, layer middleware.ToolMiddleware, fn middleware.ToolHandler,
) *middleware.GuardedTool {
	tb.Helper()
	chain := r.Tool()
	if layer != nil {
		chain = middleware.Chain(chain, layer)
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: name, Effect: effect, Chain: chain}, fn)
	if err != nil {
		tb.Fatal(err)
	}

	return tool
}

// call makes one action in a run of its own. Its input is fresh: no duplicate.
func (r *rig) call(tb testing.TB, effect middleware.Effect, fn middleware.ToolHandler) error {
	tb.Helper()
	ctx, run := r.start(tb)
	defer run.End()
	_, err := r.tool(tb, "act", effect, fn).Do(ctx, "", "input")

	return err
}

// open opens the breaker of a rig with HardFailures 1.
func (r *rig) open(tb testing.TB) {
	tb.Helper()
	if err := r.call(tb, middleware.ReadOnly, panics); !errors.Is(err, middleware.ReasonPanic) {
		tb.Fatalf("got %v", err)
	}
	r.in(tb, middleware.CircuitOpen)
}

func (r *rig) in(tb testing.TB, want middleware.CircuitState) {
	tb.Helper()
	if got := r.State(workflow); got != want {
		tb.Errorf("the breaker is %v, want %v", got, want)
	}
}

// halfOpen has one success behind it.
func (r *rig) halfOpen(tb testing.TB) {
	tb.Helper()
	r.open(tb)
	r.clock.move(time.Minute)
	if err := r.call(tb, middleware.ReadOnly, works); err != nil {
		tb.Fatalf("the trial was refused: %v", err)
	}
	r.in(tb, middleware.CircuitHalfOpen)
}

func panics(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { panic(secret) }

func exits(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	runtime.Goexit()

	return nil, nil
}

// apart runs f on a goroutine of its own, which f may end.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// held is an action that is under way until it is let go.
type held struct {
	entered chan struct{}
	release chan func() (*middleware.ToolResult, error)
	done    chan error
	cancel  context.CancelFunc
}

// hold starts an action and waits until it runs, or was refused.
func (r *rig) hold(tb testing.TB, effect middleware.Effect) *held {
	tb.Helper()
	h := &held{
		entered: make(chan struct{}), release: make(chan func() (*middleware.ToolResult, error), 1), done: make(chan error, 1),
	}
	ctx, _ := r.start(tb)
	ctx, h.cancel = context.WithCancel(ctx)
	tool := r.tool(tb, "act", effect, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
		close(h.entered)

		return (<-h.release)()
	})
	go func() {
		err := errors.New("ended its goroutine")
		defer func() { h.done <- err }()
		_, err = tool.Do(ctx, "", "input")
	}()
	select {
	case <-h.entered:
	case err := <-h.done:
		h.done <- err
	}

	return h
}

func (h *held) running() bool {
	select {
	case <-h.entered:
		return true
	default:
		return false
	}
}

// end lets the action go on and waits for it.
func (h *held) end(fn middleware.ToolHandler) error {
	if h.running() {
		h.release <- func() (*middleware.ToolResult, error) { return fn(context.Background(), nil) }
	}
	err := <-h.done
	h.cancel()

	return err
}

// reasons returns what was decided, in order: transitions as their state.
func (l *log) reasons() []string {
	var all []string
	for _, d := range l.all() {
		all = append(all, d.Reason.String())
	}

	return all
}

func (l *log) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = nil
}
