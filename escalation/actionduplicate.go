package escalation

import (
	"unicode/utf8"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/callkey"
	"github.com/interlock-go/interlock/middleware"
)

// lastAction is the action before. Its keys are made when somebody asks: most
// actions differ from the one before by their tool, or by what a look at their
// arguments shows.
type lastAction struct {
	label         ident.Label
	input, output string
	print         loosePrint
	key, sum      callkey.Key
	printed       bool
	keyed, summed bool
	count         int // of equal actions in a row, 0: there is none
}

// repeated takes in the next action and returns how many in a row are equal.
func (l *lastAction) repeated(keys callkey.Keyer, call *middleware.ToolCall, output string) int {
	now := lastAction{label: call.Label(), input: call.Input(), output: output, count: 1}
	if l.count > 0 && l.label == now.label && l.sameInput(keys, &now) && l.sameOutput(keys, &now) {
		now.count = l.count + 1
	}
	*l = now

	return l.count
}

func (l *lastAction) sameInput(keys callkey.Keyer, now *lastAction) bool {
	if l.input == now.input {
		now.print, now.printed = l.print, l.printed
		now.key, now.keyed = l.key, l.keyed

		return true
	}
	if !l.printed {
		l.print = printLoosely(l.input)
	}
	now.print, now.printed = printLoosely(now.input), true
	if l.print.differs(now.print) {
		return false
	}
	if !l.keyed {
		l.key = keys.Call(l.label, l.input)
	}
	now.key, now.keyed = keys.Call(now.label, now.input), true

	return l.key == now.key
}

func (l *lastAction) sameOutput(keys callkey.Keyer, now *lastAction) bool {
	if l.output == now.output && l.input == now.input {
		now.sum, now.summed = l.sum, l.summed

		return true
	}
	if !l.summed {
		l.sum = keys.Result(l.input, l.output)
	}
	now.sum, now.summed = keys.Result(now.input, now.output), true

	return l.sum == now.sum
}

// loosePrint is a sum over the words of arguments, for a quick look: two that
// are plain and have different sums have different keys of package callkey. A
// word is what stands between white space and the structure of JSON, so that
// neither the order of members nor spacing matters. Arguments are plain if no
// string and no number of theirs has another spelling. Equal sums prove nothing:
// then the keys are compared, so nothing is gained by aiming at them.
type loosePrint struct {
	sum   uint64
	plain bool
}

func (p loosePrint) differs(q loosePrint) bool { return p.plain && q.plain && p.sum != q.sum }

// The parameters of FNV-1a.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func printLoosely(s string) loosePrint {
	p := loosePrint{plain: true}
	word, before := uint64(fnvOffset), byte(0)
	for i := range len(s) {
		c := s[i]
		switch c {
		case ' ', '\t', '\n', '\r', '\v', '\f', '{', '}', '[', ']', ',', ':':
			if word != fnvOffset {
				p.sum += word
				word = fnvOffset
			}
			before = c

			continue
		case '\\':
			return loosePrint{}
		case '.', 'e', 'E':
			if isDigit(before) { // 1.0 and 1e0 are 1
				return loosePrint{}
			}
		case '0':
			if before == '-' { // -0 is 0
				return loosePrint{}
			}
		}
		if c >= utf8.RuneSelf { // text is trimmed of white space that is not ASCII
			return loosePrint{}
		}
		word = (word ^ uint64(c)) * fnvPrime
		before = c
	}
	if word != fnvOffset {
		p.sum += word
	}

	return p
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
