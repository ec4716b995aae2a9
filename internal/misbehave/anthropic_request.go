package misbehave

import (
	"encoding/json"
	"strings"
)

type anthropicRequest struct {
	Model         string          `json:"model"`
	System        json.RawMessage `json:"system"`
	MaxTokens     int             `json:"max_tokens"`
	Temperature   *float64        `json:"temperature"`
	StopSequences []string        `json:"stop_sequences"`
	Stream        bool            `json:"stream"`
	Messages      []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

// anthropicTurn is neighbouring messages of one role, which the vendor takes for one.
type anthropicTurn struct {
	role   string
	blocks []block
}

// parseAnthropic fills the request from its body as far as that goes, and returns the first violation.
func parseAnthropic(request *Request) Violation {
	headers := first(
		when(request.header.Get("X-Api-Key") == "", AuthMissing),
		when(request.header.Get("Anthropic-Version") == "", VersionMissing))
	var body anthropicRequest
	if json.Unmarshal(request.raw, &body) != nil {
		return first(headers, BadJSON)
	}
	request.Stream = body.Stream
	request.Model = body.Model
	request.Stop = body.StopSequences
	request.MaxTokens = body.MaxTokens
	request.Temperature = body.Temperature
	for _, tool := range body.Tools {
		request.Tools = append(request.Tools, tool.Name)
	}
	badContent := NoViolation
	if !isNull(body.System) {
		list, err := blocks(body.System)
		badContent = when(err != nil, BadContent)
		request.Messages = append(request.Messages, Message{Role: "system", Text: joined(list)})
	}
	var turns []anthropicTurn
	for _, m := range body.Messages {
		list, err := blocks(m.Content)
		badContent = first(badContent, when(err != nil, BadContent), when(len(list) == 0, EmptyText))
		request.Messages = append(request.Messages, anthropicNeutral(m.Role, list))
		if last := len(turns) - 1; last >= 0 && turns[last].role == m.Role {
			turns[last].blocks = append(turns[last].blocks, list...)
			continue
		}
		turns = append(turns, anthropicTurn{role: m.Role, blocks: list})
	}
	return first(headers, body.check(request), badContent, checkTurns(turns, len(body.Tools) > 0))
}

func anthropicNeutral(role string, list []block) Message {
	message := Message{Role: role, Text: joined(list)}
	for _, b := range list {
		switch b.Type {
		case "tool_use":
			message.Calls = append(message.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case "tool_result":
			inner, _ := blocks(b.Content) // A wrong shape is a violation, found by the check.
			message.Results = append(message.Results, Result{ID: b.ToolUseID, Text: joined(inner)})
		}
	}
	return message
}

// check is everything but the history.
func (r *anthropicRequest) check(request *Request) Violation {
	const longestName, hottest = 128, 1.0
	blankStop, badSchema := false, false
	for _, word := range r.StopSequences {
		blankStop = blankStop || strings.TrimSpace(word) == ""
	}
	for _, tool := range r.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		badSchema = badSchema || json.Unmarshal(tool.InputSchema, &schema) != nil || schema.Type != "object"
	}
	return first(
		when(r.Model == "", ModelMissing),
		when(r.MaxTokens <= 0, MaxTokensMissing),
		when(len(r.Messages) == 0, EmptyMessages),
		when(r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > hottest), BadTemperature),
		when(blankStop, BadStop),
		checkNames(request.Tools, longestName),
		when(badSchema, BadToolSchema),
	)
}

// checkTurns is the order of roles, calls and results.
func checkTurns(turns []anthropicTurn, tools bool) Violation {
	calls, all := newLedger(), map[string]bool{}
	for i, turn := range turns {
		var v Violation
		switch turn.role {
		case "user":
			v = turn.checkUser(calls)
			calls.turn()
		case "assistant":
			v = first(when(i == 0, RoleOrder), turn.checkAssistant(calls, all))
		default:
			v = BadRole
		}
		if v != NoViolation {
			return v
		}
		if !tools && turn.usesTools() {
			return ToolsMissing
		}
	}
	return when(calls.open(), CallWithoutResult)
}

func (t anthropicTurn) usesTools() bool {
	for _, b := range t.blocks {
		if b.Type == "tool_use" || b.Type == "tool_result" {
			return true
		}
	}
	return false
}

func (t anthropicTurn) checkUser(calls *ledger) Violation {
	other := false
	for _, b := range t.blocks {
		v := NoViolation
		switch b.Type {
		case "tool_result":
			_, err := blocks(b.Content)
			v = first(
				when(b.ToolUseID == "", EmptyCallID),
				when(err != nil, BadContent),
				calls.result(b.ToolUseID),
				when(other, ResultAfterText))
		case "text":
			v = when(b.Text == "", EmptyText)
			other = true
		case "image", "document":
			other = true
		default:
			v = BadContent
		}
		if v != NoViolation {
			return v
		}
	}
	return when(calls.open(), CallWithoutResult)
}

func (t anthropicTurn) checkAssistant(calls *ledger, all map[string]bool) Violation {
	for _, b := range t.blocks {
		v := NoViolation
		switch b.Type {
		case "tool_use":
			v = first(
				when(b.ID == "", EmptyCallID),
				when(!toolName.MatchString(b.ID), BadCallID),
				when(all[b.ID], DuplicateCallID),
				when(b.Name == "", EmptyCallName),
				when(!isObject(b.Input), ArgumentsNotObject))
			calls.call(b.ID)
			all[b.ID] = true
		case "text":
			v = when(b.Text == "", EmptyText)
		case "thinking", "redacted_thinking":
		default:
			v = BadContent
		}
		if v != NoViolation {
			return v
		}
	}
	return NoViolation
}
