package interlock

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// MaxWorkflows bounds Config.Workflows: they are a telemetry attribute.
const MaxWorkflows = 64

// Workflow registers a workflow with a guard.
type Workflow struct {
	// ID of the workflow. Required, unique.
	ID ident.WorkflowID
	// Label of its agent in telemetry. Zero: none.
	Label ident.Label
}

// Config says how calls are guarded. Workflows is the only required field; the
// defaults of the rest are the safe ones.
type Config struct {
	// Workflows whose runs the guard starts. Required, 1…64.
	Workflows []Workflow
	// Admission is the ledger that effects are checked against. Default nil:
	// admission is disabled and no effectful tool is ever called.
	Admission admission.Store
	// Approver is asked about each call of an effectful tool, after every other
	// layer and before the gate. Default nil: no approvals are needed.
	Approver admission.Approver
	// Escalation is after how many failures of which class a run halts. Default
	// (the zero value): escalation.DefaultPolicy().
	Escalation escalation.Policy
	// Handoffs takes the handoffs of halted runs. Default nil: they are kept
	// with the run only (Run.Handoff).
	Handoffs escalation.Sink
	// Budget bounds the work of each run, its children included. Default:
	// escalation.DefaultBudget(), without a final answer; Limits with some fields
	// set need all of them but PerTool. Its Breaker and Now are the guard's; its
	// Observer hears beside the guard's.
	Budget escalation.BudgetConfig
	// Actions governs the autonomy of each workflow across runs. Default:
	// escalation.ActionConfig's, by which a single action that panics, or whose
	// outcome is unknown (a payment that timed out or stalled), parks all runs of
	// its workflow for a minute, and then until three supervised look-ups went
	// well: HardFailures says how many it takes. Its Workflows and Sink, where
	// they are not set, and Now are the guard's; its Observer hears beside the
	// guard's.
	Actions escalation.ActionConfig
	// Context shortens the history of requests that fill the model's window or
	// drift from their task. Its Window, where it is not set, is the smallest of
	// a model's candidates. Its Breaker is the guard's; its Observer hears beside
	// the guard's. Default nil: histories are left alone.
	Context *escalation.ContextConfig
	// Confidence says how sure the model is of an answer, to the escalation and
	// the action breaker. Default nil: only what the agent or its tools report.
	Confidence escalation.ConfidenceFunc
	// Watchdog watches for loops and stalls. Default: watchdog.DefaultConfig(),
	// but with the policy TwoStrikes where none is given.
	Watchdog watchdog.Config
	// Tools is the user's own middleware around every tool call: inside of the
	// watchdog, outside of the gate. No member may be nil.
	Tools []middleware.ToolMiddleware
	// Models is the user's own middleware around every model call, outside of
	// the fallback. No member may be nil.
	Models []middleware.ModelMiddleware
	// ErrorText releases the error text of every tool to the model. See
	// ReleaseErrors. Default false.
	ErrorText bool
	// Observer hears of every decision. Default nil: nobody.
	Observer middleware.Observer
	// Tracer opens spans for runs, attempts and tools. One with a method
	// Slot() middleware.Slot keeps state with saved runs, as otelx does for its
	// links. Default nil: none.
	Tracer middleware.Tracer
	// Fallback holds what all models of the guard share.
	Fallback Fallback
	// Now is the wall clock of handoffs and receipts, and the clock by which a
	// failed candidate is left alone for a while. Default nil: time.Now.
	Now func() time.Time
}

// Guard builds the chains in the safe order. It is safe for concurrent use and
// has no goroutines of its own.
type Guard struct {
	cfg        Config
	labels     map[ident.WorkflowID]ident.Label
	admission  *admission.Controller
	escalation *escalation.Escalation
	actions    *escalation.ActionBreaker
	budget     *escalation.Budget
	confidence *escalation.Confidence // nil: none
	watchdog   *watchdog.Watchdog
	toolChain  middleware.ToolMiddleware
	modelChain middleware.ModelMiddleware
	slots      []middleware.Slot
	receivers  []middleware.SignalReceiver
	names      toolNames

	mu     sync.Mutex
	gauges []middleware.GaugeSource // of the models that were made
}

