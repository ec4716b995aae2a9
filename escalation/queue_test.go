//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

var desk = ident.MustLabel("night-desk")

// clock is set by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// desktop is a queue file with its queue, and a clock that stands at the trip.
type desktop struct {
	*escalation.Queue

	clock *clock
	path  string
}

func newDesktop(tb testing.TB, lines ...string) desktop {
	tb.Helper()
	d := desktop{clock: &clock{now: at}, path: filepath.Join(tb.TempDir(), "handoffs.jsonl")}
	if err := os.WriteFile(d.path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		tb.Fatal(err)
	}
	var err error
	if d.Queue, err = escalation.NewQueue(escalation.QueueConfig{Path: d.path, Now: d.clock.read}); err != nil {
		tb.Fatal(err)
	}

	return d
}

func (d desktop) content(tb testing.TB) string {
	tb.Helper()
	data, err := os.ReadFile(d.path)
	if err != nil {
		tb.Fatal(err)
	}

	return string(data)
}

// list returns "class state decision" of each entry, and the report.
func (d desktop) list(tb testing.TB) ([]string, escalation.QueueReport) {
	tb.Helper()
	var got []string
	report, err := d.List(tb.Context(), func(e escalation.QueueEntry) error {
		got = append(got, fmt.Sprintf("%v %v %v", e.Handoff.Class(), e.State, e.Review.Decision()))
		if again, err := d.Get(tb.Context(), e.Digest); err != nil || again.State != e.State || again.Review != e.Review ||
			again.Handoff.Digest() != e.Digest || e.Handoff.Digest() != e.Digest {
			tb.Errorf("Get: %+v, %v; List: %+v", again, err, e)
		}

		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}

	return got, report
}

// waits returns what the gauge says, -1 for no reading.
func (d desktop) waits() int {
	g := d.Gauges()
	if len(g) != 1 || g[0].Kind != middleware.GaugeQueue {
		return -1
	}

	return int(g[0].Value)
}

// sum is the digest of a golden handoff, by the bytes of the file.
func sum(tb testing.TB, c escalation.Class) ident.Digest {
	tb.Helper()

	return ident.DigestOf([]byte(golden(tb, c)))
}

func wantReason(tb testing.TB, what string, err error, want middleware.Reason) {
	tb.Helper()
	if middleware.ReasonOf(err) != want {
		tb.Errorf("%s: %v, want %v", what, err, want)
	}
	contentFree(tb, err)
}

func TestQueueGolden(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	if h.Digest() != sum(t, toolFailure) || !(escalation.Handoff{}).Digest().IsZero() {
		t.Errorf("digest %v", h.Digest())
	}
	for _, decision := range escalation.ReviewDecisions() {
		for class := range offers {
			if !decision.Fits(class) || !strings.Contains(goldenReview(t, decision), sum(t, class).Hex()) {
				continue
			}
			d := newDesktop(t, golden(t, class)+"\n")
			d.clock.set(at.Add(10*time.Minute + time.Second/2))
			r, err := d.Decide(t.Context(), sum(t, class), decision, desk)
			if err != nil || r.Decision() != decision {
				t.Fatalf("%v: %v, %v", decision, r, err)
			}
			if want := golden(t, class) + "\n" + goldenReview(t, decision) + "\n"; d.content(t) != want {
				t.Errorf("%v:\n got %s\nwant %s", decision, d.content(t), want)
			}
			if data, err := r.MarshalJSON(); err != nil || string(data) != goldenReview(t, decision) {
				t.Errorf("%v: %s, %v", decision, data, err)
			}
		}
	}
}

func TestQueueStates(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	sink, err := escalation.NewFileSink(d.path)
	if err != nil {
		t.Fatal(err)
	}
	if got, report := d.list(t); got != nil || report.Lines != 0 || report.Cut || d.waits() != 0 {
		t.Errorf("empty: %v %+v", got, report)
	}
	for _, c := range []escalation.Class{toolFailure, permission, uncertainty, toolFailure} { // the last one is delivered again
		_, h := tripped(t, c)
		if err := sink.Deliver(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if d.waits() != 0 {
		t.Error("the gauge reads the file")
	}
	got, report := d.list(t)
	if want := []string{"tool_failure waiting invalid", "permission_denial waiting invalid", "uncertainty waiting invalid"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if report.Waiting != 3 || report.Repeated != 1 || report.Lines != 4 || report.Damaged != 0 || d.waits() != 3 {
		t.Errorf("%+v, %d waiting", report, d.waits())
	}
	if _, err := d.Decide(t.Context(), sum(t, permission), escalation.ReviewPermissions, desk); err != nil {
		t.Fatal(err)
	}
	d.clock.set(at.Add(escalation.HandoffTTL - 1))
	if got, report := d.list(t); got[1] != "permission_denial decided recheck_permissions" || report.Waiting != 2 || report.Decided != 1 || d.waits() != 2 {
		t.Errorf("%v %+v", got, report)
	}
	d.clock.set(at.Add(escalation.HandoffTTL))
	if d.waits() != 0 {
		t.Error("the gauge counts what is expired")
	}
	if got, report := d.list(t); got[0] != "tool_failure expired invalid" || got[1] != "permission_denial decided recheck_permissions" ||
		report.Expired != 2 || report.Decided != 1 || report.Waiting != 0 {
		t.Errorf("%v %+v", got, report)
	}
	before := d.content(t)
	for what, c := range map[string]struct {
		id       ident.Digest
		decision escalation.ReviewDecision
		reviewer ident.Label
		want     middleware.Reason
	}{
		"expired":         {sum(t, toolFailure), escalation.ReviewAbortRun, desk, middleware.ReasonHandoffExpired},
		"decided":         {sum(t, permission), escalation.ReviewAbortRun, desk, middleware.ReasonHandoffDecided},
		"the same again":  {sum(t, permission), escalation.ReviewPermissions, desk, middleware.ReasonHandoffDecided},
		"unknown":         {ident.DigestOf([]byte("x")), escalation.ReviewAbortRun, desk, middleware.ReasonUnknownHandoff},
		"no digest":       {ident.Digest{}, escalation.ReviewAbortRun, desk, middleware.ReasonUnknownHandoff},
		"no decision":     {sum(t, toolFailure), 0, desk, middleware.ReasonInvalidDecision},
		"no known one":    {sum(t, toolFailure), 200, desk, middleware.ReasonInvalidDecision},
		"no reviewer":     {sum(t, toolFailure), escalation.ReviewAbortRun, ident.Label{}, middleware.ReasonInvalidLabel},
		"model as label":  {sum(t, toolFailure), escalation.ReviewAbortRun, ident.MustModelLabel("A/b"), middleware.ReasonInvalidLabel},
		"digest of a run": {ident.DigestOf([]byte(runID(t, "ab").String())), escalation.ReviewAbortRun, desk, middleware.ReasonUnknownHandoff},
	} {
		r, err := d.Decide(t.Context(), c.id, c.decision, c.reviewer)
		wantReason(t, what, err, c.want)
		if !r.IsZero() {
			t.Errorf("%s: %v", what, r)
		}
	}
	_, err = d.Get(t.Context(), ident.DigestOf([]byte("x")))
	wantReason(t, "Get", err, middleware.ReasonUnknownHandoff)
	if d.content(t) != before {
		t.Error("a refusal wrote something")
	}
}

// Every decision for every class: only what the handoff offers is recorded.
func TestQueueCombinations(t *testing.T) {
	t.Parallel()
	for class := range offers {
		for decision := range escalation.ReviewDecision(8) {
			d := newDesktop(t, golden(t, class)+"\n")
			_, err := d.Decide(t.Context(), sum(t, class), decision, desk)
			if offered(class, decision.String()) {
				wantReason(t, decision.String(), err, 0)

				continue
			}
			wantReason(t, decision.String(), err, middleware.ReasonInvalidDecision)
			if d.content(t) != golden(t, class)+"\n" {
				t.Errorf("%v, %v: it was recorded", class, decision)
			}
		}
	}
}

func TestQueueTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now  time.Time
		want middleware.Reason
	}{
		"at issue":             {at, 0},
		"in another zone":      {at.In(time.FixedZone("east", 7200)), 0},
		"last instant":         {at.Add(30*time.Minute - 1), 0},
		"at expiry":            {at.Add(30 * time.Minute), middleware.ReasonHandoffExpired},
		"5 minutes before":     {at.Add(-5 * time.Minute), 0},
		"a little more":        {at.Add(-5*time.Minute - 1), middleware.ReasonHandoffFuture},
		"long before":          {at.AddDate(-100, 0, 0), middleware.ReasonHandoffFuture},
		"no clock":             {time.Time{}, middleware.ReasonInvalidTimestamp},
		"after the end of all": {time.Date(9999, 12, 31, 23, 45, 0, 0, time.UTC), middleware.ReasonInvalidTimestamp},
	} {
		d := newDesktop(t, golden(t, toolFailure)+"\n")
		d.clock.set(c.now)
		_, err := d.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewAbortRun, desk)
		wantReason(t, name, err, c.want)
	}
	// A handoff from the future waits: somebody has to look at it, or at the clock.
	d := newDesktop(t, golden(t, toolFailure)+"\n")
	d.clock.set(at.AddDate(-1, 0, 0))
	if got, report := d.list(t); got[0] != "tool_failure waiting invalid" || report.Waiting != 1 || d.waits() != 1 {
		t.Errorf("%v %+v", got, report)
	}
}

func TestQueueClockFails(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, golden(t, toolFailure)+"\n")
	d.list(t)
	var now func() time.Time
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: d.path, Now: func() time.Time { return now() }})
	if err != nil {
		t.Fatal(err)
	}
	now = func() time.Time { return at }
	if _, err := q.List(t.Context(), nil); err != nil || len(q.Gauges()) != 1 {
		t.Fatal(err)
	}
	for name, broken := range map[string]func() time.Time{"panic": func() time.Time { panic(secret) }, "nothing": func() time.Time { return time.Time{} }} {
		now = broken
		if g := q.Gauges(); g != nil {
			t.Errorf("%s: %v", name, g)
		}
		_, err = q.Get(t.Context(), sum(t, toolFailure))
		wantReason(t, name, err, middleware.ReasonInvalidTimestamp)
		_, err = q.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewAbortRun, desk)
		wantReason(t, name, err, middleware.ReasonInvalidTimestamp)
		_, err = q.List(t.Context(), nil)
		wantReason(t, name, err, middleware.ReasonInvalidTimestamp)
	}
	if d.content(t) != golden(t, toolFailure)+"\n" {
		t.Error("decided without a clock")
	}
}

