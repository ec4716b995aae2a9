package callkey

// CleanLine is what a line of a result is hashed as.
func (k Keyer) CleanLine(input, line string) string {
	w := k.s.scratch()
	defer k.s.release(w)
	w.collectValues(input, minValue)

	clean, _ := w.cleanLine(line)

	return string(clean)
}

// IsJSON reports whether arguments are compared as JSON.
func (k Keyer) IsJSON(input string) bool {
	w := k.s.scratch()
	defer k.s.release(w)

	return w.parse(input)
}

// Plain is a number without exponent and without zeros at the end.
func Plain(raw string) string { return string(appendPlain(nil, raw)) }
