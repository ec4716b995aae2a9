package escalation

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Bounds of risk patterns.
const (
	// MaxRiskPatterns bounds the number of patterns.
	MaxRiskPatterns = 256
	// MaxRiskPattern bounds the length of one, in bytes.
	MaxRiskPattern = 1024
	// MaxRiskBytes bounds RiskConfig.MaxBytes.
	MaxRiskBytes = 16 << 20

	defaultRiskBytes = 1 << 20
)

// RiskPattern is one rule about the arguments of a tool.
type RiskPattern struct {
	// Label that the rule is known by in decisions. Required, unique, and not
	// that of another rule; "undecodable" is taken.
	Label ident.Label
	// Pattern is an RE2 expression (package regexp), 1…1024 bytes. It is searched
	// for as it is written: (?i) ignores case. Required.
	Pattern string
	// Risk of an action that it is found in, in (0, 1]. Required.
	Risk float64
}

// RiskConfig says what is looked for.
type RiskConfig struct {
	// Patterns, 1…256. Required; [DefaultRiskPatterns] is a start.
	Patterns []RiskPattern
	// MaxBytes bounds the argument together with all that is decoded from it.
	// Default 1 MiB; at most 16 MiB.
	MaxBytes int
	// Observer hears of each finding. Default nil: nobody.
	Observer middleware.Observer
}

// RiskPatterns rates actions by what their arguments hold, however it is
// wrapped: JSON values and keys, base64, URL and character escapes are undone,
// within each other too. It is hygiene, not protection: who wants to get past a
// list of patterns will, and what must not happen belongs behind the admission
// gate.
//
//	breaker, err := escalation.NewActionBreaker(escalation.ActionConfig{Risk: patterns.Rate, …})
//
// The risk of an action is that of its worst finding, 0 without any. An argument
// that is larger, or wrapped more often, than is looked at has the risk 1, as
// the finding "undecodable". Findings are known by the labels of their rules
// alone: one decision each (breaker, guardrail) with Label and Severity.
//
// It is immutable and safe for concurrent use. The zero value and nil rate every
// action 1.
type RiskPatterns struct {
	rules    []riskRule
	maxBytes int
	observer middleware.Observer
}

type riskRule struct {
	RiskFinding

	expression *regexp.Regexp
	hint       hint
}

// RiskFinding is a rule that an argument matched.
type RiskFinding struct {
	Label ident.Label
	Risk  float64
}

// NewRiskPatterns compiles the patterns. It fails with a [ConfigError] that
// names the first field out of bounds, and shows no pattern.
func NewRiskPatterns(cfg RiskConfig) (*RiskPatterns, error) {
	if n := len(cfg.Patterns); n < 1 || n > MaxRiskPatterns {
		return nil, badRisk("Patterns", "1…256 patterns")
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = defaultRiskBytes
	}
	if cfg.MaxBytes < 1 || cfg.MaxBytes > MaxRiskBytes {
		return nil, badRisk("MaxBytes", "1…16 MiB")
	}
	r := &RiskPatterns{maxBytes: cfg.MaxBytes, observer: cfg.Observer}
	taken := map[ident.Label]bool{undecodable().Label: true}
	for i, p := range cfg.Patterns {
		field := "Patterns[" + strconv.Itoa(i) + "]."
		switch {
		case p.Label.IsZero() || taken[p.Label]:
			return nil, badRisk(field+"Label", "a label of its own")
		case len(p.Pattern) < 1 || len(p.Pattern) > MaxRiskPattern:
			return nil, badRisk(field+"Pattern", "1…1024 bytes")
		case !(p.Risk > 0 && p.Risk <= 1): // so that NaN is refused
			return nil, badRisk(field+"Risk", "in (0, 1]")
		}
		expression, err := regexp.Compile(p.Pattern)
		if err != nil { // its text shows the pattern
			return nil, badRisk(field+"Pattern", "an RE2 expression")
		}
		taken[p.Label] = true
		r.rules = append(r.rules, riskRule{
			RiskFinding: RiskFinding{Label: p.Label, Risk: p.Risk}, expression: expression, hint: hintOf(p.Pattern),
		})
	}

	return r, nil
}

func badRisk(field, bound string) error {
	return &ConfigError{reason: middleware.ReasonInvalidConfig, field: field, bound: bound}
}

// Format prints the type for every verb and flag: patterns say what is watched for.
func (r *RiskPatterns) Format(s fmt.State, _ rune) {
	_, _ = io.WriteString(s, "escalation.RiskPatterns")
}

// undecodable is the finding of an argument that was not looked at to its end.
func undecodable() RiskFinding { return RiskFinding{Label: ident.MustLabel("undecodable"), Risk: 1} }

