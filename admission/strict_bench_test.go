//go:build linux && (amd64 || arm64 || riscv64 || ppc64le || s390x)

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/admission"
)

// bare is the four system calls of a check, and nothing else.
type bare struct {
	path [2][]byte
	fd   [2]int
}

func newBare(tb testing.TB, d *disk) *bare {
	tb.Helper()
	b := new(bare)
	for i, path := range [...]string{d.cfg.Ledger, d.cfg.Anchor} {
		f := must(os.Open(path))
		tb.Cleanup(func() { _ = f.Close() })
		b.path[i], b.fd[i] = append([]byte(path), 0), int(f.Fd())
	}

	return b
}

func (b *bare) do() bool {
	for i := range b.fd {
		var stat unix.Stat_t
		directory := unix.AT_FDCWD
		if _, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(directory), uintptr(unsafe.Pointer(&b.path[i][0])),
			uintptr(unsafe.Pointer(&stat)), unix.AT_SYMLINK_NOFOLLOW, 0, 0); errno != 0 {
			return false
		}
		var h [100]byte
		if n, err := unix.Pread(b.fd[i], h[:], 0); n != len(h) || err != nil {
			return false
		}
	}

	return true
}

var lengths = []uint64{10, 1_000, 100_000}

// BenchmarkStrictCheck is a check while nothing changes, beside its own four
// system calls, taken in turns: the ratio is of the medians.
func BenchmarkStrictCheck(b *testing.B) {
	for _, n := range lengths {
		d := newStore(b)
		d.fill(b, n)
		s := d.open(b)
		c := newController(b, s)
		p := preview(b, c, refunds)
		calls := newBare(b, d)
		for name, check := range map[string]func() error{
			"store":      func() error { _, err := s.Head(b.Context()); return err },
			"controller": func() error { return c.Check(b.Context(), p) },
		} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				const turn = 20
				var checks, bares []time.Duration
				b.ReportAllocs()
				for b.Loop() {
					from := time.Now()
					for range turn {
						if err := check(); err != nil {
							b.Fatal(err)
						}
					}
					between := time.Now()
					for range turn {
						if !calls.do() {
							b.Fatal("a system call failed")
						}
					}
					checks = append(checks, between.Sub(from)/turn)
					bares = append(bares, time.Since(between)/turn)
				}
				slices.Sort(checks)
				slices.Sort(bares)
				check, bare := checks[len(checks)/2], bares[len(bares)/2]
				b.ReportMetric(float64(check.Nanoseconds()), "ns/check")
				b.ReportMetric(float64(bare.Nanoseconds()), "ns/bare")
				b.ReportMetric(float64(check)/float64(bare), "ratio")
				b.ReportMetric(0, "ns/op") // of both together
			})
		}
	}
}

// BenchmarkOtherChecks is what the strict check is instead of: opening and
// verifying everything each time, and PRAGMA data_version.
func BenchmarkOtherChecks(b *testing.B) {
	for _, n := range lengths {
		d := newStore(b)
		d.fill(b, n)
		b.Run(fmt.Sprintf("naive-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := must(admission.OpenStore(b.Context(), d.cfg))
				must(s.Head(b.Context()))
				_ = s.Close()
			}
		})
		d.versions = true
		c := d.controller(b)
		p := preview(b, c, refunds)
		b.Run(fmt.Sprintf("data_version-%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Check(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSlowPath is the first check after a transition, and the transition,
// which is most of it: the metric is the check alone.
func BenchmarkSlowPath(b *testing.B) {
	for _, n := range lengths {
		d := newStore(b)
		d.fill(b, n)
		writer, s := d.controller(b), d.open(b)
		must(s.Head(b.Context()))
		writer.Status(b.Context(), global)
		b.Run(strconv.FormatUint(n, 10), func(b *testing.B) {
			var checks, commits []time.Duration
			for b.Loop() {
				from := time.Now()
				stop(b, writer, admission.Workflow(billing))
				between := time.Now()
				must(s.Head(b.Context()))
				checks = append(checks, time.Since(between))
				commits = append(commits, between.Sub(from))
			}
			slices.Sort(checks)
			slices.Sort(commits)
			b.ReportMetric(float64(checks[len(checks)/2].Nanoseconds()), "ns/check")
			b.ReportMetric(float64(commits[len(commits)/2].Nanoseconds()), "ns/commit")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkUnderWriter is two checkers that check a thousand times a second
// while somebody records fifty transitions in that time.
func BenchmarkUnderWriter(b *testing.B) {
	for name, versions := range map[string]bool{"headers": false, "data_version": true} {
		b.Run(name, func(b *testing.B) {
			d := newStore(b)
			d.versions = versions
			d.fill(b, 10)
			writer := d.controller(b)
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				tick := time.NewTicker(20 * time.Millisecond)
				defer tick.Stop()
				for ctx.Err() == nil {
					<-tick.C
					_, _ = writer.Stop(ctx, admission.Transition{Scope: admission.Workflow(billing)})
				}
			})
			var mu sync.Mutex
			var all []time.Duration
			busy := 0
			one := func(c *admission.Controller, rounds int) {
				tick := time.NewTicker(time.Millisecond)
				defer tick.Stop()
				for range rounds {
					<-tick.C
					from := time.Now()
					_, err := c.Preview(b.Context(), refunds)
					took := time.Since(from)
					mu.Lock()
					all = append(all, took)
					if errors.Is(err, admission.ErrStoreBusy) {
						busy++
					} else if err != nil {
						b.Error(err)
					}
					mu.Unlock()
				}
			}
			checkers := []*admission.Controller{d.controller(b), d.controller(b)}
			for b.Loop() {
				var both sync.WaitGroup
				for _, c := range checkers {
					both.Go(func() { one(c, 500) })
				}
				both.Wait()
			}
			cancel()
			wg.Wait()
			slices.Sort(all)
			for name, at := range map[string]float64{"p50-ns": 0.5, "p99-ns": 0.99, "p999-ns": 0.999} {
				b.ReportMetric(float64(all[int(float64(len(all)-1)*at)].Nanoseconds()), name)
			}
			b.ReportMetric(float64(busy), "busy")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStart is the first check of a process, and how much memory it needs
// at most beyond what there was.
func BenchmarkStart(b *testing.B) {
	for _, n := range lengths {
		d := newStore(b)
		d.fill(b, n)
		b.Run(strconv.FormatUint(n, 10), func(b *testing.B) {
			var most uint64
			for b.Loop() {
				b.StopTimer()
				runtime.GC()
				var before runtime.MemStats
				runtime.ReadMemStats(&before)
				done, sampled := make(chan struct{}), make(chan uint64)
				go func() {
					var most uint64
					tick := time.NewTicker(5 * time.Millisecond)
					defer tick.Stop()
					for {
						var now runtime.MemStats
						runtime.ReadMemStats(&now)
						most = max(most, now.HeapAlloc)
						select {
						case <-tick.C:
						case <-done:
							sampled <- most

							return
						}
					}
				}()
				b.StartTimer()
				c := d.controller(b)
				if st := c.Status(b.Context(), global); st.Generation != n {
					b.Fatalf("%+v", st)
				}
				b.StopTimer()
				close(done)
				if peak := <-sampled; peak > before.HeapAlloc {
					most = max(most, peak-before.HeapAlloc)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(most)/(1<<20), "peak-MiB")
		})
	}
}
