package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

// timeline collects what happened in an act: the decisions of the guard and a
// few words of the act itself. It holds codes, numbers and labels only.
type timeline struct {
	begin time.Time

	mu     sync.Mutex
	events []event
	counts map[string]map[string]int // component → reason → count
}

type event struct {
	at       time.Duration
	who      string // "act" or "tool"
	note     string // of the act, or the tool that ran
	document string // below the note
	decision middleware.Decision
}

var _ middleware.Observer = (*timeline)(nil)

func newTimeline() *timeline {
	return &timeline{begin: time.Now(), counts: map[string]map[string]int{}}
}

// Observe records a decision.
func (t *timeline) Observe(_ context.Context, d middleware.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at: time.Since(t.begin), decision: d})
	component := d.Component.String()
	if t.counts[component] == nil {
		t.counts[component] = map[string]int{}
	}
	t.counts[component][d.Reason.String()]++
}

// note records a step of the act. text is a constant of this program.
func (t *timeline) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at: time.Since(t.begin), who: "act", note: text})
}

// ran records that a tool really ran.
func (t *timeline) ran(toolName string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at: time.Since(t.begin), who: "tool", note: toolName + " ran · " + since(took)})
}

// handoff records the document that a human gets.
func (t *timeline) handoff(document string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at: time.Since(t.begin), who: "act", note: "the handoff", document: document})
}

// print writes one line per event.
func (t *timeline) print(w io.Writer, paint painter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		if e.note != "" {
			fmt.Fprintf(w, "  %8s  %-10s  %s\n", since(e.at), e.who, paint.dim(e.note))
			for line := range strings.Lines(e.document) {
				fmt.Fprintf(w, "  %22s%s\n", "", strings.TrimRight(line, "\n"))
			}

			continue
		}
		d := e.decision
		fmt.Fprintf(w, "  %8s  %-10s  %s\n", since(e.at), d.Component, describe(d, paint))
	}
}

func describe(d middleware.Decision, paint painter) string {
	s := paint.verdict(d.Verdict, fmt.Sprintf("%-8s", d.Verdict)) + fmt.Sprintf(" %-11s", d.Action)
	if d.Outcome != 0 && d.Reason == middleware.ReasonOK {
		s += d.Outcome.String()
	} else {
		s += d.Reason.String()
	}
	if !d.Label.IsZero() {
		s += " · " + d.Label.String()
	}
	if d.Class != 0 {
		s += " · " + d.Class.String()
	}
	if d.Limit > 0 {
		s += fmt.Sprintf(" · %d of %d", d.Count, d.Limit)
	}
	if d.Fill > 0 {
		s += fmt.Sprintf(" · fill %.2f", d.Fill)
	}
	if d.Drift > 0 {
		s += fmt.Sprintf(" · drift %.2f", d.Drift)
	}
	if d.Circuit != 0 {
		s += " · circuit " + d.Circuit.String()
	}
	if d.Generation > 0 {
		s += fmt.Sprintf(" · generation %d", d.Generation)
	}
	if d.Duration > 0 {
		s += " · " + since(d.Duration)
	}

	return s
}

func since(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

// painter colours words on a terminal and leaves them alone elsewhere.
type painter bool

func (p painter) paint(code, s string) string {
	if !p {
		return s
	}

	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) bold(s string) string { return p.paint("1", s) }
func (p painter) dim(s string) string  { return p.paint("2", s) }

func (p painter) ok(ok bool, s string) string {
	if ok {
		return p.paint("32", s)
	}

	return p.paint("31", s)
}

func (p painter) verdict(v middleware.Verdict, s string) string {
	switch v {
	case middleware.VerdictAllow:
		return p.paint("32", s)
	case middleware.VerdictDeny, middleware.VerdictEscalate:
		return p.paint("31", s)
	default:
		return p.paint("33", s)
	}
}
