package misbehave

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// serve reads one request from the connection and answers it. The caller closes the connection.
func (s *Server) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	httpRequest, err := http.ReadRequest(in)
	if err != nil {
		return // The client left without asking, or does not speak HTTP.
	}
	body, err := io.ReadAll(httpRequest.Body)
	if err != nil {
		return // It left in the middle of asking.
	}
	parsed := parse(httpRequest, body)
	ctx, cancel := context.WithCancel(s.ctx)
	x := &exchange{ctx: ctx, cancel: cancel, conn: conn, out: bufio.NewWriter(conn)}
	var watcher sync.WaitGroup
	watcher.Go(x.watch)
	defer func() { // In a defer, since a script may end the goroutine: t.FailNow does.
		_ = conn.Close()
		watcher.Wait()
		cancel()
		if x.request != nil {
			s.finish(x.request, x.state.Load() == stateGone)
		}
	}()
	s.take(x, httpRequest.Method, parsed)
	x.answer()
}

// take logs a request and finds its reply, one request at a time.
func (s *Server) take(x *exchange, method string, parsed Request) {
	s.turn.Lock()
	defer s.turn.Unlock()
	x.request = s.receive(parsed)
	x.reply = s.decide(method, x.request)
}

// receive logs a request.
func (s *Server) receive(parsed Request) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	parsed.Index, parsed.At = len(s.log), time.Since(s.started)
	s.log = append(s.log, &parsed)
	s.active++
	s.notify()
	return &parsed
}

// decide finds the reply to a logged request and logs what it is.
func (s *Server) decide(method string, request *Request) Reply {
	var reply Reply
	var answer Answer
	switch {
	case request.Vendor == VendorUnknown:
		reply, answer = Reply{Status: http.StatusNotFound}, AnswerUnroutable
	case method != http.MethodPost:
		reply, answer = Reply{Status: http.StatusMethodNotAllowed}, AnswerUnroutable
	case request.Violation != NoViolation && !s.lenient:
		reply, answer = request.Violation.reply(), AnswerViolation
	default:
		reply, answer = s.ask(*request)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Answer = answer
	request.Fault = reply.Fault // FaultNone in the refusals above.
	return reply
}

func (s *Server) ask(request Request) (reply Reply, answer Answer) {
	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	if script == nil {
		return Reply{Text: "ok"}, AnswerScripted
	}
	defer func() {
		if recover() != nil {
			reply, answer = Reply{Status: http.StatusInternalServerError}, AnswerScriptPanic
		}
	}()
	reply = script.Reply(request)
	if reply.failed() {
		return reply, AnswerStatus
	}
	return reply, AnswerScripted
}

func (s *Server) finish(request *Request, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request.Gone = gone
	s.active--
	s.notify()
}

// The states of an exchange. It leaves stateOpen once: either the server sees the client leave, or it seals the answer
// before the last byte. So a client that leaves on seeing the last byte is not taken for one that left early.
const (
	stateOpen int32 = iota
	stateSealed
	stateGone
)

// exchange is one request and its answer on one connection.
type exchange struct {
	ctx     context.Context //nolint:containedctx // It is the connection's life.
	cancel  context.CancelFunc
	conn    net.Conn
	out     *bufio.Writer
	request *Request
	reply   Reply
	state   atomic.Int32
}

// watch ends the exchange when the client leaves. It reads on, because a read is the only way to notice, and because a
// connection closed with unread bytes is reset instead. A client that closes only its sending side counts as gone.
func (x *exchange) watch() {
	_, _ = io.Copy(io.Discard, x.conn)
	if x.ctx.Err() == nil && x.state.CompareAndSwap(stateOpen, stateGone) {
		x.cancel()
	}
}

// seal says that the server, not the client, ends the exchange. It is false if the client was faster.
func (x *exchange) seal() bool { return x.state.CompareAndSwap(stateOpen, stateSealed) }

// flush sends what was written. After an error the client is gone, unless the server is being closed.
func (x *exchange) flush() bool {
	if x.out.Flush() == nil {
		return true
	}
	if x.ctx.Err() == nil {
		x.state.Store(stateGone)
		x.cancel()
	}
	return false
}

// pause waits. It is false if the exchange ended meanwhile.
func (x *exchange) pause(d time.Duration) bool {
	if d <= 0 {
		return x.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-x.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// hang waits for the end of the exchange.
func (x *exchange) hang() { <-x.ctx.Done() }

// reset ends the exchange with an RST.
func (x *exchange) reset() {
	x.seal()
	if tcp, ok := x.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = x.conn.Close()
}
