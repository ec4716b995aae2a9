package callkey

// Bounds that keep a number from being read many times over.
const (
	maxGroups = 4 // of thousands, 1,234,567
	maxParts  = 5 // of a duration, 1d2h3m4s5ms
)

// duration reads numbers with units of time.
func duration(s []byte, prev byte) int {
	switch prev {
	case '.', '_', '-', '$':
		return 0
	}
	i := 0
	for range maxParts {
		n := amount(s, i)
		if n == i {
			break
		}
		unit := unitAt(s, n)
		if unit == 0 {
			if i > 0 {
				return 0
			}

			return spacedDuration(s, n)
		}
		i = n + unit
	}
	if i == 0 || !durationEnds(s, i) {
		return 0
	}

	return i
}

func spacedDuration(s []byte, i int) int {
	if i >= len(s) || s[i] != ' ' {
		return 0
	}
	unit := unitAt(s, i+1)
	if unit == 0 || !durationEnds(s, i+1+unit) {
		return 0
	}
	if unit == 1 && s[i+1] != 's' {
		return 0 // 3 m may be a length
	}

	return i + 1 + unit
}

func durationEnds(s []byte, i int) bool {
	return ends(s, i) && (i >= len(s) || s[i] != '-' && s[i] != '_') && !goesOn(s, i, '.')
}

// amount returns the end of a decimal number at i, or i.
func amount(s []byte, i int) int {
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == from {
		return from
	}
	for range maxGroups {
		if i >= len(s) || s[i] != ',' || digitRun(s, i+1, 3) != 3 {
			break
		}
		i += 4
	}
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
		}
	}

	return i
}

var unitNames = [...]string{ //nolint:gochecknoglobals // compiled table, a longer name before its beginnings
	"ns", "us", "µs", "μs", "msecs", "msec", "ms", "nanoseconds", "nanosecond", "microseconds", "microsecond",
	"milliseconds", "millisecond", "seconds", "second", "secs", "sec", "s", "minutes", "minute", "mins", "min",
	"hours", "hour", "hrs", "hr", "days", "day", "weeks", "week", "m", "h", "d",
}

// unitAt returns the length of the unit at i that a word or a digit's beginning
// ends, or 0.
func unitAt(s []byte, i int) int {
	if i >= len(s) {
		return 0
	}
	switch s[i] {
	case 'n', 'u', 'm', 's', 'h', 'd', 'w', 0xc2, 0xce: // the last two begin µ and μ
	default:
		return 0
	}
	for _, name := range unitNames {
		if name[0] != s[i] {
			continue
		}
		end := i + len(name)
		if end > len(s) || string(s[i:end]) != name { // the conversion does not allocate
			continue
		}
		if ends(s, end) || isDigit(s[end]) {
			return len(name)
		}
	}

	return 0
}
