package otelx_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
)

// constants returns the string constants of keys.go by their names.
func constants(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		v := spec.Values[0]
		if call, ok := v.(*ast.CallExpr); ok && len(call.Args) == 1 {
			v = call.Args[0]
		}
		if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = s
		}

		return true
	})
	if len(found) < 50 {
		t.Fatalf("only %d constants found", len(found))
	}

	return found
}

// The published names are those of the last Go package that has them, and no
// idea of ours takes their prefix.
func TestPublishedNames(t *testing.T) {
	t.Parallel()
	published := map[string]string{
		"keyOperation":     string(semconv.GenAIOperationNameKey),
		"keyAgent":         string(semconv.GenAIAgentNameKey),
		"keyProvider":      string(semconv.GenAIProviderNameKey),
		"keyRequestModel":  string(semconv.GenAIRequestModelKey),
		"keyResponseModel": string(semconv.GenAIResponseModelKey),
		"keyInputTokens":   string(semconv.GenAIUsageInputTokensKey),
		"keyOutputTokens":  string(semconv.GenAIUsageOutputTokensKey),
		"keyFinishReasons": string(semconv.GenAIResponseFinishReasonsKey),
		"keyTool":          string(semconv.GenAIToolNameKey),
		"keyToolType":      string(semconv.GenAIToolTypeKey),
		"keyErrorType":     string(semconv.ErrorTypeKey),
		"operationChat":    semconv.GenAIOperationNameChat.Value.AsString(),
		"operationAgent":   semconv.GenAIOperationNameInvokeAgent.Value.AsString(),
		"operationTool":    semconv.GenAIOperationNameExecuteTool.Value.AsString(),
		"other":            semconv.ErrorTypeOther.Value.AsString(),
		"metricOperation":  genaiconv.ClientOperationDuration{}.Name(),
		// Defined by the repository semantic-conventions-genai only; see keys.go.
		"metricTool":  "gen_ai.execute_tool.duration",
		"metricAgent": "gen_ai.invoke_agent.duration",
	}
	own := constants(t)
	for name, want := range published {
		if own[name] != want {
			t.Errorf("%s = %q, published as %q", name, own[name], want)
		}
	}
	for name, s := range own {
		_, isPublished := published[name]
		if strings.HasPrefix(s, "gen_ai.") && !isPublished {
			t.Errorf("%s = %q takes the published prefix", name, s)
		}
		if (strings.HasPrefix(name, "key") || strings.HasPrefix(name, "metric")) && !isPublished && !strings.HasPrefix(s, "interlock.") {
			t.Errorf("%s = %q has no prefix of ours", name, s)
		}
	}
	if unit := (genaiconv.ClientOperationDuration{}).Unit(); unit != "s" {
		t.Errorf("published unit %q", unit)
	}
}
