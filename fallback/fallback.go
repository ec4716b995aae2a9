package fallback

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// AuthAction says what follows a refused key.
type AuthAction uint8

// The actions. The zero value is the careful one.
const (
	// AuthStop returns the failure: a revoked key should not quietly ship all traffic to another vendor.
	AuthStop AuthAction = iota
	// AuthNext benches the candidate for 10 minutes and moves on.
	AuthNext

	authEnd
)

// String returns the action's name.
func (a AuthAction) String() string {
	switch a {
	case AuthStop:
		return "stop"
	case AuthNext:
		return "next"
	default:
		return middleware.Reason(0).String()
	}
}

// Config says what a [Model] asks, and who hears of it.
type Config struct {
	// Candidates in order, the first is primary. Required: 1 to 32, labels unique.
	Candidates []Candidate
	// Requires is what the calls will need: a list in which no candidate has all of it is refused. Default none.
	Requires Capabilities
	// AttemptTimeout is the limit of one attempt. Default 0: 60 s. NoLimit, or 1 ms to 1 h.
	AttemptTimeout time.Duration
	// FirstToken is how long the first token of an attempt may take. It needs a stream: the caller's, or an inward one
	// that the model makes where the client loses nothing by it and no tools are offered. A model that thinks for long
	// before it speaks needs more. Default 0: 10 s, or AttemptTimeout if that is shorter. NoLimit, or 1 ms to
	// AttemptTimeout.
	FirstToken time.Duration
	// Idle is how long the pause between two tokens may be, in the same streams. Time that the caller's StreamingFunc
	// takes does not count. Default 0: 10 s, or AttemptTimeout if that is shorter. NoLimit, or 1 ms to AttemptTimeout.
	Idle time.Duration
	// Stream says when chunks reach the caller. Default nil: Passthrough.
	Stream StreamMode
	// NoRetry moves on at once instead of asking a candidate again. Default false.
	NoRetry bool
	// RouteByWindow skips candidates whose Window is too small for a call by a careful estimate, before they are asked;
	// the largest is always asked. Every candidate needs a Window then. Default false.
	RouteByWindow bool
	// Checks look at every response that is a success so far, in order, before it counts. Default none; nil is refused.
	Checks []ResponseCheck
	// OnAuth says what follows a refused key. Default AuthStop.
	OnAuth AuthAction
	// Pinned makes a move final: a benched candidate does not come back until restart. The last candidate is never
	// benched then. Default false.
	Pinned bool
	// Classify overrides the class of a failure; its zero value, an invalid one or a panic keeps ours. It is not asked
	// about a caller that canceled. Default nil.
	Classify func(AttemptFailure) Class
	// Around wraps every attempt, inside of span and recover: it calls next at most once. Default nil.
	Around middleware.ModelMiddleware
	// Observer hears of attempts, skips, moves, benches, probes and exhaustion. Default nil: costs nothing.
	Observer middleware.Observer
	// Tracer opens a span per attempt and, with more than one candidate, per call. Default nil: costs nothing.
	Tracer middleware.Tracer
	// Now is the clock of benches, durations and the share of retries. Default nil: time.Now.
	Now func() time.Time
	// Rand gives the jitter of waits: numbers of [0, 1), safe for concurrent use. Default nil: math/rand/v2.
	Rand func() float64
}

// Model is an [llms.Model] over an ordered list of candidates, and the innermost handler of a model chain. It is safe
// for concurrent use.
//
// A healthy call allocates three times more than the bare model, with limits off (TestHealthyCallAllocations); what it
// costs beside context.WithTimeout is shown by BenchmarkHealthy.
type Model struct {
	cfg        Config
	limits     limits
	buffer     int // bytes held back for the caller, 0 is passthrough
	timing     timing
	epoch      time.Time        // what limits are counted from
	wall       func() time.Time // for the dates of providers
	candidates []*candidate
	largest    int // window
	seq        atomic.Uint64

	mu      sync.Mutex
	benches []bench // one per candidate
	share   share
}

var (
	_ llms.ReasoningModel    = (*Model)(nil)
	_ middleware.GaugeSource = (*Model)(nil)
)

