package misbehave

import (
	"encoding/json"
	"strings"
)

type openaiRequest struct {
	Model               string          `json:"model"`
	Messages            []openaiMessage `json:"messages"`
	Temperature         *float64        `json:"temperature"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Stop                json.RawMessage `json:"stop"`
	Stream              bool            `json:"stream"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools        []openaiTool        `json:"tools"`
	ToolChoice   json.RawMessage     `json:"tool_choice"`
	Functions    []openaiDeclaration `json:"functions"`
	FunctionCall json.RawMessage     `json:"function_call"`
}

type openaiTool struct {
	Type     string            `json:"type"`
	Function openaiDeclaration `json:"function"`
}

type openaiDeclaration struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

type openaiMessage struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	Name         string          `json:"name"`
	ToolCallID   string          `json:"tool_call_id"`
	FunctionCall *openaiCalled   `json:"function_call"`
	ToolCalls    []struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function openaiCalled `json:"function"`
	} `json:"tool_calls"`
}

type openaiCalled struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// parseOpenAI fills the request from its body as far as that goes, and returns the first violation.
func parseOpenAI(request *Request) Violation {
	noKey := when(strings.TrimSpace(strings.TrimPrefix(request.header.Get("Authorization"), "Bearer")) == "", AuthMissing)
	var body openaiRequest
	if json.Unmarshal(request.raw, &body) != nil {
		return first(noKey, BadJSON)
	}
	stop, err := openaiStop(body.Stop)
	badStop := when(err != nil, BadJSON)
	request.Stream = body.Stream
	request.Model = body.Model
	request.Stop = stop
	request.MaxTokens = max(body.MaxTokens, body.MaxCompletionTokens)
	request.Temperature = body.Temperature
	request.includeUsage = body.StreamOptions.IncludeUsage
	request.legacy = len(body.Functions) > 0 && len(body.Tools) == 0
	for _, tool := range body.Tools {
		request.Tools = append(request.Tools, tool.Function.Name)
	}
	for _, function := range body.Functions {
		request.Tools = append(request.Tools, function.Name)
	}
	badContent := NoViolation
	for i := range body.Messages {
		message, ok := body.Messages[i].neutral()
		request.Messages = append(request.Messages, message)
		badContent = first(badContent, when(!ok, BadContent))
	}
	return first(noKey, badStop, body.check(request), badContent, body.checkHistory())
}

func openaiStop(raw json.RawMessage) ([]string, error) {
	if isNull(raw) {
		return nil, nil
	}
	if raw[0] == '"' {
		var word string
		err := json.Unmarshal(raw, &word)
		return []string{word}, err //nolint:wrapcheck // Only whether there is an error counts.
	}
	var words []string
	err := json.Unmarshal(raw, &words)
	return words, err //nolint:wrapcheck // Only whether there is an error counts.
}

// neutral is the message in vendor-neutral form, and whether its content has a shape that its role allows.
func (m *openaiMessage) neutral() (Message, bool) {
	list, err := blocks(m.Content)
	message := Message{Role: m.Role, Text: joined(list)}
	for _, call := range m.ToolCalls {
		message.Calls = append(message.Calls,
			Call{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	if m.FunctionCall != nil {
		message.Calls = append(message.Calls, Call{Name: m.FunctionCall.Name, Arguments: m.FunctionCall.Arguments})
	}
	switch m.Role {
	case "tool":
		message.Results = []Result{{ID: m.ToolCallID, Text: message.Text}}
		message.Text = ""
	case "function":
		message.Results = []Result{{ID: m.Name, Text: message.Text}}
		message.Text = ""
	}
	// Only an assistant may say nothing, and only while calling.
	mayBeNull := len(message.Calls) > 0 || m.Role == "function"
	return message, err == nil && (mayBeNull || !isNull(m.Content))
}

// check is everything but the history.
func (r *openaiRequest) check(request *Request) Violation {
	const longestName, mostStops, hottest = 64, 4, 2.0
	badType, badSchema := false, false
	for _, tool := range r.Tools {
		badType = badType || tool.Type != "function"
		badSchema = badSchema || !isNull(tool.Function.Parameters) && !isObject(tool.Function.Parameters)
	}
	for _, function := range r.Functions {
		badSchema = badSchema || !isNull(function.Parameters) && !isObject(function.Parameters)
	}
	noTools := !isNull(r.ToolChoice) && len(r.Tools) == 0 || !isNull(r.FunctionCall) && len(r.Functions) == 0
	return first(
		when(r.Model == "", ModelMissing),
		when(len(r.Messages) == 0, EmptyMessages),
		when(r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > hottest), BadTemperature),
		when(len(request.Stop) > mostStops, BadStop),
		when(badType, BadCallType),
		checkNames(request.Tools, longestName),
		when(badSchema, BadToolSchema),
		when(noTools, ToolChoiceWithoutTools),
	)
}

// checkHistory is the order of calls and results. The two forms of calls have a ledger each, since names are no ids.
func (r *openaiRequest) checkHistory() Violation {
	calls, functions := newLedger(), newLedger()
	for i := range r.Messages {
		m := &r.Messages[i]
		if calls.open() && m.Role != "tool" || functions.open() && m.Role != "function" {
			return CallWithoutResult
		}
		if m.Role != "tool" {
			calls.turn()
		}
		if m.Role != "function" {
			functions.turn()
		}
		v := NoViolation
		switch m.Role {
		case "system", "developer", "user":
		case "assistant":
			v = m.checkCalls(calls, functions)
		case "tool":
			v = first(when(m.ToolCallID == "", EmptyCallID), calls.result(m.ToolCallID))
		case "function":
			v = first(when(m.Name == "", EmptyCallName), functions.result(m.Name))
		default:
			v = BadRole
		}
		if v != NoViolation {
			return v
		}
	}
	return when(calls.open() || functions.open(), CallWithoutResult)
}

func (m *openaiMessage) checkCalls(calls, functions *ledger) Violation {
	for _, call := range m.ToolCalls {
		_, twice := calls.due[call.ID]
		v := first(
			when(call.ID == "", EmptyCallID),
			when(twice, DuplicateCallID),
			when(call.Type != "function", BadCallType),
			when(call.Function.Name == "", EmptyCallName),
			when(!isObject([]byte(call.Function.Arguments)), ArgumentsNotObject),
		)
		if v != NoViolation {
			return v
		}
		calls.call(call.ID)
	}
	if m.FunctionCall == nil {
		return NoViolation
	}
	functions.call(m.FunctionCall.Name)
	return first(
		when(m.FunctionCall.Name == "", EmptyCallName),
		when(!isObject([]byte(m.FunctionCall.Arguments)), ArgumentsNotObject),
	)
}
