package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

const (
	// recovery is how long a parked workflow waits, by the breaker's default.
	recovery = time.Minute
	// window is a small context window, in tokens.
	window = 2_000
)

// parked lets a refund end without anybody knowing whether it was made: every
// run of the workflow is parked and a human asked. A minute later, on a clock
// that is moved, three supervised look-ups go well, and refunds are made again.
func parked(ctx context.Context, s *stack) (string, error) {
	begin := time.Now()
	var passed atomic.Int64
	file := filepath.Join(s.dir, "handoffs.jsonl")
	sink, err := escalation.NewFileSink(file)
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	queue, err := escalation.NewQueue(escalation.QueueConfig{Path: file})
	if err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	if err = s.spans.Watch(queue); err != nil {
		return "", err //nolint:wrapcheck // content-free
	}
	err = s.newGuard(func(cfg *interlock.Config) {
		cfg.Handoffs = sink
		cfg.Now = func() time.Time { return begin.Add(time.Duration(passed.Load())) }
	})
	if err != nil {
		return "", err
	}
	model, err := s.model(parkedScript(), nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	s.desk.refundTimesOut.Store(true)
	outcomes := []string{ask(ctx, s, agent)}
	s.desk.refundTimesOut.Store(false)
	outcomes = append(outcomes, ask(ctx, s, agent))
	if err := s.review(ctx, queue, file); err != nil {
		return "", err
	}
	passed.Store(int64(recovery))
	s.timeline.note("a minute later: under supervision, read-only")
	outcomes = append(outcomes, ask(ctx, s, agent), ask(ctx, s, agent))
	for _, t := range s.guard.Actions().History(refunds()) {
		s.timeline.note(fmt.Sprintf("history: %s, %s (%d)", t.State, t.Reason.String(), t.Count))
	}

	return strings.Join(outcomes, ", "), nil
}

// review is the human: another process lists what waits, and puts a decision on
// record. Nothing opens by it.
func (s *stack) review(ctx context.Context, queue *escalation.Queue, file string) error {
	var waiting []escalation.QueueEntry
	_, err := queue.List(ctx, func(e escalation.QueueEntry) error {
		waiting = append(waiting, e)

		return nil
	})
	if err != nil {
		return err //nolint:wrapcheck // content-free
	}
	for _, e := range waiting {
		s.timeline.note("waits for a human: " + e.Handoff.ReasonCode().String())
		if err := s.operator(ctx, "handoffs", "decide", e.Digest.String(),
			"--file", file, "--decision", "review_tool_failure", "--reviewer", "night-desk"); err != nil {
			return err
		}
	}
	report, err := queue.List(ctx, nil)
	if err != nil {
		return err //nolint:wrapcheck // content-free
	}
	s.timeline.note(fmt.Sprintf("another process has put a decision on record: %d waiting, %d decided", report.Waiting, report.Decided))
	if report.Waiting != 0 || report.Decided != 1 {
		return errors.New("the queue does not hold one decided handoff")
	}

	return nil
}

// budget lets a model ask and ask: after three calls of tools it has to answer
// with what it knows.
func budget(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(curiousScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	err = s.guard.Do(ctx, refunds(), func(ctx context.Context) error {
		answer, err := runAgent(ctx, agent)
		used := s.guard.Budget().Used(middleware.RunFrom(ctx))
		s.timeline.note(fmt.Sprintf("used: %d model calls, %d tool calls, %d tokens", used.ModelCalls, used.ToolCalls, used.Tokens))
		if err == nil && answer != summary {
			return errors.New("another answer")
		}

		return err
	})

	return outcome(summary, err), s.refusals()
}

// thrifty allows three calls of tools, and one answer more.
func thrifty(cfg *interlock.Config) {
	cfg.Budget.Limits = escalation.DefaultBudget()
	cfg.Budget.Limits.ToolCalls = 3
	cfg.Budget.FinalAnswer = true
}

// shortened lets an agent look at every order there is, with a model whose
// window is small: the oldest look-ups are left out, and the provider, which is
// as strict as the vendor, accepts every request.
func shortened(ctx context.Context, s *stack) (string, error) {
	model, err := s.model(inventoryScript, nil)
	if err != nil {
		return "", err
	}
	agent, err := functionsAgent(s, model)
	if err != nil {
		return "", err
	}
	result := ask(ctx, s, agent)
	longest := 0
	requests := s.servers[0].Requests()
	for _, r := range requests {
		longest = max(longest, len(r.Results()))
	}
	s.timeline.note(fmt.Sprintf("%d requests, of which none held more than %d of %d results", len(requests), longest, len(requests)-1))
	if longest >= len(requests)-1 {
		return "not shortened", nil
	}

	return result, s.refusals()
}

func smallWindow(cfg *interlock.Config) {
	cfg.Context = &escalation.ContextConfig{
		Window: window,
		Summary: func(_ context.Context, dropped []llms.MessageContent) (string, error) {
			return fmt.Sprintf("You have looked at earlier orders already (%d messages).", len(dropped)), nil
		},
	}
	cfg.Budget.Limits = escalation.DefaultBudget()
	cfg.Budget.Limits.Tokens = escalation.NoLimit
}
