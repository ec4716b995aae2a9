package fallback

import (
	"context"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/ident"
)

// Usage is what a provider counted.
type Usage struct {
	// Attempts that were made.
	Attempts int
	// InputTokens and OutputTokens are the provider's count, also of attempts whose answer was rejected. What a client
	// does not tell is 0.
	InputTokens, OutputTokens int
}

// Report is the account of the calls that were made with a context of [WithReport]: who answered, after which attempts,
// at which cost. It holds no content. The zero Report is ready to use, and safe for concurrent use.
type Report struct {
	mu       sync.Mutex
	answered ident.Label
	attempts []Attempt
	usage    [providerEnd]Usage
}

type reportKey struct{}

// WithReport returns a context whose calls are accounted for in r. It is for those who use a [Model] as an llms.Model,
// which cannot say who answered; a nil r changes nothing.
func WithReport(ctx context.Context, r *Report) context.Context {
	if r == nil {
		return ctx
	}

	return context.WithValue(ctx, reportKey{}, r)
}

func reportFrom(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)

	return r
}

// Candidate returns the label of the candidate that answered the last call that has ended; zero if none did.
func (r *Report) Candidate() ident.Label {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.answered
}

// Attempts returns the attempts of the last call that has ended, in order, the one that answered being the last.
func (r *Report) Attempts() []Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Clone(r.attempts)
}

// Usage returns what one provider counted over all calls.
func (r *Report) Usage(p Provider) Usage {
	if !p.valid() {
		return Usage{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.usage[p]
}

// Total returns what all providers counted over all calls.
func (r *Report) Total() (sum Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.usage {
		sum.Attempts += u.Attempts
		sum.InputTokens += u.InputTokens
		sum.OutputTokens += u.OutputTokens
	}

	return sum
}

func (r *Report) end(answered ident.Label, attempts []Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered, r.attempts = answered, attempts
	for i := range attempts {
		if a := &attempts[i]; !a.Shared {
			u := &r.usage[a.Provider]
			u.Attempts++
			u.InputTokens += a.InputTokens
			u.OutputTokens += a.OutputTokens
		}
	}
}

// note keeps the account of an attempt for the report of the call.
func (w *walk) note(a Attempt) {
	if w.report != nil {
		w.made = append(w.made, a)
	}
}

// deliver hands the account over, also if the call never returns.
func (w *walk) deliver() {
	var answered ident.Label
	if w.from != nil {
		answered = w.from.Label
	}
	w.report.end(answered, w.made)
}

// account is the line about an attempt.
func (e *ended) account(c *candidate) Attempt {
	return Attempt{
		Candidate: c.Label, Provider: c.Provider, Class: e.class, Status: e.status, Limit: e.limit,
		Duration: e.duration, InputTokens: e.in, OutputTokens: e.out,
	}
}
