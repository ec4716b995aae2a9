package middleware

import (
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/ident"
)

// PerRun is state that a component keeps for each run: one T per run and per
// PerRun instance, made at first use. The zero value of every field but New is
// usable. Get costs about as much as two map reads (BenchmarkPerRunGet).
type PerRun[T any] struct {
	// Name of the state's section when a run is persisted; "" is not persisted.
	// It follows the grammar of ident.Label.
	Name string
	// New makes the state, once per run, outside of the run's lock. It may use
	// other PerRuns of the same run, but not one that waits for this one. If it
	// fails, or panics, every Get fails: a component without its state cannot
	// judge.
	New func(r *Run) (*T, error)
	// End is called once when the run ends, to stop timers and goroutines.
	End func(*T)
	// Save renders the state as canonical JSON; Load is its inverse and strict.
	// Both are needed if Name is set. Load may use the slots that stand before
	// this one in RunConfig.Slots.
	Save func(*T) ([]byte, error)
	Load func(r *Run, section []byte) (*T, error)
}

// Slot is a PerRun of some type, as a run knows those that it persists.
type Slot interface {
	slotName() string
	slotCheck() bool
	save(r *Run) ([]byte, error)
	load(r *Run, section []byte) error
}

var _ Slot = (*PerRun[int])(nil)

// slot is the state of one PerRun in one run.
type slot struct {
	key   any
	once  sync.Once
	ready atomic.Bool
	value any
	err   error

	mu     sync.Mutex
	closed bool
	end    func()
}

// Get returns the state of r, made on the first call. It fails with run_ended
// after the end of the run, and with no_run for a nil run.
func (p *PerRun[T]) Get(r *Run) (*T, error) {
	if r == nil || r.ended.Load() {
		return nil, p.refuse(r)
	}
	s := r.find(p)
	if s == nil {
		if s = r.add(p); s == nil {
			return nil, p.refuse(r)
		}
	}
	if !s.ready.Load() {
		s.once.Do(func() { p.fill(r, s, p.make) })
	}
	if s.err != nil {
		return nil, s.err
	}
	v, ok := s.value.(*T)
	if !ok || v == nil { // New did not return: it called Goexit
		return nil, NewFailure(ComponentRun, ReasonPanic, ident.Label{})
	}

	return v, nil
}

func (p *PerRun[T]) refuse(r *Run) error {
	if r == nil {
		return r.Check()
	}

	return NewDenial(Refusal{Run: r.id, Component: ComponentRun, Reason: ReasonRunEnded})
}

func (p *PerRun[T]) make(r *Run) (*T, error) {
	if p.New == nil {
		return nil, NewFailure(ComponentRun, ReasonInvalidConfig, ident.Label{})
	}

	return p.New(r)
}

// fill runs under the slot's once, outside of the run's lock.
func (p *PerRun[T]) fill(r *Run, s *slot, produce func(*Run) (*T, error)) {
	defer s.ready.Store(true)
	var v *T
	func() {
		defer func() {
			if rec := recover(); rec != nil {
				s.err = NewPanicError(rec, nil)
			}
		}()
		v, s.err = produce(r)
	}()
	if s.err != nil {
		return
	}
	if v == nil {
		s.err = NewFailure(ComponentRun, ReasonInvalidConfig, ident.Label{})

		return
	}
	s.value = v
	if p.End != nil {
		s.onClose(func() { p.End(v) })
	}
}

// onClose keeps end for the run's end, or calls it now if that came first.
func (s *slot) onClose(end func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.end = end
	}
	s.mu.Unlock()
	if closed {
		contain(end)
	}
}

func (s *slot) close() {
	s.mu.Lock()
	end := s.end
	s.end, s.closed = nil, true
	s.mu.Unlock()
	if end != nil {
		contain(end)
	}
}

func contain(f func()) {
	defer func() { _ = recover() }() // one component cannot keep the others from ending
	f()
}

func (r *Run) find(key any) *slot {
	if slots := r.slots.Load(); slots != nil {
		for _, s := range *slots {
			if s.key == key {
				return s
			}
		}
	}

	return nil
}

// add returns the slot of key, new or found, or nil if the run has ended.
func (r *Run) add(key any) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.Load() {
		return nil
	}
	if s := r.find(key); s != nil {
		return s
	}
	s := &slot{key: key}
	var next []*slot
	if old := r.slots.Load(); old != nil {
		next = append(next, *old...)
	}
	next = append(next, s)
	r.slots.Store(&next)

	return s
}

func (p *PerRun[T]) slotName() string { return p.Name }

func (p *PerRun[T]) slotCheck() bool {
	if p == nil {
		return false
	}
	_, err := ident.NewLabel(p.Name)

	return err == nil && p.New != nil && p.Save != nil && p.Load != nil
}

func (p *PerRun[T]) save(r *Run) (section []byte, err error) {
	defer func() {
		if rec := recover(); rec != nil {
			section, err = nil, NewPanicError(rec, nil)
		}
	}()
	v, err := p.Get(r)
	if err != nil {
		return nil, err
	}

	return p.Save(v)
}

func (p *PerRun[T]) load(r *Run, section []byte) error {
	s := r.add(p)
	if s == nil {
		return p.refuse(r)
	}
	loaded := false
	s.once.Do(func() {
		loaded = true
		p.fill(r, s, func(r *Run) (*T, error) { return p.Load(r, section) })
	})
	if !loaded { // the Load of an earlier slot made this state: the saved one would be lost
		return NewFailure(ComponentRun, ReasonInvalidConfig, ident.Label{})
	}

	return s.err
}