var _ middleware.GaugeSource = (*Guard)(nil)

// New returns a guard, or a [ConfigError] that names the field and its bound.
func New(cfg Config) (*Guard, error) {
	g := &Guard{cfg: cfg, labels: make(map[ident.WorkflowID]ident.Label, len(cfg.Workflows))}
	if err := g.register(cfg.Workflows); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(cfg.Tools, func(m middleware.ToolMiddleware) bool { return m == nil }); i >= 0 {
		return nil, badConfig("Tools["+strconv.Itoa(i)+"]", "not nil", nil)
	}
	if i := slices.IndexFunc(cfg.Models, func(m middleware.ModelMiddleware) bool { return m == nil }); i >= 0 {
		return nil, badConfig("Models["+strconv.Itoa(i)+"]", "not nil", nil)
	}
	if err := g.build(); err != nil {
		return nil, err
	}
	g.order()

	return g, nil
}

func (g *Guard) register(workflows []Workflow) error {
	if n := len(workflows); n < 1 || n > MaxWorkflows {
		return badConfig("Workflows", "1…64 workflows", nil)
	}
	for i, w := range workflows {
		if w.ID.IsZero() {
			return badConfig("Workflows["+strconv.Itoa(i)+"].ID", "a parsed workflow identifier", nil)
		}
		if _, twice := g.labels[w.ID]; twice {
			return badConfig("Workflows["+strconv.Itoa(i)+"].ID", "an identifier of its own", nil)
		}
		g.labels[w.ID] = w.Label
	}

	return nil
}

// build makes the parts.
func (g *Guard) build() (err error) {
	g.admission, err = admission.New(admission.Config{
		Store: g.cfg.Admission, Approver: g.cfg.Approver, Observer: g.cfg.Observer, Now: g.cfg.Now,
	})
	if err != nil {
		return badConfig("Admission", "a usable store", err)
	}
	g.escalation, err = escalation.New(escalation.Config{
		Policy: g.cfg.Escalation, Sink: g.cfg.Handoffs, Observer: g.cfg.Observer, Now: g.cfg.Now,
	})
	if err != nil {
		return badConfig("Escalation", "limits of 1…32", err)
	}
	if err := g.buildBounds(); err != nil {
		return err
	}
	wd := g.cfg.Watchdog
	if wd.Policy == nil {
		wd.Policy = watchdog.TwoStrikes() // a nudge blocks the call as safely, and a false stop costs less
	}
	wd.Observer = middleware.Observers(wd.Observer, g.cfg.Observer)
	if g.watchdog, err = watchdog.New(wd); err != nil {
		return badConfig("Watchdog", "as watchdog.Config says", err)
	}

	return nil
}

// buildBounds makes what bounds runs and workflows. The budget and the context
// limiter tell the action breaker, which stands inside of them.
func (g *Guard) buildBounds() (err error) {
	actions := g.cfg.Actions
	if actions.Workflows == nil {
		actions.Workflows = g.labels
	}
	if actions.Sink == nil {
		actions.Sink = g.cfg.Handoffs
	}
	actions.Observer, actions.Now = middleware.Observers(actions.Observer, g.cfg.Observer), g.cfg.Now
	if g.actions, err = escalation.NewActionBreaker(actions); err != nil {
		return badConfig("Actions", "as escalation.ActionConfig says", err)
	}
	budget := g.cfg.Budget
	budget.Breaker, budget.Now = g.actions, g.cfg.Now
	budget.Observer = middleware.Observers(budget.Observer, g.cfg.Observer)
	if g.budget, err = escalation.NewBudget(budget); err != nil {
		return badConfig("Budget", "as escalation.Limits says", err)
	}
	if g.cfg.Context != nil {
		window := g.cfg.Context.Window
		if window == 0 {
			window = 1 // the candidates have it; what is wrong with the rest is said now
		}
		if _, err = g.limiter(window); err != nil {
			return badConfig("Context", "as escalation.ContextConfig says", err)
		}
	}
	if g.cfg.Confidence == nil {
		return nil
	}
	g.confidence, err = escalation.NewConfidence(escalation.ConfidenceConfig{Func: g.cfg.Confidence, Observer: g.cfg.Observer})

	return err
}

