package watchdog

import (
	"hash/maphash"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/ident"
)

// Bounds of what is remembered of texts.
const (
	wordBits    = 10 << 10 // per generation
	wordsPerGen = 1500     // words and pairs before the older generation is forgotten
	wordsOf     = 4 << 10  // bytes of one text that are read
	minWord     = 3

	maxWaitAt = 32 // of the command in the arguments
)

// words remembers which words, and which two words in a row, were in what the
// agent has read: a set of bits in two generations, of which the older one is
// forgotten when the newer one is full. It can take a word for a known one by
// mistake, which makes the rules slower, never faster. No word is kept.
type words struct {
	gen  *[2][wordBits / 64]uint64 // made when it is needed
	now  int
	used int
}

func (w *words) add(h uint64) {
	if w.gen == nil {
		w.gen = new([2][wordBits / 64]uint64)
	}
	if w.used >= wordsPerGen {
		w.now, w.used = 1-w.now, 0
		w.gen[w.now] = [wordBits / 64]uint64{}
	}
	a, b := places(h)
	g := &w.gen[w.now]
	if (g[a/64]>>(a%64))&(g[b/64]>>(b%64))&1 == 0 {
		w.used++
	}
	g[a/64] |= 1 << (a % 64)
	g[b/64] |= 1 << (b % 64)
}

func (w *words) has(h uint64) bool {
	if w.gen == nil {
		return false
	}
	a, b := places(h)
	for i := range w.gen {
		if g := &w.gen[i]; (g[a/64]>>(a%64))&(g[b/64]>>(b%64))&1 == 1 {
			return true
		}
	}

	return false
}

func places(h uint64) (a, b uint64) { return h % wordBits, h >> 32 % wordBits }

// addText adds the words of a text and each two in a row.
func (w *words) addText(seed maphash.Seed, text string) {
	if len(text) > wordsOf {
		text = text[:wordsOf]
	}
	last := uint64(0)
	for {
		var word string
		if word, text = nextWord(text); word == "" {
			return
		}
		h := maphash.String(seed, word)
		w.add(h)
		if last != 0 {
			w.add(mix(last, h))
		}
		if i := strings.LastIndexByte(word, '/'); i >= 0 && len(word)-i > minWord {
			w.add(maphash.String(seed, word[i+1:]))
		}
		last = h
	}
}

// nextWord cuts the first word off a text.
func nextWord(text string) (word, rest string) {
	i := 0
	for i < len(text) && separates(text[i]) {
		i++
	}
	from := i
	for i < len(text) && !separates(text[i]) {
		i++
	}
	word = strings.TrimRight(text[from:i], ".:!?")
	if word == "" && from < i {
		return nextWord(text[i:])
	}

	return word, text[i:]
}

func separates(c byte) bool {
	switch c {
	case '"', '\'', '`', ',', ';', '(', ')', '[', ']', '{', '}', '<', '>', '|', '=', '*', '\\':
		return true
	default:
		return c <= ' '
	}
}

// grounded reports whether what is new in the arguments of a call was named
// before, in a result or by who asked: then it is one item of a list, not a
// guess.
func (t *trail) grounded(c *toolCall, tool *toolEntry) bool {
	named, guessed := 0, 0
	c.keys.Values(c.input, func(value []byte) {
		if tool.values>>(maphash.Bytes(c.seed, value)%64)&1 == 1 {
			return // as in the call before
		}
		switch t.known.hasText(c.seed, string(value)) {
		case wordNamed:
			named++
		case wordGuessed:
			guessed++
		case wordShort:
		}
	})

	return named > 0 && guessed == 0
}

// counts reports whether the text says of a number among the arguments that it
// is one of so many: page 3 of 14.
func (c *toolCall) counts(text string) bool {
	if len(text) > wordsOf {
		text = text[:wordsOf]
	}
	counts := false
	c.keys.Values(c.input, func(value []byte) {
		counts = counts || oneOf(text, value)
	})

	return counts
}

