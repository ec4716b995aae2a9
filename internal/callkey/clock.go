package callkey

// The largest values of the parts of dates and clocks.
const (
	lastMonth  = 12
	lastDay    = 31
	lastHour   = 23
	lastSecond = 60 // a leap second
	lastOffset = 2359
)

const yearSize = len("-2006")

// dateTime reads a date that begins with a digit, and a clock that is joined to
// it by a T or, in the form of web server logs, by a colon.
func dateTime(s []byte, prev byte) int {
	n := yearFirst(s)
	if n == 0 {
		n = dayFirst(s, prev)
	}
	if n == 0 {
		return dayMonthName(s)
	}

	return withClock(s, n)
}

// withClock returns the end of a date that ends at n, with its clock if there
// is one; 0 if the date is a part of a longer word.
func withClock(s []byte, n int) int {
	if n+1 < len(s) && (s[n]|lowerCase == 't' || s[n] == ':') {
		if m := clock(s[n+1:], ' '); m > 0 {
			return n + 1 + m
		}
	}
	if !ends(s, n) {
		return 0
	}

	return n
}

// yearFirst reads 2006-01-02 with -, / or . between.
func yearFirst(s []byte) int {
	if !year(s, 0) || len(s) < len("2006-1-2") {
		return 0
	}
	sep := s[4]
	if sep != '-' && sep != '/' && sep != '.' {
		return 0
	}
	i := 5
	n := number(s, i, 1, 2, lastMonth)
	if i += n; n == 0 || i >= len(s) || s[i] != sep {
		return 0
	}
	i++
	n = number(s, i, 1, 2, lastDay)
	if i += n; n == 0 || sep == '.' && goesOn(s, i, '.') {
		return 0
	}

	return i
}

// dayFirst reads 02.01.2006 and 01/02/2006.
func dayFirst(s []byte, prev byte) int {
	i := number(s, 0, 1, 2, lastDay)
	if i == 0 || i >= len(s) || prev == '.' {
		return 0
	}
	sep := s[i]
	if sep != '.' && sep != '/' {
		return 0
	}
	i++
	n := number(s, i, 1, 2, lastDay)
	if i += n; n == 0 || i >= len(s) || s[i] != sep || !year(s, i+1) {
		return 0
	}
	if i += 5; goesOn(s, i, sep) {
		return 0
	}

	return i
}

// year reports whether a year from 1900 to 2199 stands at i, in four digits.
func year(s []byte, i int) bool {
	if i > len(s) || digitRun(s, i, 4) != 4 {
		return false
	}

	return s[i] == '1' && s[i+1] == '9' || s[i] == '2' && s[i+1] <= '1'
}

// dayMonthName reads 2 Jan 2006, 2-Jan-2006 and 02/Jan/2006:15:04:05, with or
// without the year.
func dayMonthName(s []byte) int {
	i := number(s, 0, 1, 2, lastDay)
	if i == 0 || i >= len(s) || s[i] != ' ' && s[i] != '-' && s[i] != '/' {
		return 0
	}
	sep := s[i]
	n := nameAt(s[i+1:], monthNames[:])
	if n == 0 {
		return 0
	}
	i += 1 + n
	if i < len(s) && s[i] == sep && year(s, i+1) {
		if end := withClock(s, i+yearSize); end > 0 {
			return end
		}
	}
	if sep != ' ' {
		return 0
	}

	return i
}

// namedDate reads Jan 2, 2006 and Jan 2, and a day of the week before any date.
func namedDate(s []byte) int {
	if n := nameAt(s, monthNames[:]); n > 0 {
		return monthDay(s, n)
	}
	n := nameAt(s, dayNames[:])
	if n == 0 || n >= len(s) {
		return 0
	}
	if s[n] == ',' {
		n++
	}
	if n+1 >= len(s) || s[n] != ' ' {
		return 0
	}
	n++
	var date int
	if isDigit(s[n]) {
		date = dateTime(s[n:], ' ')
	} else if m := nameAt(s[n:], monthNames[:]); m > 0 {
		date = monthDay(s[n:], m)
	}
	if date == 0 {
		return 0
	}

	return n + date
}