// New checks cfg and returns the model. Errors name the field, with the index of the candidate, and the reason: no
// label, model name or key.
func New(cfg Config) (*Model, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	epoch, wall := time.Now(), cfg.Now
	if wall == nil { // the monotonic clock alone costs half of both
		cfg.Now, wall = func() time.Time { return epoch.Add(time.Since(epoch)) }, time.Now
	}
	m := &Model{cfg: cfg, limits: cfg.limits(), timing: specified(), epoch: epoch, wall: wall}
	if cfg.Stream != nil {
		m.buffer = cfg.Stream.buffer()
	}
	m.cfg.Checks = slices.Clone(cfg.Checks)
	for _, given := range cfg.Candidates {
		c := newCandidate(given)
		if cfg.Around != nil {
			if c.around = cfg.Around(m.within); c.around == nil {
				return nil, invalid("Around", middleware.ReasonNilHandler, "returned nil")
			}
		}
		m.candidates, m.benches = append(m.candidates, c), append(m.benches, newBench())
		m.largest = max(m.largest, c.Window)
	}
	m.cfg.Candidates = nil // the model has its own copies
	if err := m.Serves(cfg.Requires); err != nil {
		return nil, err
	}

	return m, nil
}

func (cfg *Config) check() error {
	n := len(cfg.Candidates)
	if n == 0 {
		return invalid("Candidates", middleware.ReasonNoCandidate, "empty")
	}
	if n > maxCandidates {
		return invalid("Candidates", middleware.ReasonInvalidConfig, "more than 32")
	}
	seen := make(map[ident.Label]struct{}, n)
	for i := range cfg.Candidates {
		at := "Candidates[" + strconv.Itoa(i) + "]."
		if field, reason, text := cfg.Candidates[i].check(); field != "" {
			return invalid(at+field, reason, text)
		}
		label := cfg.Candidates[i].Label
		if _, twice := seen[label]; twice {
			return invalid(at+"Label", middleware.ReasonDuplicateLabel, "used twice")
		}
		seen[label] = struct{}{}
	}
	if cfg.RouteByWindow {
		for i := range cfg.Candidates {
			if cfg.Candidates[i].Window == 0 {
				return invalid("Candidates["+strconv.Itoa(i)+"].Window", middleware.ReasonInvalidConfig, "missing for RouteByWindow")
			}
		}
	}
	if err := cfg.checkLimits(); err != nil {
		return err
	}
	if b, ok := cfg.Stream.(Buffered); ok && (b.MaxBytes < 0 || b.MaxBytes > mostBuffered) {
		return invalid("Stream.MaxBytes", middleware.ReasonInvalidLimit, "outside of 0 to 67108864")
	}
	for i, check := range cfg.Checks {
		if check == nil {
			return invalid("Checks["+strconv.Itoa(i)+"]", middleware.ReasonInvalidConfig, "nil")
		}
	}
	if cfg.OnAuth >= authEnd {
		return invalid("OnAuth", middleware.ReasonInvalidConfig, "not one of the actions")
	}

	return nil
}

// Call implements [llms.Model] by [Model.GenerateContent].
func (m *Model) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

// SupportsReasoning implements [llms.ReasoningModel]: whether every candidate does, because a call may reach any.
func (m *Model) SupportsReasoning() bool {
	for _, c := range m.candidates {
		if r, ok := c.Model.(llms.ReasoningModel); !ok || !r.SupportsReasoning() {
			return false
		}
	}

	return true
}

// Active returns the label of the candidate that a call would start with now.
func (m *Model) Active() ident.Label {
	now := m.cfg.Now()
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.candidates[m.activeLocked(now)].Label
}

// Abandoned returns how many attempts at deaf clients were left behind and still run.
func (m *Model) Abandoned() int {
	sum := int64(0)
	for _, c := range m.candidates {
		sum += c.abandoned.Load()
	}

	return int(sum)
}

// Gauges implements [middleware.GaugeSource]: the state of each candidate is closed when it is available, open while it
// is benched, and half-open from the end of the bench, or the begin of a probe, to the next success.
func (m *Model) Gauges() []middleware.Gauge {
	now := m.cfg.Now()
	out := make([]middleware.Gauge, len(m.candidates))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.candidates {
		out[i] = middleware.Gauge{
			Kind: middleware.GaugeCircuit, Label: c.Label, Circuit: m.benches[i].circuit(now), Value: 1,
		}
	}

	return out
}