func oneOf(text string, number []byte) bool {
	const longest = 9
	if len(number) > longest || !digits(string(number)) {
		return false
	}
	for {
		i := strings.Index(text, " of ")
		if i < 0 {
			return false
		}
		before, after := text[:i], text[i+len(" of "):]
		from := len(before)
		for from > 0 && kindOf(before[from-1]) == kindDigit {
			from--
		}
		end := 0
		for end < len(after) && kindOf(after[end]) == kindDigit {
			end++
		}
		if before[from:] == string(number) && (from == 0 || before[from-1] == ' ') && end <= longest &&
			(end > len(number) || end == len(number) && after[:end] >= string(number)) {
			return true
		}
		text = after
	}
}

func digits(s string) bool {
	for i := range len(s) {
		if kindOf(s[i]) != kindDigit {
			return false
		}
	}

	return s != ""
}

type provenance uint8

const (
	wordShort provenance = iota // says nothing either way
	wordNamed
	wordGuessed
)

// hasText looks for a value: a single word, or each two in a row.
func (w *words) hasText(seed maphash.Seed, value string) provenance {
	first, rest := nextWord(value)
	if short(first) && strings.TrimSpace(rest) == "" {
		return wordShort
	}
	last := maphash.String(seed, first)
	second, rest := nextWord(rest)
	if second == "" {
		return w.hasWord(seed, first, last)
	}
	for second != "" {
		h := maphash.String(seed, second)
		if !w.has(mix(last, h)) {
			return wordGuessed
		}
		last = h
		second, rest = nextWord(rest)
	}

	return wordNamed
}

// short reports whether a word is found everywhere: a letter, a small number.
func short(word string) bool {
	return len(word) < 2 || len(word) < minWord && kindOf(word[0]) == kindDigit && kindOf(word[1]) == kindDigit
}

func (w *words) hasWord(seed maphash.Seed, word string, h uint64) provenance {
	if w.has(h) {
		return wordNamed
	}
	if i := strings.LastIndexByte(word, '/'); i >= 0 && len(word)-i > minWord && w.has(maphash.String(seed, word[i+1:])) {
		return wordNamed
	}
	if w.hasPieces(seed, word) {
		return wordNamed
	}

	return wordGuessed
}

// hasPieces reports whether the word is put together of known ones: seat 14A of
// row 14 and the seats A, B and C.
func (w *words) hasPieces(seed maphash.Seed, word string) bool {
	pieces := 0
	for i := 0; i < len(word); {
		from, kind := i, kindOf(word[i])
		for i < len(word) && kindOf(word[i]) == kind {
			i++
		}
		if kind == kindOther {
			continue
		}
		if !w.has(maphash.String(seed, word[from:i])) {
			return false
		}
		pieces++
	}

	return pieces > 1
}

type kind uint8

const (
	kindOther kind = iota
	kindLetter
	kindDigit
)

func kindOf(c byte) kind {
	switch {
	case letter(c) || c >= 0x80:
		return kindLetter
	case '0' <= c && c <= '9':
		return kindDigit
	default:
		return kindOther
	}
}

// valueBits is the set of the values of the arguments, small enough to keep.
func valueBits(c *toolCall) uint64 {
	var bits uint64
	c.keys.Values(c.input, func(value []byte) { bits |= 1 << (maphash.Bytes(c.seed, value) % 64) })

	return bits
}

func labelHash(c *toolCall) uint64 { return maphash.Comparable(c.seed, c.label) }

// waitTool reports whether the name of a tool says that it only waits.
func waitTool(label ident.Label) bool {
	for word := range strings.FieldsFuncSeq(label.String(), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		switch word {
		case "sleep", "wait", "delay", "pause", "snooze":
			return true
		}
	}

	return false
}

// waitInput reads arguments that are a shell's command to wait: whether they do
// nothing else, or wait before they do something.
func waitInput(input string) (waits, polls bool) {
	i := strings.Index(input, "sleep ")
	if i < 0 || i > maxWaitAt || i > 0 && (letter(input[i-1]) || input[i-1] == '-') {
		return false, false
	}
	rest := input[i+len("sleep "):]
	n := 0
	for n < len(rest) && (kindOf(rest[n]) == kindDigit || rest[n] == '.') {
		n++
	}
	if n == 0 {
		return false, false
	}
	if n < len(rest) && strings.IndexByte("smh", rest[n]) >= 0 {
		n++
	}
	waits = !strings.ContainsFunc(rest[n:], unicode.IsLetter)

	return waits, !waits
}
