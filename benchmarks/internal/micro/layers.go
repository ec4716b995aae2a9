package micro

import (
	"context"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// layers are the guard's layers around a tool, one at a time.
func layers(l *fixture.Ledgers) []row.Row {
	return []row.Row{
		layer("escalation", "the count of failures, of which there are none", func() (*row.Work, error) {
			e, err := escalation.New(escalation.Config{})
			if err != nil {
				return nil, err
			}

			return behind(middleware.RunConfig{Slots: []middleware.Slot{e.Slot()}}, middleware.ReadOnly, e.Tool())
		}),
		layer("loop", "the loop detector, hashing included", watched(watchdog.Config{DisableStall: true})),
		layer("stall", "the stall clock", watched(watchdog.Config{DisableLoop: true})),
		layer("watchdog", "both detectors", watched(watchdog.Config{})),
		layer("gate", "the gate before a strict SQLite store", func() (*row.Work, error) { return gate(l, false) }),
		layer("gate-alone", "the gate before a store that answers at once", func() (*row.Work, error) { return gate(l, true) }),
		layer("span", "a span, no-op", func() (*row.Work, error) {
			tel, end, err := fixture.NoOp.Open()
			if err != nil {
				return nil, err
			}
			w, err := behind(middleware.RunConfig{}, middleware.ReadOnly, middleware.TraceTool(tel))
			if err != nil {
				end()

				return nil, err
			}

			return &row.Work{Run: w.Run, Close: func() { w.Release(); end() }}, nil
		}),
	}
}

func layer(name, about string, prepare func() (*row.Work, error)) row.Row {
	return row.Row{Name: "micro/tool/layer/" + name, RatioTo: adapter, About: "the adapter and " + about, Prepare: prepare}
}

// watched is a tool behind a watchdog alone.
func watched(cfg watchdog.Config) func() (*row.Work, error) {
	return func() (*row.Work, error) {
		dog, err := watchdog.New(cfg)
		if err != nil {
			return nil, err
		}

		return behind(middleware.RunConfig{}, middleware.ReadOnly, dog.Tool())
	}
}

// gate is a tool behind a gate alone.
func gate(l *fixture.Ledgers, atOnce bool) (*row.Work, error) {
	ledger, err := l.Get(shortLedger)
	if err != nil {
		return nil, err
	}
	store, err := ledger.Store()
	if err != nil {
		ledger.Release()

		return nil, err
	}
	end := func() { _ = store.Close(); ledger.Release() }
	cfg := admission.Config{Store: store}
	if atOnce {
		head, err := store.Head(context.Background())
		if err != nil {
			end()

			return nil, err
		}
		cfg.Store = fixedStore{store, head}
	}
	c, err := admission.New(cfg)
	if err != nil {
		end()

		return nil, err
	}
	w, err := behind(middleware.RunConfig{Previewer: c}, middleware.Effectful, c.Gate().Tool())
	if err != nil {
		end()

		return nil, err
	}

	return &row.Work{Run: w.Run, Close: func() { w.Release(); end() }}, nil
}

// fixedStore answers at once: what is left is the gate itself.
type fixedStore struct {
	*admission.SQLiteStore

	head admission.Head
}

func (s fixedStore) Head(context.Context) (admission.Head, error) { return s.head, nil }
