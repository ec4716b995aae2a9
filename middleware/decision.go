package middleware

import (
	"time"

	"github.com/interlock-go/interlock/ident"
)

// Decision is the only thing that components report. It holds closed enums,
// numbers and canonical identifiers; there is no field that could carry a
// prompt, an argument, a result or the text of an error.
//
// Fields that do not apply are zero.
type Decision struct {
	// Seq orders the decisions of one component instance: it is given under the
	// lock that decided, so that observers can sort what arrives concurrently.
	Seq uint64

	Component Component
	Verdict   Verdict
	Action    Action
	Reason    Reason

	Run      ident.RunID
	Workflow ident.WorkflowID // one that is registered with the guard
	Label    ident.Label      // registered name of the tool or candidate

	Turn     int            // model turn of the run, from 1
	Attempt  int            // number of the attempt, from 1
	Outcome  AttemptOutcome // of that attempt
	Class    FailureClass   // of a counted failure
	Circuit  CircuitState   // new state of a breaker
	FailMode FailMode

	Generation uint64  // of the admission ledger
	Count      int     // what was counted
	Limit      int     // against which limit
	Severity   float64 // 0…1
	Fill       float64 // share of the context window, 0…1
	Drift      float64 // 0…1

	// Duration is how long deciding took, or the call that was decided about.
	Duration time.Duration
}
