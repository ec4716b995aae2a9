package escalation

import (
	"context"
	"math"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Profile makes an [ActionBreaker] stricter where its target is volatile or its
// agents are unsure. With volatility v and mean confidence c it has
//
//	threshold = round(FailureThreshold · (1 − 0.6 v) · (0.5 + 0.5 c)), at least 1 and at most FailureThreshold
//	recovery  = Recovery · (1 + 4 v), at most 10 min
//
// c is the mean of the last 20 reported confidences of the workflow, 1 before
// the first. Both are evaluated at each transition and every 20 outcomes; each
// change is a decision with profile_changed: Count and Limit are the new and the
// configured threshold, Severity is v, Duration the new recovery time.
type Profile struct {
	// Volatility says how unsteady the target of a workflow is, 0…1. It runs on
	// the goroutine of the action, after it. One that fails, panics, or gives
	// anything else is taken for 1. Required.
	Volatility func(ctx context.Context, workflow ident.WorkflowID) (float64, error)
}

const (
	profileEvery = 20
	confidences  = 20
	maxAdapted   = 10 * time.Minute
)

// adapted is what a profile made of a circuit, under the circuit's lock.
type adapted struct {
	threshold int
	recovery  time.Duration

	outcomes  uint64
	asked     uint64 // evaluations that began
	applied   uint64 // the latest of them that was applied
	recent    [confidences]float64
	confident int // how many there were
}

// sure keeps a reported confidence.
func (c *actionCircuit) sure(confidence float64) {
	if c.cfg.Profile == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.adapted
	a.recent[a.confident%confidences] = confidence
	a.confident++
}

func (a *adapted) mean() float64 {
	n := min(a.confident, confidences)
	if n == 0 {
		return 1
	}
	sum := 0.0
	for _, x := range a.recent[:n] {
		sum += x
	}

	return sum / float64(n)
}

// adapt is the formula.
func adapt(threshold int, recovery time.Duration, volatility, confidence float64) (int, time.Duration) {
	strict := math.Round(float64(threshold) * (1 - 0.6*volatility) * (0.5 + 0.5*confidence)) //nolint:mnd // the formula of Profile
	longer := time.Duration(float64(recovery) * (1 + 4*volatility))

	return min(max(int(strict), 1), threshold), min(longer, maxAdapted)
}

// evaluate asks the profile and tells of a change. Of two evaluations at once,
// the one that began last stays.
func (b *ActionBreaker) evaluate(ctx context.Context, c *actionCircuit, p actionPlace) {
	c.mu.Lock()
	c.adapted.asked++
	turn := c.adapted.asked
	c.mu.Unlock()
	v := b.volatility(ctx, p.workflow)

	c.mu.Lock()
	a := &c.adapted
	changed := false
	if turn > a.applied {
		a.applied = turn
		threshold, recovery := adapt(b.cfg.FailureThreshold, b.cfg.Recovery, v, a.mean())
		changed = threshold != a.threshold || recovery != a.recovery
		a.threshold, a.recovery = threshold, recovery
	}
	d := middleware.Decision{
		Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed, Reason: middleware.ReasonProfileChanged,
		Count: a.threshold, Limit: b.cfg.FailureThreshold, Severity: v, Duration: a.recovery,
	}
	if changed {
		d.Seq = b.seq.Add(1)
	}
	c.mu.Unlock()
	if changed {
		p.label = c.label
		b.notify(ctx, p, d)
	}
}

func (b *ActionBreaker) volatility(ctx context.Context, workflow ident.WorkflowID) (v float64) {
	answered := false
	defer func() {
		if !answered {
			_ = recover()
			b.faults.Add(1)
			v = 1
		}
	}()
	v, err := b.cfg.Profile.Volatility(ctx, workflow)
	answered = err == nil && v >= 0 && v <= 1

	return v
}
