// Package interlock puts guards around the model calls and tool calls of an
// agent, in the one safe order, with one call.
//
//	guard, err := interlock.New(interlock.Config{Workflows: []interlock.Workflow{{ID: refunds, Label: desk}}})
//	model, err := guard.Model(primary, secondary)
//	tools, err := guard.Tools(interlock.ReadOnly(lookup), refund)
//	agent := agents.NewOpenAIFunctionsAgent(model, tools)
//	chain := guard.Chain(refunds, agents.NewExecutor(agent))
//	answer, err := chains.Run(ctx, chain, question) // each call is one run
//
// # Order
//
// Around a tool, outermost first:
//
//	recover → run → budget → escalation count → watchdog → Config.Tools… → action breaker → approval → admission gate → span → recover → tool
//
// Around a model:
//
//	recover → run → budget → escalation count → response watch → Config.Models… → confidence → context limiter → fallback
//	(per attempt: bridge → span → recover → model)
//
// The gate is the last thing before the effect; the escalation breaker counts
// from outside and sees what every inner layer refused or failed.
//
// # Runs
//
// Every guarded call belongs to a run, and a run to a registered workflow.
// [Guard.Chain] makes each Call of a langchaingo chain a run, [Guard.Do] runs a
// function in one, [Guard.StartRun] is for servers. A run that is started inside
// of another is its child: ending and halting flow down.
//
// # What is closed by default
//
// A tool is effectful until it is declared otherwise. Without an admission
// controller no effectful tool is ever called (admission_disabled). A call
// without a run is refused (no_run).
//
// # Concurrency
//
// A Guard and what it returns are safe for concurrent use. One executor of
// langchaingo serves concurrent runs as far as its memory does.
//
// # Content
//
// Errors, decisions and spans hold codes, numbers and registered names. The
// text of a tool's or provider's error is reachable by errors.Unwrap only, and
// reaches the model only where [ReleaseErrors] says so.
package interlock
