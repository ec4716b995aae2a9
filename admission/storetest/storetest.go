// Package storetest tests that a store keeps the contract of [admission.Store],
// and that the rules of admission hold on it. It is for whoever writes a store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Suite{
//			New:   func(t *testing.T) admission.Store { … },
//			Again: func(t *testing.T, s admission.Store) admission.Store { … },
//		})
//	}
//
// The two SQLite variants and the in-memory store of this project's own tests
// pass it.
package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Suite says how to make the store that is tested.
type Suite struct {
	// New returns an open store of its own, with its first receipt alone. Whoever
	// makes it closes it when the test ends. Required.
	New func(t *testing.T) admission.Store
	// Again returns another handle of a store that New made, as another process
	// has it. Required; a store in memory returns the same one.
	Again func(t *testing.T, s admission.Store) admission.Store
}

// Run runs the suite. Its tests run in parallel.
func Run(t *testing.T, s Suite) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Suite){
		"first":      first,
		"append":     appends,
		"refused":    refused,
		"pages":      pages,
		"handles":    handles,
		"concurrent": concurrent,
		"canceled":   canceled,
		"closed":     closed,
		"rules":      rules,
		"previews":   previews,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

const patience = time.Minute

func entry(scope admission.Scope, state admission.State) admission.Entry {
	e := admission.Entry{Scope: scope, State: state, Role: admission.Operator, Reason: admission.ExplicitEnable, Time: 1}
	if state == admission.Stopped {
		e.Reason = admission.EmergencyStop
	}

	return e
}

// limited gives a busy machine time.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)

	return ctx
}

func head(t *testing.T, s admission.Store) admission.Head {
	t.Helper()
	h, err := s.Head(limited(t))
	if err != nil {
		t.Fatalf("Head: %v", err)
	}

	return h
}

func headOf(r admission.Receipt) admission.Head {
	return admission.Head{Generation: r.Generation, Digest: r.Digest()}
}

func first(t *testing.T, s Suite) {
	t.Helper()
	store := s.New(t)
	receipts, err := store.Receipts(limited(t), 0, 10)
	if err != nil || len(receipts) != 1 {
		t.Fatalf("%d receipts, %v", len(receipts), err)
	}
	r := receipts[0]
	if h := head(t, store); h != headOf(r) || h.Generation != 1 {
		t.Errorf("head %v, receipt %v", h, headOf(r))
	}
	if r.Scope != admission.Global() || r.State != admission.Disabled || r.Reason != admission.Initialized || !r.Previous.IsZero() {
		t.Errorf("%+v", r)
	}
}

// appends: an enable has to name the head, a stop one of the receipts.
func appends(t *testing.T, s Suite) {
	t.Helper()
	store := s.New(t)
	h := head(t, store)
	enable, stop := entry(admission.Global(), admission.Enabled), entry(admission.Global(), admission.Stopped)
	r, err := store.Append(limited(t), h, enable)
	if err != nil || r.Generation != 2 || r.Previous != h.Digest || r.Scope != enable.Scope || r.State != enable.State ||
		r.Role != enable.Role || r.Reason != enable.Reason || r.Time != enable.Time {
		t.Fatalf("%+v, %v", r, err)
	}
	if now := head(t, store); now != headOf(r) {
		t.Errorf("head %v after %v", now, headOf(r))
	}
	if _, err := store.Append(limited(t), h, enable); !errors.Is(err, admission.ErrStaleGeneration) {
		t.Errorf("an enable after an old head: %v", err)
	}
	late, err := store.Append(limited(t), headOf(r), stop)
	if err != nil || late.Generation != 3 || late.Previous != r.Digest() {
		t.Errorf("%+v, %v", late, err)
	}
	got, err := store.Receipts(limited(t), 1, 10)
	if err != nil || len(got) != 2 || got[0] != r || got[1] != late {
		t.Errorf("%+v, %v", got, err)
	}
}

