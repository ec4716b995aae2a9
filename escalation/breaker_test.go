package escalation_test

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// transition is one row of the table in the doc comment of Breaker.
type transition struct{ state, operation, input, next, returns string }

func transitions(t *testing.T) []transition {
	t.Helper()
	src, err := os.ReadFile("breaker.go")
	if err != nil {
		t.Fatal(err)
	}
	column := regexp.MustCompile(`\s{2,}`)
	var rows []transition
	for line := range strings.SplitSeq(string(src), "\n") {
		text, ok := strings.CutPrefix(line, "//\t")
		if !ok || strings.HasPrefix(text, "state ") {
			continue
		}
		if c := column.Split(text, -1); len(c) == 5 {
			rows = append(rows, transition{c[0], c[1], c[2], c[3], c[4]})
		}
	}
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}

	return rows
}

func TestBreakerTransitions(t *testing.T) {
	t.Parallel()
	for _, row := range transitions(t) {
		t.Run(row.state+"/"+row.operation+"/"+row.input, func(t *testing.T) {
			t.Parallel()
			policy := escalation.Policy{Uncertainty: 3, PermissionDenial: 3, ToolFailure: 3, Total: 5}
			class, sum, now := toolFailure, digest(9), at
			prepare := 0
			switch row.input {
			case "below limits", "any failure":
			case "reaches class":
				prepare = 2
			case "reaches total":
				policy.Total = 2
				prepare = 1
			case "bad class":
				class = 77
			case "bad digest":
				sum = strings.ToUpper(sum)
			case "bad timestamp":
				now = at.Add(time.Nanosecond)
			default:
				t.Fatalf("unknown input %q", row.input)
			}
			b := newBreaker(t, policy)
			for i := range prepare {
				if h, err := b.RecordFailure(toolFailure, digest(i), at); h != nil || err != nil {
					t.Fatalf("RecordFailure: %v, %v", h, err)
				}
			}
			if row.state == "halted" {
				if _, err := b.Trip(uncertainty, digest(0), at); err != nil {
					t.Fatal(err)
				}
			}
			before, err := b.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			op := b.RecordFailure
			if row.operation == "Trip" {
				op = b.Trip
			}
			h, err := op(class, sum, now)
			wantHandoff, wantErr, _ := strings.Cut(row.returns, ", ")
			if (h != nil) != (wantHandoff == "handoff") {
				t.Errorf("handoff %v, want %s", h, wantHandoff)
			}
			if reason := middleware.ReasonOf(err); (wantErr == "nil") != (err == nil) || (err != nil && reason.String() != wantErr) {
				t.Errorf("error %v, want %s", err, wantErr)
			}
			if b.Halted() != (row.next == "halted") {
				t.Errorf("halted %v, want %s", b.Halted(), row.next)
			}
			after, err := b.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if unchanged := string(before) == string(after); unchanged != (wantErr != "nil") {
				t.Errorf("state unchanged: %v, although it returned %s", unchanged, row.returns)
			}
		})
	}
}

func TestBreakerTripCarriesTheLastClass(t *testing.T) {
	t.Parallel()
	b := newBreaker(t, escalation.Policy{Uncertainty: 9, PermissionDenial: 9, ToolFailure: 9, Total: 3})
	for i, c := range []escalation.Class{toolFailure, toolFailure} {
		if h, err := b.RecordFailure(c, digest(i), at); h != nil || err != nil {
			t.Fatalf("%v, %v", h, err)
		}
	}
	h, err := b.RecordFailure(permission, digest(2), at)
	if err != nil || h == nil {
		t.Fatalf("%v, %v", h, err)
	}
	if h.Class() != permission || h.ReasonCode() != middleware.ReasonHumanGate {
		t.Errorf("class %v, reason %v", h.Class(), h.ReasonCode())
	}
	want := escalation.Counts{ToolFailure: 2, PermissionDenial: 1}
	if got := b.Counts(); got != want || got.Total() != 3 || got.Of(toolFailure) != 2 || got.Of(0) != 0 {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	digests := h.StepDigests()
	if len(digests) != 3 {
		t.Fatalf("%d digests", len(digests))
	}
	for i, d := range digests {
		if d.Hex() != digest(i) {
			t.Errorf("digest %d is out of order", i)
		}
	}
	digests[0] = ident.Digest{} // must be a copy
	again, ok := b.Handoff()
	if !ok || again.StepDigests()[0].Hex() != digest(0) {
		t.Error("the handoff was changed from outside")
	}
}

func TestBreakerEachLimit(t *testing.T) {
	t.Parallel()
	for class, limit := range map[escalation.Class]int{uncertainty: 3, permission: 2, toolFailure: 3} {
		b := newBreaker(t, escalation.DefaultPolicy())
		for i := 1; i <= limit; i++ {
			h, err := b.RecordFailure(class, digest(i), at)
			if err != nil || (h != nil) != (i == limit) {
				t.Errorf("%v, failure %d of %d: %v, %v", class, i, limit, h, err)
			}
		}
	}
}

func TestBreakerTimestamps(t *testing.T) {
	t.Parallel()
	last := time.Date(9999, 12, 31, 23, 29, 59, 0, time.UTC)
	for name, c := range map[string]struct {
		now time.Time
		ok  bool
	}{
		"whole second":    {at, true},
		"epoch":           {time.Unix(0, 0).UTC(), true},
		"year 1":          {time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), true},
		"last":            {last, true},
		"zero":            {time.Time{}, false},
		"nanoseconds":     {at.Add(1), false},
		"year 0":          {time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC), false},
		"expiry overruns": {last.Add(time.Second), false},
		"year 10000":      {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), false},
		"overflow":        {time.Unix(math.MaxInt64, 0).UTC(), false},
		"underflow":       {time.Unix(math.MinInt64, 0).UTC(), false},
		"other zone":      {at.In(time.FixedZone("UTC", 0)), false},
		"east":            {at.In(time.FixedZone("east", 3600)), false},
	} {
		b := newBreaker(t, escalation.DefaultPolicy())
		h, err := b.Trip(toolFailure, digest(1), c.now)
		if (err == nil) != c.ok || (h != nil) != c.ok || (!c.ok && !errors.Is(err, escalation.ErrInvalidTimestamp)) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
		if c.ok {
			data, err := h.MarshalJSON()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := escalation.ParseHandoff(data, c.now); err != nil {
				t.Errorf("%s: does not parse: %v", name, err)
			}
		}
	}
}

