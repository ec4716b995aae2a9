package escalation

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// ActionBreaker governs how much autonomy the agents of a workflow have, across
// runs: it stands around each action, a tool call, and judges how it ended.
// While it is closed, actions run. When too many fail it opens: actions are
// parked (refused with [ErrParked], a hard denial) and a human is asked once, by
// a [Handoff] to the sink. After the recovery time it is half-open: actions run
// under supervision, and some successes in a row close it again.
//
//	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{Workflows: labels, Sink: sink, Observer: obs})
//	chain := middleware.Chain(esc.Tool(), watch.Tool(), breaker.Tool(), gate.Tool())
//	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{
//		Workflow:  workflow,
//		Receivers: []middleware.SignalReceiver{esc, breaker},
//	})
//
// # What counts
//
// An action has one outcome, however many signals it raised: the first row of
// this list that applies. Hard ones open the breaker sooner.
//
//	guardrail         hard     Risk, or a reported risk, above RiskLimit; Risk that fails, panics or
//	                           gives no number in [0, 1]. The action is refused, unless it runs already
//	panic             hard     the action panicked
//	outcome_unknown   hard     nobody can say what the action did; it ended its goroutine
//	budget_exceeded   failure  told by the run budget, which has refused the call
//	duplicate_action  failure  same tool, canonical arguments and result signature as the action
//	                           before it in the run, DuplicateLimit times in a row; not of Polling tools,
//	                           nor where the reported progress rose
//	action_failed     failure  an error of the action
//	low_confidence    soft     reported below ConfidenceFloor
//	context_drift     soft     reported above DriftLimit, or computed by the context limiter
//	context_full      soft     told by the context limiter
//	nothing           –        refusals of layers inside (approval, admission: an operator's stop opens no
//	                           breaker), the caller's cancel or lack of time, run and chain errors, what a
//	                           nested agent is refused because the run around it was halted or has ended
//
// What is excluded is neither success nor failure; a signal of that action
// counts all the same. A cancel by the watchdog's stall clock is not the
// caller's. A caller whose time ran out leaves an unknown outcome where the tool
// cannot be repeated. A signal belongs to the action in its context, else to the
// run's next action; one that no action follows counts nothing. The budget and
// the context limiter are heard at once, outside of actions.
//
// # States
//
//	state      event                        next       decision
//	closed     success                      closed     –
//	closed     success after failures       closed     –
//	closed     failure                      closed     failure
//	closed     failure at threshold         open       failure, trip
//	closed     hard failure below           closed     failure
//	closed     hard failure                 open       failure, trip
//	closed     guardrail                    open       refused, failure, trip
//	closed     excluded                     closed     –
//	closed     earlier generation           closed     –
//	open       action                       open       parked
//	open       told                         open       –
//	open       earlier generation           open       –
//	open       action after recovery        half_open  trial
//	open       effect after recovery        half_open  trial, parked
//	half_open  success                      half_open  –
//	half_open  success at threshold         closed     recovered
//	half_open  trial errors                 open       failure, trip
//	half_open  trial panics                 open       failure, trip
//	half_open  trial ends its goroutine     open       failure, trip
//	half_open  trial is canceled            half_open  –
//	half_open  trial is refused inside      half_open  –
//	half_open  guardrail                    open       refused, failure, trip
//	half_open  told                         open       failure, trip
//	half_open  effect                       half_open  parked
//	half_open  one trial too many           half_open  parked
//	half_open  earlier generation           half_open  –
//	half_open  trial is lost                open       failure, trip, parked
//
// failure and trip carry the failure's code. told is what the budget and the
// context limiter tell; an effect is an action of a tool that is not read-only,
// without Slice. Each change of state begins a generation; outcomes of an
// earlier one are ignored. A trial is lost when its caller left and it has not
// come back within the recovery time, or for a caller that waits within ten of
// them and ten minutes: its place is free again. Until then no more than MaxTrial
// trials are under way, those of earlier generations included. The breaker is open, as State and Gauges have it, until an action
// finds that the recovery time is over. Workflows that are not registered are
// guarded, too, by one state that they share.
//
// Failures in a row are counted by a two-step breaker of gobreaker, a new one for
// each generation: it says that, and this type says when, because hard
// failures, the clock, and trials that are not as many as the successes needed
// are beyond it. It is asked only while there is a failure to remember.
//
// # Supervision
//
// Half-open admits actions of ReadOnly and Polling tools only. With Slice set,
// no action is tried as it is: Slice gives the inputs of smaller actions of the
// same tool, which are tried one after the other, each with its own verdict,
// risk and approval, within one place of MaxTrial. The first that does not
// succeed ends it. Their outputs, one per line in order, are the result. If an
// effect was made before one failed and the tool is not repeatable, the whole is
// outcome_unknown: nobody may do it again. No slice, more than [MaxSlices], one
// that is the original, two that are equal, and a Slice that fails, are refused
// as parked; a budget outside sees one call.
//
// # Handoff
//
// A trip queues one handoff: guardrail is human_gate, low_confidence and
// context_drift are low_confidence, all else is safety_review. It names the run
// of the action that tripped and one digest: [StepDigest] of run, Count and
// Label of the decision about that action, and component breaker.
//
// # Concurrency and cost
//
// It is safe for concurrent use. Observer, sink and user functions run outside
// of all locks and may read its state. A closed breaker takes one lock of the
// run twice per action and allocates nothing, which with a budget around it is
// no more than the two steps of a gobreaker; arguments are hashed only if the
// action before was of the same tool, results only if the arguments were equal
// too (BenchmarkActionBreaker, on an idle 2-core virtual machine: 80 to 160 ns
// beside a bare call, 330 ns with a budget; gobreaker's two-step form alone is
// 214 ns). For that, input and output of one action are
// kept per run, in memory, until its next action or its end.
//
// nil and the zero value make chains that refuse every call.
type ActionBreaker struct {
	cfg      ActionConfig
	circuits map[ident.WorkflowID]*actionCircuit // not written after New
	shared   *actionCircuit                      // of the workflows that are not registered
	keys     callkey.Keyer
	runs     middleware.PerRun[actionTrack]
	others   atomic.Bool // whether there was a run of such a workflow
	seq      atomic.Uint64
	faults   atomic.Uint64
}

