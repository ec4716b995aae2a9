// Package row is the vocabulary of the benchmarks: a [Row] is one thing that is
// measured, a [Target] a claim about two rows of one run, a [Series] a claim
// about how cost grows. Rows are data, so that one runner can interleave them,
// repeat them, and write them down; `go test -bench` reaches the same rows.
//
// A row does its own checking: [Work.Run] fails when an operation did not do
// what the row's About says. A figure of work that was not done is worse than
// none.
package row

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
)

// Set is a group of rows that is run together.
type Set string

// The sets, in the order of the report.
const (
	// Micro is each layer and the whole seam, without a network.
	Micro Set = "micro"
	// Peers is other libraries at the same work in the same run.
	Peers Set = "peers"
	// Macro is whole agent runs over loopback HTTP.
	Macro Set = "macro"
	// Scale is cost against a quantity that grows.
	Scale Set = "scale"
)

// Sets returns all sets in their order.
func Sets() []Set { return []Set{Micro, Peers, Macro, Scale} }

// Unit is what a row's figure counts.
type Unit string

// The units.
const (
	// Nanoseconds of one operation; the default.
	Nanoseconds Unit = "ns"
	// Bytes of memory for one piece.
	Bytes Unit = "B"
)

// Row is one thing that is measured.
type Row struct {
	// Name is unique, in lower case, with slashes: "micro/tool/layers-10". It
	// begins with the set.
	Name string
	// Set that the row belongs to.
	Set Set
	// RatioTo is the name of the row that this one is divided by, in the same
	// run. "": none.
	RatioTo string
	// About is one line: what one operation does.
	About string
	// Control marks work that is not ours (a system call, a hash): its spread
	// says how noisy the machine is.
	Control bool
	// Parallel rows spread their operations over GOMAXPROCS goroutines: the
	// figure is time that passed for one operation, with all of them at work.
	Parallel bool
	// Slow rows need more than a millisecond for one operation, or a long
	// preparation: they are repeated less.
	Slow bool
	// Long rows take seconds: a quick run leaves them out, unless it names them.
	Long bool
	// Series names the growth series that the row is a point of. "": none.
	Series string
	// X is the row's place in its series: the quantity that grows.
	X float64
	// Prepare makes the work ready: once, outside of what is timed. Nil if the
	// row has Measure.
	Prepare func() (*Work, error)
	// Measure takes the figure itself, in Unit. Nil if the row has Prepare.
	Measure func() (float64, error)
	// Unit of the figure. "": Nanoseconds.
	Unit Unit
}

// Work is a prepared row.
type Work struct {
	// Run does n operations, and fails when one of them did not do its work. It
	// may be called many times, interleaved with other rows, never with itself.
	Run func(n int) error
	// Close releases what Prepare took. Nil: nothing to release.
	Close func()
}

// Release closes w.
func (w *Work) Release() {
	if w != nil && w.Close != nil {
		w.Close()
	}
}

// Target is a claim about one row, in one run.
type Target struct {
	// Name of the claim, lower case: "tool-gated".
	Name string
	// Headline claims stand in the project's README, held or not.
	Headline bool
	// About is the claim in one line.
	About string
	// Why says what a profile shows of a claim that was missed when it was last
	// looked at. A report shows it where the claim is missed.
	Why string
	// Row is the row that the claim is about, To the one it is compared with.
	// Over is taken from Row's figure first, so that an addition can be compared
	// alone. To and Over: "" none.
	Row, To, Over string
	// AtMost and AtLeast bound the ratio of Row to To, or Row's own figure if To
	// is "". 0: no bound.
	AtMost, AtLeast float64
	// Allocs bounds the allocations of one operation of Row. Negative: no bound.
	Allocs float64
}

// Series is a claim about how a cost grows with a quantity.
type Series struct {
	// Name that the rows carry.
	Name string
	// Quantity that grows, in the plural: "receipts in the ledger".
	Quantity string
	// Claim is what the project says, in one line.
	Claim string
	// Want is the growth that the claim allows at most: "flat", "logarithmic" or
	// "linear" (package growth).
	Want string
}

// nameForm is what a row may be called.
const nameForm = `^[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_.-]*)+$`

// Check returns why rows cannot be run together, or nil: names that are twice
// or not of the form, a row to compare with that does not exist, a row without
// work or with two kinds of it.
func Check(rows []Row) error {
	form := regexp.MustCompile(nameForm)
	byName := make(map[string]Row, len(rows))
	var wrong []error
	fail := func(r Row, why string) { wrong = append(wrong, fmt.Errorf("row %s: %s", r.Name, why)) }
	for _, r := range rows {
		if _, twice := byName[r.Name]; twice {
			fail(r, "two of this name")
		}
		byName[r.Name] = r
		if !form.MatchString(r.Name) {
			fail(r, "not of the form of a name")
		}
		if !slices.Contains(Sets(), r.Set) || len(r.Name) <= len(r.Set) || r.Name[:len(r.Set)+1] != string(r.Set)+"/" {
			fail(r, "the name does not begin with the set")
		}
		if (r.Prepare == nil) == (r.Measure == nil) {
			fail(r, "needs either Prepare or Measure")
		}
		if r.About == "" {
			fail(r, "no About")
		}
	}
	for _, r := range rows {
		if to, known := byName[r.RatioTo]; r.RatioTo != "" && (!known || to.Name == r.Name) {
			fail(r, "compared with a row that does not exist")
		}
	}

	return errors.Join(wrong...)
}

// Spread does n operations on GOMAXPROCS goroutines: do(worker, n) does its
// share and is called at most once for each worker. The first error is returned
// when all have ended.
func Spread(n int, do func(worker, n int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		share := n / workers
		if w < n%workers {
			share++
		}
		wg.Go(func() { errs[w] = do(w, share) })
	}
	wg.Wait()

	return errors.Join(errs...)
}

// Loop is the Run of a row whose operations are all alike.
func Loop(op func() error) func(n int) error {
	return func(n int) error {
		for range n {
			if err := op(); err != nil {
				return err
			}
		}

		return nil
	}
}
