package otelx

import (
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// seriesLimit is how many series an instrument may have before further ones are
// folded together. What they fold into is fewer than a hundred, so that no
// instrument reaches 1000; the SDK's own limit is 2000.
const seriesLimit = 900

// key is up to four bytes that tell the series of one instrument apart: enums
// and indexes into the registry.
type key uint32

func newKey(a, b, c, d uint8) key { return key(a)<<24 | key(b)<<16 | key(c)<<8 | key(d) }

func (k key) parts() (a, b, c, d uint8) {
	return uint8(k >> 24), uint8(k >> 16), uint8(k >> 8), uint8(k) //nolint:gosec,mnd // unpacks newKey
}

// prepared is the attribute set of one series in the forms in which the API
// takes it, so that recording builds nothing.
type prepared struct {
	add     []metric.AddOption
	record  []metric.RecordOption
	observe []metric.ObserveOption
}

func prepare(attrs []attribute.KeyValue) *prepared {
	o := metric.WithAttributeSet(attribute.NewSet(attrs...))

	return &prepared{
		add: []metric.AddOption{o}, record: []metric.RecordOption{o}, observe: []metric.ObserveOption{o},
	}
}

// series are the prepared attribute sets of one instrument, made when first
// needed. Reading takes no lock: writes replace the map, and end early because
// the number of series is bounded.
type series struct {
	build func(k key) []attribute.KeyValue
	fold  func(k key) key // where a series past the limit is counted

	mu   sync.Mutex
	made atomic.Pointer[map[key]*prepared]
}

func newSeries(build func(k key) []attribute.KeyValue, fold func(k key) key) *series {
	s := &series{build: build, fold: fold}
	s.made.Store(&map[key]*prepared{})

	return s
}

func (s *series) get(k key) *prepared {
	made := *s.made.Load()
	if p, ok := made[k]; ok {
		return p
	}
	if len(made) >= seriesLimit {
		k = s.fold(k)
		if p, ok := made[k]; ok {
			return p
		}
	}

	return s.make(k)
}

func (s *series) make(k key) *prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := *s.made.Load()
	if len(made) >= seriesLimit {
		k = s.fold(k)
	}
	if p, ok := made[k]; ok {
		return p
	}
	p := prepare(s.build(k))
	next := maps.Clone(made)
	next[k] = p
	s.made.Store(&next)

	return p
}
