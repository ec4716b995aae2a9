package escalation

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// queueLine is one line of the file.
type queueLine struct {
	number int    // from 1
	data   []byte // without its newline, until the next line is read
	long   bool   // longer than a line may be; data is nil
	ended  bool   // with a newline; only the last line may be without
}

// eachLine gives yield the lines of r between two offsets, the first of which is
// the beginning of a line. It returns the offset behind the last newline.
func eachLine(ctx context.Context, r io.ReaderAt, from, to int64, yield func(queueLine) error) (whole int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(r, from, to-from), MaxHandoffBytes)
	whole = from
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return whole, failure(middleware.ReasonQueueBusy, err)
		}
		l := queueLine{number: number, ended: true}
		data, err := in.ReadSlice('\n')
		size := int64(len(data))
		for errors.Is(err, bufio.ErrBufferFull) {
			l.long = true
			data, err = in.ReadSlice('\n')
			size += int64(len(data))
		}
		switch {
		case err == nil:
			whole += size
		case !errors.Is(err, io.EOF):
			return whole, failure(middleware.ReasonQueueFailed, err)
		case size == 0:
			return whole, nil
		default:
			l.ended = false
		}
		if !l.long {
			l.data = bytes.TrimSuffix(data, []byte{'\n'})
		}
		if err := yield(l); err != nil || !l.ended {
			return whole, err
		}
	}
}

// record parses the line: it is a handoff, a review, or damaged. The canonical
// form of either begins with another key.
func (l queueLine) record() (h Handoff, r Review, defect Defect) {
	switch {
	case l.long:
		defect = DefectOversize
	case bytes.HasPrefix(l.data, []byte(`{"decided_at"`)):
		r, defect = decodeReview(l.data)
	default:
		h, defect = decodeHandoff(l.data)
	}
	if defect != 0 && !l.ended {
		defect = DefectCut
	}

	return h, r, defect
}

// queueMark is what the index keeps of a handoff.
type queueMark struct {
	issued   int64
	decided  int64
	reviewer ident.Label
	decision ReviewDecision // 0: none
	class    Class
	listed   bool
}

func (m queueMark) review(id ident.Digest) Review {
	if m.decision == 0 {
		return Review{}
	}

	return Review{handoff: id, decision: m.decision, decided: time.Unix(m.decided, 0).UTC(), reviewer: m.reviewer}
}

func (m queueMark) expires() int64 { return m.issued + int64(HandoffTTL/time.Second) }

// queueIndex is what one reading of the whole file keeps.
type queueIndex struct {
	now    time.Time
	limit  int
	marks  map[ident.Digest]queueMark
	report QueueReport
}

func newQueueIndex(now time.Time, limit int) *queueIndex {
	return &queueIndex{now: now, limit: limit, marks: make(map[ident.Digest]queueMark)}
}

func (x *queueIndex) add(l queueLine) error {
	x.report.Lines++
	x.report.Cut = x.report.Cut || !l.ended
	h, r, defect := l.record()
	if defect == 0 && h.IsZero() {
		defect = x.decide(r)
	}
	if defect != 0 {
		x.report.damage(l.number, defect)

		return nil
	}
	if h.IsZero() {
		return nil
	}
	id := ident.DigestOf(l.data)
	if _, ok := x.marks[id]; ok {
		x.report.Repeated++

		return nil
	}
	if len(x.marks) >= x.limit {
		return failure(middleware.ReasonQueueFull)
	}
	x.marks[id] = queueMark{class: h.class, issued: h.issued.Unix()}

	return nil
}

func (x *queueIndex) decide(r Review) Defect {
	m, ok := x.marks[r.handoff]
	if !ok {
		return DefectUnknownHandoff
	}
	if defect := r.against(m.class, time.Unix(m.issued, 0), m.decision != 0); defect != 0 {
		return defect
	}
	m.decision, m.decided, m.reviewer = r.decision, r.decided.Unix(), r.reviewer
	x.marks[r.handoff] = m

	return 0
}

func (x *queueIndex) count() {
	for _, m := range x.marks {
		switch queueStateOf(m.decision != 0, m.expires(), x.now) {
		case QueueDecided:
			x.report.Decided++
		case QueueExpired:
			x.report.Expired++
		default:
			x.report.Waiting++
		}
	}
}

// waiting returns when each handoff that waits expires, sorted.
func (x *queueIndex) waiting() []int64 {
	expiries := make([]int64, 0, x.report.Waiting)
	for _, m := range x.marks {
		if queueStateOf(m.decision != 0, m.expires(), x.now) == QueueWaiting {
			expiries = append(expiries, m.expires())
		}
	}
	slices.Sort(expiries)

	return expiries
}

// entry returns the handoff of a line, once.
func (x *queueIndex) entry(l queueLine) (QueueEntry, bool) {
	id := ident.DigestOf(l.data)
	m, ok := x.marks[id]
	if !ok || m.listed {
		return QueueEntry{}, false
	}
	h, defect := decodeHandoff(l.data)
	if defect != 0 {
		return QueueEntry{}, false // cannot be: it was indexed by these bytes
	}
	m.listed = true
	x.marks[id] = m

	return newQueueEntry(id, h, m.review(id), x.now), true
}

// queueSearch looks for one handoff and its review. It parses only lines that
// name it, and is tens of times faster than the index (BenchmarkQueueGet beside
// BenchmarkQueueList).
type queueSearch struct {
	id      ident.Digest
	hex     []byte
	handoff Handoff
	review  Review
}

func newQueueSearch(id ident.Digest) *queueSearch {
	return &queueSearch{id: id, hex: []byte(id.Hex())}
}

func (s *queueSearch) add(l queueLine) error {
	switch {
	case l.long:
	case s.handoff.IsZero():
		if ident.DigestOf(l.data) == s.id {
			s.handoff, _ = decodeHandoff(l.data) // bytes that are none have no digest here
		}
	case s.review.IsZero() && bytes.Contains(l.data, s.hex):
		r, defect := decodeReview(l.data)
		if defect == 0 && r.handoff == s.id && r.against(s.handoff.class, s.handoff.issued, false) == 0 {
			s.review = r
		}
	}

	return nil
}

// refuses says why r may not be appended, or 0.
func (s *queueSearch) refuses(r Review) middleware.Reason {
	if s.handoff.IsZero() {
		return middleware.ReasonUnknownHandoff
	}
	switch r.against(s.handoff.class, s.handoff.issued, !s.review.IsZero()) {
	case 0:
		return 0
	case DefectDecided:
		return middleware.ReasonHandoffDecided
	case DefectExpired:
		return middleware.ReasonHandoffExpired
	case DefectFuture:
		return middleware.ReasonHandoffFuture
	default:
		return middleware.ReasonInvalidDecision
	}
}
