package misbehave

import (
	"fmt"
	"net/http"
)

// frameKind says what an event is, for the faults that depend on it.
type frameKind int

const (
	frameStructure frameKind = iota // Opens or closes something; carries no content.
	frameContent                    // A delta of text or arguments: what At counts.
	frameClosing                    // The finish reason and what follows it.
	frameTerminal                   // [DONE] or message_stop.
)

// frame is one server-sent event.
type frame struct {
	kind        frameKind
	event, data string
}

func (f frame) String() string {
	if f.event == "" {
		return "data: " + f.data + "\n\n"
	}
	return "event: " + f.event + "\ndata: " + f.data + "\n\n"
}

// stream sends events, one HTTP chunk each, as far as the fault lets it.
func (x *exchange) stream(frames []frame) {
	if x.reply.Fault == FaultNoTerminal && frames[len(frames)-1].kind == frameTerminal {
		frames = frames[:len(frames)-1]
	}
	x.head("text/event-stream; charset=utf-8", "")
	if !x.flush() || !x.pause(x.reply.DelayFirst) {
		return
	}
	at, sent, faulty := max(0, x.reply.At), 0, false
	for i, f := range frames {
		if f.kind == frameContent && sent > 0 && !x.pause(x.reply.DelayChunk) {
			return
		}
		if !faulty && (f.kind == frameContent && sent == at || f.kind >= frameClosing) {
			faulty = true
			if x.fail(&f) {
				return
			}
		}
		if f.kind == frameContent {
			sent++
		}
		x.chunk(f)
		// The last event and the end of the body leave together: many clients close on seeing the former.
		if i == len(frames)-1 {
			x.end()
			return
		}
		if !x.flush() {
			return
		}
	}
}

// fail carries out a fault whose place in the stream is right before f. It is true if the stream is over.
func (x *exchange) fail(f *frame) bool {
	switch x.reply.Fault {
	case FaultCut:
		x.seal()
	case FaultReset:
		x.reset()
	case FaultStall:
		x.hang()
	case FaultEndEarly:
		x.end()
	case FaultErrorEvent:
		event := frame{data: errorBody(x.request.Vendor, http.StatusInternalServerError, x.reply.Error)}
		if x.request.Vendor == VendorAnthropic {
			event.event = "error"
		}
		x.chunk(event)
		x.end()
	case FaultMalformedEvent:
		cut := frame{kind: f.kind, event: f.event, data: f.data[:len(f.data)/2]}
		if f.kind == frameContent {
			*f = cut
		} else {
			x.chunk(cut) // The content is over: an extra event, so that the finish still arrives.
		}
		return false
	default:
		return false
	}
	return true
}

func (x *exchange) chunk(f frame) {
	text := f.String()
	_, _ = fmt.Fprintf(x.out, "%x\r\n%s\r\n", len(text), text) // Errors come out of flush.
}

// end closes the body in good order.
func (x *exchange) end() {
	if x.seal() {
		_, _ = x.out.WriteString("0\r\n\r\n")
		x.flush()
	}
}
