package admission

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

const (
	defaultTicketTTL   = 10 * time.Minute
	maxTicketTTL       = 24 * time.Hour
	defaultTicketLimit = 1024
	maxTicketLimit     = 65_536
	ticketNonce        = 16
	ticketTime         = 8
	ticketSize         = ticketNonce + ticketTime + 2*sha256.Size
)

var (
	errTicketTTL   = errors.New("admission: MemoryApproverConfig.TTL: 0 or 1 s…24 h")
	errTicketLimit = errors.New("admission: MemoryApproverConfig.Limit: 0…65536")
	errTicket      = errors.New("a ticket of another approver, or none")
	errExpired     = errors.New("the ticket has expired")
	errDecided     = errors.New("the ticket was decided before")
	errTickets     = errors.New("as many decided tickets as may be")
)

// MemoryApproverConfig configures a [MemoryApprover].
type MemoryApproverConfig struct {
	// Ask, if it is set, is told of a call that nobody has approved, with the
	// ticket to decide it by, and the call then waits for the decision. It returns
	// at once; the call and its input are content. Default none: such a call is
	// approval_required without waiting.
	Ask func(ctx context.Context, call *middleware.ToolCall, ticket string)
	// TTL is how long a ticket is good for. Default 10 min; 1 s…24 h.
	TTL time.Duration
	// Limit bounds how many tickets that were decided and have not expired are
	// kept: beyond, nothing can be granted. Default 1024; 1…65536.
	Limit int
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// MemoryApprover keeps approvals in this process. A human decides by ticket: an
// opaque text without content, HMAC-SHA256 under a key of this process over tool
// label, input digest, preview and expiry. What is approved is one call, once:
// another input, tool or preview, a second call, or the next process needs
// another ticket.
//
// It is safe for concurrent use. A nil one refuses.
type MemoryApprover struct {
	cfg  MemoryApproverConfig
	sums summer

	mu      sync.Mutex
	decided map[[ticketNonce]byte]*decision
	granted map[[sha256.Size]byte][]*decision // not yet spent, by subject
	waiting map[[ticketNonce]byte]chan<- bool
}

// decision is a ticket that was decided. It is kept until it expires, so that
// nobody decides by it twice.
type decision struct {
	subject [sha256.Size]byte
	expires int64 // Unix nanoseconds
}

var _ Approver = (*MemoryApprover)(nil)

// NewMemoryApprover returns an approver that has approved nothing. It fails for
// a TTL or Limit outside of its bounds.
func NewMemoryApprover(cfg MemoryApproverConfig) (*MemoryApprover, error) {
	switch {
	case cfg.TTL == 0:
		cfg.TTL = defaultTicketTTL
	case cfg.TTL < time.Second, cfg.TTL > maxTicketTTL:
		return nil, errTicketTTL
	}
	switch {
	case cfg.Limit == 0:
		cfg.Limit = defaultTicketLimit
	case cfg.Limit < 0, cfg.Limit > maxTicketLimit:
		return nil, errTicketLimit
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}

	return &MemoryApprover{
		cfg: cfg, sums: newSummer(), decided: make(map[[ticketNonce]byte]*decision),
		granted: make(map[[sha256.Size]byte][]*decision), waiting: make(map[[ticketNonce]byte]chan<- bool),
	}, nil
}

// Ticket returns a ticket for one call of a tool with this input, byte for
// byte, under p. It decides nothing.
func (m *MemoryApprover) Ticket(tool ident.Label, input string, p middleware.Preview) string {
	if m == nil {
		return ""
	}

	return m.ticket(tool, input, p).String()
}

// Grant approves the call that a ticket is for. It is approval_refused for what
// is no ticket of this approver, has expired or was decided before, and while
// Limit tickets are kept.
func (m *MemoryApprover) Grant(ticket string) error { return m.decide(ticket, true) }

// Refuse says no to the call that waits for the ticket, and no later Grant of
// the same ticket is good. Its failures are those of Grant.
func (m *MemoryApprover) Refuse(ticket string) error { return m.decide(ticket, false) }

// Approve implements [Approver]: it spends a grant that was given for exactly
// this call and has not expired. Without one it is approval_required; with
// [MemoryApproverConfig].Ask it waits for the decision, and the end of the wait
// by expiry is approval_required too, a Refuse approval_refused.
func (m *MemoryApprover) Approve(ctx context.Context, call *middleware.ToolCall, p middleware.Preview) error {
	if m == nil || call == nil || p.IsZero() {
		return failApproval(middleware.ReasonApprovalRequired, nil)
	}
	if m.spend(m.sums.call(0, call, p)) {
		return nil
	}
	if m.cfg.Ask == nil {
		return failApproval(middleware.ReasonApprovalRequired, nil)
	}
	t := m.ticket(call.Label(), call.Input(), p)
	answer := make(chan bool, 1)
	m.wait(t.nonce, answer)
	defer m.wait(t.nonce, nil)
	timer := time.NewTimer(m.cfg.TTL)
	defer timer.Stop()
	m.cfg.Ask(ctx, call, t.String())
	select {
	case yes := <-answer:
		if !yes {
			return failApproval(middleware.ReasonApprovalRefused, nil)
		}
		if m.spend(t.subject) {
			return nil
		}
	case <-timer.C:
	case <-ctx.Done():
	}

	return failApproval(middleware.ReasonApprovalRequired, ctx.Err())
}

func (m *MemoryApprover) wait(nonce [ticketNonce]byte, answer chan<- bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if answer == nil {
		delete(m.waiting, nonce)
	} else {
		m.waiting[nonce] = answer
	}
}

// spend takes one grant of the subject.
func (m *MemoryApprover) spend(subject [sha256.Size]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	grants := m.granted[subject]
	if len(grants) == 0 {
		return false
	}
	if len(grants) == 1 {
		delete(m.granted, subject)
	} else {
		m.granted[subject] = grants[1:]
	}

	return true
}

func (m *MemoryApprover) decide(text string, yes bool) error {
	if m == nil {
		return failApproval(middleware.ReasonApprovalRefused, errTicket)
	}
	t, ok := m.parse(text)
	if !ok {
		return failApproval(middleware.ReasonApprovalRefused, errTicket)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if t.expires <= m.cfg.Now().UnixNano() {
		return failApproval(middleware.ReasonApprovalRefused, errExpired)
	}
	if _, twice := m.decided[t.nonce]; twice {
		return failApproval(middleware.ReasonApprovalRefused, errDecided)
	}
	if len(m.decided) >= m.cfg.Limit {
		return failApproval(middleware.ReasonApprovalRefused, errTickets)
	}
	d := &decision{subject: t.subject, expires: t.expires}
	m.decided[t.nonce] = d
	if yes {
		m.granted[t.subject] = append(m.granted[t.subject], d)
	}
	if answer, ok := m.waiting[t.nonce]; ok {
		answer <- yes // has room for the one decision that there is
	}

	return nil
}

// sweep forgets what has expired. It looks at no more than Limit tickets.
func (m *MemoryApprover) sweep() {
	now := m.cfg.Now().UnixNano()
	for nonce, d := range m.decided {
		if d.expires > now {
			continue
		}
		delete(m.decided, nonce)
		grants := m.granted[d.subject]
		kept := make([]*decision, 0, len(grants))
		for _, g := range grants {
			if g != d {
				kept = append(kept, g)
			}
		}
		if len(kept) == 0 {
			delete(m.granted, d.subject)
		} else {
			m.granted[d.subject] = kept
		}
	}
}

// ticket is nonce, expiry and subject, and an HMAC over all of them. The subject
// is itself one, over tool label, input digest and preview.
type ticket struct {
	nonce   [ticketNonce]byte
	expires int64
	subject [sha256.Size]byte
	mac     [sha256.Size]byte
}

func (m *MemoryApprover) ticket(tool ident.Label, input string, p middleware.Preview) ticket {
	t := ticket{expires: m.cfg.Now().Add(m.cfg.TTL).UnixNano(), subject: m.sums.subject(0, tool, input, p)}
	_, _ = rand.Read(t.nonce[:]) // never fails: it would end the program
	t.mac = m.sums.ticket(t)

	return t
}

// ticket signs one. No subject begins like this: theirs begin with a number.
func (s summer) ticket(t ticket) [sha256.Size]byte {
	return s.over(append([]byte("ticket\n"), t.signed()...))
}

func (t ticket) signed() []byte {
	b := append(make([]byte, 0, ticketSize), t.nonce[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(t.expires)) //nolint:gosec // the same bits

	return append(b, t.subject[:]...)
}

// String returns the form that is handed out.
func (t ticket) String() string {
	return base64.RawURLEncoding.EncodeToString(append(t.signed(), t.mac[:]...))
}

// parse reads what String wrote, if this approver made it.
func (m *MemoryApprover) parse(text string) (t ticket, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(ticketSize) {
		return t, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != ticketSize {
		return t, false
	}
	b = b[copy(t.nonce[:], b):]
	t.expires = int64(binary.BigEndian.Uint64(b)) //nolint:gosec // the same bits
	b = b[ticketTime:]
	b = b[copy(t.subject[:], b):]
	copy(t.mac[:], b)
	want := m.sums.ticket(t)

	return t, hmac.Equal(want[:], t.mac[:])
}

func failApproval(r middleware.Reason, cause error) error {
	return middleware.NewFailure(middleware.ComponentApproval, r, ident.Label{}, cause)
}