// Damaged lines are told apart, never shown, and hide nothing else.
func TestQueueDamage(t *testing.T) {
	t.Parallel()
	abort, dismissed := goldenReview(t, escalation.ReviewAbortRun), goldenReview(t, escalation.ReviewDismissed)
	late := strings.Replace(dismissed, "05:16:07Z", "05:36:07Z", 1)
	early := strings.Replace(dismissed, "05:16:07Z", "05:01:06Z", 1)
	misfit := strings.Replace(dismissed, `"dismissed"`, `"review_evidence"`, 1)
	const longest = escalation.MaxHandoffBytes - 1
	for name, c := range map[string]struct {
		lines string
		want  []escalation.LineDamage
		first string
		cut   bool
	}{
		"nothing":            {golden(t, toolFailure) + "\n", nil, "waiting invalid", false},
		"junk":               {secret + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectMalformed}}, "waiting invalid", false},
		"empty lines":        {"\n\n" + golden(t, toolFailure) + "\n\n", []escalation.LineDamage{{1, escalation.DefectMalformed}, {2, escalation.DefectMalformed}, {4, escalation.DefectMalformed}}, "waiting invalid", false},
		"carriage return":    {golden(t, toolFailure) + "\r\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectTrailingData}}, "waiting invalid", false},
		"longest":            {strings.Repeat("x", longest) + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectMalformed}}, "waiting invalid", false},
		"longer":             {strings.Repeat("x", longest+1) + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectOversize}}, "waiting invalid", false},
		"a mile":             {strings.Repeat("\x00", 1<<20) + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectOversize}}, "waiting invalid", false},
		"a mile at the end":  {golden(t, toolFailure) + "\n" + strings.Repeat("x", 1<<20), []escalation.LineDamage{{2, escalation.DefectCut}}, "waiting invalid", true},
		"cut":                {golden(t, toolFailure) + "\n" + golden(t, permission)[:100], []escalation.LineDamage{{2, escalation.DefectCut}}, "waiting invalid", true},
		"cut review":         {golden(t, toolFailure) + "\n" + abort[:len(abort)-1], []escalation.LineDamage{{2, escalation.DefectCut}}, "waiting invalid", true},
		"ended cut review":   {golden(t, toolFailure) + "\n" + abort[:20] + "\n", []escalation.LineDamage{{2, escalation.DefectMalformed}}, "waiting invalid", false},
		"only the newline":   {golden(t, toolFailure), nil, "waiting invalid", true},
		"review all the way": {golden(t, toolFailure) + "\n" + abort, nil, "decided abort_run", true},
		"decided twice":      {golden(t, toolFailure) + "\n" + abort + "\n" + dismissed + "\n", []escalation.LineDamage{{3, escalation.DefectDecided}}, "decided abort_run", false},
		"decided late":       {golden(t, toolFailure) + "\n" + late + "\n" + dismissed + "\n", []escalation.LineDamage{{2, escalation.DefectExpired}}, "decided dismissed", false},
		"decided early":      {golden(t, toolFailure) + "\n" + early + "\n", []escalation.LineDamage{{2, escalation.DefectFuture}}, "waiting invalid", false},
		"not offered":        {golden(t, toolFailure) + "\n" + misfit + "\n" + abort + "\n", []escalation.LineDamage{{2, escalation.DefectWrongCombination}}, "decided abort_run", false},
		"review before":      {abort + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectUnknownHandoff}}, "waiting invalid", false},
		"review of another":  {golden(t, toolFailure) + "\n" + goldenReview(t, escalation.ReviewEvidence) + "\n", []escalation.LineDamage{{2, escalation.DefectUnknownHandoff}}, "waiting invalid", false},
		"other schema":       {strings.Replace(golden(t, toolFailure), "handoff.v1", "handoff.v2", 1) + "\n" + golden(t, toolFailure) + "\n", []escalation.LineDamage{{1, escalation.DefectInvalidValue}}, "waiting invalid", false},
		"granting":           {golden(t, toolFailure) + "\n" + strings.Replace(abort, "abort_run", "resume_run", 1) + "\n", []escalation.LineDamage{{2, escalation.DefectInvalidValue}}, "waiting invalid", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesktop(t, c.lines)
			got, report := d.list(t)
			if !slices.Equal(got, []string{"tool_failure " + c.first}) {
				t.Errorf("%q", got)
			}
			if !slices.Equal(report.Damage, c.want) || report.Damaged != len(c.want) || report.Cut != c.cut {
				t.Errorf("%+v", report)
			}
			contentFree(t, report)
			// Whatever the file looks like, it is appended to.
			_, err := d.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewToolFailure, desk)
			if c.first != "waiting invalid" {
				wantReason(t, "decided", err, middleware.ReasonHandoffDecided)

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(d.content(t), c.lines) {
				t.Error("something of the file is gone")
			}
			got, after := d.list(t)
			if !slices.Equal(got, []string{"tool_failure decided review_tool_failure"}) || after.Cut || after.Damaged != report.Damaged {
				t.Errorf("%v %+v", got, after)
			}
		})
	}
}

func TestQueueReportIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, strings.Repeat("\n", 250), golden(t, toolFailure))
	if got, report := d.list(t); len(got) != 1 || report.Damaged != 250 || len(report.Damage) != 100 || report.Lines != 251 {
		t.Errorf("%v, %d of %d", got, len(report.Damage), report.Damaged)
	}
}

// A file with too many handoffs is not listed in part; each of them can still be
// looked at and decided.
func TestQueueFull(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, golden(t, toolFailure)+"\n", golden(t, toolFailure)+"\n", golden(t, permission)+"\n")
	escalation.LimitQueue(d.Queue, 2)
	if got, report := d.list(t); len(got) != 2 || report.Repeated != 1 || d.waits() != 2 {
		t.Errorf("%v %+v", got, report)
	}
	escalation.LimitQueue(d.Queue, 1)
	report, err := d.List(t.Context(), func(escalation.QueueEntry) error { t.Error("listed"); return nil })
	wantReason(t, "full", err, middleware.ReasonQueueFull)
	if report.Lines != 0 || d.waits() != -1 {
		t.Errorf("%+v, %d", report, d.waits())
	}
	if _, err := d.Decide(t.Context(), sum(t, permission), escalation.ReviewAbortRun, desk); err != nil {
		t.Error(err)
	}
	if e, err := d.Get(t.Context(), sum(t, permission)); err != nil || e.State != escalation.QueueDecided {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	if _, err := escalation.NewQueue(escalation.QueueConfig{}); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("no path: %v", err)
	}
	if _, err := escalation.NewQueue(escalation.QueueConfig{Path: "x", LockTimeout: -1}); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("negative timeout: %v", err)
	}
	for name, prepare := range map[string]func(path string) error{
		"missing": func(string) error { return nil },
		"symlink": func(path string) error {
			return errors.Join(writeMode(path+".target", 0o600), os.Symlink(path+".target", path))
		},
		"dangling symlink": func(path string) error { return os.Symlink(path+".target", path) },
		"folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"fifo":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"group readable":   func(path string) error { return writeMode(path, 0o640) },
		"world writable":   func(path string) error { return writeMode(path, 0o602) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), secret, "handoffs.jsonl")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := writeMode(path, 0o600); err != nil {
				t.Fatal(err)
			}
			q, err := escalation.NewQueue(escalation.QueueConfig{Path: path}) // found good, and changed afterwards
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.List(t.Context(), nil); err != nil || len(q.Gauges()) != 1 {
				t.Fatalf("%v, %v", q.Gauges(), err)
			}
			if err := errors.Join(os.Remove(path), prepare(path)); err != nil {
				t.Fatal(err)
			}
			_, err = q.List(t.Context(), nil)
			wantReason(t, "List", err, middleware.ReasonQueueUnreadable)
			_, err = q.Get(t.Context(), sum(t, toolFailure))
			wantReason(t, "Get", err, middleware.ReasonQueueUnreadable)
			_, err = q.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewAbortRun, desk)
			wantReason(t, "Decide", err, middleware.ReasonQueueUnreadable)
			_, err = escalation.NewQueue(escalation.QueueConfig{Path: path})
			wantReason(t, "NewQueue", err, middleware.ReasonQueueUnreadable)
			if g := q.Gauges(); g != nil {
				t.Errorf("an old reading: %v", g)
			}
			if _, err := os.Lstat(path); name == "missing" && !os.IsNotExist(err) {
				t.Errorf("it made the file: %v", err)
			}
		})
	}
	var none *escalation.Queue
	if none.Gauges() != nil {
		t.Error("a nil queue has a reading")
	}
	_, err := none.List(t.Context(), nil)
	wantReason(t, "nil queue", err, middleware.ReasonQueueUnreadable)
	_, err = none.Get(t.Context(), sum(t, toolFailure))
	wantReason(t, "nil queue", err, middleware.ReasonQueueUnreadable)
	_, err = none.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewAbortRun, desk)
	wantReason(t, "nil queue", err, middleware.ReasonQueueUnreadable)
}