// refused: what may not be recorded changes nothing.
func refused(t *testing.T, s Suite) {
	t.Helper()
	store := s.New(t)
	h := head(t, store)
	other := admission.Head{Generation: h.Generation, Digest: ident.DigestOf(nil)}
	for name, tc := range map[string]struct {
		after admission.Head
		e     admission.Entry
	}{
		"enable after nothing": {admission.Head{}, entry(admission.Global(), admission.Enabled)},
		"enable after another": {other, entry(admission.Global(), admission.Enabled)},
		"stop after another":   {other, entry(admission.Global(), admission.Stopped)},
		"stop ahead":           {admission.Head{Generation: 9, Digest: h.Digest}, entry(admission.Global(), admission.Stopped)},
		"no scope":             {h, entry(admission.Scope{}, admission.Enabled)},
		"no state":             {h, entry(admission.Global(), 0)},
		"disabled again":       {h, entry(admission.Global(), admission.Disabled)},
		"no role":              {h, admission.Entry{Scope: admission.Global(), State: admission.Enabled, Reason: admission.ExplicitEnable}},
		"another reason": {h, admission.Entry{
			Scope: admission.Global(), State: admission.Enabled, Role: admission.Operator, Reason: admission.Maintenance,
		}},
		"before 1970": {h, admission.Entry{
			Scope: admission.Global(), State: admission.Enabled, Role: admission.Operator, Reason: admission.ExplicitEnable, Time: -1,
		}},
	} {
		if r, err := store.Append(limited(t), tc.after, tc.e); err == nil || middleware.ReasonOf(err) == 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if now := head(t, store); now != h {
		t.Errorf("head %v after %v", now, h)
	}
}

func pages(t *testing.T, s Suite) {
	t.Helper()
	const last = 8
	store := s.New(t)
	for h := head(t, store); h.Generation < last; {
		r, err := store.Append(limited(t), h, entry(admission.Global(), admission.Stopped))
		if err != nil {
			t.Fatal(err)
		}
		h = headOf(r)
	}
	before := admission.Head{}
	for before.Generation < last {
		page, err := store.Receipts(limited(t), before.Generation, 3)
		if err != nil || len(page) == 0 || len(page) > 3 {
			t.Fatalf("%d receipts after %d, %v", len(page), before.Generation, err)
		}
		for _, r := range page {
			if r.Generation != before.Generation+1 || r.Previous != before.Digest {
				t.Fatalf("%+v after %v", r, before)
			}
			before = headOf(r)
		}
	}
	if before != head(t, store) {
		t.Errorf("they end at %v", before)
	}
	for _, after := range []uint64{last, last + 1, 1 << 63} {
		if page, err := store.Receipts(limited(t), after, 3); err != nil || len(page) != 0 {
			t.Errorf("%d receipts after %d, %v", len(page), after, err)
		}
	}
}

// handles: what one handle records, the other one has in its next head.
func handles(t *testing.T, s Suite) {
	t.Helper()
	const rounds = 20
	one := s.New(t)
	two := s.Again(t, one)
	for range rounds {
		for _, pair := range [][2]admission.Store{{one, two}, {two, one}} {
			r, err := pair[0].Append(limited(t), head(t, pair[0]), entry(admission.Global(), admission.Stopped))
			if err != nil {
				t.Fatal(err)
			}
			if h := head(t, pair[1]); h != headOf(r) {
				t.Fatalf("head %v after %v was recorded", h, headOf(r))
			}
		}
	}
}

// concurrent: each transition that was acknowledged is one receipt.
func concurrent(t *testing.T, s Suite) {
	t.Helper()
	const writers, each = 3, 5
	one := s.New(t)
	h := head(t, one) // for a stop it is enough, however old
	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[admission.Head]bool{}
	ctx := limited(t)
	for range writers {
		store := s.Again(t, one)
		wg.Go(func() {
			for range each {
				r, err := store.Append(ctx, h, entry(admission.Global(), admission.Stopped))
				if err != nil {
					t.Error(err)

					return
				}
				mu.Lock()
				acknowledged[headOf(r)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if h := head(t, one); len(acknowledged) != writers*each || h.Generation != writers*each+1 || !acknowledged[h] {
		t.Errorf("%d acknowledged, head %d", len(acknowledged), h.Generation)
	}
}

func canceled(t *testing.T, s Suite) {
	t.Helper()
	store := s.New(t)
	h := head(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Head(ctx); err == nil {
		t.Error("a head under a context that is done")
	}
	if _, err := store.Append(ctx, h, entry(admission.Global(), admission.Enabled)); err == nil {
		t.Error("a receipt under a context that is done")
	}
	if now := head(t, store); now != h {
		t.Errorf("head %v after %v", now, h)
	}
}

func closed(t *testing.T, s Suite) {
	t.Helper()
	store := s.New(t)
	h := head(t, store)
	for range 2 {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := store.Head(limited(t)); err == nil {
		t.Error("a head of a closed store")
	}
	if _, err := store.Receipts(limited(t), 0, 1); err == nil {
		t.Error("receipts of a closed store")
	}
	if _, err := store.Append(limited(t), h, entry(admission.Global(), admission.Stopped)); err == nil {
		t.Error("a receipt for a closed store")
	}
}
