package fallback

import (
	"encoding/json"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

// hollow finds a response that no caller may see, whoever gave it: langchaingo's agents and chains panic on it.
func hollow(resp *llms.ContentResponse) error {
	if resp == nil {
		return &responseError{what: "nil", class: ClassBadResponse}
	}
	if len(resp.Choices) == 0 {
		return &responseError{what: "no choices", class: ClassBadResponse}
	}
	for _, c := range resp.Choices {
		if c == nil {
			return &responseError{what: "nil choice", class: ClassBadResponse}
		}
	}

	return nil
}

// suspicion says how closely a response is looked at.
type suspicion struct {
	*traits

	streaming bool
	// whole: a Transport saw the stream to its proper end, so that a missing reason for the end means nothing.
	whole bool
}

// check finds the signs of a failure that the client reported as a success. resp is not hollow, and the choices of one
// message are merged.
func (s suspicion) check(resp *llms.ContentResponse) error {
	for _, c := range resp.Choices {
		if err := s.checkChoice(c); err != nil {
			return err
		}
	}
	if s.counts {
		if in, out := tokensOf(resp); in == 0 && out == 0 {
			return &responseError{what: "no token count", class: ClassBadResponse}
		}
	}

	return nil
}

func (s suspicion) checkChoice(c *llms.ContentChoice) error {
	finish := finishOf(c.StopReason)
	if finish == middleware.FinishContentFilter {
		return &responseError{what: "content filter", class: ClassContentFilter}
	}
	if s.streaming && !s.whole && c.StopReason == "" && s.streamStop {
		return &responseError{what: "stream without an end", class: ClassBadResponse}
	}
	if s.unfinished != "" && c.StopReason == s.unfinished {
		return &responseError{what: "unfinished", class: ClassBadResponse}
	}
	if err := checkCalls(c, finish); err != nil {
		return err
	}
	if c.Content == "" && len(c.ToolCalls) == 0 && c.FuncCall == nil {
		return &responseError{what: "empty", class: ClassBadResponse}
	}

	return nil
}

// checkCalls finds tool calls that are cut, or merged by a client that ignores their index.
func checkCalls(c *llms.ContentChoice, finish middleware.FinishReason) error {
	if (len(c.ToolCalls) > 0 || c.FuncCall != nil) && finish == middleware.FinishLength {
		return &responseError{what: "tool call at the length limit", class: ClassBadResponse}
	}
	for i := range c.ToolCalls {
		if err := checkCall(c.ToolCalls[i].FunctionCall); err != nil {
			return err
		}
	}
	if len(c.ToolCalls) == 0 && c.FuncCall != nil {
		return checkCall(c.FuncCall)
	}

	return nil
}

func checkCall(f *llms.FunctionCall) error {
	switch {
	case f == nil, f.Name == "":
		return &responseError{what: "tool call without a name", class: ClassBadResponse}
	case f.Arguments != "" && !json.Valid([]byte(f.Arguments)):
		return &responseError{what: "tool call with broken arguments", class: ClassBadResponse}
	default:
		return nil
	}
}
