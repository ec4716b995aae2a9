package watchdog

import (
	"context"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// Model returns the response watch for model calls: it looks at what a response
// asks for, and at whether it is one that was there before.
//
//   - A call of a tool that was not offered in the same request is the model's
//     invention: langchaingo answers it by itself, without calling any tool, so
//     it is visible here only. Each is reported as unknown_tool; three of them
//     without news are a detection. Names are compared without case, as
//     langchaingo looks tools up. Textual agents offer nothing in their requests:
//     theirs come in by [Watchdog.UnknownTool].
//   - Equal responses three times, with no call of a tool and no new word of a
//     human between, are a detection (answer_loop), and so are four in a row that
//     a textual agent cannot read.
//
// A nudge is appended to the run's next request. Abort and Escalate return a
// denial in place of the response. Errors of a model are never evidence.
func (w *Watchdog) Model() middleware.ModelMiddleware {
	return middleware.At(middleware.StageWatchdog, func(next middleware.ModelHandler) middleware.ModelHandler {
		if next == nil {
			return nil
		}

		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			if _, nested := middleware.ToolCallFrom(ctx); nested {
				return next(ctx, call) // it answers a tool, not the agent
			}
			run := middleware.RunFrom(ctx)
			state, err := w.runs.Get(run)
			if err != nil {
				return nil, err //nolint:wrapcheck // a denial or failure of the library
			}
			if reason := state.takeOwed(); reason != 0 {
				w.reportOwed(ctx, run, where{turn: run.Turn() + 1}, reason)

				return nil, w.refuse(run, reason, owedRuling(reason))
			}
			asked := call
			if reason := state.takeNudge(); reason != 0 {
				asked = nudged(call, reason)
			}
			w.read(run, state, call)
			res, err := next(ctx, asked)
			if err != nil || res == nil || !middleware.ValidResponse(res.Response) {
				return res, err
			}
			if err := w.answered(ctx, run, state, call, res.Response); err != nil {
				return nil, err
			}

			return res, nil
		}
	})
}

// answered judges a response.
func (w *Watchdog) answered(
	ctx context.Context, run *middleware.Run, state *runState, call *middleware.ModelCall, resp *llms.ContentResponse,
) error {
	at := where{turn: run.Turn() + 1}
	if unknown := inventions(call.Options(), resp); unknown > 0 {
		d, fired := Detection{}, false
		if w.progress != nil {
			d, fired = w.progress.invention(run, at.turn, unknown)
		}
		if fired {
			return w.conclude(ctx, run, state, at, d)
		}
		w.reportInvention(ctx, run, at, unknown)
	}
	if w.progress == nil {
		return nil
	}
	d, fired := w.progress.answer(run, call, resp)
	if !fired {
		return nil
	}

	return w.conclude(ctx, run, state, at, d)
}

// conclude asks the policy about a detection between calls, makes happen what
// it says, and returns the denial that takes the place of a response, if any.
func (w *Watchdog) conclude(ctx context.Context, run *middleware.Run, state *runState, at where, d Detection) error {
	r, f := w.sentence(run, state, at, 0, d)
	w.reportFinding(ctx, run, at, f, r, true)
	if !r.blocks() {
		if w.progress != nil {
			w.progress.silence(run)
		}

		return nil
	}
	if r.action == Nudge && !r.failed {
		state.nudge.Store(uint32(d.Reason))

		return nil
	}
	reason := d.Reason
	if r.failed {
		reason = middleware.ReasonDetectorFailed
	}

	return w.refuse(run, reason, r)
}

// sentence completes a detection and asks the policy.
func (w *Watchdog) sentence(
	run *middleware.Run, state *runState, at where, detector int, d Detection,
) (ruling, finding) {
	d = w.complete(d, run, at)
	f := finding{detector: detector}
	d.Strike, d.Again, f.seq = w.strike(state, detector, d.Reason)
	f.d = d

	return w.decide(d), f
}

// UnknownTool says that the agent of the run in ctx is about to ask for a tool
// that there is not, where no request shows it: with a textual agent. It is
// counted as the response watch counts them; what follows from a detection
// happens at the run's next request or call. Without a run nothing happens, and
// that is counted.
func (w *Watchdog) UnknownTool(ctx context.Context) {
	run := middleware.RunFrom(ctx)
	state, err := w.runs.Get(run)
	if err != nil {
		w.lost.add()

		return
	}
	at := where{turn: run.Turn()}
	if w.progress != nil {
		if d, fired := w.progress.invention(run, at.turn, 1); fired {
			w.later(ctx, run, state, at, 0, d)

			return
		}
	}
	w.reportInvention(ctx, run, at, 1)
}

// later decides about a detection outside of any call: what follows waits for
// the run's next one.
func (w *Watchdog) later(ctx context.Context, run *middleware.Run, state *runState, at where, detector int, d Detection) {
	r, f := w.sentence(run, state, at, detector, d)
	switch {
	case r.failed && r.blocks():
		state.owed.Store(uint32(middleware.ReasonDetectorFailed))
	case r.action == Nudge:
		state.nudge.Store(uint32(f.d.Reason))
	case r.action == Abort:
		run.Halt(middleware.ComponentWatchdog, f.d.Reason)
	case r.action == Escalate:
		state.owed.Store(uint32(f.d.Reason))
	case detector == 0 && w.progress != nil:
		w.progress.silence(run)
	}
	w.reportFinding(ctx, run, at, f, r, true)
}

func inventions(v middleware.OptionsView, resp *llms.ContentResponse) (unknown int) {
	for _, choice := range resp.Choices {
		for i := range choice.ToolCalls {
			if !offered(v, choice.ToolCalls[i].FunctionCall.Name) {
				unknown++
			}
		}
		if len(choice.ToolCalls) == 0 && choice.FuncCall != nil && !offered(v, choice.FuncCall.Name) {
			unknown++
		}
	}

	return unknown
}

// offered asks exactly first: the view's own look-up copies nothing.
func offered(v middleware.OptionsView, name string) bool {
	if v.Offers(name) {
		return true
	}
	for _, f := range v.Functions() {
		if strings.EqualFold(f.Name, name) {
			return true
		}
	}
	for _, t := range v.Tools() {
		if t.Function != nil && strings.EqualFold(t.Function.Name, name) {
			return true
		}
	}

	return false
}
