package watchdog_test

import (
	"errors"
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
