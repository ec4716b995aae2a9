package escalation

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/interlock-go/interlock/middleware"
)

// ConfidenceField reads the confidence from a field of the model's answer, which
// has to be one JSON object with this field at its top. Of several choices the
// least sure one counts.
//
// An answer that is no JSON object, or does not have the field, is not known. A
// field that is there and is not a number in [0, 1] (a word, a percentage, null),
// or an object with a name twice, is a reading that failed.
func ConfidenceField(name string) ConfidenceFunc {
	return func(_ context.Context, res *middleware.ModelResult) (float64, bool) {
		least, known := math.Inf(1), false
		for _, c := range res.Response.Choices {
			value, ok := fieldOf(c.Content, name)
			if !ok {
				continue
			}
			known = true
			if math.IsNaN(value) {
				return value, true
			}
			least = min(least, value)
		}

		return least, known
	}
}

func fieldOf(text, name string) (float64, bool) {
	if len(text) == 0 {
		return 0, false
	}
	fields, defect := readObject([]byte(strings.Trim(text, " \t\r\n")), func(string) bool { return true })
	if defect == DefectDuplicateField {
		return math.NaN(), true
	}
	raw, ok := fields[name]
	if defect != 0 || !ok {
		return 0, false
	}
	var value *float64
	if json.Unmarshal(raw, &value) != nil || value == nil || *value < 0 || *value > 1 {
		return math.NaN(), true
	}

	return *value, true
}

// ConfidenceLogProbs reads the confidence from the log probabilities of the
// answer's tokens: the geometric mean of their probabilities, exp(mean(log p)).
// Of several choices the least sure one counts.
//
// No client of langchaingo v0.1.14 hands log probabilities on (that of openai
// decodes them and leaves them behind), so this is for models of your own. It
// looks into GenerationInfo, under LogProbs, Logprobs or logprobs, for a list of
// numbers or of objects with the field logprob, or an object that has such a
// list as content (the form of OpenAI's interface); and under AvgLogProbs,
// AvgLogprobs, avgLogprobs or avg_logprobs for their mean (the form of Gemini's).
// An answer without any is not known; what is there but not of these forms, or
// above 0, is a reading that failed.
func ConfidenceLogProbs() ConfidenceFunc {
	return func(_ context.Context, res *middleware.ModelResult) (float64, bool) {
		least, known := math.Inf(1), false
		for _, c := range res.Response.Choices {
			mean, ok := meanLogProb(c.GenerationInfo)
			if !ok {
				continue
			}
			known = true
			if !(mean <= 0) { // NaN too
				return math.NaN(), true
			}
			least = min(least, math.Exp(mean))
		}

		return least, known
	}
}

func meanLogProb(info map[string]any) (float64, bool) {
	for _, key := range [...]string{"LogProbs", "Logprobs", "logprobs"} {
		if v, ok := info[key]; ok && v != nil {
			return meanOf(v)
		}
	}
	for _, key := range [...]string{"AvgLogProbs", "AvgLogprobs", "avgLogprobs", "avg_logprobs"} {
		if v, ok := info[key]; ok && v != nil {
			mean, ok := v.(float64)
			if !ok {
				mean = math.NaN()
			}

			return mean, true
		}
	}

	return 0, false
}

// meanOf returns false for a list of nothing.
func meanOf(v any) (float64, bool) {
	list, ok := v.([]float64)
	if !ok {
		list, ok = numbersOf(v, true)
	}
	switch {
	case !ok:
		return math.NaN(), true
	case len(list) == 0:
		return 0, false
	}
	sum := 0.0
	for _, p := range list {
		if !(p <= 0) {
			return math.NaN(), true
		}
		sum += p
	}

	return sum / float64(len(list)), true
}

// numbersOf reads the other forms, structures of a client by way of their JSON.
func numbersOf(v any, structure bool) ([]float64, bool) {
	switch v := v.(type) {
	case map[string]any:
		content, ok := v["content"]
		if !ok || content == nil {
			return nil, ok
		}
		if _, nested := content.(map[string]any); nested {
			return nil, false
		}

		return numbersOf(content, structure)
	case []any:
		list := make([]float64, 0, len(v))
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				e = m["logprob"]
			}
			p, ok := e.(float64)
			if !ok {
				return nil, false
			}
			list = append(list, p)
		}

		return list, true
	}
	if !structure {
		return nil, false
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, false
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return nil, false
	}

	return numbersOf(plain, false)
}
