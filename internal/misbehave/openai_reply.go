package misbehave

import (
	"fmt"
	"strings"
)

// created is a fixed time, so that equal scripts give equal bytes.
const created = 1767225600

// openaiCalls are the reply's calls with ids, and whether they take the legacy form.
func openaiCalls(request *Request, reply *Reply) (calls []Call, legacy bool) {
	if reply.Fault == FaultEmptyChoices || reply.Fault == FaultNullContent {
		return nil, false
	}
	legacy = len(reply.Calls) > 0 && (reply.Legacy || request.legacy)
	return withIDs("call", request, reply.Calls), legacy
}

// withIDs fills in the ids that the script leaves open.
func withIDs(prefix string, request *Request, calls []Call) []Call {
	filled := append([]Call(nil), calls...)
	for i := range filled {
		switch filled[i].ID {
		case "":
			filled[i].ID = fmt.Sprintf("%s_%d_%d", prefix, request.Index, i)
		case NoID:
			filled[i].ID = ""
		}
	}
	return filled
}

func openaiFinish(reply *Reply, calls []Call, legacy bool) string {
	switch {
	case reply.Finish == FinishNull:
		return "null"
	case reply.Finish != FinishAuto:
		return quote(string(reply.Finish))
	case legacy:
		return `"function_call"`
	case len(calls) > 0:
		return quote(string(FinishToolCalls))
	default:
		return quote(string(FinishStop))
	}
}

func openaiUsage(request *Request, reply *Reply) string {
	usage := reply.usage(request)
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,`+
		`"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		usage.Prompt, usage.Completion, usage.Prompt+usage.Completion)
}

// openaiBody is a plain chat completion.
func openaiBody(request *Request, reply *Reply) string {
	calls, legacy := openaiCalls(request, reply)
	content := quote(reply.text())
	if reply.Fault == FaultNullContent || reply.text() == "" && len(calls) > 0 {
		content = "null"
	}
	message := `{"role":"assistant","content":` + content + `,"refusal":null`
	switch {
	case legacy:
		message += `,"function_call":` + openaiFunction(calls[0])
	case len(calls) > 0:
		list := make([]string, len(calls))
		for i, call := range calls {
			list[i] = fmt.Sprintf(`{"id":%s,"type":"function","function":%s}`, quote(call.ID), openaiFunction(call))
		}
		message += `,"tool_calls":[` + strings.Join(list, ",") + `]`
	}
	message += `}`
	choices := fmt.Sprintf(`[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}]`,
		message, openaiFinish(reply, calls, legacy))
	if reply.Fault == FaultEmptyChoices {
		choices = "[]"
	}
	return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":%d,"model":%s,"choices":%s,`+
		`"usage":%s,"system_fingerprint":"fp_misbehave"}`,
		request.Index, created, quote(reply.model(request)), choices, openaiUsage(request, reply))
}

func openaiFunction(call Call) string {
	return fmt.Sprintf(`{"name":%s,"arguments":%s}`, quote(call.Name), quote(call.Arguments))
}

// openaiStream is the same answer as chunks: role, content, calls, finish, usage if asked for, [DONE].
func openaiStream(request *Request, reply *Reply) []frame {
	calls, legacy := openaiCalls(request, reply)
	tail := `}`
	if request.includeUsage {
		tail = `,"usage":null}`
	}
	head := fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":%d,"model":%s,`+
		`"system_fingerprint":"fp_misbehave","choices":`, request.Index, created, quote(reply.model(request)))
	delta := func(kind frameKind, delta, finish string) frame {
		choices := `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]`
		if reply.Fault == FaultEmptyChoices {
			choices = "[]"
		}
		return frame{kind: kind, data: head + choices + tail}
	}
	content := `""`
	if reply.Fault == FaultNullContent || len(calls) > 0 && reply.text() == "" {
		content = "null"
	}
	frames := []frame{delta(frameStructure, `{"role":"assistant","content":`+content+`,"refusal":null}`, "null")}
	if reply.Fault != FaultNullContent {
		for _, text := range reply.textChunks() {
			frames = append(frames, delta(frameContent, `{"content":`+quote(text)+`}`, "null"))
		}
	}
	if legacy {
		frames = append(frames, delta(frameStructure, `{"function_call":`+openaiFunction(Call{Name: calls[0].Name})+`}`, "null"))
		for _, piece := range pieces(calls[0].Arguments) {
			frames = append(frames, delta(frameContent, `{"function_call":{"arguments":`+quote(piece)+`}}`, "null"))
		}
		calls = calls[:1]
	} else {
		frames = append(frames, openaiCallFrames(calls, reply.Fault == FaultInterleaved, delta)...)
	}
	frames = append(frames, delta(frameClosing, `{}`, openaiFinish(reply, calls, legacy)))
	if request.includeUsage {
		frames = append(frames, frame{kind: frameClosing, data: head + `[],"usage":` + openaiUsage(request, reply) + `}`})
	}
	return append(frames, frame{kind: frameTerminal, data: "[DONE]"})
}

func openaiCallFrames(calls []Call, mixed bool, delta func(kind frameKind, delta, finish string) frame) []frame {
	open := make([]frame, len(calls))
	deltas := make([][]frame, len(calls))
	for i, call := range calls {
		open[i] = delta(frameStructure, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":%s}]}`,
			i, quote(call.ID), openaiFunction(Call{Name: call.Name})), "null")
		for _, piece := range pieces(call.Arguments) {
			deltas[i] = append(deltas[i], delta(frameContent,
				fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(piece)), "null"))
		}
	}
	return arrange(open, deltas, nil, mixed)
}

// arrange orders the events of parallel calls: one call after the other or, mixed, all opened, then their deltas in
// turn, then all closed.
func arrange(open []frame, deltas [][]frame, shut []frame, mixed bool) []frame {
	var frames []frame
	if !mixed {
		for i := range open {
			frames = append(append(frames, open[i]), deltas[i]...)
			if shut != nil {
				frames = append(frames, shut[i])
			}
		}
		return frames
	}
	frames = append(frames, open...)
	for round, more := 0, true; more; round++ {
		more = false
		for _, d := range deltas {
			if round < len(d) {
				frames, more = append(frames, d[round]), true
			}
		}
	}
	return append(frames, shut...)
}
