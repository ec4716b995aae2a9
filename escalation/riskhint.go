package escalation

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// hint is a cheap question that comes before an expression: a text of ASCII that
// holds none of these words, in lower case, cannot match it. nil: every text may.
// It is not asked of other texts, where ſ and K match s and k without being them.
type hint []string

// hintOf derives the hint of an expression that compiles.
func hintOf(pattern string) hint {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	words := required(re)
	slices.Sort(words)

	return slices.Compact(words)
}

// required returns words of which every match holds one; nil if that cannot be
// said.
func required(re *syntax.Regexp) hint {
	switch re.Op {
	case syntax.OpLiteral:
		return hint{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		return classWords(re.Rune)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best hint
		for _, sub := range re.Sub {
			if words := required(sub); words != nil && (best == nil || words.rarer(best)) {
				best = words
			}
		}

		return best
	case syntax.OpAlternate:
		var all hint
		for _, sub := range re.Sub {
			words := required(sub)
			if words == nil {
				return nil
			}
			all = append(all, words...)
		}

		return all
	default: // may match without any character that is known
	}

	return nil
}

// classWords returns the characters of a small class as words.
func classWords(ranges []rune) hint {
	const few = 4
	var words hint
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(words) == few {
				return nil
			}
			words = append(words, strings.ToLower(string(r)))
		}
	}

	return words
}

// rarer reports whether h, by the length of its shortest word, says no less than o.
func (h hint) rarer(o hint) bool { return h.shortest() >= o.shortest() }

func (h hint) shortest() int {
	n := len(h[0])
	for _, word := range h {
		n = min(n, len(word))
	}

	return n
}

// admits reports whether a text in lower case may match.
func (h hint) admits(lower string) bool {
	return h == nil || slices.ContainsFunc(h, func(word string) bool { return strings.Contains(lower, word) })
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}

	return true
}
