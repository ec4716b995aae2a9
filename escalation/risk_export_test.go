package escalation

import "strings"

// DecodeAll is what the risk patterns look through.
func DecodeAll(text string, maxBytes int, visit func(string)) bool {
	return decodeAll(text, maxBytes, visit)
}

// HintAdmits reports whether the hint of a pattern lets it be tried on a text.
func HintAdmits(pattern, text string) bool {
	return !isASCII(text) || hintOf(pattern).admits(strings.ToLower(text))
}

// HintWords returns the hint of a pattern.
func HintWords(pattern string) []string { return hintOf(pattern) }
