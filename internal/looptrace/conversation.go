package looptrace

import (
	"strings"

	"github.com/tmc/langchaingo/llms"
)

// conversation is what an executor keeps for its agent: the messages of a run,
// in the form of its style.
type conversation struct {
	textual bool
	prompt  string
	options []llms.CallOption

	history []llms.MessageContent // functions
	pad     strings.Builder       // text: all that was said, at the end of the prompt
}

func newConversation(t *Trace) conversation {
	c := conversation{textual: t.Style == StyleText, prompt: t.Prompt}
	if c.textual {
		c.options = []llms.CallOption{llms.WithStopWords([]string{"\nObservation:"})}

		return c
	}
	tools := make([]llms.Tool, 0, len(t.Tools))
	for _, tool := range t.Tools {
		tools = append(tools, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{Name: tool.Name}})
	}
	c.options = []llms.CallOption{llms.WithTools(tools)}

	return c
}

// messages returns the next request.
func (c *conversation) messages() []llms.MessageContent {
	if c.textual {
		return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, c.prompt+"\n"+c.pad.String())}
	}
	all := []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "You are an assistant with tools."),
		llms.TextParts(llms.ChatMessageTypeHuman, c.prompt),
	}

	return append(all, c.history...)
}

// response returns what the model says in a turn, beginning at step first.
func (c *conversation) response(steps []Step, first int) *llms.ContentResponse {
	choice := &llms.ContentChoice{Content: steps[0].Thought}
	switch {
	case steps[0].kind() == stepAnswer:
		choice.Content = *steps[0].Answer
	case c.textual:
		choice.Content = action(&steps[0])
	default:
		choice.ToolCalls = toolCalls(steps, first)
	}

	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}
}

// action is how a textual agent asks for a call.
func action(s *Step) string {
	return "Thought: " + s.Thought + "\nAction: " + s.Tool + "\nAction Input: " + text(s.Args)
}

func toolCalls(steps []Step, first int) []llms.ToolCall {
	calls := make([]llms.ToolCall, 0, len(steps))
	for i := range steps {
		calls = append(calls, llms.ToolCall{
			ID: callID(first + i), Type: "function",
			FunctionCall: &llms.FunctionCall{Name: steps[i].Tool, Arguments: text(steps[i].Args)},
		})
	}

	return calls
}

// turn keeps what was said and done in a turn, for the next request.
func (c *conversation) turn(steps []Step, first int) {
	s := &steps[0]
	switch {
	case s.kind() == stepOutage: // nothing was said
	case c.textual && s.kind() == stepAnswer:
		c.pad.WriteString("\n" + *s.Answer + "\n")
		if s.Unparsable {
			c.pad.WriteString("Observation: the answer could not be read\n")
		}
		if s.Reply != nil {
			c.pad.WriteString("Human: " + *s.Reply + "\n")
		}
	case c.textual:
		for i := range steps {
			c.pad.WriteString("\n" + action(&steps[i]) + "\nObservation: " + observation(&steps[i]) + "\n")
		}
	case s.kind() == stepAnswer:
		c.history = append(c.history, llms.TextParts(llms.ChatMessageTypeAI, *s.Answer))
		if s.Reply != nil {
			c.history = append(c.history, llms.TextParts(llms.ChatMessageTypeHuman, *s.Reply))
		}
	default:
		asked := llms.MessageContent{Role: llms.ChatMessageTypeAI}
		for _, call := range toolCalls(steps, first) {
			asked.Parts = append(asked.Parts, call)
		}
		c.history = append(c.history, asked)
		for i := range steps {
			c.history = append(c.history, llms.MessageContent{
				Role: llms.ChatMessageTypeTool,
				Parts: []llms.ContentPart{llms.ToolCallResponse{
					ToolCallID: callID(first + i), Name: steps[i].Tool, Content: observation(&steps[i]),
				}},
			})
		}
	}
}

// observation is what the agent reads of a call.
func observation(s *Step) string {
	switch {
	case s.kind() == stepInvention:
		return s.Tool + " is not a valid tool, try another one"
	case s.Result == ResultRefused:
		return "This call was not made: it was refused (parked). Do not repeat it."
	default:
		return text(s.Text)
	}
}
