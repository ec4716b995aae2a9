package macro

import (
	"context"
	"fmt"
	"time"

	"github.com/tmc/langchaingo/chains"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// The units of rows that are no time.
const (
	PerSecond row.Unit = "1/s"
	Count     row.Unit = "1"
)

const (
	receipts = 1000 // of the ledger that is checked
	warmUp   = 32   // runs before those that are measured, so that connections are there

	longLoad    = 100                   // runs at a time, past which a batch takes seconds
	outageTakes = 10 * time.Millisecond // until a request is refused
)

// loads are the numbers of runs at a time, with how many are measured.
func loads() []struct{ concurrent, runs int } {
	return []struct{ concurrent, runs int }{{1, 150}, {16, 480}, {256, 1024}}
}

// figures are what is taken of a batch.
func figures() []struct {
	name, about string
	unit        row.Unit
	of          func(*batch) float64
} {
	return []struct {
		name, about string
		unit        row.Unit
		of          func(*batch) float64
	}{
		{"p50", "half of the runs took less", row.Nanoseconds, func(b *batch) float64 { return b.quantile(0.50) }},
		{"p90", "nine runs of ten took less", row.Nanoseconds, func(b *batch) float64 { return b.quantile(0.90) }},
		{"p99", "99 runs of 100 took less", row.Nanoseconds, func(b *batch) float64 { return b.quantile(0.99) }},
		{"rate", "runs that ended in a second", PerSecond, (*batch).perSecond},
	}
}

// Rows returns the rows of the set.
func Rows(l *fixture.Ledgers) []row.Row {
	var rows []row.Row
	for _, k := range []kind{mrkl, functions} {
		for _, load := range loads() {
			both := &shared{make: func() ([]batch, error) { return healthy(l, k, load.runs, load.concurrent) }}
			name := func(who, figure string) string {
				return fmt.Sprintf("macro/%s/%s/at-once-%d/%s", k, who, load.concurrent, figure)
			}
			for _, f := range figures() {
				for place, who := range []string{"bare", "guarded", "guarded-unwatched"} {
					r := row.Row{
						Name: name(who, f.name), Set: row.Macro, Unit: f.unit, Slow: true, Long: load.concurrent > longLoad,
						Measure: both.reader(place, f.of),
						About:   fmt.Sprintf("one-tool %s runs over HTTP, %s, %d at a time: %s", k, who, load.concurrent, f.about),
					}
					if place > 0 {
						r.RatioTo = name("bare", f.name)
					}
					rows = append(rows, r)
				}
			}
		}
	}

	return append(rows, outage(l, 3000, 1000)...)
}

// Targets returns the claims about them.
func Targets() []row.Target {
	return []row.Target{{
		Why: "The provider answers at once, so a run is half a millisecond of langchaingo and HTTP. What is added " +
			"is the client's parsing of a stream that is there to be watched, and what the next claim says.",
		Name: "mrkl-run", Headline: true, About: "a guarded MRKL run over loopback HTTP, p50, against the bare one",
		Row: "macro/mrkl/guarded/at-once-1/p50", To: "macro/mrkl/bare/at-once-1/p50", AtMost: 1.05, Allocs: -1,
	}, {
		Why: "A run makes two strict checks, one for its preview and one before the effect. Between waits for the " +
			"network each costs about 20 µs, twice what it costs in a loop; the rest is wake-ups of threads and " +
			"the fallback's Transport. A model that takes a second hides all of it.",
		Name: "mrkl-run-unwatched", About: "the same without limits between tokens, so that no answer is streamed to be watched",
		Row: "macro/mrkl/guarded-unwatched/at-once-1/p50", To: "macro/mrkl/bare/at-once-1/p50", AtMost: 1.05, Allocs: -1,
	}, {
		Name: "outage-requests", Headline: true, About: "requests that a provider which is down still gets from 1,000 concurrent runs, " +
			"over asking it each time",
		Row: "macro/outage/fallback/requests", To: "macro/outage/by-hand/requests", AtMost: 0.35, Allocs: -1, // 1,000 of 3,000
	}}
}

// healthy drives the bare agent and the guarded ones by turns, each with a
// provider of its own, and sees to it that each run called its tool.
func healthy(l *fixture.Ledgers, k kind, runs, concurrent int) ([]batch, error) {
	ledger, err := l.Get(receipts)
	if err != nil {
		return nil, err
	}
	defer ledger.Release()
	var desks []*desk
	var asks []func(context.Context) error
	for _, open := range []func(*provider) (*desk, error){
		func(p *provider) (*desk, error) { return bare(k, p) },
		func(p *provider) (*desk, error) { return guarded(k, ledger, nil, p) },
		func(p *provider) (*desk, error) { return guarded(k, ledger, unwatched, p) },
	} {
		p := startProvider(0)
		defer p.Close()
		d, err := open(p)
		if err != nil {
			return nil, err
		}
		defer d.close()
		desks, asks = append(desks, d), append(asks, d.ask)
	}
	warm := max(warmUp, concurrent)
	if _, err := inTurns(warm, concurrent, asks...); err != nil {
		return nil, err
	}
	batches, err := inTurns(runs, concurrent, asks...)
	for _, d := range desks {
		if err == nil && d.tool.Calls() != uint64(warm+runs) { //nolint:gosec // a small number
			err = fixture.ErrWork
		}
	}

	return batches, err
}

// outage compares what a fallback and code by hand do with a provider that is down.
func outage(l *fixture.Ledgers, runs, atOnce int) []row.Row {
	who := []struct {
		name, about string
		batches     *shared
	}{
		{"by-hand", "the second provider is asked whenever the first has failed", &shared{make: func() ([]batch, error) {
			return down(runs, atOnce, byHand)
		}}},
		{"fallback", "the guard's fallback", &shared{make: func() ([]batch, error) {
			ledger, err := l.Get(receipts)
			if err != nil {
				return nil, err
			}
			defer ledger.Release()

			return down(runs, atOnce, func(first, second *provider) (*desk, error) { return guarded(mrkl, ledger, nil, first, second) })
		}}},
	}
	var rows []row.Row
	for _, f := range []struct {
		name, about string
		unit        row.Unit
		of          func(*batch) float64
	}{
		{"goodput", "runs that were answered in a second", PerSecond, (*batch).perSecond},
		{"p50", "half of the runs took less", row.Nanoseconds, func(b *batch) float64 { return b.quantile(0.50) }},
		{"p99", "99 runs of 100 took less", row.Nanoseconds, func(b *batch) float64 { return b.quantile(0.99) }},
		{"requests", fmt.Sprintf("requests that the provider which is down got from %d runs", runs), Count,
			func(b *batch) float64 { return float64(b.requests) }},
	} {
		for _, w := range who {
			r := row.Row{
				Name: "macro/outage/" + w.name + "/" + f.name, Set: row.Macro, Unit: f.unit, Slow: true,
				Measure: w.batches.reader(0, f.of),
				About:   fmt.Sprintf("MRKL runs, %d at a time, the first provider down; %s: %s", atOnce, w.about, f.about),
			}
			if w.name != "by-hand" {
				r.RatioTo = "macro/outage/by-hand/" + f.name
			}
			rows = append(rows, r)
		}
	}

	return rows
}

// down begins with the first request of the outage: what the fallback learns is
// part of what is measured. Every run has to be answered.
func down(runs, atOnce int, open func(first, second *provider) (*desk, error)) ([]batch, error) {
	first, second := startProvider(outageTakes), startProvider(0)
	defer first.Close()
	defer second.Close()
	d, err := open(first, second)
	if err != nil {
		return nil, err
	}
	defer d.close()
	b, err := drive(runs, atOnce, d.ask)
	b.requests = first.requests.Load()

	return []batch{b}, err
}

// byHand is what one writes in an afternoon: two agents, the second asked
// whenever the first has failed.
func byHand(first, second *provider) (*desk, error) {
	d := &desk{tool: fixture.NewTool()}
	a, err := bare(mrkl, first)
	if err != nil {
		return nil, err
	}
	d.closer = append(d.closer, a.close)
	b, err := bare(mrkl, second)
	if err != nil {
		d.close()

		return nil, err
	}
	d.closer = append(d.closer, b.close)
	d.chain = &either{Chain: a.chain, second: b.chain}

	return d, nil
}

// either asks the second chain whenever the first has failed.
type either struct {
	chains.Chain

	second chains.Chain
}

// Call asks one, and then the other.
func (e *either) Call(ctx context.Context, in map[string]any, options ...chains.ChainCallOption) (map[string]any, error) {
	out, err := e.Chain.Call(ctx, in, options...)
	if err == nil {
		return out, nil
	}

	return e.second.Call(ctx, in, options...)
}
