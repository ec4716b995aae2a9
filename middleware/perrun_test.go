package middleware_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/interlock-go/interlock/middleware"
)

type state struct{ n int }

func TestPerRunIsMadeOnce(t *testing.T) {
	t.Parallel()
	_, r := start(t, middleware.RunConfig{})
	var made atomic.Int64
	slot := &middleware.PerRun[state]{New: func(got *middleware.Run) (*state, error) {
		if got != r {
			t.Errorf("New got run %v", got.ID())
		}

		return &state{n: int(made.Add(1))}, nil
	}}
	first := make(chan *state, 64)
	var wg sync.WaitGroup
	for range cap(first) {
		wg.Go(func() {
			s, err := slot.Get(r)
			if err != nil {
				t.Error(err)
			}
			first <- s
		})
	}
	wg.Wait()
	close(first)
	want := <-first
	for s := range first {
		if s != want {
			t.Error("goroutines got different states")
		}
	}
	if n := made.Load(); n != 1 {
		t.Errorf("New was called %d times", n)
	}
}

func TestPerRunIsKeyed(t *testing.T) {
	t.Parallel()
	_, r1 := start(t, middleware.RunConfig{})
	_, r2 := start(t, middleware.RunConfig{})
	fresh := func(*middleware.Run) (*state, error) { return &state{}, nil }
	a, b := &middleware.PerRun[state]{New: fresh}, &middleware.PerRun[state]{New: fresh}
	seen := map[*state]bool{}
	for _, get := range []func() (*state, error){
		func() (*state, error) { return a.Get(r1) }, func() (*state, error) { return b.Get(r1) },
		func() (*state, error) { return a.Get(r2) }, func() (*state, error) { return b.Get(r2) },
	} {
		s, err := get()
		again, _ := get()
		if err != nil || seen[s] || s != again {
			t.Errorf("got %p, %v, then %p", s, err, again)
		}
		seen[s] = true
	}
}

func TestPerRunUsesAnother(t *testing.T) {
	t.Parallel()
	_, r := start(t, middleware.RunConfig{})
	inner := &middleware.PerRun[state]{New: func(*middleware.Run) (*state, error) { return &state{n: 1}, nil }}
	outer := &middleware.PerRun[state]{New: func(r *middleware.Run) (*state, error) {
		s, err := inner.Get(r)
		if err != nil {
			return nil, err
		}

		return &state{n: s.n + 1}, nil
	}}
	if s, err := outer.Get(r); err != nil || s.n != 2 {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestPerRunFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(*middleware.Run) (*state, error)
		want error
	}{
		"error":              {func(*middleware.Run) (*state, error) { return &state{}, errSecret }, errSecret},
		"panic":              {func(*middleware.Run) (*state, error) { panic(secret) }, middleware.ReasonPanic},
		"goexit":             {func(*middleware.Run) (*state, error) { runtime.Goexit(); return nil, nil }, middleware.ReasonPanic},
		"nothing":            {func(*middleware.Run) (*state, error) { return nil, nil }, middleware.ReasonInvalidConfig},
		"there is no New":    {nil, middleware.ReasonInvalidConfig},
		"the run has no end": {func(r *middleware.Run) (*state, error) { return nil, r.Check() }, middleware.ReasonInvalidConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := start(t, middleware.RunConfig{})
			calls := 0
			slot := &middleware.PerRun[state]{End: func(*state) { t.Error("End of a state that was not made") }}
			if tc.make != nil {
				slot.New = func(r *middleware.Run) (*state, error) { calls++; return tc.make(r) }
			}
			for range 3 { // it stays failed, also for the goroutine that did not make it
				apart(func() {
					if s, err := slot.Get(r); s != nil || !errors.Is(err, tc.want) {
						t.Errorf("got %v, %v", s, err)
					}
				})
			}
			if s, err := slot.Get(r); s != nil || !errors.Is(err, tc.want) {
				t.Errorf("got %v, %v", s, err)
			}
			if calls > 1 {
				t.Errorf("New was called %d times", calls)
			}
			r.End()
		})
	}
}

