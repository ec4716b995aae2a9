//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
)

// said is one handoff as the model has it.
type said struct {
	id       string
	class    string
	issued   time.Time
	decision string
}

// queueModel is the queue said again, as simply as possible, by the public
// parsers of one record.
type queueModel struct {
	entries           []said
	damaged, repeated int
	cut               bool
}

func (m *queueModel) find(id string) *said {
	for i := range m.entries {
		if m.entries[i].id == id {
			return &m.entries[i]
		}
	}

	return nil
}

func readQueue(file []byte) (m queueModel) {
	for line := range bytes.Lines(file) {
		body, ended := bytes.CutSuffix(line, []byte("\n"))
		m.cut = m.cut || !ended
		if len(line) > escalation.MaxHandoffBytes || !ended && len(line) >= escalation.MaxHandoffBytes {
			m.damaged++

			continue
		}
		if r, err := escalation.ParseReview(body); err == nil {
			h := m.find(r.Handoff().String())
			if h == nil || h.decision != "" || !offered2(h.class, r.Decision().String()) ||
				r.DecidedAt().Before(h.issued.Add(-5*time.Minute)) || !r.DecidedAt().Before(h.issued.Add(30*time.Minute)) {
				m.damaged++

				continue
			}
			h.decision = r.Decision().String()

			continue
		}
		_, err := escalation.ParseHandoff(body, at)
		if e, ok := errors.AsType[*escalation.HandoffError](err); ok && e.Defect() != escalation.DefectExpired && e.Defect() != escalation.DefectFuture {
			m.damaged++

			continue
		}
		var fields struct {
			Class  string    `json:"failure_class"`
			Issued time.Time `json:"issued_at"`
		}
		if err := json.Unmarshal(body, &fields); err != nil {
			m.damaged++

			continue
		}
		id := ident.DigestOf(body).String()
		if m.find(id) != nil {
			m.repeated++

			continue
		}
		m.entries = append(m.entries, said{id: id, class: fields.Class, issued: fields.Issued})
	}

	return m
}

func offered2(class, decision string) bool {
	for c := range offers {
		if c.String() == class {
			return offered(c, decision)
		}
	}

	return false
}

func (m *queueModel) said(now time.Time) []string {
	var all []string
	for _, h := range m.entries {
		state := "waiting"
		switch {
		case h.decision != "":
			state = "decided " + h.decision
		case !now.Before(h.issued.Add(30 * time.Minute)):
			state = "expired"
		}
		all = append(all, h.id+" "+h.class+" "+state)
	}

	return all
}

// Each byte puts one line into the file, some of them damaged; then come bytes
// as they are. What the queue says is what the model says, and deciding changes
// one handoff and nothing else.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, []byte{}, int16(10))
	f.Add([]byte{0, 0, 7, 8, 9}, []byte(`{"decided_at":"`), int16(29))
	f.Add([]byte{3, 0, 0x23, 0x43, 0x83, 6}, []byte("\n\n"), int16(0))
	f.Add([]byte{0x10, 0x30, 0x50, 0x90, 1}, bytes.Repeat([]byte{0}, escalation.MaxHandoffBytes), int16(-6))
	f.Add([]byte{0, 4}, append(bytes.Repeat([]byte("x"), escalation.MaxHandoffBytes-1), '\n'), int16(30))
	f.Add([]byte{}, []byte(golden(f, uncertainty)), int16(1))
	var records []string
	for _, c := range []escalation.Class{uncertainty, permission, toolFailure} {
		records = append(records, golden(f, c))
	}
	for _, d := range escalation.ReviewDecisions() {
		records = append(records, goldenReview(f, d))
	}
	for c := range offers { // each with a decision that fits one of them
		records = append(records, strings.Replace(goldenReview(f, escalation.ReviewEvidence), sum(f, uncertainty).Hex(), sum(f, c).Hex(), 1))
	}
	slices.Sort(records[8:]) // a map has no order, a corpus should
	f.Fuzz(func(t *testing.T, ops, raw []byte, minutes int16) {
		if len(ops) > 64 {
			ops = ops[:64]
		}
		var lines []string
		for _, op := range ops {
			line := records[int(op&15)%len(records)]
			if op&16 != 0 {
				line = line[:len(line)/2]
			}
			if op&32 != 0 {
				line = strings.Replace(line, "2026-03-04T05", "2026-03-04T06", 2)
			}
			if op&64 != 0 {
				line = strings.Replace(line, "abort_run", "resume_run", 1)
			}
			if op&128 == 0 {
				line += "\n"
			}
			lines = append(lines, line)
		}
		d := newDesktop(t, append(lines, string(raw))...)
		now := at.Add(time.Duration(minutes) * time.Minute)
		d.clock.set(now)
		check := func(m queueModel) (waiting ident.Digest) {
			t.Helper()
			var got []string
			report, err := d.List(t.Context(), func(e escalation.QueueEntry) error {
				state := e.State.String()
				if e.State == escalation.QueueDecided {
					state += " " + e.Review.Decision().String()
				}
				got = append(got, fmt.Sprintf("%v %v %v", e.Digest, e.Handoff.Class(), state))
				if e.State == escalation.QueueWaiting && waiting.IsZero() {
					waiting = e.Digest
				}
				if one, err := d.Get(t.Context(), e.Digest); err != nil || one.State != e.State || one.Review != e.Review {
					t.Fatalf("Get: %+v, %v; List: %+v", one, err, e)
				}

				return nil
			})
			if want := m.said(now); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v\n got %q\nwant %q", err, got, want)
			}
			if report.Damaged != m.damaged || report.Repeated != m.repeated || report.Cut != m.cut || len(report.Damage) != min(m.damaged, 100) ||
				report.Waiting+report.Decided+report.Expired != len(got) || d.waits() != report.Waiting {
				t.Fatalf("%+v, %d waiting; want %+v", report, d.waits(), m)
			}

			return waiting
		}
		m := readQueue([]byte(d.content(t)))
		id := check(m)
		before := d.content(t)
		_, err := d.Decide(t.Context(), id, escalation.ReviewAbortRun, desk)
		h := m.find(id.String())
		if h == nil || h.issued.After(now.Add(5*time.Minute)) {
			if err == nil || d.content(t) != before {
				t.Fatalf("decided %v: %v", id, err)
			}

			return
		}
		h.decision, m.cut = "abort_run", false
		if err != nil || !strings.HasPrefix(d.content(t), before) || !strings.HasSuffix(d.content(t), "\n") {
			t.Fatalf("%v: %q", err, d.content(t))
		}
		check(m)
	})
}
