package escalation

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// ConfidenceFunc says how sure the model is of an answer: a value in [0, 1], or
// not known. It is called with valid answers only, and must not change them. A
// model that it asks has to be another one than it stands around, or it is asked
// about that answer, too.
type ConfidenceFunc func(ctx context.Context, res *middleware.ModelResult) (value float64, known bool)

// ConfidenceConfig says how confidence is read.
type ConfidenceConfig struct {
	// Func reads it. Required; [ConfidenceField] and [ConfidenceLogProbs] are
	// ready-made.
	Func ConfidenceFunc
	// Observer hears of readings that failed. Default nil: nobody.
	Observer middleware.Observer
}

// Confidence reads the confidence of each answer of a model and reports it to
// the components of the run ([middleware.Report]): the escalation breaker counts
// a low one as uncertainty, the action breaker as a soft failure of the action
// that follows. What it reads changes nothing about the answer.
//
//	answer       reading              reported   decision
//	error        not asked for        nothing    –
//	valid        in [0, 1]            it         –
//	valid        not known            nothing    –
//	valid        NaN, out of range    0          low_confidence
//	valid        panic, Goexit        0          panic
//
// A reading that failed is no confidence: it counts as the lowest.
//
// It has no stage: it belongs inside of the escalation and the watchdog, around
// the fallback, so that there is one reading per call and none of attempts that
// were thrown away. It is safe for concurrent use. The zero value and nil make
// chains that refuse every call.
type Confidence struct {
	read     ConfidenceFunc
	observer middleware.Observer
	faults   atomic.Uint64
}

// NewConfidence returns a Confidence, or a [ConfigError] that names the field.
func NewConfidence(cfg ConfidenceConfig) (*Confidence, error) {
	if cfg.Func == nil {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "Func", bound: "not nil"}
	}

	return &Confidence{read: cfg.Func, observer: cfg.Observer}, nil
}

// Faults returns how many readings failed.
func (c *Confidence) Faults() uint64 {
	if c == nil {
		return 0
	}

	return c.faults.Load()
}

// Model returns the middleware for model calls.
func (c *Confidence) Model() middleware.ModelMiddleware {
	return func(next middleware.ModelHandler) middleware.ModelHandler {
		if c == nil || c.read == nil || next == nil {
			return refuseModel
		}

		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			res, err := next(ctx, call)
			if err == nil && ctx.Err() == nil && res != nil && middleware.ValidResponse(res.Response) {
				c.report(ctx, res)
			}

			return res, err
		}
	}
}

// refuseModel is the handler of a chain that is not whole.
func refuseModel(ctx context.Context, _ *middleware.ModelCall) (*middleware.ModelResult, error) {
	return nil, middleware.NewDenial(middleware.Refusal{
		Run: middleware.RunFrom(ctx).ID(), Component: middleware.ComponentChain, Reason: middleware.ReasonNilHandler,
	})
}

func (c *Confidence) report(ctx context.Context, res *middleware.ModelResult) {
	value, known, fault := math.NaN(), true, middleware.ReasonPanic
	defer func() { // also after Goexit
		_ = recover() // the value may hold content
		if !known {
			return
		}
		if !(value >= 0 && value <= 1) { // so that NaN is none
			c.fault(ctx, res.Candidate, fault)
			value = 0
		}
		middleware.Report(ctx, middleware.Signal{Kind: middleware.SignalConfidence, Value: value})
	}()
	value, known = c.read(ctx, res)
	fault = middleware.ReasonLowConfidence
}

func (c *Confidence) fault(ctx context.Context, label ident.Label, reason middleware.Reason) {
	seq := c.faults.Add(1)
	run := middleware.RunFrom(ctx)
	middleware.Notify(ctx, c.observer, middleware.Decision{
		Seq: seq, Component: middleware.ComponentModel, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed,
		Reason: reason, Run: run.ID(), Workflow: run.Workflow(), Label: label, Turn: run.Turn(), FailMode: middleware.FailClosed,
	})
}