// monthDay reads the day, and the year if there is one, behind a month's name.
func monthDay(s []byte, i int) int {
	if i >= len(s) || s[i] != ' ' {
		return 0
	}
	i++
	n := number(s, i, 1, 2, lastDay)
	if i += n; n == 0 || !ends(s, i) || goesOn(s, i, ':') || goesOn(s, i, '.') {
		return 0
	}
	k := i
	if k < len(s) && s[k] == ',' {
		k++
	}
	if k < len(s) && s[k] == ' ' && year(s, k+1) && ends(s, k+yearSize) &&
		!goesOn(s, k+yearSize, '-') && !goesOn(s, k+yearSize, '/') && !goesOn(s, k+yearSize, '.') {
		return k + yearSize
	}

	return i
}

var (
	monthNames = [...]string{ //nolint:gochecknoglobals // compiled table
		"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
	}
	dayNames = [...]string{ //nolint:gochecknoglobals // compiled table
		"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
	}
)

// nameAt returns the length of the name at the beginning of s, in full or its
// first three letters, with a capital letter at least at its beginning.
func nameAt(s []byte, names []string) int {
	if len(s) < 3 || s[0] < 'A' || s[0] > 'W' {
		return 0
	}
	for _, name := range names {
		if s[0] != name[0] || s[1]|lowerCase != name[1] || s[2]|lowerCase != name[2] {
			continue
		}
		if ends(s, 3) {
			return 3
		}
		if len(s) < len(name) || !ends(s, len(name)) {
			continue
		}
		n := 3
		for n < len(name) && s[n]|lowerCase == name[n] {
			n++
		}
		if n == len(name) {
			return n
		}
	}

	return 0
}

// clock reads 15:04, 15:04:05, fractions, am and pm, Z and offsets.
func clock(s []byte, prev byte) int {
	i := number(s, 0, 1, 2, lastHour)
	if i == 0 || prev == ':' || prev == '.' {
		return 0
	}
	short := i == 1
	minutes := sexagesimal(s, i)
	if minutes == 0 {
		return 0
	}
	i = minutes
	seconds := sexagesimal(s, i)
	if seconds > 0 {
		i = fraction(s, seconds)
	}
	if n := halfDay(s, i); n > 0 {
		return n
	}
	i = zone(s, i)
	switch {
	case !ends(s, i), goesOn(s, i, '.'), goesOn(s, i, ':'):
		return 0
	case seconds == 0 && (short || i < len(s) && s[i] == ':'):
		return 0 // a ratio, or a place in a file
	}

	return i
}

// sexagesimal returns the end of a colon and two digits below 60 (61 for leap
// seconds) at i, or 0.
func sexagesimal(s []byte, i int) int {
	if i >= len(s) || s[i] != ':' || number(s, i+1, 2, 2, lastSecond) == 0 {
		return 0
	}

	return i + 3
}

func fraction(s []byte, i int) int {
	const longest = 9
	if i >= len(s) {
		return i
	}
	n := digitRun(s, i+1, longest)
	if s[i] == '.' && n > 0 && n <= longest || s[i] == ',' && n == 3 {
		return i + 1 + n
	}

	return i
}

// halfDay returns the end of am or pm at i, behind a space or not, or 0.
func halfDay(s []byte, i int) int {
	if i < len(s) && s[i] == ' ' {
		i++
	}
	if i+1 < len(s) && (s[i]|lowerCase == 'a' || s[i]|lowerCase == 'p') && s[i+1]|lowerCase == 'm' && ends(s, i+2) {
		return i + 2
	}

	return 0
}

// zone returns the end of Z or an offset at i, or i.
func zone(s []byte, i int) int {
	if i >= len(s) {
		return i
	}
	if s[i]|lowerCase == 'z' {
		return i + 1
	}
	if s[i] != '+' && s[i] != '-' || number(s, i+1, 2, 2, lastHour) == 0 && number(s, i+1, 4, 4, lastOffset) == 0 {
		return i
	}
	end := i + 1 + digitRun(s, i+1, 4)
	if m := sexagesimal(s, end); m > 0 && end == i+3 {
		end = m
	}
	if !ends(s, end) || goesOn(s, end, '.') || goesOn(s, end, ':') {
		return i // 10:00-10:30:00 is two clocks
	}

	return end
}
