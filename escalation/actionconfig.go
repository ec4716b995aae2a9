package escalation

import (
	"context"
	"maps"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// MaxActionWorkflows bounds ActionConfig.Workflows: each has state of its own.
	MaxActionWorkflows = 64
	// MaxSlices bounds what Slice may return for one action.
	MaxSlices = 16

	maxActionCount = 1000
	maxTrials      = 64
	maxRecovery    = 24 * time.Hour
)

// ActionConfig of an [ActionBreaker].
type ActionConfig struct {
	// Workflows that have a state of their own, with the label of their gauge
	// and of their transitions; a label may be zero. All others share one state.
	// Default nil: all share it; at most 64.
	Workflows map[ident.WorkflowID]ident.Label
	// FailureThreshold: as many failures in a row, of any kind, open the
	// breaker. Default 5; 1…1000.
	FailureThreshold int
	// HardFailures: as many hard failures since the last success open it: a
	// refusal by the guardrail, a panic, an unknown outcome. Default 1: the first
	// one parks all runs of the workflow; 1…FailureThreshold.
	HardFailures int
	// Recovery is how long it stays open. Default 60 s; at most 24 h, with
	// Profile 10 min.
	Recovery time.Duration
	// SuccessThreshold: as many successes in a row close a half-open breaker.
	// Default 3; 1…1000.
	SuccessThreshold int
	// MaxTrial is how many trials may run at a time. Default 1; 1…64.
	MaxTrial int

	// Risk rates an action before it runs, 0…1. It is called in the closed and
	// half-open states only. Default nil: reported risks alone count.
	Risk func(ctx context.Context, call *middleware.ToolCall) (float64, error)
	// RiskLimit: an action whose risk is above it is refused. Default 0.8; (0, 1].
	RiskLimit float64
	// DuplicateLimit: from that many equal actions in a row on, each one is a
	// failure. Default 2; 2…1000.
	DuplicateLimit int
	// ConfidenceFloor: a reported confidence below it is a failure. Default
	// 0.60; (0, 1].
	ConfidenceFloor float64
	// DriftLimit: a reported drift above it is a failure. Default 0.85; (0, 1].
	DriftLimit float64

	// Slice returns the inputs of smaller, non-overlapping actions that do
	// together what call would do. They are calls of the same tool, without an
	// approval. Default nil: half-open admits read-only actions only.
	Slice func(ctx context.Context, call *middleware.ToolCall) ([]string, error)
	// Profile adapts FailureThreshold and Recovery. Default nil: they are fixed.
	Profile *Profile

	// Sink takes the handoffs. Default nil: they are only on the breaker.
	Sink Sink
	// SinkTimeout bounds a delivery by the context that the sink gets. Default
	// 5 s; at most 1 min.
	SinkTimeout time.Duration
	// Observer hears the decisions. Default nil: nobody.
	Observer middleware.Observer
	// Now is the clock of recovery, history and handoffs. Default nil: time.Now.
	Now func() time.Time
}

// withDefaults returns cfg with all its values, if they are within bounds.
func (cfg ActionConfig) withDefaults() (ActionConfig, error) {
	cfg.Workflows = maps.Clone(cfg.Workflows)
	if cfg.FailureThreshold == 0 {
		cfg.FailureThreshold = 5
	}
	if cfg.HardFailures == 0 {
		cfg.HardFailures = 1
	}
	if cfg.Recovery == 0 {
		cfg.Recovery = time.Minute
	}
	if cfg.SuccessThreshold == 0 {
		cfg.SuccessThreshold = 3
	}
	if cfg.MaxTrial == 0 {
		cfg.MaxTrial = 1
	}
	if cfg.RiskLimit == 0 {
		cfg.RiskLimit = 0.8
	}
	if cfg.DuplicateLimit == 0 {
		cfg.DuplicateLimit = 2
	}
	if cfg.ConfidenceFloor == 0 {
		cfg.ConfidenceFloor = defaultFloor
	}
	if cfg.DriftLimit == 0 {
		cfg.DriftLimit = 0.85
	}
	if cfg.SinkTimeout == 0 {
		cfg.SinkTimeout = defaultSinkTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Profile != nil {
		profile := *cfg.Profile
		cfg.Profile = &profile
	}

	return cfg, cfg.validate()
}

func (cfg ActionConfig) validate() error {
	const threshold, config = middleware.ReasonInvalidThreshold, middleware.ReasonInvalidConfig
	_, unset := cfg.Workflows[ident.WorkflowID{}]
	recovery, recoveryBound := maxRecovery, "in (0, 24 h]"
	if cfg.Profile != nil {
		recovery, recoveryBound = maxAdapted, "in (0, 10 min] with Profile"
	}
	for _, f := range []struct {
		ok     bool
		reason middleware.Reason
		field  string
		bound  string
	}{
		{len(cfg.Workflows) <= MaxActionWorkflows, config, "Workflows", "at most 64"},
		{!unset, config, "Workflows", "parsed workflow identifiers"},
		{within(cfg.FailureThreshold, 1, maxActionCount), threshold, "FailureThreshold", "1…1000"},
		{within(cfg.HardFailures, 1, cfg.FailureThreshold), threshold, "HardFailures", "1…FailureThreshold"},
		{cfg.Recovery > 0 && cfg.Recovery <= recovery, config, "Recovery", recoveryBound},
		{within(cfg.SuccessThreshold, 1, maxActionCount), threshold, "SuccessThreshold", "1…1000"},
		{within(cfg.MaxTrial, 1, maxTrials), threshold, "MaxTrial", "1…64"},
		{share(cfg.RiskLimit), threshold, "RiskLimit", "in (0, 1]"},
		{within(cfg.DuplicateLimit, 2, maxActionCount), threshold, "DuplicateLimit", "2…1000"},
		{share(cfg.ConfidenceFloor), threshold, "ConfidenceFloor", "in (0, 1]"},
		{share(cfg.DriftLimit), threshold, "DriftLimit", "in (0, 1]"},
		{cfg.Profile == nil || cfg.Profile.Volatility != nil, config, "Profile.Volatility", "set"},
		{cfg.SinkTimeout > 0 && cfg.SinkTimeout <= maxSinkTimeout, config, "SinkTimeout", "in (0, 1 min]"},
	} {
		if !f.ok {
			return &ConfigError{reason: f.reason, field: f.field, bound: f.bound}
		}
	}

	return nil
}

func within(n, least, most int) bool { return least <= n && n <= most }

// share reports whether x is in (0, 1]; NaN is not.
func share(x float64) bool { return x > 0 && x <= 1 }
