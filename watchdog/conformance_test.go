package watchdog_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/conformance"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]watchdog.Config{
		"default":  watchdog.DefaultConfig(),
		"no stall": {DisableStall: true},
		"no loop":  {DisableLoop: true},
		"detach":   {Detach: time.Second},
	} {
		for _, effect := range middleware.Effects() {
			t.Run(name+" "+effect.String(), func(t *testing.T) {
				t.Parallel()
				conformance.Tool(t, conformance.ToolSuite{
					New:    func(t *testing.T) middleware.ToolMiddleware { t.Helper(); return newDog(t, cfg).Tool() },
					Effect: effect,
				})
			})
		}
	}
}

// TestStage: the watchdog refuses to stand inside of a layer that has to be
// inside of it.
func TestStage(t *testing.T) {
	t.Parallel()
	gate := middleware.At(middleware.StageGate, func(next middleware.ToolHandler) middleware.ToolHandler { return next })
	dog := newDog(t, watchdog.Config{}).Tool()
	ctx, _ := startRun(t.Context(), t)
	if _, err := toolOf(t, "right", 0, echo, dog, gate).Do(ctx, "", "x"); err != nil {
		t.Errorf("right order: %v", err)
	}
	if _, err := toolOf(t, "wrong", 0, echo, gate, dog).Do(ctx, "", "x"); middleware.ReasonOf(err) != middleware.ReasonUnsafeOrder {
		t.Errorf("wrong order: %v", err)
	}
}
