package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxLines is how long a README may be.
const maxLines = 200

// problem is something to mend at one line (counted from 1) of the checked file.
type problem struct {
	line int
	text string
}

// result is what check found.
type result struct {
	text     string    // the file as it should be
	blocks   int       // number of Go blocks
	stale    []problem // blocks that differ from their source: what -write mends
	problems []problem // everything else
}

// block is a fenced code block, with the lines of its content as a half-open range of line indexes.
type block struct {
	open       int    // index of the opening fence
	start, end int    // the content
	prefix     string // what stands before the fence: indentation, or the marks of a quotation
	language   string
}

// check compares every Go block of a Markdown text with the source that its marker names, below folder.
func check(text, folder string) result {
	lines := strings.Split(text, "\n")
	out := result{text: text}

	blocks, problems := parse(lines)
	out.problems = problems
	marks := markers(lines, blocks)

	type edit struct {
		block block
		want  []string
	}
	var edits []edit
	for _, b := range blocks {
		mark, marked := marks[b.open]
		delete(marks, b.open)

		switch {
		case b.language == "":
			out.add(b.open, "fence names no language; plain text is called text")
		case !isGo(b.language) && marked:
			out.add(mark.line, "example marker before a block that is not Go")
		case isGo(b.language) && !marked:
			out.blocks++
			out.add(b.open, "Go block without an example marker")
		case isGo(b.language):
			out.blocks++
			want, err := extract(folder, mark.source)
			if err != nil {
				out.add(mark.line, err.Error())

				continue
			}
			want = prefixed(want, b.prefix)
			if !slices.Equal(want, lines[b.start:b.end]) {
				out.stale = append(out.stale, problem{b.open + 1, "Go block differs from " + mark.source + "; -write rewrites it"})
				edits = append(edits, edit{b, want})
			}
		}
	}
	for _, mark := range marks {
		out.add(mark.line, "example marker without a Go block after it")
	}

	// From the last to the first, so that line indexes before the edit stay true.
	for _, e := range slices.Backward(edits) {
		lines = slices.Replace(lines, e.block.start, e.block.end, e.want...)
	}
	out.text = strings.Join(lines, "\n")
	if n := strings.Count(strings.TrimSuffix(out.text, "\n"), "\n") + 1; n > maxLines {
		out.add(maxLines, fmt.Sprintf("%d lines, at most %d are allowed", n, maxLines))
	}
	slices.SortStableFunc(out.problems, func(a, b problem) int { return a.line - b.line })

	return out
}

// add records a problem at a line index.
func (r *result) add(index int, text string) {
	r.problems = append(r.problems, problem{index + 1, text})
}

// isGo tells whether the first word of a fence means Go.
func isGo(language string) bool {
	return strings.EqualFold(language, "go") || strings.EqualFold(language, "golang")
}

// parse finds the fenced blocks. A fence is three or more backticks or tildes; it is closed by at least as many of the
// same. Any indentation and quotation marks may stand before it, and a list mark before the opening one.
func parse(lines []string) ([]block, []problem) {
	fence := regexp.MustCompile("^([ \t>]*(?:(?:[-*+]|[0-9]+[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*([^`]*)$")

	var blocks []block
	for i := 0; i < len(lines); i++ {
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		b := block{open: i, start: i + 1, prefix: blank(m[1]), language: firstWord(m[3])}
		b.end = closing(lines, b.start, m[2])
		if b.end < 0 {
			return blocks, []problem{{i + 1, "fence is never closed"}}
		}
		blocks = append(blocks, b)
		i = b.end
	}

	return blocks, nil
}

// closing returns the index of the line that closes a fence, or -1.
func closing(lines []string, from int, fence string) int {
	for i := from; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t>")
		rest := strings.TrimLeft(line, fence[:1])
		if len(line)-len(rest) >= len(fence) && strings.TrimSpace(rest) == "" {
			return i
		}
	}

	return -1
}

// blank keeps indentation and quotation marks of what stands before a fence, and makes a list mark the indentation that
// the lines after it have.
func blank(prefix string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '>' {
			return r
		}

		return ' '
	}, prefix)
}

// firstWord returns the language of an info string such as "go", "go {.numbers}" or "go,ignore".
func firstWord(info string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	if i := strings.IndexAny(word, ",{:"); i >= 0 {
		word = word[:i]
	}

	return word
}

// marker is an example comment of the file.
type marker struct {
	line   int    // its index
	source string // what it names
}

// markers returns the example comments outside of code blocks, by the index of the line that they speak of: the next one
// that is not empty.
func markers(lines []string, blocks []block) map[int]marker {
	form := regexp.MustCompile(`^[ \t>]*<!--\s*example:\s*(.*?)\s*-->\s*$`)

	found := make(map[int]marker)
	for i := 0; i < len(lines); i++ {
		if n := slices.IndexFunc(blocks, func(b block) bool { return b.open == i }); n >= 0 {
			i = blocks[n].end

			continue
		}
		m := form.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		next := i + 1
		for next < len(lines) && strings.Trim(lines[next], " \t>") == "" {
			next++
		}
		found[next] = marker{line: i, source: m[1]}
	}

	return found
}

// prefixed puts the prefix before each line, without trailing space on empty ones.
func prefixed(lines []string, prefix string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(prefix+line, " \t")
		if line != "" {
			out[i] = prefix + line
		}
	}

	return out
}
