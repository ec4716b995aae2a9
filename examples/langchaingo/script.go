package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/internal/misbehave"
)

// The provider's side of the acts: what the model answers, by what it has been
// told so far. The wire is real; only the model's wit is scripted.

const order = "1001"

// refundScript answers a ticket through an agent built on functions: look up,
// refund, notify, done.
func refundScript(r misbehave.Request) misbehave.Reply {
	switch len(r.Results()) {
	case 0:
		return call("lookup_order", order)
	case 1:
		return call("issue_refund", order)
	case 2:
		return call("notify_customer", order)
	default:
		return misbehave.Reply{Text: "The order was refunded and the customer was told."}
	}
}

// notifyScript wants to reach the customer whatever it is told.
func notifyScript(r misbehave.Request) misbehave.Reply {
	n := len(r.Results())
	if n == 0 {
		return call("lookup_order", order)
	}

	return call("notify_customer", order+strings.Repeat(" ", n)+"again "+strconv.Itoa(n))
}

// waitScript asks for the state of a refund until it is there.
func waitScript(r misbehave.Request) misbehave.Reply {
	if results := r.Results(); len(results) > 0 && strings.Contains(results[len(results)-1].Text, arrived) {
		return misbehave.Reply{Text: "The money has arrived."}
	}

	return call("refund_status", order)
}

// parkedScript refunds in its first, second and fourth run, and only looks in the third: three orders, and sums up.
// A run begins with a request that holds no results.
func parkedScript() misbehave.ScriptFunc {
	run := 0

	return func(r misbehave.Request) misbehave.Reply {
		n := len(r.Results())
		if n == 0 {
			run++
		}
		if run != supervisedRun {
			return refundScript(r)
		}
		if n < lookUps {
			return call("lookup_order", strconv.Itoa(firstOrder+n))
		}

		return misbehave.Reply{Text: summary}
	}
}

const (
	supervisedRun = 3
	lookUps       = 3 // as many successes as close the breaker
)

// curiousScript looks at one order after the other as long as it is offered tools.
func curiousScript(r misbehave.Request) misbehave.Reply {
	if len(r.Tools) == 0 {
		return misbehave.Reply{Text: summary}
	}

	return call("lookup_order", strconv.Itoa(firstOrder+len(r.Results())))
}

// inventoryScript looks at every order, whatever it still remembers of the earlier ones.
func inventoryScript(r misbehave.Request) misbehave.Reply {
	if r.Index == orders {
		return misbehave.Reply{Text: summary}
	}

	return call("lookup_order", strconv.Itoa(firstOrder+r.Index))
}

const (
	firstOrder = 1001
	orders     = 14
)

// loopScript is a textual agent that asks the same question for ever.
func loopScript(misbehave.Request) misbehave.Reply {
	return misbehave.Reply{Text: "I should look at the order.\nAction: lookup_order\nAction Input: " + order}
}

// summary is a final answer of some length.
const summary = "Order 1001 arrived damaged, and the customer wants the money back: please refund it in full."

// lookupScript looks the order up and sums up.
func lookupScript(r misbehave.Request) misbehave.Reply {
	if len(r.Results()) == 0 {
		return call("lookup_order", order)
	}

	return misbehave.Reply{Text: summary}
}

// cutScript breaks off in the middle of the summary.
func cutScript(r misbehave.Request) misbehave.Reply {
	reply := lookupScript(r)
	if reply.Text != "" {
		reply.Fault, reply.At = misbehave.FaultCut, 6
	}

	return reply
}

// silent takes a request and says nothing, for as long as anybody waits.
func silent(misbehave.Request) misbehave.Reply {
	return misbehave.Reply{Text: summary, Fault: misbehave.FaultStall}
}

// leavesScript looks the order up and is down from then on.
func leavesScript(r misbehave.Request) misbehave.Reply {
	if len(r.Results()) == 0 {
		return call("lookup_order", order)
	}

	return down(r)
}

// takesOverScript goes on from there: a text beside two parallel calls.
func takesOverScript(r misbehave.Request) misbehave.Reply {
	if len(r.Results()) > 1 {
		return misbehave.Reply{Text: summary}
	}
	both := call("issue_refund", order)
	both.Text = "I will refund it and tell the customer."
	both.Calls = append(both.Calls, call("notify_customer", order).Calls...)

	return both
}

func down(misbehave.Request) misbehave.Reply { return misbehave.Reply{Status: 503} }

// call asks for one tool call with langchaingo's single string argument.
func call(name, input string) misbehave.Reply {
	args, err := json.Marshal(map[string]string{"__arg1": input})
	if err != nil { // a map of strings always renders
		return misbehave.Reply{Status: 500}
	}

	return misbehave.Reply{Calls: []misbehave.Call{{Name: name, Arguments: string(args)}}}
}
