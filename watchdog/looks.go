package watchdog

import "strings"

// looksAt is how many bytes of a result are read at either end for signs of
// failure.
const looksAt = 2 << 10

var failureWords = [...]string{ //nolint:gochecknoglobals // compiled table
	"fail", "error", "exception", "traceback", "panic", "fatal", "undefined", "cannot", "not found", "no such", "denied",
	"invalid", "refused", "rejected", "timed out", "no match", "no result", "exit status", "exit code", "assert",
}

// failing reports whether a result says that what was asked for did not work.
// It is read as a person reads it in passing: a word of failure, unless it is
// counted as none ("0 failed", "no errors", "exit code 0").
func failing(text string) bool {
	if len(text) > 2*looksAt {
		return failingPart(text[:looksAt]) || failingPart(text[len(text)-looksAt:])
	}

	return failingPart(text)
}

func failingPart(text string) bool {
	for i := range len(text) {
		if i > 0 && letter(text[i-1]) && (upper(text[i-1]) || !upper(text[i])) {
			continue // inside of a word; TypeError has two
		}
		for _, word := range failureWords {
			if j := i + len(word); j <= len(text) && text[i]|lower == word[0] && strings.EqualFold(text[i:j], word) && !none(text, i, j) {
				return true
			}
		}
	}

	return false
}

// lower is the bit that makes an ASCII letter lower case.
const lower = 0x20

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

func letter(c byte) bool { return 'a' <= c|lower && c|lower <= 'z' }

// none reports whether the word of failure at text[i:j] is said to be absent.
func none(text string, i, j int) bool {
	const near = 24
	before := strings.TrimRight(text[max(0, i-near):i], " \t")
	for _, word := range [...]string{"no", "without", "zero"} {
		if n := len(before) - len(word); n >= 0 && strings.EqualFold(before[n:], word) && (n == 0 || !letter(before[n-1])) {
			return true
		}
	}
	if n := len(before); n > 0 && before[n-1] == '0' && (n == 1 || before[n-2] < '0' || before[n-2] > '9') {
		return true
	}
	after := strings.TrimLeft(strings.TrimLeft(text[j:min(len(text), j+near)], "ures"), " \t:=\"") // failures: 0, errors=0

	return len(after) > 0 && after[0] == '0' && (len(after) == 1 || after[1] < '0' || after[1] > '9')
}
