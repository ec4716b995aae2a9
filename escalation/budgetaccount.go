package escalation

import (
	"math"
	"runtime/debug"
	"sync"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// maxAmount is where counting ends instead of going over: no limit is near it.
const maxAmount = 1<<53 - 1

// answer is where a run stands with its final answer.
type answer uint8

const (
	answerOpen    answer = iota // not stopped
	answerPending               // stopped, to come
	answerSpent                 // stopped, given or never to come
)

// account is what one run has used. Everything below the lock belongs to it.
type account struct {
	run    ident.RunID
	parent *account
	before time.Duration // used up before started, in other processes

	tree    *sync.Mutex // one for the whole tree of runs
	running bool        // there was a guarded call
	started time.Time   // when that was
	models  int64
	tools   int64
	perTool map[ident.Label]int64 // has all tools with a limit from the start
	tokens  int64
	elapsed time.Duration // never goes back, whatever the clock does
	steps   int64
	stopped Resource
	answer  answer
}

func (b *Budget) newAccount(r *middleware.Run) (*account, error) {
	a := &account{run: r.ID(), perTool: make(map[ident.Label]int64, len(b.limits.PerTool))}
	for label := range b.limits.PerTool {
		a.perTool[label] = 0
	}
	if r.Parent() == nil {
		a.tree = new(sync.Mutex)

		return a, nil
	}
	parent, err := b.slot.Get(r.Parent())
	if err != nil {
		return nil, err
	}
	a.parent, a.tree = parent, parent.tree
	a.tree.Lock()
	defer a.tree.Unlock()
	if _, why := parent.isStopped(); why != 0 {
		a.stop(why, false) // or every new child would have a last word
	}

	return a, nil
}

// demand is what one call needs.
type demand struct {
	models, tools, tokens, steps int64

	tool  ident.Label // with a limit of its own, else zero
	inner bool        // a model call that is made inside of a tool, or for the context limiter
}

// grant is what came of a demand.
type grant struct {
	seq      uint64
	admitted bool
	final    bool     // admitted as the final answer
	tripped  bool     // this demand stopped the run
	soft     bool     // refused, but the run goes on
	resource Resource // that was short
	count    int64
	limit    int64
}

// clock returns the time. It is a function of somebody else: it runs before the
// lock, and its panic is a failure.
func (b *Budget) clock() (now time.Time, err error) {
	defer func() {
		if v := recover(); v != nil {
			panicked := middleware.NewPanicError(v, debug.Stack())
			err = middleware.NewFailure(middleware.ComponentBudget, middleware.ReasonPanic, ident.Label{}, panicked)
		}
	}()

	return b.now(), nil
}

// reserve decides about a demand and charges it along the chain, or charges
// nothing.
func (b *Budget) reserve(a *account, d demand, now time.Time) grant {
	a.tree.Lock()
	defer a.tree.Unlock()
	owner, why := a.isStopped()
	if why == 0 {
		owner, why = a.short(&b.limits, &d, now)
		if why == 0 {
			a.charge(&d)

			return grant{admitted: true}
		}
		count, limit := owner.amount(why, &b.limits, d.tool)
		if why == ResourceTool {
			return grant{seq: b.seq.Add(1), soft: true, resource: why, count: count, limit: limit}
		}

		return b.stopped(a, owner, &d, grant{tripped: true, resource: why, count: count, limit: limit})
	}
	count, limit := owner.amount(why, &b.limits, d.tool)

	return b.stopped(a, owner, &d, grant{resource: why, count: count, limit: limit})
}

// stopped decides about a demand of a run that owner's limit stops.
func (b *Budget) stopped(a, owner *account, d *demand, g grant) grant {
	g.seq = b.seq.Add(1)
	for x := a; ; x = x.parent {
		x.stop(g.resource, b.final)
		if x == owner {
			break
		}
	}
	pending := b.final && a.answer == answerPending
	switch {
	case !pending:
	case d.models > 0 && !d.inner:
		a.answer = answerSpent
		a.charge(d)
		g.admitted, g.final = true, true
	default:
		g.soft = true
	}

	return g
}

// stop is for good. The first reason stays.
func (a *account) stop(why Resource, final bool) {
	if a.stopped != 0 {
		return
	}
	a.stopped, a.answer = why, answerSpent
	if final {
		a.answer = answerPending
	}
}

// onStop is where a run that stops stands.
func (b *Budget) onStop() answer {
	if b.final {
		return answerPending
	}

	return answerSpent
}

// isStopped finds the nearest run, a or around it, that is stopped.
func (a *account) isStopped() (*account, Resource) {
	for x := a; x != nil; x = x.parent {
		if x.stopped != 0 {
			return x, x.stopped
		}
	}

	return nil, 0
}

// short finds the outermost run, and its resource, that a demand would pass the
// limit of. What stops a run goes before what refuses a tool.
func (a *account) short(l *Limits, d *demand, now time.Time) (owner *account, why Resource) {
	for x := a; x != nil; x = x.parent {
		if !x.running {
			x.running, x.started = true, now
		}
		x.tick(now)
		if r := x.passed(l, d); r != 0 {
			owner, why = x, r
		}
	}
	if why != 0 || d.tool.IsZero() {
		return owner, why
	}
	limit := l.PerTool[d.tool]
	for x := a; x != nil; x = x.parent {
		if passes(x.perTool[d.tool], d.tools, limit) {
			owner, why = x, ResourceTool
		}
	}

	return owner, why
}

func (a *account) passed(l *Limits, d *demand) Resource {
	switch {
	case l.WallTime != NoLimit && a.elapsed >= l.WallTime:
		return ResourceWallTime
	case passes(a.models, d.models, l.ModelCalls):
		return ResourceModelCalls
	case passes(a.steps, d.steps, l.Steps):
		return ResourceSteps
	case passes(a.tools, d.tools, l.ToolCalls):
		return ResourceToolCalls
	case passes(a.tokens, d.tokens, l.Tokens):
		return ResourceTokens
	default:
		return 0
	}
}

// tick moves the wall time on. A clock that is set back, or runs over, gives
// nothing back.
func (a *account) tick(now time.Time) {
	if !a.running {
		return
	}
	since := max(now.Sub(a.started), 0)
	if a.before > math.MaxInt64-since {
		since = math.MaxInt64 - a.before
	}
	a.elapsed = max(a.elapsed, a.before+since)
}

// passes reports whether a demand would take the used amount over the limit.
func passes(used, more int64, limit int) bool {
	return more > 0 && limit != NoLimit && used+more > int64(limit)
}

func (a *account) charge(d *demand) {
	for x := a; x != nil; x = x.parent {
		x.models = add(x.models, d.models)
		x.tools = add(x.tools, d.tools)
		x.tokens = add(x.tokens, d.tokens)
		x.steps = add(x.steps, d.steps)
		if !d.tool.IsZero() {
			x.perTool[d.tool] = add(x.perTool[d.tool], d.tools)
		}
	}
}

// settle corrects what was charged, along the chain.
func (a *account) settle(tokens, steps int64) {
	if tokens == 0 && steps == 0 {
		return
	}
	a.tree.Lock()
	defer a.tree.Unlock()
	for x := a; x != nil; x = x.parent {
		x.tokens = add(x.tokens, tokens)
		x.steps = add(x.steps, steps)
	}
}

func add(used, more int64) int64 { return min(max(used+more, 0), maxAmount) }

// amount returns what is used of a resource, and its limit; of the wall time in
// milliseconds.
func (a *account) amount(r Resource, l *Limits, tool ident.Label) (count, limit int64) {
	switch r {
	case ResourceModelCalls:
		return a.models, int64(l.ModelCalls)
	case ResourceToolCalls:
		return a.tools, int64(l.ToolCalls)
	case ResourceTool:
		return a.perTool[tool], int64(l.PerTool[tool])
	case ResourceTokens:
		return a.tokens, int64(l.Tokens)
	case ResourceWallTime:
		return a.elapsed.Milliseconds(), max(l.WallTime.Milliseconds(), 0)
	case ResourceSteps:
		return a.steps, int64(l.Steps)
	default:
		return 0, 0
	}
}

// usage is without what passed since the last call if there is no time.
func (a *account) usage(now time.Time) Usage {
	a.tree.Lock()
	defer a.tree.Unlock()
	a.tick(now)
	u := Usage{
		ModelCalls: int(a.models), ToolCalls: int(a.tools), Tokens: int(a.tokens), WallTime: a.elapsed, Steps: int(a.steps),
		Stopped: a.stopped, Answered: a.answer == answerSpent, PerTool: make(map[ident.Label]int, len(a.perTool)),
	}
	if u.Stopped == 0 {
		_, u.Stopped = a.isStopped()
	}
	for label, n := range a.perTool {
		u.PerTool[label] = int(n)
	}

	return u
}
