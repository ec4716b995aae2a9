package watchdog_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// TestRegression reports confidences and says after which of them the next call
// finds a fall.
func TestRegression(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		window int
		drop   float64
		values []float64
		fires  string
	}{
		"a fall":                      {4, 0.2, []float64{.9, .9, .7, .7}, "...x"},
		"less than that":              {4, 0.2, []float64{.9, .9, .71, .71}, "...."},
		"not full yet":                {4, 0.2, []float64{.9, .7, .1}, "..."},
		"once until it recovers":      {4, 0.2, []float64{.9, .9, .7, .7, .5, .5, .5, .5, .9, .9, .6, .6}, "...x.......x"},
		"odd, the middle is neither":  {5, 0.2, []float64{.9, .9, 0, .8, .8}, "....."},
		"odd, and a fall":             {5, 0.2, []float64{.9, .9, 1, .7, .7}, "....x"},
		"window of two":               {2, 1, []float64{1, 0, 1, 0}, ".x.x"},
		"defaults":                    {0, 0, []float64{1, 1, 1, .8, .8}, "....x"},
		"rises":                       {4, 0.2, []float64{.1, .2, .8, .9}, "...."},
		"out of range does not count": {4, 0.2, []float64{.9, .9, math.NaN(), 1.5, -1, math.Inf(1), .7, .7}, ".......x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []watchdog.Detection
			dog := newDog(t, watchdog.Config{
				DisableLoop: true, Regression: true, RegressionWindow: tc.window, RegressionDrop: tc.drop,
				Policy: func(d watchdog.Detection) watchdog.Action {
					got = append(got, d)

					return watchdog.Observe
				},
			})
			tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
			ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{
				Workflow: ident.MustWorkflowID("workflow:org.example/test"), Receivers: []middleware.SignalReceiver{dog},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer run.End()
			var fires strings.Builder
			invalid := uint64(0)
			for _, v := range tc.values {
				if !middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: v}) {
					invalid++
				}
				before := len(got)
				if _, err := tool.Do(ctx, "", "x"); err != nil {
					t.Fatal(err)
				}
				fires.WriteString(map[bool]string{true: "x", false: "."}[len(got) > before])
			}
			if fires.String() != tc.fires {
				t.Errorf("got %s, want %s", fires.String(), tc.fires)
			}
			if run.IgnoredSignals() != invalid {
				t.Errorf("%d signals ignored, want %d", run.IgnoredSignals(), invalid)
			}
			for _, d := range got {
				if d.Reason != middleware.ReasonRegression || d.Severity < 0.999 || d.Severity > 1 || d.Count == 0 || d.Label != tool.Label() {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// TestRegressionOff: without the detector, confidences are nobody's here.
func TestRegressionOff(t *testing.T) {
	t.Parallel()
	dog := newDog(t, watchdog.Config{Policy: always(watchdog.Abort)})
	tool := toolOf(t, "lookup", middleware.ReadOnly, echo, dog.Tool())
	ctx, run := startRun(t.Context(), t)
	for i := range 10 {
		dog.ReceiveSignal(context.Background(), run, middleware.Signal{Kind: middleware.SignalConfidence, Value: float64(i%2) * 0.9})
	}
	if _, err := tool.Do(ctx, "", "x"); err != nil {
		t.Errorf("got %v", err)
	}
}