// As TestFileSinkChecksTheOwner.
func TestQueueChecksTheOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	if err := writeMode(path, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := os.Chown(path, 12345, -1) == nil
	if _, err := escalation.NewQueue(escalation.QueueConfig{Path: path}); (err != nil) != foreign {
		t.Errorf("foreign %v: %v", foreign, err)
	}
}

func TestQueueWaitsForTheLock(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, golden(t, toolFailure)+"\n")
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = d.List(ctx, nil)
	wantReason(t, "List", err, middleware.ReasonQueueBusy)
	_, err = d.Get(ctx, sum(t, toolFailure))
	wantReason(t, "Get", err, middleware.ReasonQueueBusy)
	_, err = d.Decide(ctx, sum(t, toolFailure), escalation.ReviewAbortRun, desk)
	wantReason(t, "Decide", err, middleware.ReasonQueueBusy)
	if !errors.Is(err, context.DeadlineExceeded) || d.content(t) != golden(t, toolFailure)+"\n" {
		t.Errorf("%v", errors.Unwrap(err))
	}
	impatient, err := escalation.NewQueue(escalation.QueueConfig{Path: d.path, Now: d.clock.read, LockTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_, err = impatient.List(t.Context(), nil)
	wantReason(t, "impatient", err, middleware.ReasonQueueBusy)
	result := make(chan error)
	go func() {
		_, err := d.Decide(t.Context(), sum(t, toolFailure), escalation.ReviewAbortRun, desk)
		result <- err
	}()
	// What another process writes while it holds the lock is seen: here, a review.
	review := goldenReview(t, escalation.ReviewDismissed)
	if _, err := f.WriteAt([]byte(review), int64(len(d.content(t)))); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	wantReason(t, "decided meanwhile", <-result, middleware.ReasonHandoffDecided)
	// A reader does not keep others from reading.
	if f, err = os.Open(d.path); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if got, report := d.list(t); got[0] != "tool_failure decided dismissed" || !report.Cut {
		t.Errorf("%v %+v", got, report)
	}
}

func TestQueueListStops(t *testing.T) {
	t.Parallel()
	d := newDesktop(t, golden(t, toolFailure)+"\n", golden(t, permission)+"\n")
	n := 0
	report, err := d.List(t.Context(), func(escalation.QueueEntry) error { n++; return errTool })
	if err != errTool || n != 1 || report.Waiting != 2 || d.waits() != 2 {
		t.Errorf("%v after %d, %+v", err, n, report)
	}
	done, cancel := context.WithCancel(t.Context())
	report, err = d.List(done, func(escalation.QueueEntry) error { cancel(); return nil })
	wantReason(t, "cancelled", err, middleware.ReasonQueueBusy)
	if report.Waiting != 2 {
		t.Errorf("%+v", report)
	}
	// It may be used within: no lock is held.
	_, err = d.List(t.Context(), func(e escalation.QueueEntry) error {
		_, err := d.Decide(t.Context(), e.Digest, escalation.ReviewDismissed, desk)

		return err
	})
	if err != nil || strings.Count(d.content(t), "\n") != 4 {
		t.Errorf("%v: %s", err, d.content(t))
	}
}

// One and the same handoff, decided by several processes and goroutines at once,
// while others deliver: one decides, and nothing is lost.
func TestQueueManyDeciders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	const processes, goroutines, appenders = 3, 3, 2
	if err := appendMany(path, appendLines); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func(env string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), env+"="+path)

		return cmd
	}
	var mu sync.Mutex
	won := 0
	var wg sync.WaitGroup
	for range appenders {
		wg.Go(func() {
			if out, err := start(appendEnv).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for range processes {
		wg.Go(func() {
			out, err := start(decideEnv).Output()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			won += len(out) // one byte for each that it decided
		})
	}
	for range goroutines {
		wg.Go(func() {
			n, err := decideMany(path, appendLines)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			won += n
		})
	}
	wg.Wait()
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: path, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	report, err := q.List(t.Context(), nil)
	if err != nil || report.Damaged != 0 || report.Cut || report.Waiting+report.Decided != (1+appenders)*appendLines ||
		report.Decided < appendLines || report.Decided != won || report.Lines != report.Waiting+2*report.Decided {
		t.Errorf("%d decided of %+v, %v", won, report, err)
	}
}
