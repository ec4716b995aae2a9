package slogx

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Message is the message of every line.
const Message = "interlock decision"

// Bounds of the registry.
const (
	MaxLabels    = 128
	MaxWorkflows = 64
)

// Config says where the lines go and which names they may contain. Everything is
// copied by [New].
type Config struct {
	// Logger takes the lines, with its own attributes and groups. Required.
	Logger *slog.Logger
	// Labels of tools, candidates and agents that lines may name. Default none, at
	// most 128.
	Labels []ident.Label
	// Workflows that lines may name: those that are registered with the guard.
	// Default none, at most 64.
	Workflows []ident.WorkflowID
	// Levels of verdicts. Default for each that is missing: allow and abstain
	// Debug, modify Info, deny and escalate Warn.
	Levels map[middleware.Verdict]slog.Level
	// Now is the wall clock of the lines. Default nil: time.Now.
	Now func() time.Time
}

// Observer writes decisions. A nil *Observer writes nothing.
type Observer struct {
	handler   slog.Handler
	labels    map[ident.Label]struct{}
	workflows map[ident.WorkflowID]struct{}
	levels    []slog.Level // by verdict; of 0 and of what is unknown: the first
	now       func() time.Time

	rejected, failed atomic.Uint64
}

var _ middleware.Observer = (*Observer)(nil)

// New returns an observer. It fails with a [*ConfigError] that names the field,
// and its bound or the entry's index.
func New(cfg Config) (*Observer, error) {
	if cfg.Logger == nil {
		return nil, refuse("Logger", "not nil")
	}
	o := &Observer{
		handler: cfg.Logger.Handler(), now: cfg.Now,
		labels:    make(map[ident.Label]struct{}, len(cfg.Labels)),
		workflows: make(map[ident.WorkflowID]struct{}, len(cfg.Workflows)),
	}
	if o.now == nil {
		o.now = time.Now
	}
	if len(cfg.Labels) > MaxLabels {
		return nil, refuse("Labels", "at most 128")
	}
	for i, l := range cfg.Labels {
		if l.IsZero() {
			return nil, refuseEntry("Labels", i, "not zero")
		}
		o.labels[l] = struct{}{} // a tool and a candidate may share one
	}
	if len(cfg.Workflows) > MaxWorkflows {
		return nil, refuse("Workflows", "at most 64")
	}
	for i, w := range cfg.Workflows {
		if w.IsZero() {
			return nil, refuseEntry("Workflows", i, "not zero")
		}
		o.workflows[w] = struct{}{}
	}

	if err := o.setLevels(cfg.Levels); err != nil {
		return nil, err
	}

	return o, nil
}

func (o *Observer) setLevels(own map[middleware.Verdict]slog.Level) error {
	verdicts := middleware.Verdicts()
	o.levels = make([]slog.Level, len(verdicts)+1)
	o.levels[0] = slog.LevelError
	for _, v := range verdicts {
		o.levels[v] = levelOf(v)
	}
	for v, level := range own {
		if v == 0 || int(v) >= len(o.levels) {
			return refuse("Levels", "keyed by verdicts")
		}
		o.levels[v] = level
	}

	return nil
}

