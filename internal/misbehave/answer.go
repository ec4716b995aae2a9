package misbehave

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

const jsonType = "application/json"

func (r *Reply) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

func (r *Reply) failed() bool { return r.status() != http.StatusOK }

// answer carries out the reply.
func (x *exchange) answer() {
	if !x.pause(x.reply.DelayHeaders) {
		return
	}
	switch x.reply.Fault {
	case FaultResetBeforeHeaders:
		x.reset()
		return
	case FaultCloseBeforeHeaders:
		x.seal()
		return
	case FaultHang:
		x.hang()
		return
	default: // the others come later in the answer
	}
	vendor := x.request.Vendor
	switch {
	case x.reply.Raw != nil:
		x.plain(x.reply.Raw.ContentType, x.reply.Raw.Body)
	case x.reply.failed():
		x.plain(jsonType, errorBody(vendor, x.reply.status(), x.reply.Error))
	case x.request.Stream && vendor == VendorAnthropic:
		x.stream(anthropicStream(x.request, &x.reply))
	case x.request.Stream:
		x.stream(openaiStream(x.request, &x.reply))
	case x.reply.Fault == FaultErrorEvent:
		x.plain(jsonType, errorBody(vendor, http.StatusInternalServerError, x.reply.Error))
	case vendor == VendorAnthropic:
		x.plain(jsonType, anthropicBody(x.request, &x.reply))
	default:
		x.plain(jsonType, openaiBody(x.request, &x.reply))
	}
}

// plain sends a body of known length, as far as the fault lets it.
func (x *exchange) plain(contentType, body string) {
	promised, sent := len(body), len(body)
	cut := max(0, min(x.reply.At, len(body)-1)) // At least one byte is missing, else nothing would be wrong.
	switch x.reply.Fault {
	case FaultCut, FaultReset, FaultStall:
		sent = cut
	case FaultEndEarly:
		promised, sent = cut, cut
	case FaultMalformedEvent:
		promised, sent = len(body)/2, len(body)/2
	default: // whole
	}
	x.head(contentType, strconv.Itoa(promised))
	if x.reply.DelayFirst > 0 && (!x.flush() || !x.pause(x.reply.DelayFirst)) {
		return
	}
	_, _ = x.out.WriteString(body[:sent])
	switch x.reply.Fault {
	case FaultReset:
		if x.flush() {
			x.reset()
		}
	case FaultStall:
		if x.flush() {
			x.hang()
		}
	default:
		if x.seal() {
			x.flush()
		}
	}
}

// head writes status line and header; an empty length means chunks.
func (x *exchange) head(contentType, length string) {
	header := http.Header{}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	if length == "" {
		header.Set("Transfer-Encoding", "chunked")
		header.Set("Cache-Control", "no-cache")
	} else {
		header.Set("Content-Length", length)
	}
	name := "X-Request-Id"
	if x.request.Vendor == VendorAnthropic {
		name = "Request-Id"
	}
	header.Set(name, fmt.Sprintf("req_%d", x.request.Index))
	for key, value := range x.reply.Headers {
		header.Set(key, value)
	}
	header.Set("Connection", "close")
	status := x.reply.status()
	_, _ = fmt.Fprintf(x.out, "HTTP/1.1 %03d %s\r\n", status, http.StatusText(status))
	_ = header.Write(x.out) // Write errors stick to the buffer and come out of flush.
	_, _ = x.out.WriteString("\r\n")
}

// quote is a JSON string. Marshalling a string cannot fail.
func quote(text string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // See above.
	return string(quoted)
}