// Rate returns the risk of an action, for the action breaker's Risk. The error
// is always nil.
func (r *RiskPatterns) Rate(ctx context.Context, call *middleware.ToolCall) (float64, error) {
	if call == nil {
		return 1, nil
	}
	risk := 0.0
	var run *middleware.Run
	for _, f := range r.Findings(call.Input()) {
		risk = max(risk, f.Risk)
		if r == nil || r.observer == nil {
			continue
		}
		if run == nil {
			run = middleware.RunFrom(ctx)
		}
		middleware.Notify(ctx, r.observer, middleware.Decision{
			Component: middleware.ComponentBreaker, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed,
			Reason: middleware.ReasonGuardrail, Run: run.ID(), Workflow: run.Workflow(), Label: f.Label, Turn: call.Turn(),
			Attempt: call.Attempt(), Severity: f.Risk,
		})
	}

	return risk, nil
}

// Findings returns the rules that an argument matches, in their order, each
// once; undecodable comes last.
func (r *RiskPatterns) Findings(input string) []RiskFinding {
	if r == nil || len(r.rules) == 0 {
		return []RiskFinding{undecodable()}
	}
	found := make([]bool, len(r.rules))
	whole := decodeAll(input, r.maxBytes, func(text string) {
		lower, ascii := strings.ToLower(text), isASCII(text)
		for i := range r.rules {
			rule := &r.rules[i]
			found[i] = found[i] || ((!ascii || rule.hint.admits(lower)) && rule.expression.MatchString(text))
		}
	})
	var findings []RiskFinding
	for i, yes := range found {
		if yes {
			findings = append(findings, r.rules[i].RiskFinding)
		}
	}
	if !whole {
		findings = append(findings, undecodable())
	}

	return findings
}

// DefaultRiskPatterns returns rules for what an agent's tool is rarely meant to
// get: destructive shell commands, downloads that are run, SQL that drops or
// empties tables, paths that leave their folder, files and texts with
// credentials. All are above the action breaker's default limit. They are
// hygiene, not protection, and know no language but those of the usual shells
// and SQL.
func DefaultRiskPatterns() []RiskPattern {
	const destroys, discloses, strays = 0.95, 0.9, 0.85
	rule := func(label string, risk float64, branches ...string) RiskPattern {
		return RiskPattern{Label: ident.MustLabel(label), Pattern: "(?i)" + strings.Join(branches, "|"), Risk: risk}
	}

	return []RiskPattern{
		rule("shell.remove", destroys,
			`\brm\s+(-\S+\s+)*(-[a-z]*r[a-z]*f|-[a-z]*f[a-z]*r|-r[a-z]*\s+(-\S+\s+)*-f|-f[a-z]*\s+(-\S+\s+)*-r)`,
			`\brm\s+(-\S+\s+)*(--recursive\s+(-\S+\s+)*--force|--force\s+(-\S+\s+)*--recursive)`,
			`\b(rd|rmdir|del|erase)\s+(/\w\s+)*/[sq]\b`, `\bremove-item\b.*-recurse`),
		rule("shell.device", destroys,
			`\bmkfs(\.\w+)?\s`, `\bdd\s[^|;&]*\bof=/dev/`, `>\s*/dev/(sd|hd|vd|nvme|mmcblk|disk)`, `:\(\)\s*\{\s*:\s*\|\s*:`),
		rule("shell.remote", discloses,
			`\b(curl|wget|iwr|invoke-webrequest)\b[^;]*\|\s*(sudo\s+)?((ba|z|da|k|fi)?sh|python[\d.]*|perl|iex)\b`,
			`\bbase64\s+(-d|--decode)\b[^;]*\|\s*(sudo\s+)?(ba|z|da|k)?sh\b`),
		rule("sql.drop", destroys,
			`\bdrop\s+(table|database|schema|view|index|user|role)\b`, `\btruncate\s+table\b`, `\balter\s+table\s.*\bdrop\b`),
		rule("sql.unbounded", discloses,
			"\\bdelete\\s+from\\s+[\\w.\"`\\[\\]]+\\s*(;|$|--|/\\*|[\"'}])",
			`\b(delete\s+from|update)\s[^;]*\bwhere\s+\(?\s*('?1'?\s*=\s*'?1'?|true)\b`),
		rule("path.traversal", strays, `(\.\.[\\/]){2,}`, `\.\.[\\/]+(etc|proc|root|windows)\b`),
		rule("credentials.file", discloses,
			`/etc/(passwd|shadow|gshadow|sudoers)\b`, `\.ssh[\\/](id_\w+|authorized_keys)`, `\.aws[\\/]credentials`,
			`\.kube[\\/]config\b`, `\.docker[\\/]config\.json`, `(^|[\\/\s"'=])\.(netrc|pgpass|git-credentials|env)($|[\s"'])`,
			`/proc/(self|\d+)/environ`, `\bntds\.dit\b`),
		rule("credentials.key", discloses, `-----BEGIN [A-Z ]*PRIVATE KEY-----`),
	}
}
