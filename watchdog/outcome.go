package watchdog

import (
	"errors"

	"github.com/interlock-go/interlock/middleware"
)

// ending says in which way a call came to its end.
type ending uint8

const (
	endMade    ending = iota
	endRefused        // by the hook: the call was not made
	endLost           // a panic or runtime.Goexit passed through
)

// outcome is what came of a call.
type outcome struct {
	kind    ending
	err     bool
	infra   bool // says nothing about the agent
	final   bool
	failing bool   // an error, or a result that says so
	result  uint64 // signature, without the call's arguments
	plain   uint64 // with them
	text    string
}

// The salts keep errors and refusals apart from results of the same words.
const (
	saltError   = 0x9e3779b97f4a7c15
	saltRefusal = 0xd1b54a32d192ed03
	saltTool    = 0x8cb92ba72f3d8dd7
)

// outcomeOf reads an error of the layers inside. Its methods are a tool
// author's: what panics is an error without a text.
func (p *progress) outcomeOf(call *middleware.ToolCall, err error) (o outcome) {
	o = outcome{err: true, failing: true, result: saltError, plain: saltError}
	defer func() {
		if recover() != nil {
			o = outcome{err: true, failing: true, result: saltError, plain: saltError}
		}
	}()
	if infrastructure(err) {
		o.infra = true

		return o
	}
	if d, ok := errors.AsType[*middleware.Denial](err); ok {
		o.result = mix(saltRefusal, uint64(d.Reason()))
		o.plain = o.result

		return o
	}
	o.text = err.Error()
	result, plain := p.signatures(call, o.text, true)
	o.result, o.plain = mix(saltError, result), mix(saltError, plain)

	return o
}

// infrastructure reports whether err is about a provider: it may fail for
// hours, and the agent makes no mistake by asking again.
func infrastructure(err error) bool {
	for _, r := range [...]middleware.Reason{
		middleware.ReasonRateLimited, middleware.ReasonOverloaded, middleware.ReasonNetwork, middleware.ReasonTimeout,
		middleware.ReasonBadResponse, middleware.ReasonQuota, middleware.ReasonNotFound, middleware.ReasonAuth,
		middleware.ReasonContextLength, middleware.ReasonContentFilter, middleware.ReasonInvalidRequest,
		middleware.ReasonUnknownError, middleware.ReasonExhausted, middleware.ReasonInterrupted,
		middleware.ReasonNoCandidate, middleware.ReasonModelFailed,
	} {
		if errors.Is(err, r) {
			return true
		}
	}

	return false
}

// mix joins two hashes into one in which their order counts.
func mix(a, b uint64) uint64 {
	const (
		odd   = 0xff51afd7ed558ccd
		shift = 29
	)
	h := (a ^ b>>32 ^ b<<32) * odd
	h ^= h >> shift
	h = (h + b) * odd

	return h ^ h>>32
}
