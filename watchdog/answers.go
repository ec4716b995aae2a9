package watchdog

import (
	"hash/maphash"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	answerLimit     = 3 // equal responses
	spokenLimit     = 5 // equal responses to ever other words of a human, who can press stop
	unreadableLimit = 4 // in a row
	maxHumans       = 4
)

// answers is what is remembered of the responses of a run.
type answers struct {
	last       uint64
	same       int
	unreadable int
	made       uint32 // calls that had come back at the last response
	quiet      bool   // observed, and nothing else was said since
	spoken     bool   // a human said something new between equal responses
	humans     [maxHumans]uint64
	next       int
}

// answer takes in a response and reports a detection. Responses count only
// while no call of a tool comes back between them: those are judged by what
// they bring.
func (p *progress) answer(run *middleware.Run, call *middleware.ModelCall, resp *llms.ContentResponse) (Detection, bool) {
	textual := textual(call.Options())
	if !textual && !call.Options().OffersTools() {
		return Detection{}, false // not an agent's: a program may ask for equal answers
	}
	t, err := p.runs.Get(run)
	if err != nil {
		return Detection{}, false
	}
	sum := p.response(resp)
	human := p.lastHuman(call.Messages())
	unreadable := textual && !readable(resp)
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &t.answers
	between, heard := a.made != t.made, a.heard(human)
	a.made = t.made
	if sum == a.last && !between {
		a.same, a.spoken = min(a.same+1, largestCounter), a.spoken || heard
	} else {
		a.last, a.same, a.spoken = sum, 1, false
	}
	limit := answerLimit
	if a.spoken {
		limit = spokenLimit
	}
	if unreadable && !between {
		a.unreadable = min(a.unreadable+1, largestCounter)
	} else {
		a.unreadable = 0
		if unreadable {
			a.unreadable = 1
		}
	}
	if a.same == 1 && a.unreadable <= 1 {
		a.quiet = false
	}
	switch {
	case a.quiet:
		return Detection{}, false
	case a.same >= limit:
		return found(middleware.ReasonAnswerLoop, a.same, limit), true
	case a.unreadable >= unreadableLimit:
		return found(middleware.ReasonAnswerLoop, a.unreadable, unreadableLimit), true
	default:
		return Detection{}, false
	}
}

// heard reports whether a human said something new, and remembers it.
func (a *answers) heard(human uint64) bool {
	for _, h := range a.humans {
		if h == human {
			return false
		}
	}
	a.humans[a.next] = human
	a.next = (a.next + 1) % maxHumans

	return true
}

// response is the signature of text and calls.
func (p *progress) response(resp *llms.ContentResponse) uint64 {
	var sum uint64
	for _, c := range resp.Choices {
		sum = mix(sum, p.keys.Result("", c.Content).Bits())
		for i := range c.ToolCalls {
			sum = mix(sum, p.asked(c.ToolCalls[i].FunctionCall))
		}
		if len(c.ToolCalls) == 0 && c.FuncCall != nil {
			sum = mix(sum, p.asked(c.FuncCall))
		}
	}

	return sum
}

func (p *progress) asked(f *llms.FunctionCall) uint64 {
	return mix(maphash.String(p.seed, strings.ToLower(f.Name)), p.keys.Call(ident.Label{}, f.Arguments).Bits())
}

// lastHuman is the signature of what a human said last in a conversation. The
// single message of a textual agent holds everything, and says nothing of it.
func (p *progress) lastHuman(messages []llms.MessageContent) uint64 {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == llms.ChatMessageTypeHuman {
			return p.keys.Result("", textOf(messages[i])).Bits()
		}
	}

	return 0
}

func textOf(m llms.MessageContent) string {
	for _, part := range m.Parts {
		if t, ok := part.(llms.TextContent); ok {
			return t.Text
		}
	}

	return ""
}

// read takes in what the run was asked for: all of its first request, and what
// a human adds to it later.
func (w *Watchdog) read(run *middleware.Run, state *runState, call *middleware.ModelCall) {
	if w.progress == nil {
		return
	}
	messages := call.Messages()
	if n := len(messages); state.read.Swap(true) {
		if n < 2 || messages[n-1].Role != llms.ChatMessageTypeHuman {
			return
		}
		messages = messages[n-1:]
	}
	for _, m := range messages {
		w.progress.prompt(run, textOf(m))
	}
}

// textual reports whether the request is one of an agent whose calls are text:
// it stops the model before it invents the answer.
func textual(v middleware.OptionsView) bool {
	for _, word := range v.StopWords() {
		if strings.Contains(word, "Observation") {
			return true
		}
	}

	return false
}

// readable reports whether a textual agent finds a call or an answer in a
// response, as langchaingo looks for them.
func readable(resp *llms.ContentResponse) bool {
	text := resp.Choices[0].Content
	action := indexFold(text, "action:")
	if action >= 0 && indexFold(text[action:], "action input:") > 0 {
		return true
	}
	for _, answer := range [...]string{"final answer", "the answer is:", "AI:"} {
		if indexFold(text, answer) >= 0 {
			return true
		}
	}

	return false
}

func indexFold(s, word string) int {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|lower == word[0]|lower && strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}

	return -1
}