func TestPerRunEnds(t *testing.T) {
	t.Parallel()
	_, r := start(t, middleware.RunConfig{})
	var order []string
	slot := func(name string, end func(*state)) *middleware.PerRun[state] {
		return &middleware.PerRun[state]{
			New: func(*middleware.Run) (*state, error) { return &state{n: 7}, nil },
			End: func(s *state) {
				if s.n != 7 {
					t.Errorf("End got %v", s)
				}
				order = append(order, name)
				end(s)
			},
		}
	}
	a := slot("a", func(*state) {})
	b := slot("b", func(*state) { panic(secret) })
	c := slot("c", func(*state) { r.End() })
	unused := slot("unused", func(*state) {})
	for _, s := range []*middleware.PerRun[state]{a, b, c} {
		if _, err := s.Get(r); err != nil {
			t.Fatal(err)
		}
	}
	r.End()
	r.End()
	if len(order) != 3 || order[0] != "c" || order[1] != "b" || order[2] != "a" {
		t.Errorf("ended %v; want each once, the last made first", order)
	}
	for _, s := range []*middleware.PerRun[state]{a, unused} {
		got, err := s.Get(r)
		if got != nil {
			t.Error("state after the end")
		}
		wantReason(t, err, middleware.ReasonRunEnded)
	}
	// Also when the run was halted before it ended.
	_, halted := start(t, middleware.RunConfig{})
	halted.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
	if _, err := unused.Get(halted); err != nil {
		t.Errorf("a halted run keeps its state: %v", err)
	}
	halted.End()
	_, err := a.Get(halted)
	wantReason(t, err, middleware.ReasonRunEnded)
	_, err = halted.Save()
	wantReason(t, err, middleware.ReasonRunEnded)
}

// The run ends while New works: whoever comes second calls End, once.
func TestPerRunEndRacesNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, r := start(t, middleware.RunConfig{})
		var ends atomic.Int64
		release := make(chan struct{})
		slot := &middleware.PerRun[state]{
			New: func(*middleware.Run) (*state, error) { <-release; return &state{}, nil },
			End: func(*state) { ends.Add(1) },
		}
		go func() { _, _ = slot.Get(r) }()
		synctest.Wait() // it waits inside of New
		r.End()
		if n := ends.Load(); n != 0 {
			t.Errorf("End was called %d times before there was a state", n)
		}
		close(release)
		synctest.Wait()
		if n := ends.Load(); n != 1 {
			t.Errorf("End was called %d times", n)
		}
	})
}

func TestPerRunEndRacesGet(t *testing.T) {
	t.Parallel()
	for range 50 {
		_, r := start(t, middleware.RunConfig{})
		var made, ended atomic.Int64
		slots := make([]*middleware.PerRun[state], 8)
		for i := range slots {
			slots[i] = &middleware.PerRun[state]{
				New: func(*middleware.Run) (*state, error) { made.Add(1); return &state{}, nil },
				End: func(*state) { ended.Add(1) },
			}
		}
		var wg sync.WaitGroup
		for _, slot := range slots {
			wg.Go(func() {
				if s, err := slot.Get(r); (s == nil) == (err == nil) {
					t.Errorf("got %v, %v", s, err)
				}
			})
		}
		wg.Go(func() { r.End() })
		wg.Wait()
		if made.Load() != ended.Load() {
			t.Fatalf("made %d, ended %d", made.Load(), ended.Load())
		}
	}
}

// A server may hold the context long after the end: the state is let go.
func TestPerRunIsReleased(t *testing.T) {
	t.Parallel()
	ctx, r := start(t, middleware.RunConfig{})
	slot := &middleware.PerRun[[1 << 16]byte]{
		New: func(*middleware.Run) (*[1 << 16]byte, error) { return new([1 << 16]byte), nil },
		End: func(*[1 << 16]byte) {},
	}
	held := func() weak.Pointer[[1 << 16]byte] {
		s, err := slot.Get(r)
		if err != nil {
			t.Fatal(err)
		}

		return weak.Make(s)
	}()
	runtime.GC()
	if held.Value() == nil {
		t.Error("the state is gone before the end")
	}
	r.End()
	runtime.GC()
	if held.Value() != nil {
		t.Error("the ended run holds its state")
	}
	runtime.KeepAlive(ctx)
	runtime.KeepAlive(slot)
}
