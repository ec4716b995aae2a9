package watchdog_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func TestConfigBounds(t *testing.T) {
	t.Parallel()
	custom := watchdog.DetectorFunc(nil)
	for name, tc := range map[string]struct {
		change func(*watchdog.Config)
		field  string // "" is valid
	}{
		"defaults":            {func(*watchdog.Config) {}, ""},
		"zero value":          {func(c *watchdog.Config) { *c = watchdog.Config{} }, ""},
		"smallest":            {func(c *watchdog.Config) { c.LoopThreshold, c.LoopWindow, c.StallTimeout = 1, 2, 1 }, ""},
		"largest":             {func(c *watchdog.Config) { c.LoopThreshold, c.LoopWindow = 399, watchdog.MaxLoopWindow }, ""},
		"loop":                {func(c *watchdog.Config) { c.Loop = 2 }, "Loop"},
		"fuse":                {func(c *watchdog.Config) { c.Fuse = 1 }, ""},
		"no fuse":             {func(c *watchdog.Config) { c.Fuse = -1 }, "Fuse"},
		"fuse too large":      {func(c *watchdog.Config) { c.Fuse = watchdog.MaxFuse + 1 }, "Fuse"},
		"regression":          {func(c *watchdog.Config) { c.RegressionWindow, c.RegressionDrop = 2, 1 }, ""},
		"window of one":       {func(c *watchdog.Config) { c.RegressionWindow = 1 }, "RegressionWindow"},
		"long regression":     {func(c *watchdog.Config) { c.RegressionWindow = watchdog.MaxRegressionWindow + 1 }, "RegressionWindow"},
		"no drop":             {func(c *watchdog.Config) { c.RegressionDrop = -0.1 }, "RegressionDrop"},
		"drop above one":      {func(c *watchdog.Config) { c.RegressionDrop = 1.01 }, "RegressionDrop"},
		"drop not a number":   {func(c *watchdog.Config) { c.RegressionDrop = math.NaN() }, "RegressionDrop"},
		"no interval":         {func(c *watchdog.Config) { c.PollInterval = -1 }, "PollInterval"},
		"no threshold":        {func(c *watchdog.Config) { c.LoopThreshold = -1 }, "LoopThreshold"},
		"window is threshold": {func(c *watchdog.Config) { c.LoopThreshold, c.LoopWindow = 5, 5 }, "LoopWindow"},
		"default window":      {func(c *watchdog.Config) { c.LoopThreshold, c.LoopWindow = 10, 0 }, "LoopWindow"},
		"negative window":     {func(c *watchdog.Config) { c.LoopWindow = -1 }, "LoopWindow"},
		"window too large":    {func(c *watchdog.Config) { c.LoopWindow = watchdog.MaxLoopWindow + 1 }, "LoopWindow"},
		"unused window":       {func(c *watchdog.Config) { c.DisableLoop, c.LoopWindow = true, 2 }, "LoopWindow"},
		"no timeout":          {func(c *watchdog.Config) { c.StallTimeout = -time.Second }, "StallTimeout"},
		"grace":               {func(c *watchdog.Config) { c.Detach = time.Second }, ""},
		"negative grace":      {func(c *watchdog.Config) { c.Detach = -1 }, "Detach"},
		"grace without stall": {func(c *watchdog.Config) { c.Detach, c.DisableStall = 1, true }, "Detach"},
		"fail mode":           {func(c *watchdog.Config) { c.FailMode = 7 }, "FailMode"},
		"nil detector":        {func(c *watchdog.Config) { c.Detectors = []watchdog.Detector{nil} }, "Detectors[0]"},
		"nil detector func":   {func(c *watchdog.Config) { c.Detectors = []watchdog.Detector{custom} }, "Detectors[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := watchdog.DefaultConfig()
			tc.change(&cfg)
			dog, err := watchdog.New(cfg)
			if tc.field == "" {
				if err != nil || dog == nil {
					t.Fatalf("got %v", err)
				}

				return
			}
			ce, ok := errors.AsType[*watchdog.ConfigError](err)
			if !ok || dog != nil {
				t.Fatalf("got %v, %v; want a ConfigError", dog, err)
			}
			if ce.Field() != tc.field || !strings.Contains(err.Error(), tc.field+" must be ") {
				t.Errorf("got field %q, text %q; want %q", ce.Field(), err, tc.field)
			}
			if !errors.Is(err, watchdog.ErrInvalidConfig) || ce.Reason() != middleware.ReasonInvalidConfig {
				t.Errorf("reason of %v", err)
			}
		})
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, a := range watchdog.Actions() {
		if name := a.String(); name == "invalid" || seen[name] {
			t.Errorf("action %d is named %q", a, name)
		} else {
			seen[name] = true
		}
	}
	if len(seen) != 4 || watchdog.Action(0).String() != "invalid" || watchdog.Action(200).String() != "invalid" {
		t.Error("the set of actions is not closed")
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	loops := map[middleware.Reason]bool{
		middleware.ReasonLoop: true, middleware.ReasonCycle: true, middleware.ReasonDrift: true,
		middleware.ReasonStagnation: true, middleware.ReasonFuse: true, middleware.ReasonWaiting: true,
		middleware.ReasonAnswerLoop: true, middleware.ReasonUnknownTool: true,
	}
	two := watchdog.TwoStrikes()
	for _, r := range middleware.Reasons() {
		for strike := range 4 {
			d := watchdog.Detection{Reason: r, Strike: strike}
			want := watchdog.Abort
			if loops[r] && (strike == 1 || r == middleware.ReasonStagnation) {
				want = watchdog.Nudge
			}
			if got := two(d); got != want {
				t.Errorf("TwoStrikes at %v, strike %d: %v, want %v", r, strike, got, want)
			}
			if got := watchdog.DefaultPolicy(d); got != watchdog.Abort {
				t.Errorf("DefaultPolicy at %v: %v", r, got)
			}
		}
	}
}

func TestPerReason(t *testing.T) {
	t.Parallel()
	policies := map[middleware.Reason]watchdog.Policy{
		middleware.ReasonLoop: always(watchdog.Nudge), middleware.ReasonStalled: always(watchdog.Escalate), middleware.ReasonDrift: nil,
	}
	policy := watchdog.PerReason(always(watchdog.Observe), policies)
	policies[middleware.ReasonFuse] = always(watchdog.Nudge) // it has a copy
	for reason, want := range map[middleware.Reason]watchdog.Action{
		middleware.ReasonLoop: watchdog.Nudge, middleware.ReasonStalled: watchdog.Escalate,
		middleware.ReasonDrift: watchdog.Abort, middleware.ReasonFuse: watchdog.Observe,
	} {
		if got := policy(watchdog.Detection{Reason: reason}); got != want {
			t.Errorf("%v: %v, want %v", reason, got, want)
		}
	}
	if got := watchdog.PerReason(nil, nil)(watchdog.Detection{}); got != watchdog.Abort {
		t.Errorf("nothing is named: %v", got)
	}
	if len(watchdog.Loops()) != 2 || watchdog.LoopProgress.String() != "progress" || watchdog.LoopRepeat.String() != "repeat" ||
		watchdog.Loop(9).String() != "invalid" {
		t.Error("the set of loop detectors is not closed")
	}
}
