package fallback

import (
	"context"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"
)

// maxAbandoned bounds how many attempts at one deaf client may be left behind; it is skipped while they run.
const maxAbandoned = 32

// generate asks the client, on a goroutine of its own if it is deaf.
func (a *attempt) generate(
	ctx context.Context, messages []llms.MessageContent, options []llms.CallOption,
) (*llms.ContentResponse, error) {
	c := a.c
	if !c.deaf {
		return c.ask(ctx, messages, options)
	}
	type answer struct {
		resp *llms.ContentResponse
		err  error
	}
	answers := make(chan answer, 1)
	var settled atomic.Bool
	go func() { // ends with the client's call; c.abandoned counts those that nobody waits for
		got := answer{err: errGoexit}
		defer func() {
			answers <- got
			if !settled.CompareAndSwap(false, true) {
				c.abandoned.Add(-1)
			}
		}()
		got.resp, got.err = c.ask(ctx, messages, options)
	}()
	select {
	case got := <-answers:
		return got.resp, got.err
	case <-ctx.Done():
	}
	c.abandoned.Add(1)
	if settled.CompareAndSwap(false, true) {
		a.left.Store(true)

		return nil, ctx.Err()
	}
	c.abandoned.Add(-1) // it answered in the same moment
	got := <-answers

	return got.resp, got.err
}
