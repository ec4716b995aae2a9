package fallback

import (
	"reflect"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// tokensOf reads the provider's count from the first choice only: clients repeat it in every choice. 0 is unknown. The
// keys and their types differ by client.
func tokensOf(resp *llms.ContentResponse) (in, out int) {
	if resp == nil || len(resp.Choices) == 0 || resp.Choices[0] == nil {
		return 0, 0
	}
	info := resp.Choices[0].GenerationInfo
	if len(info) == 0 {
		return 0, 0
	}
	in = firstCount(info, "PromptTokens", "InputTokens", "input_tokens")
	out = firstCount(info, "CompletionTokens", "OutputTokens", "output_tokens")
	if in == 0 && out == 0 {
		if u, ok := info["usage"]; ok { // mistral: a struct of its SDK
			in, out = fieldCount(u, "PromptTokens"), fieldCount(u, "CompletionTokens")
		}
	}

	return in, out
}

func firstCount(info map[string]any, keys ...string) int {
	for _, k := range keys {
		if n := toCount(info[k]); n > 0 {
			return n
		}
	}

	return 0
}

// maxTokens bounds a count: what is larger is not a count.
const maxTokens = 1 << 40

func toCount(v any) int {
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
		if v > 0 && v < maxTokens {
			n = int64(v)
		}
	}
	if n < 0 || n > maxTokens {
		return 0
	}

	return int(n)
}

func fieldCount(v any, name string) int {
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

// finishOf maps the providers' words for the end of an answer.
func finishOf(stop string) middleware.FinishReason {
	switch stop {
	case "":
		return 0
	case "stop", "end_turn", "stop_sequence", "STOP", "FinishReasonStop", "COMPLETE":
		return middleware.FinishStop
	case "length", "max_tokens", "model_length", "MAX_TOKENS", "FinishReasonMaxTokens":
		return middleware.FinishLength
	case "tool_calls", "function_call", "tool_use":
		return middleware.FinishToolCalls
	case "content_filter", "refusal", "SAFETY", "FinishReasonSafety", "RECITATION", "FinishReasonRecitation",
		"guardrail_intervened", "content_filtered":
		return middleware.FinishContentFilter
	case "error", "FinishReasonOther", "FinishReasonUnspecified":
		return middleware.FinishError
	default:
		return middleware.FinishOther
	}
}
