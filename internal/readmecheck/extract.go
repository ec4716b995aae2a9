package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// What can be wrong with a marker.
var (
	errForm     = errors.New("example marker is not of the form: path ExampleName, path ExampleName#region or path #region")
	errPath     = errors.New("example path is not a Go file below this folder")
	errBuilt    = errors.New("example file is not compiled: a build constraint, a name or a folder that Go ignores")
	errParse    = errors.New("example file cannot be read as Go")
	errEmpty    = errors.New("example is empty")
	errTestFile = errors.New("an Example function stands in a _test.go file")
)

// notFoundError says that a marker names something that its file does not hold exactly once.
type notFoundError struct {
	kind, name string
}

func (e *notFoundError) Error() string {
	return fmt.Sprintf("%s %s does not stand in that file exactly once", e.kind, e.name)
}

// span is a half-open range of line indexes.
type span struct {
	start, end int
}

// source is a parsed Go file.
type source struct {
	files *token.FileSet
	tree  *ast.File
	lines []string
}

// extract returns the lines that a marker names, dedented. Folder is where its path begins.
func extract(folder, mark string) ([]string, error) {
	fields := strings.Fields(mark)
	if len(fields) != 2 {
		return nil, errForm
	}
	name, region, isRegion := strings.Cut(fields[1], "#")
	if (name != "" && !strings.HasPrefix(name, "Example")) || (isRegion && region == "") {
		return nil, errForm
	}

	src, err := load(folder, fields[0])
	if err != nil {
		return nil, err
	}

	part := span{0, len(src.lines)}
	if name != "" {
		if !strings.HasSuffix(fields[0], "_test.go") {
			return nil, errTestFile
		}
		if part, err = src.body(name); err != nil {
			return nil, err
		}
	}
	if isRegion {
		if part, err = src.region(part, region); err != nil {
			return nil, err
		}
	}

	lines := src.dedent(part)
	if len(lines) == 0 {
		return nil, errEmpty
	}

	return lines, nil
}

// load parses a Go file that the compiler sees too.
func load(folder, name string) (*source, error) {
	if name != path.Clean(name) || !filepath.IsLocal(filepath.FromSlash(name)) || path.Ext(name) != ".go" {
		return nil, errPath
	}
	ignored := func(elem string) bool {
		return elem == "testdata" || strings.HasPrefix(elem, "_") || strings.HasPrefix(elem, ".")
	}
	if slices.ContainsFunc(strings.Split(name, "/"), ignored) {
		return nil, errBuilt
	}

	file := filepath.Join(folder, filepath.FromSlash(name))
	text, err := os.ReadFile(file) //nolint:gosec // The path was checked above: local, Go, part of the build.
	if err != nil {
		return nil, errPath
	}
	if built, err := build.Default.MatchFile(filepath.Dir(file), filepath.Base(file)); err != nil || !built {
		return nil, errBuilt
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, errParse
	}

	return &source{files: files, tree: tree, lines: strings.Split(string(text), "\n")}, nil
}

// line returns the index of the line of a position.
func (s *source) line(pos token.Pos) int {
	return s.files.PositionFor(pos, false).Line - 1
}

// body returns the lines between the braces of a function, up to its output comment.
func (s *source) body(name string) (span, error) {
	output := regexp.MustCompile(`(?i)^[[:space:]]*(unordered )?output:`) // As in go/doc.

	for _, decl := range s.tree.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Name.Name != name || fn.Body == nil {
			continue
		}
		part := span{s.line(fn.Body.Lbrace) + 1, s.line(fn.Body.Rbrace)}
		var last *ast.CommentGroup
		for _, group := range s.tree.Comments {
			if group.Pos() > fn.Body.Lbrace && group.End() < fn.Body.Rbrace {
				last = group
			}
		}
		if last != nil && output.MatchString(last.Text()) {
			part.end = s.line(last.Pos())
		}

		return part, nil
	}

	return span{}, &notFoundError{"function", name}
}

// region returns the lines between the snippet comments of a name, which both stand within a part of the file.
func (s *source) region(within span, name string) (span, error) {
	var starts, ends []int
	for i := within.start; i < within.end; i++ {
		switch strings.TrimSpace(s.lines[i]) {
		case "// snippet-start: " + name:
			starts = append(starts, i)
		case "// snippet-end: " + name:
			ends = append(ends, i)
		}
	}
	if len(starts) != 1 || len(ends) != 1 || ends[0] < starts[0] {
		return span{}, &notFoundError{"region", name}
	}

	return span{starts[0] + 1, ends[0]}, nil
}

// dedent returns a part of the file without its snippet comments, without empty lines around it and without the
// indentation of its first line. The inside of a raw string is left as it is.
func (s *source) dedent(part span) []string {
	raw := s.rawLines()

	var out []string
	indent, known := "", false
	for i := part.start; i < part.end; i++ {
		line := s.lines[i]
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "// snippet-start: ") || strings.HasPrefix(trimmed, "// snippet-end: ") {
			continue
		}
		if !known && trimmed == "" {
			continue
		}
		if !known {
			indent, known = strings.TrimSuffix(line, strings.TrimLeft(line, " \t")), true
		}
		if !raw[i] {
			line = strings.TrimPrefix(line, indent)
		}
		out = append(out, line)
	}
	for len(out) > 0 && strings.TrimSpace(out[len(out)-1]) == "" {
		out = out[:len(out)-1]
	}

	return out
}

// rawLines returns the lines that begin inside a raw string.
func (s *source) rawLines() map[int]bool {
	raw := make(map[int]bool)
	ast.Inspect(s.tree, func(node ast.Node) bool {
		if lit, ok := node.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			for i := s.line(lit.Pos()) + 1; i <= s.line(lit.End()-1); i++ {
				raw[i] = true
			}
		}

		return true
	})

	return raw
}