// limiter makes a context limiter for models of this window.
func (g *Guard) limiter(window int) (*escalation.ContextLimiter, error) {
	cfg := *g.cfg.Context
	cfg.Window, cfg.Breaker = window, g.actions
	cfg.Observer = middleware.Observers(cfg.Observer, g.cfg.Observer)

	return escalation.NewContextLimiter(cfg)
}

// order composes the two chains. This is the one place that knows the order;
// the adapters put recover and the run check around it, and settle inside.
func (g *Guard) order() {
	tools := []middleware.ToolMiddleware{g.budget.Tool(), g.escalation.Tool(), g.watchdog.Tool()}
	tools = append(tools, g.cfg.Tools...)
	tools = append(tools,
		g.actions.Tool(), g.admission.Approvals().Tool(), g.admission.Gate().Tool(), middleware.TraceTool(g.cfg.Tracer))
	g.toolChain = middleware.Chain(tools...)

	models := []middleware.ModelMiddleware{g.budget.Model(), g.escalation.Model(), g.watchdog.Model()}
	models = append(models, g.cfg.Models...)
	if g.confidence != nil {
		models = append(models, g.confidence.Model())
	}
	g.modelChain = middleware.Chain(models...)

	g.slots = []middleware.Slot{g.escalation.Slot(), g.budget.Slot(), traceSlot(g.cfg.Tracer)}
	g.receivers = []middleware.SignalReceiver{g.escalation, g.watchdog, g.actions}
}

// ToolChain returns the guard's layers around a tool, for an executor that is
// not langchaingo's: give it to middleware.NewTool, which puts recover and the
// run check around it.
func (g *Guard) ToolChain() middleware.ToolMiddleware { return g.toolChain }

// ModelChain returns the guard's layers around a model, without the context
// limiter, whose window depends on the model, and without the fallback: give it
// to middleware.NewModel.
func (g *Guard) ModelChain() middleware.ModelMiddleware { return g.modelChain }

// Admission returns the controller that the guard's gate asks.
func (g *Guard) Admission() *admission.Controller { return g.admission }

// Watchdog returns the guard's watchdog, for a [watchdog.Runner] in its runs.
func (g *Guard) Watchdog() *watchdog.Watchdog { return g.watchdog }

// Actions returns the breaker of the guard's workflows: their state and history.
func (g *Guard) Actions() *escalation.ActionBreaker { return g.actions }

// Budget returns the budget of the guard's runs.
func (g *Guard) Budget() *escalation.Budget { return g.budget }

// Format prints the type for every verb and flag: its configuration may tell something.
func (*Guard) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "interlock.Guard") }

// Gauges returns the current readings of the gate, the action breaker, the
// handoff sink and the guard's models, for alerts. A sink of Actions of its own is
// not among them: watch it beside the guard.
func (g *Guard) Gauges() []middleware.Gauge {
	g.mu.Lock()
	sources := slices.Clone(g.gauges)
	g.mu.Unlock()
	readings := append(g.admission.Gauges(), g.actions.Gauges()...)
	if s, ok := g.cfg.Handoffs.(middleware.GaugeSource); ok {
		readings = append(readings, s.Gauges()...)
	}
	for _, s := range sources {
		readings = append(readings, s.Gauges()...)
	}

	return readings
}
