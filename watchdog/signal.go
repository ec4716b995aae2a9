package watchdog

import (
	"context"

	"github.com/interlock-go/interlock/middleware"
)

var _ middleware.SignalReceiver = (*Watchdog)(nil)

// ReceiveSignal takes in what an agent or a tool reports: a progress that is
// higher than ever is news, and confidences are what the regression detector
// looks at. A signal that is out of range is ignored and counted
// ([Watchdog.Ignored]); [middleware.Report] delivers none.
func (w *Watchdog) ReceiveSignal(_ context.Context, run *middleware.Run, s middleware.Signal) {
	if !s.Valid() || run == nil {
		w.lost.add()

		return
	}
	switch {
	case s.Kind == middleware.SignalProgress && w.progress != nil:
		w.progress.signal(run, s.Value)
	case s.Kind == middleware.SignalConfidence && w.regression != nil:
		w.regression.confidence(run, s.Value)
	}
}
