package ident_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
)

// The grammars of the specification as regular expressions: an independent
// reading that the hand-written parsers are compared with.
var (
	workflowRE = regexp.MustCompile(`^workflow:([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+)/[a-z][a-z0-9-]{0,63}(@(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*))?$`)
	runRE      = regexp.MustCompile(`^run_[0-9a-f]{32}$`)
	labelRE    = regexp.MustCompile(`^[a-z][a-z0-9]*([._-][a-z0-9]+)*$`)
	modelRE    = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*([._/:@+-][a-zA-Z0-9]+)*$`)
	digestRE   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "workflow:org.example/refunds@1.0.0", "tool:org.example/x", "run_" + strings.Repeat("a", 32),
		"lookup_order", "Qwen/Qwen2.5-7B", "sha256:" + strings.Repeat("0", 64), "workflow:a.b/c@01.0.0", "a\n", "é",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ident.ParseWorkflowID(s)
		m := workflowRE.FindStringSubmatch(s)
		if want := m != nil && len(s) <= 512 && len(m[1]) <= 253; (err == nil) != want {
			t.Errorf("workflow: %v, grammar says %v", err, want)
		}
		if err == nil && w.String() != s {
			t.Errorf("workflow is not canonical")
		}
		if _, err := ident.ParseRunID(s); (err == nil) != runRE.MatchString(s) {
			t.Errorf("run: %v", err)
		}
		if _, err := ident.NewLabel(s); (err == nil) != (labelRE.MatchString(s) && len(s) <= 64) {
			t.Errorf("label: %v", err)
		}
		if _, err := ident.NewModelLabel(s); (err == nil) != (modelRE.MatchString(s) && len(s) <= 96) {
			t.Errorf("model label: %v", err)
		}
		d, err := ident.ParseDigest(s)
		if (err == nil) != digestRE.MatchString(s) || (err == nil && d.String() != s) {
			t.Errorf("digest: %v", err)
		}
		tool, err := ident.ParseToolID(strings.Replace(s, "workflow:", "tool:", 1))
		if (err == nil) != (m != nil && len(s)-4 <= 512 && len(m[1]) <= 253) && strings.HasPrefix(s, "workflow:") {
			t.Errorf("tool %v: %v", tool, err)
		}
	})
}