var (
	_ middleware.SignalReceiver = (*ActionBreaker)(nil)
	_ middleware.GaugeSource    = (*ActionBreaker)(nil)
)

// ErrParked is what errors.Is finds in a refusal by the state of an
// [ActionBreaker]; ErrGuardrail in one by the risk of the action.
var (
	ErrParked    error = middleware.ReasonParked
	ErrGuardrail error = middleware.ReasonGuardrail
)

// NewActionBreaker returns a breaker whose workflows are all closed. It fails
// with a [ConfigError] that names the first field out of bounds.
func NewActionBreaker(cfg ActionConfig) (*ActionBreaker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &ActionBreaker{cfg: cfg, keys: callkey.New(), circuits: make(map[ident.WorkflowID]*actionCircuit, len(cfg.Workflows))}
	for id, label := range cfg.Workflows {
		b.circuits[id] = newActionCircuit(&b.cfg, &b.seq, label)
	}
	b.shared = newActionCircuit(&b.cfg, &b.seq, ident.Label{})
	b.runs = middleware.PerRun[actionTrack]{
		New: func(r *middleware.Run) (*actionTrack, error) {
			c := b.circuit(r.Workflow())
			if c == b.shared {
				b.others.Store(true)
			}

			return &actionTrack{keys: b.keys, limit: b.cfg.DuplicateLimit, circuit: c}, nil
		},
		End: (*actionTrack).close,
	}

	return b, nil
}

// Tool returns the middleware. It stands inside of the watchdog and of the
// user's own layers, outside of retry, approval and gate
// ([middleware.StageBreaker]), and calls next once; with Slice, once per slice.
func (b *ActionBreaker) Tool() middleware.ToolMiddleware {
	return middleware.At(middleware.StageBreaker, b.layer)
}

// State returns the state of a workflow; CircuitOpen for a nil breaker.
// Workflows that are not registered have one state in common.
func (b *ActionBreaker) State(workflow ident.WorkflowID) middleware.CircuitState {
	if b == nil || b.shared == nil {
		return middleware.CircuitOpen
	}

	return stateOf(b.circuit(workflow).word.Load())
}

// ActionTransition is one change of the state of a workflow.
type ActionTransition struct {
	// At is when it happened, by the breaker's clock.
	At time.Time
	// State is the new one.
	State middleware.CircuitState
	// Reason: that of the failure that opened it, trial for half-open,
	// recovered for closed.
	Reason middleware.Reason
	// Count of the failures that opened it, of the times that it has opened
	// since it was closed (trial), or of the successes that closed it.
	Count int
}

