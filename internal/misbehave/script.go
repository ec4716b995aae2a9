package misbehave

import "sync"

// Script decides how requests are answered. A server asks one request at a time, in the order of its log.
type Script interface {
	// Reply must return at once. A panic is contained: the client gets a 500 and the log AnswerScriptPanic.
	Reply(Request) Reply
}

// ScriptFunc is a Script that decides by what was received, as in "after the second tool result, answer".
type ScriptFunc func(Request) Reply

// Reply calls f.
func (f ScriptFunc) Reply(r Request) Reply { return f(r) }

// Replies gives the replies in order and then repeats the last one. Without any, it answers "ok".
func Replies(replies ...Reply) Script { return RepliesThen(nil, replies...) }

// RepliesThen gives the replies in order and then asks next. A nil next repeats the last reply.
//
// The place in the sequence belongs to the script: given to two servers, it is shared between them.
func RepliesThen(next Script, replies ...Reply) Script {
	return &sequence{replies: append([]Reply(nil), replies...), next: next}
}

type sequence struct {
	mu      sync.Mutex
	used    int
	replies []Reply
	next    Script
}

var (
	_ Script = (*sequence)(nil)
	_ Script = ScriptFunc(nil)
)

func (q *sequence) Reply(r Request) Reply {
	q.mu.Lock()
	i := q.used
	q.used = min(q.used+1, len(q.replies)) // Stays in range however long the server lives.
	q.mu.Unlock()
	switch {
	case i < len(q.replies):
		return q.replies[i]
	case q.next != nil:
		return q.next.Reply(r)
	case len(q.replies) > 0:
		return q.replies[len(q.replies)-1]
	default:
		return Reply{Text: "ok"}
	}
}
