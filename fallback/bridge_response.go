package fallback

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// bridgeResponse merges the choices of one message, because agents read only the first: anthropic puts the text into
// choice 0 and the tool call into choice 1. The client's response is not changed; what needs no change is not copied.
func (c *candidate) bridgeResponse(resp *llms.ContentResponse, n int) *llms.ContentResponse {
	if len(resp.Choices) > 1 && (c.blocks || n <= 1) {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{completeCalls(mergeChoices(resp.Choices))}}
	}
	own := resp
	for i, choice := range resp.Choices {
		if done := completeCalls(choice); done != choice {
			if own == resp {
				own = &llms.ContentResponse{Choices: slices.Clone(resp.Choices)}
			}
			own.Choices[i] = done
		}
	}

	return own
}

func mergeChoices(choices []*llms.ContentChoice) *llms.ContentChoice {
	merged := &llms.ContentChoice{GenerationInfo: choices[0].GenerationInfo} // each repeats the whole usage
	var text, reasoning strings.Builder
	for i, c := range choices {
		text.WriteString(c.Content)
		reasoning.WriteString(c.ReasoningContent)
		if merged.StopReason == "" {
			merged.StopReason = c.StopReason
		}
		if merged.FuncCall == nil {
			merged.FuncCall = c.FuncCall
		}
		merged.ToolCalls = append(merged.ToolCalls, c.ToolCalls...)
		if i > 0 {
			merged.GenerationInfo = mergeInfo(merged.GenerationInfo, c.GenerationInfo)
		}
	}
	merged.Content, merged.ReasoningContent = text.String(), reasoning.String()

	return merged
}

// mergeInfo adds what base lacks, such as the thinking of another block, in a map of its own.
func mergeInfo(base, more map[string]any) map[string]any {
	own := false
	for k, v := range more {
		if old, has := base[k]; has && old != nil && old != "" {
			continue
		}
		if !own {
			grown := make(map[string]any, len(base)+len(more))
			maps.Copy(grown, base)
			base, own = grown, true
		}
		base[k] = v
	}

	return base
}

// completeCalls fills what clients leave out and other clients need: id and type of a call, and the older field for the
// first call. It returns c itself if nothing is missing.
func completeCalls(c *llms.ContentChoice) *llms.ContentChoice {
	if len(c.ToolCalls) == 0 {
		return c
	}
	incomplete := func(t llms.ToolCall) bool { return t.Type == "" || t.ID == "" }
	if c.FuncCall != nil && !slices.ContainsFunc(c.ToolCalls, incomplete) {
		return c
	}
	d := *c
	d.ToolCalls = slices.Clone(c.ToolCalls)
	for i := range d.ToolCalls {
		if d.ToolCalls[i].Type == "" {
			d.ToolCalls[i].Type = functionType
		}
		if d.ToolCalls[i].ID == "" {
			d.ToolCalls[i].ID = "call_" + rand.Text()
		}
	}
	if d.FuncCall == nil {
		d.FuncCall = d.ToolCalls[0].FunctionCall
	}

	return &d
}