// MaxHistory is how many transitions of a workflow are kept, the latest ones.
const MaxHistory = 64

// History returns the latest transitions of a workflow, oldest first.
func (b *ActionBreaker) History(workflow ident.WorkflowID) []ActionTransition {
	if b == nil || b.shared == nil {
		return nil
	}

	return b.circuit(workflow).transitions()
}

// Handoff returns the handoff of the last trip of a workflow. It stays after
// the recovery.
func (b *ActionBreaker) Handoff(workflow ident.WorkflowID) (Handoff, bool) {
	if b == nil || b.shared == nil {
		return Handoff{}, false
	}
	c := b.circuit(workflow)
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.handoff, !c.handoff.IsZero()
}

// Faults returns how often a user function (Risk, Slice, Volatility, Now)
// panicked, failed, or returned what it must not.
func (b *ActionBreaker) Faults() uint64 {
	if b == nil {
		return 0
	}

	return b.faults.Load()
}

// Format prints the type for every verb and flag: the path of a sink may tell something.
func (*ActionBreaker) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "escalation.ActionBreaker")
}

// Gauges returns the state of each registered workflow under its label and, once
// there is a run of another one, that of all others under the zero label.
func (b *ActionBreaker) Gauges() []middleware.Gauge {
	if b == nil || b.shared == nil {
		return nil
	}
	readings := make([]middleware.Gauge, 0, len(b.circuits)+1)
	for _, c := range b.circuits {
		readings = append(readings, c.gauge())
	}

	if b.others.Load() || len(b.circuits) == 0 {
		readings = append(readings, b.shared.gauge())
	}

	return readings
}

// ReceiveSignal takes in what an agent or a tool reports. A signal out of range
// is ignored; [middleware.Report] counts and delivers none.
func (b *ActionBreaker) ReceiveSignal(ctx context.Context, run *middleware.Run, s middleware.Signal) {
	if b == nil || b.shared == nil || !s.Valid() {
		return
	}
	track, err := b.runs.Get(run)
	if err != nil {
		return
	}
	switch s.Kind {
	case middleware.SignalConfidence:
		track.circuit.sure(s.Value)
	case middleware.SignalProgress:
		track.progress(s.Value)
	default:
	}
	if r := b.read(s); r != readNothing {
		track.signal(ctx, r)
	}
}

func (b *ActionBreaker) read(s middleware.Signal) actionReading {
	switch {
	case s.Kind == middleware.SignalRisk && s.Value > b.cfg.RiskLimit:
		return readGuardrail
	case s.Kind == middleware.SignalConfidence && s.Value < b.cfg.ConfidenceFloor:
		return readConfidence
	case s.Kind == middleware.SignalDrift && s.Value > b.cfg.DriftLimit:
		return readDrift
	default:
		return readNothing
	}
}

// note hears of what happened outside of an action: a budget that was exceeded
// (budget_exceeded), a context that was full or had drifted (context_full,
// context_drift). Inside of an action of the run it is a signal of that one. It
// is safe on a nil breaker.
func (b *ActionBreaker) note(ctx context.Context, run *middleware.Run, reason middleware.Reason) {
	r := readingOf(reason)
	if b == nil || b.shared == nil || run == nil || r == readNothing {
		return
	}
	if track, err := b.runs.Get(run); err == nil && track.inside(ctx, r) {
		return
	}
	c := b.circuit(run.Workflow())
	rep := c.told(r, b.clock())
	p := actionPlace{run: run.ID(), workflow: run.Workflow(), label: run.Label(), turn: run.Turn()}
	if call, ok := middleware.ToolCallFrom(ctx); ok {
		p = placeOfAction(run, call)
	}
	b.publish(ctx, c, p, &rep)
}

func (b *ActionBreaker) circuit(workflow ident.WorkflowID) *actionCircuit {
	if c, ok := b.circuits[workflow]; ok {
		return c
	}

	return b.shared
}

// clock returns the time, zero if the clock panics: nothing becomes due then.
func (b *ActionBreaker) clock() (now time.Time) {
	defer func() {
		if recover() != nil {
			b.faults.Add(1)
			now = time.Time{}
		}
	}()

	return b.cfg.Now()
}
