package watchdog

import (
	"context"
	"hash/maphash"

	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// progress is the loop detector that asks whether anything changes that the
// task can use. It hears of a call before it is made and of what came of it:
// a rule fires before a call that would go on with what was seen often enough.
type progress struct {
	fuse int
	keys callkey.Keyer
	seed maphash.Seed
	runs middleware.PerRun[trail]
	lost *counter
}

var _ Detector = (*progress)(nil)

func newProgress(fuse int, lost *counter) *progress {
	p := &progress{fuse: fuse, keys: callkey.New(), seed: maphash.MakeSeed(), lost: lost}
	p.runs.New = func(*middleware.Run) (*trail, error) { return &trail{fuse: fuse}, nil }

	return p
}

// visit is one call on its way through the detector. It is not kept.
type visit struct {
	trail *trail
	key   uint64
	open  bool // entered, and not left yet
	fired bool
}

// Check judges a call whose end it will not hear of.
func (p *progress) Check(ctx context.Context, call *middleware.ToolCall) (Detection, bool, error) {
	var v visit

	return p.enter(middleware.RunFrom(ctx), call, &v)
}

// enter judges a call before it is made.
func (p *progress) enter(run *middleware.Run, call *middleware.ToolCall, v *visit) (Detection, bool, error) {
	t, err := p.runs.Get(run)
	if err != nil {
		return Detection{}, false, err
	}
	v.trail, v.key = t, p.keys.Call(call.Label(), call.Input()).Bits()
	c := p.callOf(call, v.key)
	t.mu.Lock()
	defer t.mu.Unlock()
	d, fired := t.enter(&c)
	v.open, v.fired = true, fired

	return d, fired, nil
}

func (p *progress) callOf(call *middleware.ToolCall, key uint64) toolCall {
	waits, polls := waitInput(call.Input())

	return toolCall{
		keys: p.keys, seed: p.seed, label: call.Label(), input: call.Input(), key: key, turn: call.Turn(),
		effect: call.Effect(), waits: waits || waitTool(call.Label()), polls: polls || call.Effect() == middleware.Polling,
	}
}

// leave takes in what came of a call: made, refused inside, or not made
// because the hook refused it. A call that never entered, or has left already,
// is counted and changes nothing.
func (p *progress) leave(call *middleware.ToolCall, v *visit, end ending, res *middleware.ToolResult, err error) {
	if !v.open {
		p.lost.add()

		return
	}
	v.open = false
	c := p.callOf(call, v.key)
	o := outcome{kind: end}
	switch {
	case end != endMade:
	case err != nil:
		o = p.outcomeOf(call, err)
	case res != nil:
		o.text, o.final = res.Output, res.Final
		o.failing = failing(res.Output)
		o.result, o.plain = p.signatures(call, res.Output, o.failing)
	}
	t := v.trail
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(&c, &o)
}

// signatures returns what a text says without the arguments of its call, and
// with them: where those are numbers that the text is full of, only the second
// one is equal.
func (p *progress) signatures(call *middleware.ToolCall, text string, failure bool) (result, plain uint64) {
	read := p.keys.Results
	if failure {
		read = p.keys.Failure
	}
	a, b := read(call.Input(), text)

	return a.Bits(), b.Bits()
}

// observed says that a detection on the call had no consequence: the trail is
// silent until there is news.
func (v *visit) observed() {
	if !v.fired || v.trail == nil {
		return
	}
	v.trail.mu.Lock()
	defer v.trail.mu.Unlock()
	v.trail.silence()
}

// blocked says that a detection stopped the call.
func (v *visit) blocked() {
	if !v.fired || v.trail == nil {
		return
	}
	v.trail.mu.Lock()
	defer v.trail.mu.Unlock()
	v.trail.stopped()
}

// signal takes in a progress signal: a higher one than ever is news.
func (p *progress) signal(run *middleware.Run, value float64) {
	t, err := p.runs.Get(run)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.signaled || value > t.signal {
		t.signaled, t.signal = true, value
		t.raised = t.open > 0 // the call that reports it has brought it
		t.news()
	}
}

// prompt takes in what the run was asked for: arguments that it names are not
// guessed.
func (p *progress) prompt(run *middleware.Run, text string) {
	t, err := p.runs.Get(run)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.addText(p.seed, text)
}

// invention takes in calls of tools that do not exist, of one response.
func (p *progress) invention(run *middleware.Run, turn, calls int) (Detection, bool) {
	t, err := p.runs.Get(run)
	if err != nil {
		return Detection{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.invented(turn, calls)
}

// silence says that a detection between calls had no consequence.
func (p *progress) silence(run *middleware.Run) {
	t, err := p.runs.Get(run)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers.quiet = true
	t.silence()
}
