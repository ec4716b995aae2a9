//go:build linux

package admissionsoak_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/admission"
)

// TestOtherUsesOfFiles: an application that has opened a database of its own
// before, or that opens and closes the ledger by itself, commits beside others,
// and nothing is lost, recorded twice, or torn apart.
func TestOtherUsesOfFiles(t *testing.T) {
	t.Parallel()
	rounds := pick(20, 500)
	for _, role := range []string{"agent after another database", "agent that closes"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			dir := newStore(t)
			processes := []*process{start(t, role, dir), start(t, role, dir), start(t, "agent", dir)}
			generations := make(chan uint64, len(processes)*rounds)
			var wg sync.WaitGroup
			for i, p := range processes {
				wg.Go(func() {
					for round := range rounds {
						op := "stop" // never too late
						if (round+i)%3 == 0 {
							op = "enable"
						}
						if p.in.Encode(order{op, "global"}) != nil {
							t.Error("a process is gone")

							return
						}
						var r report
						if err := p.out.Decode(&r); err != nil {
							t.Error(err)

							return
						}
						switch {
						case r.Code == "ok":
							generations <- r.Generation
						case r.Code != "stale_generation" && r.Code != "store_busy":
							t.Errorf("%s: %s", op, r.Code)
						}
					}
				})
			}
			wg.Wait()
			close(generations)
			seen := map[uint64]bool{1: true}
			for g := range generations {
				if seen[g] {
					t.Errorf("generation %d was recorded twice", g)
				}
				seen[g] = true
			}
			s := must(admission.OpenStore(t.Context(), config(dir)))
			defer s.Close()
			v, err := admission.Verify(t.Context(), s)
			if err != nil || v.Head.Generation != uint64(len(seen)) {
				t.Errorf("%+v, %v, %d acknowledged", v, err, len(seen))
			}
			if len(seen) < rounds {
				t.Errorf("only %d transitions", len(seen))
			}
			others := must(filepath.Glob(filepath.Join(dir, "another-*.db")))
			if (len(others) == 2) != (role == "agent after another database") {
				t.Errorf("the other databases: %d", len(others))
			}
		})
	}
}
