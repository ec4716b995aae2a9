// Package misbehave is a provider that fails on demand: a local HTTP server that speaks OpenAI chat completions and
// Anthropic messages, plain and streamed, and is scripted per request. Tests and the example program use it in place
// of a live provider. It works on raw connections, because net/http refuses to misbehave as badly as the field does.
//
//	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(
//		misbehave.Reply{Status: 503, Headers: map[string]string{"Retry-After": "2"}},
//		misbehave.Reply{Text: "half an answer", Fault: misbehave.FaultCut, At: 1},
//		misbehave.Reply{Calls: []misbehave.Call{{Name: "lookup", Arguments: `{"__arg1":"Oslo"}`}}},
//		misbehave.Reply{Text: "It is raining."}, // repeated when the script is used up
//	)})
//	if err != nil { … }
//	defer srv.Close()
//	model, err := openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("m"))
//	… // use the model
//	for _, r := range srv.Requests() { fmt.Println(r.Vendor, r.Stream, r.Violation, r.Answer) }
//
// # Routes
//
// A path that ends in /chat/completions is OpenAI, one that ends in /messages is Anthropic, everything else is 404.
// Both langchaingo clients want srv.URL()+"/v1" as base URL; more path in front lets one server play several
// providers, told apart by [Request.Path].
//
// # Strictness
//
// Every request is checked as the vendor checks it, before the script is asked. A request that breaks a rule is
// answered 400 (401 for a missing key) in the vendor's shape, logged with its [Violation], and uses up no reply. With
// [Config.Lenient] the violation is logged all the same but the script answers. In short:
//   - Both: a key header; valid JSON; a model; messages; a temperature in range (OpenAI 0 to 2, Anthropic 0 to 1); tool
//     names well-formed and unique; every call has an id, a name and a JSON object as arguments; every call is answered
//     at once and once; no result without its call.
//   - OpenAI: calls have type "function" and ids unique within their message; a choice of tool needs tools; at most four
//     stop words. The legacy function_call and functions are held to the same rules.
//   - Anthropic: anthropic-version and max_tokens; the first message is the user's; neighbours of one role are merged,
//     as the vendor does, and after that all results of an assistant turn stand first in the very next user turn; ids
//     unique in the whole history; tools present when the history holds calls or results; input_schema of type object;
//     no empty text.
//
// That OpenAI refuses arguments that are not an object is assumed, not measured: it is the safe side for a test.
//
// # Concurrency and time
//
// All methods are safe for concurrent use. Scripts are asked one at a time and in the order of the log, so they need
// no lock, but they must return at once: waiting belongs into the reply. Delays are real time, and each of them, like a
// hang or a stall, ends when the client leaves or the server is closed. [Server.Close] returns only when every
// goroutine has ended, and needs no client's help for that. Each connection carries one request, so clients keep no idle
// connections either.
package misbehave
