//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
)

// longQueue is a file with n handoffs, every other of them decided, and the
// digest of the last one.
func longQueue(b *testing.B, n int) (*escalation.Queue, ident.Digest) {
	b.Helper()
	var data []byte
	var last ident.Digest
	for i := range n {
		br := newBreaker(b, escalation.DefaultPolicy())
		h, err := br.Trip(toolFailure, digest(i), at.Add(time.Duration(i)*time.Second))
		if err != nil {
			b.Fatal(err)
		}
		line, err := h.MarshalJSON()
		if err != nil {
			b.Fatal(err)
		}
		data = append(append(data, line...), '\n')
		if last = h.Digest(); i%2 == 0 {
			data = append(data, `{"decided_at":"`+h.IssuedAt().Format(time.RFC3339)+`","decision":"dismissed","handoff_digest":"`+last.String()+
				`","reviewer":"night-desk","schema_version":"interlock.handoff_review.v1"}`+"\n"...)
		}
	}
	path := filepath.Join(b.TempDir(), "handoffs.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: path, Now: func() time.Time { return at }})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))

	return q, last
}

// BenchmarkQueueList reads a whole file for the report.
func BenchmarkQueueList(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			q, _ := longQueue(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if r, err := q.List(b.Context(), nil); err != nil || r.Waiting != n/2 || r.Decided != n/2 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// BenchmarkQueueGet looks for the last handoff of a file.
func BenchmarkQueueGet(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			q, last := longQueue(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if e, err := q.Get(b.Context(), last); err != nil || e.State != escalation.QueueWaiting {
					b.Fatal(e, err)
				}
			}
		})
	}
}

// BenchmarkQueueGauges is what a collection of metrics costs.
func BenchmarkQueueGauges(b *testing.B) {
	q, _ := longQueue(b, 10000)
	if _, err := q.List(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(0)
	b.ReportAllocs()
	for b.Loop() {
		if g := q.Gauges(); len(g) != 1 {
			b.Fatal(g)
		}
	}
}
