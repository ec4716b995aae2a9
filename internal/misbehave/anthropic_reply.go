package misbehave

import (
	"encoding/json"
	"fmt"
	"strings"
)

func anthropicFinish(reply *Reply, calls []Call) string {
	switch reply.Finish {
	case FinishNull:
		return "null"
	case FinishStop:
		return `"end_turn"`
	case FinishLength:
		return `"max_tokens"`
	case FinishToolCalls:
		return `"tool_use"`
	case FinishContentFilter:
		return `"refusal"`
	case FinishAuto:
		if len(calls) > 0 {
			return `"tool_use"`
		}
		return `"end_turn"`
	default:
		return quote(string(reply.Finish))
	}
}

// anthropicContent is the text and the calls that the fault leaves. Empty text makes no block: the vendor sends none.
func anthropicContent(request *Request, reply *Reply) (text string, calls []Call) {
	if reply.Fault == FaultEmptyChoices || reply.Fault == FaultNullContent {
		return "", nil
	}
	return reply.text(), withIDs("toolu", request, reply.Calls)
}

// anthropicMessage is the frame around the content, which the plain body and message_start share.
func anthropicMessage(request *Request, reply *Reply, content, stop string, output int) string {
	return fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":%s,`+
		`"stop_reason":%s,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,`+
		`"cache_read_input_tokens":0,"output_tokens":%d}}`,
		request.Index, quote(reply.model(request)), content, stop, reply.usage(request).Prompt, output)
}

// anthropicBody is a plain message.
func anthropicBody(request *Request, reply *Reply) string {
	text, calls := anthropicContent(request, reply)
	var blocks []string
	if text != "" {
		blocks = append(blocks, `{"type":"text","text":`+quote(text)+`}`)
	}
	for _, call := range calls {
		input := call.Arguments
		if !json.Valid([]byte(input)) {
			input = "{}"
		}
		blocks = append(blocks, anthropicToolUse(call, input))
	}
	content := "[" + strings.Join(blocks, ",") + "]"
	if reply.Fault == FaultNullContent {
		content = "null"
	}
	return anthropicMessage(request, reply, content, anthropicFinish(reply, calls), reply.usage(request).Completion)
}

func anthropicToolUse(call Call, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(call.ID), quote(call.Name), input)
}

// anthropicStream is the same message as events: message_start, ping, the blocks, message_delta, message_stop.
func anthropicStream(request *Request, reply *Reply) []frame {
	text, calls := anthropicContent(request, reply)
	frames := []frame{
		{
			event: "message_start",
			data:  `{"type":"message_start","message":` + anthropicMessage(request, reply, "[]", "null", 1) + `}`,
		},
		{event: "ping", data: `{"type":"ping"}`},
	}
	blocks := 0
	if text != "" {
		frames = append(frames, anthropicBlockStart(0, `{"type":"text","text":""}`))
		for _, chunk := range reply.textChunks() {
			frames = append(frames, anthropicDelta(0, `{"type":"text_delta","text":`+quote(chunk)+`}`))
		}
		frames = append(frames, anthropicBlockStop(0))
		blocks = 1
	}
	open, deltas, shut := make([]frame, len(calls)), make([][]frame, len(calls)), make([]frame, len(calls))
	for i, call := range calls {
		open[i] = anthropicBlockStart(blocks+i, anthropicToolUse(call, "{}"))
		for _, piece := range pieces(call.Arguments) {
			deltas[i] = append(deltas[i],
				anthropicDelta(blocks+i, `{"type":"input_json_delta","partial_json":`+quote(piece)+`}`))
		}
		shut[i] = anthropicBlockStop(blocks + i)
	}
	frames = append(frames, arrange(open, deltas, shut, reply.Fault == FaultInterleaved)...)
	return append(frames,
		frame{kind: frameClosing, event: "message_delta", data: fmt.Sprintf(
			`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}}`,
			anthropicFinish(reply, calls), reply.usage(request).Completion)},
		frame{kind: frameTerminal, event: "message_stop", data: `{"type":"message_stop"}`})
}

func anthropicBlockStart(index int, block string) frame {
	return frame{
		event: "content_block_start",
		data:  fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block),
	}
}

func anthropicDelta(index int, delta string) frame {
	return frame{
		kind:  frameContent,
		event: "content_block_delta",
		data:  fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta),
	}
}

func anthropicBlockStop(index int) frame {
	return frame{event: "content_block_stop", data: fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)}
}
