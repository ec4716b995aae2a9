package misbehave

import (
	"net/http"
	"slices"
)

// Violation is a rule of the protocol that a request breaks.
type Violation string

// The violations. NoViolation is the zero value: only a request that was checked has an Answer, so it cannot be taken
// for a passed check before that.
const (
	NoViolation            Violation = ""
	AuthMissing            Violation = "auth_missing"              // No Authorization, or no x-api-key.
	VersionMissing         Violation = "version_missing"           // Anthropic: no anthropic-version.
	BadJSON                Violation = "bad_json"                  // Not JSON, or a field of the wrong type.
	ModelMissing           Violation = "model_missing"             // Model absent or empty.
	MaxTokensMissing       Violation = "max_tokens_missing"        // Anthropic: max_tokens absent or not positive.
	EmptyMessages          Violation = "empty_messages"            // No messages.
	BadTemperature         Violation = "bad_temperature"           // Out of the vendor's range.
	BadStop                Violation = "bad_stop"                  // OpenAI: more than four; Anthropic: blank.
	BadToolName            Violation = "bad_tool_name"             // Offered name empty, too long, or other characters.
	DuplicateToolName      Violation = "duplicate_tool_name"       // Two offered tools of one name.
	BadToolSchema          Violation = "bad_tool_schema"           // Not an object; Anthropic: absent or not of type object.
	ToolsMissing           Violation = "tools_missing"             // Anthropic: calls or results in the history, no tools.
	ToolChoiceWithoutTools Violation = "tool_choice_without_tools" // OpenAI: tool_choice or function_call, but no tools.
	BadRole                Violation = "bad_role"                  // A role that the vendor does not have.
	RoleOrder              Violation = "role_order"                // Anthropic: the first message is not the user's.
	BadContent             Violation = "bad_content"               // Content of a wrong shape, or not allowed for its role.
	EmptyText              Violation = "empty_text"                // Anthropic: a message or text block without text.
	EmptyCallID            Violation = "empty_call_id"             // A call or result without id.
	BadCallID              Violation = "bad_call_id"               // Anthropic: an id with other than A-Z a-z 0-9 _ -.
	DuplicateCallID        Violation = "duplicate_call_id"         // OpenAI: in one message; Anthropic: in the history.
	BadCallType            Violation = "bad_call_type"             // OpenAI: a call or tool whose type is not "function".
	EmptyCallName          Violation = "empty_call_name"           // A call, or a legacy result, without name.
	ArgumentsNotObject     Violation = "arguments_not_object"      // Arguments that are not the text of a JSON object.
	CallWithoutResult      Violation = "call_without_result"       // A call that is not answered at once.
	ResultWithoutCall      Violation = "result_without_call"       // A result whose call is nowhere before it.
	UnexpectedToolResult   Violation = "unexpected_tool_result"    // A result whose call is not right before it.
	DuplicateResult        Violation = "duplicate_result"          // A second result for one call.
	ResultAfterText        Violation = "result_after_text"         // Anthropic: a result behind text in one user turn.
)

// Violations lists all violations but NoViolation.
func Violations() []Violation {
	list := make([]Violation, 0, len(sentences))
	for v := range sentences {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// sentences are worded like the vendors' own, because classifiers in the field read such texts. They are fixed: what
// the request says is not repeated.
var sentences = map[Violation]string{ //nolint:gochecknoglobals,gosec // compiled table; no credential among them
	AuthMissing:            "You didn't provide an API key.",
	VersionMissing:         "anthropic-version: header is required",
	BadJSON:                "We could not parse the JSON body of your request.",
	ModelMissing:           "you must provide a model parameter",
	MaxTokensMissing:       "max_tokens: Field required",
	EmptyMessages:          "messages: at least one message is required",
	BadTemperature:         "temperature: value out of range",
	BadStop:                "stop: array too long, or a stop sequence without non-whitespace",
	BadToolName:            "tools.name: String should match pattern '^[a-zA-Z0-9_-]+$'",
	DuplicateToolName:      "tools: Tool names must be unique.",
	BadToolSchema:          "tools.input_schema: Input should be a valid JSON schema object",
	ToolsMissing:           "Requests which include `tool_use` or `tool_result` blocks must define tools",
	ToolChoiceWithoutTools: "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
	BadRole:                "messages.role: Unexpected role",
	RoleOrder:              "messages: first message must use the \"user\" role",
	BadContent:             "messages.content: Invalid content",
	EmptyText:              "messages: text content blocks must be non-empty",
	EmptyCallID:            "messages: Missing tool call id",
	BadCallID:              "messages.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
	DuplicateCallID:        "messages: `tool_use` ids must be unique",
	BadCallType:            "Invalid value: ''. Supported values are: 'function'.",
	EmptyCallName:          "messages: Missing function name",
	ArgumentsNotObject:     "messages.tool_use.input: Input should be a valid dictionary",
	CallWithoutResult:      "An assistant message with tool calls must be followed by results for each call id.",
	ResultWithoutCall:      "messages: result has no corresponding tool call in a previous message.",
	UnexpectedToolResult:   "messages: unexpected tool result: its call is not in the previous message.",
	DuplicateResult:        "messages: each tool call must have a single result.",
	ResultAfterText:        "messages: tool results must come first in the message that follows the tool calls.",
}

func (v Violation) status() int {
	if v == AuthMissing {
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}

// reply is the refusal that goes to the client. The code is added for whoever reads a failed test.
func (v Violation) reply() Reply {
	return Reply{Status: v.status(), Error: &APIError{Message: sentences[v] + " (" + string(v) + ")"}}
}
