package misbehave

// Fault is one way in which an answer goes wrong. Where "stream" is said, plain bodies behave as stated after it.
type Fault string

// The faults.
const (
	// FaultNone is an answer without fault.
	FaultNone Fault = ""
	// FaultResetBeforeHeaders resets the connection (RST) instead of answering.
	FaultResetBeforeHeaders Fault = "reset_before_headers"
	// FaultCloseBeforeHeaders closes the connection (FIN) instead of answering.
	FaultCloseBeforeHeaders Fault = "close_before_headers"
	// FaultHang never answers; it ends when the client leaves or the server is closed.
	FaultHang Fault = "hang"
	// FaultCut closes the connection at At: a stream has no terminating chunk, a plain body fewer bytes than promised.
	FaultCut Fault = "cut"
	// FaultReset resets the connection (RST) at At. Bytes still under way may be lost with it.
	FaultReset Fault = "reset"
	// FaultEndEarly ends a stream at At in perfect HTTP, without finish or terminal event. A plain body is as short as
	// it promises to be, and no valid JSON.
	FaultEndEarly Fault = "end_early"
	// FaultStall falls silent at At until the client leaves or the server is closed.
	FaultStall Fault = "stall"
	// FaultMalformedEvent cuts the JSON of the stream's content chunk At, then goes on. A plain body is cut in half.
	FaultMalformedEvent Fault = "malformed_event"
	// FaultErrorEvent sends an error event at At and ends the stream. A plain body is the error object, under status 200.
	FaultErrorEvent Fault = "error_event"
	// FaultNoTerminal leaves out [DONE] or message_stop and is otherwise in order. A plain body has nothing to leave out.
	FaultNoTerminal Fault = "no_terminal"
	// FaultEmptyChoices answers with no choices (OpenAI) or no content blocks (Anthropic).
	FaultEmptyChoices Fault = "empty_choices"
	// FaultNullContent answers with null content, calls left out. An Anthropic stream has no blocks then.
	FaultNullContent Fault = "null_content"
	// FaultInterleaved mixes the deltas of parallel calls in a stream. A plain body has no deltas.
	FaultInterleaved Fault = "interleaved"
)