func TestBreakerBadDigests(t *testing.T) {
	t.Parallel()
	good := digest(1)
	for _, bad := range []string{"", good[1:], good + "0", "sha256:" + good, strings.ToUpper(good), " " + good[1:], secret} {
		b := newBreaker(t, escalation.DefaultPolicy())
		_, err := b.RecordFailure(toolFailure, bad, at)
		if !errors.Is(err, escalation.ErrInvalidDigest) {
			t.Errorf("%q: %v", bad, err)
		}
		contentFree(t, err)
		if b.Counts() != (escalation.Counts{}) {
			t.Errorf("%q was counted", bad)
		}
	}
}

func TestBreakerZeroAndNilAreHalted(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*escalation.Breaker{"zero": {}, "nil": nil} {
		if !b.Halted() {
			t.Errorf("%s: not halted", name)
		}
		if h, err := b.RecordFailure(toolFailure, digest(1), at); h != nil || !errors.Is(err, escalation.ErrCircuitOpen) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
		if h, err := b.Trip(toolFailure, digest(1), at); h != nil || !errors.Is(err, escalation.ErrCircuitOpen) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
		if _, ok := b.Handoff(); ok || b.Counts() != (escalation.Counts{}) {
			t.Errorf("%s: has a handoff or counts", name)
		}
		if data, err := b.MarshalJSON(); err == nil {
			t.Errorf("%s: renders %s", name, data)
		}
	}
}

func TestBreakerConcurrent(t *testing.T) {
	t.Parallel()
	b := newBreaker(t, escalation.Policy{Uncertainty: 32, PermissionDenial: 32, ToolFailure: 32, Total: 32})
	var handoffs, open, counted atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			switch h, err := b.RecordFailure(middleware.FailureClasses()[i%3], digest(i), at); {
			case h != nil:
				handoffs.Add(1)
			case errors.Is(err, escalation.ErrCircuitOpen):
				open.Add(1)
			case err == nil:
				counted.Add(1)
			}
			_ = b.Halted()
			_ = b.Counts()
			_, _ = b.Handoff()
		})
	}
	wg.Wait()
	if handoffs.Load() != 1 || counted.Load() != 31 || open.Load() != 168 {
		t.Errorf("%d handoffs, %d counted, %d refused", handoffs.Load(), counted.Load(), open.Load())
	}
}

func TestPolicyNamesTheField(t *testing.T) {
	t.Parallel()
	for field, set := range map[string]func(*escalation.Policy, int){
		"Policy.Uncertainty":      func(p *escalation.Policy, n int) { p.Uncertainty = n },
		"Policy.PermissionDenial": func(p *escalation.Policy, n int) { p.PermissionDenial = n },
		"Policy.ToolFailure":      func(p *escalation.Policy, n int) { p.ToolFailure = n },
		"Policy.Total":            func(p *escalation.Policy, n int) { p.Total = n },
	} {
		for n, ok := range map[int]bool{-1: false, 0: false, 1: true, 32: true, 33: false, math.MaxInt: false} {
			p := escalation.DefaultPolicy()
			set(&p, n)
			_, err := escalation.NewBreaker(escalation.BreakerConfig{Run: runID(t, "a"), Workflow: workflow, Policy: p})
			if (err == nil) != ok {
				t.Errorf("%s = %d: %v", field, n, err)
			}
			if ok {
				continue
			}
			var c *escalation.ConfigError
			if !errors.As(err, &c) || c.Field() != field || !errors.Is(err, escalation.ErrInvalidThreshold) ||
				c.Error() != "interlock: escalation: invalid_threshold: "+field+" must be 1…32" {
				t.Errorf("%s = %d: %v", field, n, err)
			}
		}
	}
}

func TestNewBreakerNeedsIdentity(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]escalation.BreakerConfig{
		"Run":                {Workflow: workflow, Policy: escalation.DefaultPolicy()},
		"Workflow":           {Run: runID(t, "a"), Policy: escalation.DefaultPolicy()},
		"Policy.Uncertainty": {Run: runID(t, "a"), Workflow: workflow},
	} {
		var c *escalation.ConfigError
		if _, err := escalation.NewBreaker(cfg); !errors.As(err, &c) || c.Field() != field || c.Reason() == 0 {
			t.Errorf("%s: %v", field, err)
		}
	}
}
