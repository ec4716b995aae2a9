package middleware

import (
	"context"
	"slices"
)

// Observer hears of every decision. Observe runs outside all locks of the
// library, on the goroutine of the call, and cannot change the outcome; it
// should return soon. A panic in it is contained.
type Observer interface {
	Observe(ctx context.Context, d Decision)
}

// ObserverFunc makes an [Observer] of a function.
type ObserverFunc func(ctx context.Context, d Decision)

var _ Observer = ObserverFunc(nil)

// Observe calls f; a nil f does nothing.
func (f ObserverFunc) Observe(ctx context.Context, d Decision) {
	if f != nil {
		f(ctx, d)
	}
}

type observers []Observer

var _ Observer = observers(nil)

// Observers returns one observer that tells all of them, in order; a panic of
// one does not keep the others from hearing. nil members are left out, and
// without any member the result is nil, which costs nothing.
func Observers(members ...Observer) Observer {
	kept := slices.DeleteFunc(slices.Clone(members), func(o Observer) bool { return o == nil })
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return kept[0]
	default:
		return observers(kept)
	}
}

func (os observers) Observe(ctx context.Context, d Decision) {
	for _, o := range os {
		Notify(ctx, o, d)
	}
}

// Notify tells o of d. It is what components call: a nil o costs nothing, and a
// panic of o is contained. Call it outside of every lock.
func Notify(ctx context.Context, o Observer, d Decision) {
	if o == nil {
		return
	}
	defer func() { _ = recover() }() // an observer cannot change the outcome
	o.Observe(ctx, d)
}
