package canary_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/internal/misbehave"
)

// inside holds what has really gone in since the slot began: a secret that never
// arrived could not come out. Slots are tried one after the other.
var inside recorder

type recorder struct {
	mu   sync.Mutex
	text []byte
}

// enter notes a text on its way in, and returns it.
func (r *recorder) enter(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(append(r.text, text...), '\n')

	return text
}

// take returns what was noted, and forgets it.
func (r *recorder) take() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.text
	r.text = nil

	return text
}

// enterError notes what an error would say, also one that panics when asked.
func (r *recorder) enterError(err error) {
	defer func() {
		if v := recover(); v != nil {
			r.enter(fmt.Sprint(v))
		}
	}()
	if err != nil {
		r.enter(err.Error())
	}
}

// enterReply notes what a provider says.
func (r *recorder) enterReply(reply misbehave.Reply) {
	r.enter(fmt.Sprintf("%q %+v %+v %+v %s", reply.Text, reply.Calls, reply.Headers, reply.Finish, reply.Model))
	if reply.Raw != nil {
		r.enter(reply.Raw.Body)
	}
	if reply.Error != nil {
		r.enter(reply.Error.Message)
	}
}

// watched is a tool of which is noted what it is called with and what it does.
func watched(t tool) tool {
	call := t.call
	inside.enter(t.name + t.description)
	t.call = func(ctx context.Context, input string) (string, error) {
		defer func() {
			if v := recover(); v != nil {
				inside.enter(fmt.Sprint(v))
				panic(v)
			}
		}()
		inside.enter(input)
		out, err := call(ctx, input)
		inside.enter(out)
		inside.enterError(err)

		return out, err
	}

	return t
}
