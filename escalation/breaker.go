package escalation

import (
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// BreakerConfig says which run a [Breaker] belongs to.
type BreakerConfig struct {
	// Run that is counted. Required.
	Run ident.RunID
	// Workflow of the run. Required.
	Workflow ident.WorkflowID
	// Policy with all its limits; there is no default here.
	Policy Policy
}

// Breaker counts the failures of one run and halts it for good. It has no
// clock, no observer and does no I/O: equal calls give equal results. It is safe
// for concurrent use. The zero value and nil are halted and have no handoff.
//
//	state     operation      input            next      returns
//	counting  RecordFailure  below limits     counting  nil, nil
//	counting  RecordFailure  reaches class    halted    handoff, nil
//	counting  RecordFailure  reaches total    halted    handoff, nil
//	counting  RecordFailure  bad class        counting  nil, invalid_class
//	counting  RecordFailure  bad digest       counting  nil, invalid_digest
//	counting  RecordFailure  bad timestamp    counting  nil, invalid_timestamp
//	counting  Trip           any failure      halted    handoff, nil
//	counting  Trip           bad class        counting  nil, invalid_class
//	counting  Trip           bad digest       counting  nil, invalid_digest
//	counting  Trip           bad timestamp    counting  nil, invalid_timestamp
//	halted    RecordFailure  any failure      halted    nil, circuit_open
//	halted    RecordFailure  bad class        halted    nil, circuit_open
//	halted    Trip           any failure      halted    nil, circuit_open
//	halted    Trip           bad digest       halted    nil, circuit_open
//
// A row whose next state is its own state and that returns an error changes
// nothing. There is no way back from halted.
type Breaker struct {
	run      ident.RunID
	workflow ident.WorkflowID
	policy   Policy

	mu      sync.Mutex
	counts  Counts
	digests []ident.Digest
	handoff *Handoff
}

// NewBreaker returns a breaker that has counted nothing. It fails with a
// [ConfigError]: invalid_config for a zero Run or Workflow, invalid_threshold
// for a limit outside of 1…32.
func NewBreaker(cfg BreakerConfig) (*Breaker, error) {
	if cfg.Run.IsZero() {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "Run", bound: "set"}
	}
	if cfg.Workflow.IsZero() {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "Workflow", bound: "set"}
	}
	if err := cfg.Policy.Validate(); err != nil {
		return nil, err
	}

	return &Breaker{run: cfg.Run, workflow: cfg.Workflow, policy: cfg.Policy}, nil
}

// RecordFailure counts one failure for its class and for the total.
//
//   - It was counted and no limit is reached: nil and nil.
//   - It reached a limit: the handoff, and the breaker is halted. A trip by the
//     total carries the class of this failure.
//   - The breaker was halted before: a [middleware.Denial] of circuit_open.
//   - The input is bad: invalid_class; invalid_digest unless stepDigest is
//     exactly 64 lower-case hex digits; invalid_timestamp unless now is set, in
//     UTC, of whole seconds, and now + 30 minutes is within the year 9999.
func (b *Breaker) RecordFailure(class Class, stepDigest string, now time.Time) (*Handoff, error) {
	return b.record(class, stepDigest, now, false)
}

// Trip counts one failure and halts at once, whatever the limits say. Errors
// are those of RecordFailure.
func (b *Breaker) Trip(class Class, stepDigest string, now time.Time) (*Handoff, error) {
	return b.record(class, stepDigest, now, true)
}

func (b *Breaker) record(class Class, stepDigest string, now time.Time, trip bool) (*Handoff, error) {
	if b == nil || b.run.IsZero() {
		return nil, b.open()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handoff != nil {
		return nil, b.open()
	}
	if _, ok := routeOf(class); !ok {
		return nil, failure(middleware.ReasonInvalidClass)
	}
	digest, err := ident.ParseHexDigest(stepDigest)
	if err != nil {
		return nil, failure(middleware.ReasonInvalidDigest, err)
	}
	issued, ok := issueTime(now)
	if !ok {
		return nil, failure(middleware.ReasonInvalidTimestamp)
	}
	*counter(&b.counts, class)++
	b.digests = append(b.digests, digest)
	if !trip && b.counts.Of(class) < b.policy.limit(class) && b.counts.Total() < b.policy.Total {
		return nil, nil //nolint:nilnil // counted and nothing else happened: documented as the common case
	}
	h := Handoff{run: b.run, workflow: b.workflow, class: class, issued: issued, digests: slices.Clone(b.digests)}
	b.handoff = &h
	out := h

	return &out, nil
}

func (b *Breaker) open() error {
	var run ident.RunID
	if b != nil {
		run = b.run
	}

	return middleware.NewDenial(middleware.Refusal{
		Run: run, Component: middleware.ComponentEscalation, Reason: middleware.ReasonCircuitOpen,
	})
}

// Halted reports whether the breaker has tripped.
func (b *Breaker) Halted() bool {
	if b == nil || b.run.IsZero() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.handoff != nil
}

// Handoff returns the handoff of the trip, if there was one.
func (b *Breaker) Handoff() (Handoff, bool) {
	if b == nil {
		return Handoff{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handoff == nil {
		return Handoff{}, false
	}

	return *b.handoff, true
}

// Counts returns what was counted, the failure that tripped included.
func (b *Breaker) Counts() Counts {
	if b == nil {
		return Counts{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.counts
}
