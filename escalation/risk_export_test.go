package escalation

// DecodeAll is what the risk patterns look through.
func DecodeAll(text string, maxBytes int, visit func(string)) bool {
	return decodeAll(text, maxBytes, visit)
}
