package watchdog

import (
	"context"
	"strings"

	"github.com/interlock-go/interlock/middleware"
)

// Model returns the response watch for model calls: it looks at what a response
// asks for. A call of a tool that was not offered in the same request is the
// model's invention: langchaingo answers it by itself, without calling any tool,
// so it is visible here only. It is reported as unknown_tool, with the number of
// such calls in the response, and changes nothing.
//
// Names are compared without case, as langchaingo looks tools up. Textual
// agents offer nothing in their requests; their calls are not looked at here.
func (w *Watchdog) Model() middleware.ModelMiddleware {
	return middleware.At(middleware.StageWatchdog, func(next middleware.ModelHandler) middleware.ModelHandler {
		if next == nil {
			return nil
		}

		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			res, err := next(ctx, call)
			if err == nil && res != nil && middleware.ValidResponse(res.Response) {
				w.inventions(ctx, call, res)
			}

			return res, err
		}
	})
}

func (w *Watchdog) inventions(ctx context.Context, call *middleware.ModelCall, res *middleware.ModelResult) {
	unknown := 0
	for _, choice := range res.Response.Choices {
		for i := range choice.ToolCalls {
			if !offered(call.Options(), choice.ToolCalls[i].FunctionCall.Name) {
				unknown++
			}
		}
		if len(choice.ToolCalls) == 0 && choice.FuncCall != nil && !offered(call.Options(), choice.FuncCall.Name) {
			unknown++
		}
	}
	if unknown == 0 {
		return
	}
	run := middleware.RunFrom(ctx)
	middleware.Notify(ctx, w.cfg.Observer, middleware.Decision{
		Seq: w.seq.Add(1), Component: middleware.ComponentWatchdog, Verdict: middleware.VerdictAbstain,
		Action: middleware.ActionProceed, Reason: middleware.ReasonUnknownTool,
		Run: run.ID(), Workflow: run.Workflow(), Turn: run.Turn() + 1, Count: unknown,
	})
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