func levelOf(v middleware.Verdict) slog.Level {
	switch v {
	case middleware.VerdictAllow, middleware.VerdictAbstain:
		return slog.LevelDebug
	case middleware.VerdictModify:
		return slog.LevelInfo
	case middleware.VerdictDeny, middleware.VerdictEscalate:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// Rejected returns how many values were rendered as _OTHER: labels and workflows
// that are not registered, and what is outside of its closed list.
func (o *Observer) Rejected() uint64 {
	if o == nil {
		return 0
	}

	return o.rejected.Load()
}

// Failed returns how many lines the handler did not take: it panicked or failed.
func (o *Observer) Failed() uint64 {
	if o == nil {
		return 0
	}

	return o.failed.Load()
}

// Observe writes d, if its level is enabled.
func (o *Observer) Observe(ctx context.Context, d middleware.Decision) {
	if o == nil {
		return
	}
	taken := false
	defer func() {
		if v := recover(); v != nil || !taken { // also Goexit
			o.failed.Add(1)
		}
	}()
	taken = o.write(ctx, &d)
}

func (o *Observer) write(ctx context.Context, d *middleware.Decision) (taken bool) {
	level := o.levels[0]
	if int(d.Verdict) < len(o.levels) {
		level = o.levels[d.Verdict]
	}
	if !o.handler.Enabled(ctx, level) {
		return true
	}
	var room [maxAttributes]slog.Attr
	// Without a program counter: the place would always be this one.
	r := slog.NewRecord(o.now(), level, Message, 0)
	r.AddAttrs(o.append(room[:0], d)...)

	return o.handler.Handle(ctx, r) == nil
}

// append renders d: what does not apply is absent.
func (o *Observer) append(a []slog.Attr, d *middleware.Decision) []slog.Attr {
	a = append(a, enumAttr(o, keyComponent, d.Component), enumAttr(o, keyVerdict, d.Verdict))
	a = appendEnum(o, a, keyAction, d.Action)
	a = appendEnum(o, a, keyReason, d.Reason)
	a = appendEnum(o, a, keyOutcome, d.Outcome)
	a = appendEnum(o, a, keyCircuitState, d.Circuit)
	a = appendEnum(o, a, keyClass, d.Class)
	if d.FailMode != middleware.FailClosed || brokeDown(d) {
		a = append(a, enumAttr(o, keyFailMode, d.FailMode))
	}
	a = appendCount(a, keySeq, d.Seq)
	a = appendCount(a, keyGeneration, d.Generation)
	a = appendCount(a, keyAttemptCount, d.Attempt)
	a = appendCount(a, keyTurn, d.Turn)
	a = appendCount(a, keyCount, d.Count)
	a = appendCount(a, keyLimit, d.Limit)
	a = appendShare(a, keySeverity, d.Severity, 1)
	a = appendShare(a, keyFill, d.Fill, math.MaxFloat64) // above 1: larger than the window
	a = appendShare(a, keyDrift, d.Drift, math.MaxFloat64)
	a = appendShare(a, keyDuration, d.Duration.Seconds(), math.MaxFloat64)
	if !d.Label.IsZero() {
		_, known := o.labels[d.Label]
		a = append(a, slog.String(keyLabel, o.registered(known, d.Label.String())))
	}
	if !d.Workflow.IsZero() {
		_, known := o.workflows[d.Workflow]
		a = append(a, slog.String(keyWorkflowID, o.registered(known, d.Workflow.String())))
	}
	if !d.Run.IsZero() {
		a = append(a, slog.String(keyRunID, d.Run.String()))
	}

	return a
}

func (o *Observer) registered(known bool, name string) string {
	if known {
		return name
	}
	o.rejected.Add(1)

	return other
}

// closed is a closed list of the vocabulary.
type closed interface {
	~uint8
	String() string
}

func enumAttr[E closed](o *Observer, key string, e E) slog.Attr {
	s := e.String()
	if s == "invalid" { // what every enum of the vocabulary renders outside of its list
		s = o.registered(false, "")
	}

	return slog.String(key, s)
}

func appendEnum[E closed](o *Observer, a []slog.Attr, key string, e E) []slog.Attr {
	if e == 0 {
		return a
	}

	return append(a, enumAttr(o, key, e))
}

func appendCount[N int | uint64](a []slog.Attr, key string, n N) []slog.Attr {
	if n <= 0 || uint64(n) > math.MaxInt64 {
		return a
	}

	return append(a, slog.Int64(key, int64(n)))
}

// appendShare keeps NaN and infinities out, which JSON has no word for.
func appendShare(a []slog.Attr, key string, v, most float64) []slog.Attr {
	if !(v > 0) || v > most {
		return a
	}

	return append(a, slog.Float64(key, v))
}

// brokeDown reports that the component itself failed: then its mode mattered. A
// panic that the action breaker counts is that of the action.
func brokeDown(d *middleware.Decision) bool {
	switch d.Reason {
	case middleware.ReasonPanic:
		return d.Component != middleware.ComponentBreaker
	case middleware.ReasonDetectorFailed, middleware.ReasonSummaryFailed, middleware.ReasonSinkFailed, middleware.ReasonStoreFailed:
		return true
	default:
		return false
	}
}
