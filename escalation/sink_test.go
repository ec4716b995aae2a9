package escalation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/escalation"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSinkFunc(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	if err := escalation.SinkFunc(nil).Deliver(t.Context(), h); !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("nil: %v", err)
	}
	var got escalation.Handoff
	f := escalation.SinkFunc(func(_ context.Context, h escalation.Handoff) error {
		got = h

		return errTool
	})
	if err := f.Deliver(t.Context(), h); !errors.Is(err, errTool) || got.RunID() != h.RunID() {
		t.Errorf("%v", err)
	}
}

func TestChannelSink(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	if _, err := escalation.NewChannelSink(nil); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("nil: %v", err)
	}
	ch := make(chan escalation.Handoff, 1)
	s, err := escalation.NewChannelSink(ch)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Deliver(t.Context(), escalation.Handoff{}); !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("zero handoff: %v", err)
	}
	if err := s.Deliver(t.Context(), h); err != nil {
		t.Errorf("%v", err)
	}
	if err := s.Deliver(t.Context(), h); !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("full: %v", err)
	}
	if got := <-ch; got.RunID() != h.RunID() {
		t.Error("another handoff")
	}
	close(ch)
	if err := s.Deliver(t.Context(), h); !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("closed: %v", err)
	}
}

func TestMemorySink(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 1<<16 + 1} {
		if _, err := escalation.NewMemorySink(n); !errors.Is(err, escalation.ErrInvalidConfig) {
			t.Errorf("capacity %d: %v", n, err)
		}
	}
	s, err := escalation.NewMemorySink(2)
	if err != nil {
		t.Fatal(err)
	}
	var sent []escalation.Handoff
	for i, c := range []escalation.Class{toolFailure, permission, uncertainty} {
		_, h := tripped(t, c)
		sent = append(sent, h)
		if err := s.Deliver(t.Context(), h); (err == nil) != (i < 2) {
			t.Errorf("handoff %d: %v", i, err)
		}
	}
	if err := s.Deliver(t.Context(), escalation.Handoff{}); err == nil {
		t.Error("took the zero handoff")
	}
	got := s.Handoffs()
	if len(got) != 2 || got[0].Class() != sent[0].Class() || got[1].Class() != sent[1].Class() {
		t.Errorf("kept %v", got)
	}
	if g := s.Gauges(); len(g) != 1 || g[0].Value != 2 {
		t.Errorf("gauges %+v", g)
	}
	if got := s.Take(); len(got) != 2 || len(s.Handoffs()) != 0 {
		t.Errorf("took %v", got)
	}
	if err := s.Deliver(t.Context(), sent[2]); err != nil {
		t.Errorf("there was room: %v", err)
	}
}

func TestWriterSink(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	if _, err := escalation.NewWriterSink(nil); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("nil: %v", err)
	}
	var buf bytes.Buffer
	writes := 0
	s, err := escalation.NewWriterSink(writerFunc(func(p []byte) (int, error) {
		writes++ // not guarded: the sink has to

		return buf.Write(p)
	}))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := s.Deliver(t.Context(), h); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if want := strings.Repeat(golden(t, toolFailure)+"\n", 20); buf.String() != want || writes != 20 {
		t.Errorf("%d writes of %d bytes", writes, buf.Len())
	}
	if err := s.Deliver(t.Context(), escalation.Handoff{}); !errors.Is(err, escalation.ErrInvalidHandoff) {
		t.Errorf("zero handoff: %v", err)
	}
	for name, w := range map[string]io.Writer{
		"error": writerFunc(func([]byte) (int, error) { return 0, errTool }),
		"short": writerFunc(func(p []byte) (int, error) { return len(p) - 1, nil }),
	} {
		s, err := escalation.NewWriterSink(w)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Deliver(t.Context(), h)
		if !errors.Is(err, escalation.ErrSinkFailed) {
			t.Errorf("%s: %v", name, err)
		}
		contentFree(t, err)
	}
}

func TestWriterSinkGivesUpItsTurn(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s, err := escalation.NewWriterSink(writerFunc(func(p []byte) (int, error) {
			<-release

			return len(p), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Deliver(t.Context(), h) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- s.Deliver(ctx, h) }()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) || !errors.Is(err, escalation.ErrSinkFailed) {
			t.Errorf("%v", err)
		}
		if err := s.Deliver(ctx, h); !errors.Is(err, context.Canceled) {
			t.Errorf("under a done context: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}
