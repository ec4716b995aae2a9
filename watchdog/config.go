package watchdog

import (
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// The defaults, see [Config].
const (
	DefaultLoopThreshold    = 3
	DefaultLoopWindow       = 10
	DefaultFuse             = 15
	DefaultRegressionWindow = 5
	DefaultRegressionDrop   = 0.2
	DefaultPollInterval     = time.Second
	DefaultStallTimeout     = time.Minute
)

// MaxFuse bounds Config.Fuse, MaxRegressionWindow Config.RegressionWindow.
const (
	MaxFuse             = 1000
	MaxRegressionWindow = 100
)

// MaxLoopWindow bounds Config.LoopWindow, so that the state of a run stays below
// 8 KiB.
const MaxLoopWindow = 400

// ErrInvalidConfig is found by errors.Is in every error of [New].
var ErrInvalidConfig error = middleware.ReasonInvalidConfig

// Config says what is watched. Its zero value is usable and means the same as
// [DefaultConfig].
type Config struct {
	// Loop is the rule that loops are found by. Default LoopProgress.
	Loop Loop
	// Fuse is after how many steps without any news LoopProgress fires whatever
	// their pattern. Default 15, steps, 1…1000; 0 means the default.
	Fuse int
	// LoopThreshold, of LoopRepeat, is how many calls of one pair of tool and arguments are
	// tolerated in the window. Default 3, calls, at least 1; 0 means the default.
	LoopThreshold int
	// LoopWindow, of LoopRepeat, is how many of the run's last tool calls are looked at. Default
	// 10, calls, LoopThreshold+1…400; 0 means the default.
	LoopWindow int
	// DisableLoop turns the loop detector off. Default false.
	DisableLoop bool
	// StallTimeout is how long a tool call may be open. Default one minute,
	// above 0; 0 means the default.
	StallTimeout time.Duration
	// DisableStall turns the stall detector off. Default false.
	DisableStall bool
	// Detach is how long a tool that ignores its context is waited for after it
	// was cancelled for a stall. Default 0: for as long as it takes. Above 0 it
	// needs the stall detector.
	Detach time.Duration
	// Regression turns the detector of a falling confidence on. Default false.
	Regression bool
	// RegressionWindow is how many of the last reported confidences are looked
	// at. Default 5, values, 2…100; 0 means the default.
	RegressionWindow int
	// RegressionDrop is how far the mean of the last half has to be below that of
	// the first. Default 0.2, in (0, 1]; 0 means the default.
	RegressionDrop float64
	// Detectors are asked after those of this package, in order. Default none. No
	// member may be nil. Those that are a [Poller] are polled by a [Runner] too.
	Detectors []Detector
	// PollInterval is how often a [Runner] polls. Default 1 s, above 0; 0 means
	// the default.
	PollInterval time.Duration
	// Policy says what follows from a detection. Default nil: [DefaultPolicy].
	Policy Policy
	// FailMode says what happens to a call when a detector or the policy fails.
	// Default FailClosed.
	FailMode middleware.FailMode
	// Observer hears of every detection and failure. Default nil: nobody.
	Observer middleware.Observer
	// Now is the wall clock of Detection.At. Default nil: time.Now. Timers do
	// not use it.
	Now func() time.Time
}

// DefaultConfig returns the defaults, spelled out.
func DefaultConfig() Config {
	return Config{
		Loop: LoopProgress, Fuse: DefaultFuse, LoopThreshold: DefaultLoopThreshold, LoopWindow: DefaultLoopWindow,
		StallTimeout: DefaultStallTimeout, RegressionWindow: DefaultRegressionWindow, RegressionDrop: DefaultRegressionDrop,
		PollInterval: DefaultPollInterval, Policy: DefaultPolicy,
	}
}

// complete returns c with its defaults filled in, or a [ConfigError]. What is
// turned off is checked too: it may be turned on without being looked at again.
func (c Config) complete() (Config, error) {
	d := DefaultConfig()
	if c.Fuse == 0 {
		c.Fuse = d.Fuse
	}
	if c.LoopThreshold == 0 {
		c.LoopThreshold = d.LoopThreshold
	}
	if c.LoopWindow == 0 {
		c.LoopWindow = d.LoopWindow
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = d.StallTimeout
	}
	if c.RegressionWindow == 0 {
		c.RegressionWindow = d.RegressionWindow
	}
	if c.RegressionDrop == 0 {
		c.RegressionDrop = d.RegressionDrop
	}
	if c.PollInterval == 0 {
		c.PollInterval = d.PollInterval
	}
	if c.Policy == nil {
		c.Policy = d.Policy
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case c.Loop >= loopEnd:
		return c, refuse("Loop", "LoopProgress or LoopRepeat")
	case c.Fuse < 1 || c.Fuse > MaxFuse:
		return c, refuse("Fuse", "1…"+strconv.Itoa(MaxFuse))
	case c.LoopThreshold < 1:
		return c, refuse("LoopThreshold", "at least 1")
	case c.LoopWindow <= c.LoopThreshold:
		return c, refuse("LoopWindow", "at least LoopThreshold+1")
	case c.LoopWindow > MaxLoopWindow:
		return c, refuse("LoopWindow", "at most "+strconv.Itoa(MaxLoopWindow))
	case c.StallTimeout < 0:
		return c, refuse("StallTimeout", "above 0")
	case c.RegressionWindow < 2 || c.RegressionWindow > MaxRegressionWindow:
		return c, refuse("RegressionWindow", "2…"+strconv.Itoa(MaxRegressionWindow))
	case !(c.RegressionDrop > 0 && c.RegressionDrop <= 1): // so that NaN is refused
		return c, refuse("RegressionDrop", "in (0, 1]")
	case c.PollInterval < 0:
		return c, refuse("PollInterval", "above 0")
	case c.Detach < 0:
		return c, refuse("Detach", "at least 0")
	case c.Detach > 0 && c.DisableStall:
		return c, refuse("Detach", "0 if DisableStall is set")
	case c.FailMode != middleware.FailClosed && c.FailMode != middleware.FailOpen:
		return c, refuse("FailMode", "FailClosed or FailOpen")
	}
	for i, det := range c.Detectors {
		if f, isFunc := det.(DetectorFunc); det == nil || isFunc && f == nil {
			return c, refuse("Detectors["+strconv.Itoa(i)+"]", "not nil")
		}
	}
	c.Detectors = slices.Clone(c.Detectors)

	return c, nil
}

// ConfigError names the field of a [Config] that is out of bounds. It does not
// hold the value.
type ConfigError struct{ field, bound string }

var _ middleware.Reasoned = (*ConfigError)(nil)

func refuse(field, bound string) error { return &ConfigError{field: field, bound: bound} }

// Reason returns invalid_config.
func (e *ConfigError) Reason() middleware.Reason { return middleware.ReasonInvalidConfig }

// Field returns the name of the field, as it is spelled in the source.
func (e *ConfigError) Field() string { return e.field }

// Error returns field and bound.
func (e *ConfigError) Error() string {
	return "interlock: watchdog: " + e.Reason().String() + ": " + e.field + " must be " + e.bound
}

// Is reports whether target is invalid_config.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }
