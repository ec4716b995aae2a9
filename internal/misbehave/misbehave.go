package misbehave

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Config says how a server starts.
type Config struct {
	// Script answers the requests. Default nil: every request is answered with the text "ok".
	Script Script
	// Lenient lets the script answer requests that break the protocol; they are still logged as violations.
	// Default false: they are refused as the vendor would.
	Lenient bool
}

// Server is a running misbehaving provider. Its methods are safe for concurrent use.
type Server struct {
	listener net.Listener
	lenient  bool
	started  time.Time
	ctx      context.Context //nolint:containedctx // It is the server's life, not a request's.
	cancel   context.CancelFunc
	running  sync.WaitGroup

	// turn makes the order of the log and the order in which scripts are asked the same. It is never taken while mu is
	// held, and scripts run under it alone, so that they may read the log.
	turn sync.Mutex

	mu      sync.Mutex
	script  Script
	conns   map[net.Conn]struct{}
	log     []*Request
	active  int           // Logged requests whose answer is not finished.
	changed chan struct{} // Closed and replaced at each change that an Await may wait for.
}

// Start listens on a free port of 127.0.0.1. It fails only when that is impossible. The caller owns the server and
// must call Close.
func Start(config Config) (*Server, error) {
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("misbehave: listen: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		listener: listener,
		lenient:  config.Lenient,
		started:  time.Now(),
		ctx:      ctx,
		cancel:   cancel,
		script:   config.Script,
		conns:    make(map[net.Conn]struct{}),
		changed:  make(chan struct{}),
	}
	s.running.Go(s.accept)
	return s, nil
}

// URL is the address of the server without a path, as in http://127.0.0.1:4711. Clients want URL()+"/v1".
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Script replaces the script; nil brings back the default. Requests that already have their reply keep it.
func (s *Server) Script(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Close ends all connections, delays, hangs and goroutines, and waits for the goroutines. The log can be read
// afterwards. Closing twice is harmless.
func (s *Server) Close() {
	s.cancel() // First, so that connections closed from here are not taken for clients that left.
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Count is the number of requests received.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// Requests is the log in order of arrival. What can still change (Gone) is a snapshot: see AwaitIdle.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.log))
	for i, r := range s.log {
		requests[i] = *r
	}
	return requests
}

// AwaitRequests waits until n requests have been received, or returns the context's error.
func (s *Server) AwaitRequests(ctx context.Context, n int) error {
	return s.await(ctx, func() bool { return len(s.log) >= n })
}

// AwaitIdle waits until no request is being answered, or returns the context's error. After it, the log says of each
// request so far whether its client left.
func (s *Server) AwaitIdle(ctx context.Context) error {
	return s.await(ctx, func() bool { return s.active == 0 })
}

func (s *Server) await(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := done(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("misbehave: await: %w", ctx.Err())
		case <-changed:
		}
	}
}

// accept owns the listener's goroutine; Close ends it by closing the listener.
func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // Out of descriptors, or the client left in the queue: neither is a reason to stop.
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
			continue
		}
		if s.adopt(conn) {
			s.running.Go(func() {
				defer s.release(conn)
				s.serve(conn)
			})
		}
	}
}

// adopt registers a connection for Close. A connection that comes too late is closed.
func (s *Server) adopt(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) release(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// notify wakes the waiters; the caller holds mu.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}
