package fallback

import (
	"encoding/json"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/middleware"
)

const functionType = "function"

// choiceKind is what a choice of tool comes to.
type choiceKind uint8

const (
	choiceAuto choiceKind = iota
	choiceNone
	choiceForced
)

// choiceOf reads the choice of tool, or its older form where only that is given.
func choiceOf(view middleware.OptionsView) choiceKind {
	choice := view.ToolChoice()
	if choice == nil {
		choice = string(view.FunctionCallBehavior())
	}
	switch choice {
	case nil, "", "auto":
		return choiceAuto
	case "none":
		return choiceNone
	default:
		return choiceForced
	}
}

// bridgeTools turns functions into tools and clears them: half of the clients send only tools, and the others would
// send both. offered says whether the client sends tools in the end.
func (c *client) bridgeTools(view middleware.OptionsView) (options []llms.CallOption, offered bool) {
	choice := choiceOf(view)
	chosen := view.ToolChoice() != nil || view.FunctionCallBehavior() != ""
	if !view.OffersTools() {
		if chosen && choice != choiceForced {
			options = clearChoice(options) // a choice without tools is refused
		}

		return options, false
	}
	if c.can&CapToolChoice == 0 {
		if chosen {
			options = clearChoice(options)
		}
		if choice == choiceNone {
			return append(options, llms.WithTools(nil), llms.WithFunctions(nil)), false
		}
	} else if b := view.FunctionCallBehavior(); b != "" {
		options = append(options, llms.WithFunctionCallBehavior(""))
		if view.ToolChoice() == nil {
			options = append(options, llms.WithToolChoice(toolChoice(b)))
		}
	}
	tools, changed := c.tools(view)
	if changed {
		options = append(options, llms.WithTools(tools), llms.WithFunctions(nil))
	}

	return options, true
}

func clearChoice(to []llms.CallOption) []llms.CallOption {
	return append(to, llms.WithToolChoice(nil), llms.WithFunctionCallBehavior(""))
}

// toolChoice is the newer form of a choice of function, which is a word or {"name": …}.
func toolChoice(b llms.FunctionCallBehavior) any {
	var named llms.FunctionReference
	if json.Unmarshal([]byte(b), &named) == nil && named.Name != "" {
		return llms.ToolChoice{Type: functionType, Function: &named}
	}

	return string(b)
}

// tools returns the offered tools and functions as tools. A tool of the same name is not declared twice.
func (c *client) tools(view middleware.OptionsView) (tools []llms.Tool, changed bool) {
	tools = view.Tools() // a copy, of which the functions are still the caller's
	functions := view.Functions()
	for i := range functions {
		f := &functions[i] // of the copy
		named := func(t llms.Tool) bool { return t.Function != nil && t.Function.Name == f.Name }
		if !slices.ContainsFunc(tools, named) {
			tools = append(tools, llms.Tool{Type: functionType, Function: f})
		}
	}
	changed = len(functions) > 0
	for i := range tools {
		if tools[i].Type == "" {
			tools[i].Type, changed = functionType, true
		}
		f := tools[i].Function
		if f == nil {
			continue
		}
		if parameters, other := c.schema.apply(f.Parameters); other {
			own := *f
			own.Parameters = parameters
			tools[i].Function, changed = &own, true
		}
	}

	return tools, changed
}

// apply brings the parameters of a tool into the form that a client takes.
func (r schemaRule) apply(parameters any) (schema any, changed bool) {
	switch {
	case r == schemaAny:
		return parameters, false
	case parameters == nil:
		return map[string]any{"type": "object", "properties": map[string]any{}}, true
	case r == schemaObject:
		return parameters, false
	}
	top, ok := parameters.(map[string]any)
	if ok && isPlain(parameters) && hasProperties(top) {
		return parameters, false
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return parameters, false // the client says so in its own words
	}
	var plain map[string]any
	if json.Unmarshal(text, &plain) != nil || plain == nil {
		return parameters, false
	}
	if !hasProperties(plain) {
		plain["properties"] = map[string]any{}
	}

	return plain, true
}

func hasProperties(schema map[string]any) bool {
	_, ok := schema["properties"]

	return ok || schema["type"] != "object"
}

// isPlain reports whether v holds only the types that encoding/json makes, and lists of strings.
func isPlain(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, float64, int, []string:
		return true
	case map[string]any:
		for _, inner := range v {
			if !isPlain(inner) {
				return false
			}
		}

		return true
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !isPlain(inner) })
	default:
		return false
	}
}
