package looptrace

import (
	"math"
	"strings"
)

// check holds the trace against the schema.
func (t *Trace) check() *ParseError {
	switch {
	case t.V != Version:
		return fail(CodeVersion)
	case !validName(t.ID, "") || !validName(t.Family, ""):
		return fail(CodeName)
	case t.Label != LabelOK && t.Label != LabelLoop:
		return fail(CodeLabel)
	case t.Style != "" && t.Style != StyleFunctions && t.Style != StyleText:
		return fail(CodeStyle)
	case len(t.Why) > MaxWhy || len(t.Prompt) > MaxPrompt:
		return fail(CodeBounds)
	case len(t.Steps) == 0 || len(t.Steps) > MaxSteps:
		return fail(CodeSteps)
	case !t.validMarks():
		return fail(CodeMarks)
	}
	tools, err := t.checkTools()
	if err != nil {
		return err
	}
	turn, alone := 0, true
	for i := range t.Steps {
		s := &t.Steps[i]
		first := s.Turn == turn+1
		if !first && (i == 0 || s.Turn != turn || alone) {
			return fail(CodeTurn)
		}
		turn = s.Turn
		alone = s.kind() == stepAnswer || s.kind() == stepOutage
		if !first && (alone || s.Thought != "") {
			return fail(CodeTurn)
		}
		if err := s.check(tools, t.Style == StyleText); err != nil {
			return err
		}
	}

	return nil
}

func (t *Trace) validMarks() bool {
	if !t.Loop() {
		return t.Earliest == 0 && t.StopBy == 0
	}

	return t.Earliest >= 2 && t.Earliest <= t.StopBy && t.StopBy <= len(t.Steps)
}

// checkTools returns the names of the tools as an executor compares them.
func (t *Trace) checkTools() (map[string]struct{}, *ParseError) {
	if len(t.Tools) > MaxTools {
		return nil, fail(CodeTools)
	}
	names := make(map[string]struct{}, len(t.Tools))
	for _, tool := range t.Tools {
		name := strings.ToUpper(tool.Name)
		if _, twice := names[name]; twice {
			return nil, fail(CodeTools)
		}
		if _, ok := effectOf(tool.Effect); !ok || !validName(tool.Name, upper) {
			return nil, fail(CodeTools)
		}
		names[name] = struct{}{}
	}

	return names, nil
}

// check holds one step against the schema: every field has a meaning where it
// stands, and none is missing.
func (s *Step) check(tools map[string]struct{}, textual bool) *ParseError {
	for _, p := range []*string{&s.Thought, s.Args, s.Text, s.Answer, s.Reply} {
		if p != nil && len(*p) > MaxText {
			return fail(CodeBounds)
		}
	}
	if s.Progress != nil && (math.IsNaN(*s.Progress) || math.IsInf(*s.Progress, 0) || *s.Progress < 0) {
		return fail(CodeBounds)
	}
	if _, ok := infraReason(s.Infra); s.Infra != "" && !ok {
		return fail(CodeResult)
	}
	_, offered := tools[strings.ToUpper(s.Tool)]
	call := s.Tool != ""
	result := s.Result != "" || s.Text != nil || s.Final || s.Progress != nil
	response := s.Answer != nil || s.Reply != nil || s.Unparsable
	switch s.kind() {
	case stepCall:
		if s.Args == nil || response || !offered {
			return fail(CodeStep)
		}

		return s.checkResult()
	case stepInvention:
		if s.Args == nil || response || offered || textual || result || s.Infra != "" || !validName(s.Tool, upper) {
			return fail(CodeStep)
		}
	case stepAnswer:
		if result || s.Infra != "" || s.Args != nil || s.Offered != nil || s.Thought != "" || s.Unparsable && !textual {
			return fail(CodeStep)
		}
	case stepOutage:
		if call || result || response || s.Args != nil || s.Offered != nil || s.Thought != "" {
			return fail(CodeStep)
		}
	default:
		return fail(CodeStep)
	}

	return nil
}

func (s *Step) checkResult() *ParseError {
	ok := false
	switch s.Result {
	case ResultOK:
		ok = s.Text != nil && s.Infra == ""
	case ResultError:
		ok = s.Text != nil && !s.Final
	case ResultRefused:
		ok = s.Text == nil && !s.Final && s.Progress == nil && s.Infra == ""
	default:
	}
	if !ok {
		return fail(CodeResult)
	}

	return nil
}

const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// validName reports whether s is a name of lower case letters, digits, _ and -,
// and the further letters.
func validName(s, more string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for _, r := range s {
		lower := 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-'
		if !lower && !strings.ContainsRune(more, r) {
			return false
		}
	}

	return true
}
