package escalation

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

const (
	bytesPerToken = 3
	// pictureBytes is what a picture counts as: 1,600 tokens, near the most that
	// providers take for one. Its own size says nothing of its tokens.
	pictureBytes = 1600 * bytesPerToken
	// maxCount bounds a count of tokens: what is larger is not a count.
	maxCount = 1 << 40
)

// tokensFor is the estimate for a size: too high for most texts, so that a
// limit is reached too early rather than too late.
func tokensFor(bytes int) int64 {
	return (int64(bytes) + bytesPerToken - 1) / bytesPerToken
}

// requestTokens estimates a request: its messages and tool definitions.
func requestTokens(call *middleware.ModelCall) int64 {
	size := 0
	for _, m := range call.Messages() {
		for _, p := range m.Parts {
			size += partSize(p)
		}
	}
	view := call.Options()
	if !view.OffersTools() {
		return tokensFor(size)
	}
	for _, t := range view.Tools() {
		if t.Function != nil {
			size += definitionSize(t.Function)
		}
	}
	functions := view.Functions()
	for i := range functions {
		size += definitionSize(&functions[i])
	}

	return tokensFor(size)
}

// answerLimit is what the answer can be as long as, where the call says so.
func answerLimit(call *middleware.ModelCall) int64 {
	view := call.Options()

	return min(int64(max(view.MaxTokens(), 0))*int64(max(view.N(), 1)), maxCount)
}

func partSize(p llms.ContentPart) int {
	switch p := p.(type) {
	case llms.TextContent:
		return len(p.Text)
	case llms.ToolCall:
		if p.FunctionCall != nil {
			return len(p.ID) + len(p.FunctionCall.Name) + len(p.FunctionCall.Arguments)
		}
	case llms.ToolCallResponse:
		return len(p.ToolCallID) + len(p.Name) + len(p.Content)
	case llms.ImageURLContent:
		return pictureBytes
	case llms.BinaryContent:
		if strings.HasPrefix(p.MIMEType, "image/") {
			return pictureBytes
		}

		return len(p.Data)
	case llms.CachedContent:
		return partSize(p.ContentPart)
	}

	return 0
}

func definitionSize(f *llms.FunctionDefinition) int {
	return len(f.Name) + len(f.Description) + schemaSize(f.Parameters)
}

const punctuation = 4 // quotes, a colon and a comma

// schemaSize is the size of a schema as JSON, nearly: of the types that schemas
// are written with it is found without rendering them.
func schemaSize(v any) int {
	size := 2
	switch v := v.(type) {
	case nil:
	case string:
		size += len(v)
	case bool, int, float64:
		size = punctuation
	case map[string]any:
		for name, inner := range v {
			size += len(name) + punctuation + schemaSize(inner)
		}
	case map[string]string:
		for name, inner := range v {
			size += len(name) + len(inner) + 2*punctuation
		}
	case []any:
		for _, inner := range v {
			size += 1 + schemaSize(inner)
		}
	case []string:
		for _, inner := range v {
			size += len(inner) + punctuation
		}
	default:
		if text, err := json.Marshal(v); err == nil { // else the client cannot send it either
			size = len(text)
		}
	}

	return size
}

// usedTokens is what a call came to: the provider's count, and the estimate for
// what it did not count.
func usedTokens(res *middleware.ModelResult, request int64) int64 {
	if res == nil {
		return request
	}
	in, out := int64(res.InputTokens), int64(res.OutputTokens)
	if in <= 0 || out <= 0 {
		infoIn, infoOut := countedTokens(res.Response)
		if in <= 0 {
			in = infoIn
		}
		if out <= 0 {
			out = infoOut
		}
	}
	if in <= 0 {
		in = request
	}
	if out <= 0 {
		out = answerTokens(res.Response)
	}

	return min(in, maxCount) + min(out, maxCount)
}

func answerTokens(resp *llms.ContentResponse) int64 {
	if resp == nil {
		return 0
	}
	size := 0
	for _, c := range resp.Choices {
		if c == nil {
			continue
		}
		size += len(c.Content) + len(c.ReasoningContent)
		for i := range c.ToolCalls {
			size += partSize(c.ToolCalls[i])
		}
		if len(c.ToolCalls) == 0 && c.FuncCall != nil {
			size += len(c.FuncCall.Name) + len(c.FuncCall.Arguments)
		}
	}

	return tokensFor(size)
}

// countedTokens reads the provider's count from the first choice, because
// clients repeat it in every one. 0 is unknown. Keys and types differ by client.
func countedTokens(resp *llms.ContentResponse) (in, out int64) {
	if resp == nil || len(resp.Choices) == 0 || resp.Choices[0] == nil {
		return 0, 0
	}
	info := resp.Choices[0].GenerationInfo
	if len(info) == 0 {
		return 0, 0
	}
	in = firstCount(info, "PromptTokens", "InputTokens", "input_tokens")
	out = firstCount(info, "CompletionTokens", "OutputTokens", "output_tokens")
	if usage, ok := info["usage"]; ok && in == 0 && out == 0 { // mistral: a struct of its SDK
		in, out = fieldCount(usage, "PromptTokens"), fieldCount(usage, "CompletionTokens")
	}

	return in, out
}

func firstCount(info map[string]any, keys ...string) int64 {
	for _, k := range keys {
		if n := toCount(info[k]); n > 0 {
			return n
		}
	}

	return 0
}

func toCount(v any) int64 {
	n := int64(0)
	switch v := v.(type) {
	case int:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	case uint32:
		n = int64(v)
	case float64: // JSON
		if v > 0 && v < maxCount { // not NaN either
			n = int64(v)
		}
	}
	if n < 0 || n > maxCount {
		return 0
	}

	return n
}

func fieldCount(v any, name string) int64 {
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Pointer {
		rv = rv.Elem()
	}
	if rv.Kind() != reflect.Struct {
		return 0
	}
	f := rv.FieldByName(name)
	if !f.IsValid() || !f.CanInt() {
		return 0
	}

	return toCount(f.Int())
}
